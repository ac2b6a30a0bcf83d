"""Arguments as models write them, made what a tool's schema says where only one meaning is possible.

A model that must fill in every argument (OpenAI's strict mode) writes null, or an empty string, for what it would leave
out. Others write numbers and booleans as strings, or know no integers.
"""

import re
from collections.abc import Mapping
from typing import Any

from kb.core.types import Json

WHOLE = re.compile(r"[+-]?[0-9]{1,18}(\.0+)?")
NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?")
BOOLEANS = {"true": True, "false": False}


def understood(arguments: Mapping[str, Any], schema: Json) -> Json:
    """The given arguments in the types of the schema. Unknown ones stay, so that they can be refused by name."""
    required = schema.get("required", ())
    given: Json = {}
    for name, value in arguments.items():
        field = schema["properties"].get(name)
        if field is None:
            given[name] = value
            continue
        plain = _plain(field)
        # An empty number or list item is a mistake and stays one: left out, `expected_version` would guard nothing.
        left_out = value is None or (value == "" and plain["type"] == "string" and name not in required)
        if not left_out:
            given[name] = _value(value, plain)
    return given


def _plain(field: Json) -> Json:
    """The schema of an argument without its null."""
    return next((option for option in field.get("anyOf", ()) if option != {"type": "null"}), field)


def _value(value: Any, schema: Json) -> Any:
    if isinstance(value, dict) and "properties" in schema:
        return understood(value, schema)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, str):
        return value
    text, kind = value.strip(), schema["type"]
    if kind == "integer" and WHOLE.fullmatch(text):
        return int(text.partition(".")[0])
    if kind == "number" and NUMBER.fullmatch(text):
        return float(text)
    return BOOLEANS.get(text.lower(), value) if kind == "boolean" else value
