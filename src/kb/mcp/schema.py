"""JSON schemas as every client takes them.

OpenAI and Gemini reject more than the specification does, so what pydantic makes of a signature is flattened: no
`$ref`, nothing but an object at the top, an optional argument has its plain type instead of `anyOf` with null.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from kb.nouns import Json

# Words of JSON schema that mean nothing to an agent, or that common clients refuse.
DROPPED = ("title", "additionalProperties", "$defs")


def arguments_schema(schema: Json) -> Json:
    """The schema of a tool's arguments."""
    flat = _flat(schema, schema.get("$defs", {}))
    return _object(_without_nulls(flat.get("properties", {})), flat.get("required", []))


def answer_schema(*shapes: Any, required: tuple[str, ...] = ()) -> Json:
    """The schema of an answer that has one of these shapes.

    Only what every answer has is required, errors included: some clients check the structure of an error too.
    """
    properties: Json = {}
    for shape in shapes:
        schema = TypeAdapter(shape).json_schema(mode="serialization")
        properties |= _flat(schema, schema.get("$defs", {})).get("properties", {})
    return _object(properties, list(required))


def _flat(schema: Any, shapes: Mapping[str, Any]) -> Any:
    """The same schema with every reference replaced by what it refers to."""
    if isinstance(schema, list):
        return [_flat(item, shapes) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _flat(
            shapes[schema["$ref"].rpartition("/")[2]] | {k: v for k, v in schema.items() if k != "$ref"}, shapes
        )
    flat = {}
    for word, value in schema.items():
        if word == "properties":
            flat[word] = {name: _flat(field, shapes) for name, field in value.items()}
        elif word not in DROPPED and not (word == "default" and value is None):
            flat[word] = _flat(value, shapes)
    return flat


def _without_nulls(properties: Json) -> Json:
    """Arguments that may be left out as what they are when they are there. Null is taken for left out all the same."""
    plain = {}
    for name, field in properties.items():
        options: list[Json] = [option for option in field.get("anyOf", []) if option != {"type": "null"}]
        plain[name] = {word: value for word, value in field.items() if word != "anyOf"}
        if len(options) == 1:
            plain[name] = options[0] | plain[name]
        elif options:
            plain[name]["anyOf"] = options
        if "properties" in plain[name]:
            plain[name]["properties"] = _without_nulls(plain[name]["properties"])
    return plain


def _object(properties: Json, required: list[str]) -> Json:
    return {"type": "object", "properties": properties} | ({"required": required} if required else {})
