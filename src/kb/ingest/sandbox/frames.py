"""How the engine and a sandboxed process talk: frames of JSON with bytes behind it, over a socket.

JSON and not pickle: what a broken parser makes its process say must never run in the engine. The head of a frame may
bring an open file along.
"""

import json
import struct
from typing import Any, NamedTuple

HEAD = struct.Struct("!IQ")  # bytes of JSON, bytes of the payload
MESSAGE_BYTES = 2**20  # of the JSON at most


class Frame(NamedTuple):
    message: bytes  # JSON
    payload: bytes = b""


def pack(message: dict[str, Any], payload: bytes = b"") -> bytes:
    head = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
    return HEAD.pack(len(head), len(payload)) + head + payload


def unpack(data: bytes | bytearray, message_bytes: int) -> Frame:
    """The frame in everything that followed its head."""
    view = memoryview(data)  # a slice of the data would be one more copy of 100 MB
    return Frame(bytes(view[:message_bytes]), bytes(view[message_bytes:]))
