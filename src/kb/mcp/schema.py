"""JSON schemas as every client takes them.

OpenAI and Gemini reject more than the specification does, so what pydantic makes of a signature is flattened: no
`$ref`, nothing but an object at the top. An optional argument is `anyOf` its type and null; Gemini refuses a list of
types.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import TypeAdapter

from kb.core.types import Json

# Words of JSON schema that mean nothing to an agent, or that common clients refuse.
DROPPED = ("title", "additionalProperties", "$defs")
# Words that are about an argument as a whole, null or not.
ABOUT = ("description", "default")
NULL: Json = {"type": "null"}


def arguments_schema(schema: Json) -> Json:
    """The schema of a tool's arguments."""
    flat = _flat(schema, schema.get("$defs", {}))
    required = flat.get("required", [])
    return _object(_nullable(flat.get("properties", {}), required), required)


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


def _nullable(properties: Json, required: Iterable[str] = ()) -> Json:
    """The same properties, where optional ones may be null: a client in strict mode must send all of them."""
    fields = {}
    for name, field in properties.items():
        (plain,) = [option for option in field.get("anyOf", [field]) if option != NULL]
        told = plain | field
        about = {word: told[word] for word in ABOUT if word in told}
        plain = {word: value for word, value in plain.items() if word not in ABOUT}
        if "properties" in plain:
            plain["properties"] = _nullable(plain["properties"], plain.get("required", ()))
        fields[name] = (plain if name in required else {"anyOf": [plain, NULL]}) | about
    return fields


def _object(properties: Json, required: list[str]) -> Json:
    return {"type": "object", "properties": properties} | ({"required": required} if required else {})
