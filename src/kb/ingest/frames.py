"""How the engine and a sandboxed process talk: frames of JSON with bytes behind it, over pipes.

JSON and not pickle: what a broken parser makes its process say must never run in the engine.
"""

import json
import struct
from typing import Any, NamedTuple

HEAD = struct.Struct("!IQ")  # bytes of JSON, bytes of the payload
MESSAGE_BYTES = 2**20  # of the JSON at most


class Frame(NamedTuple):
    message: dict[str, Any]
    payload: bytes = b""


def pack(frame: Frame) -> bytes:
    head = json.dumps(frame.message, ensure_ascii=False).encode("utf-8", "replace")
    return HEAD.pack(len(head), len(frame.payload)) + head + frame.payload


def unpack(data: bytes | bytearray, message_bytes: int) -> Frame:
    """The frame in everything that followed its head."""
    return Frame(json.loads(bytes(data[:message_bytes])), bytes(data[message_bytes:]))
