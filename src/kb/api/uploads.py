"""A multipart upload, streamed to disk as it arrives: memory holds one block of it."""

import json
from pathlib import PurePosixPath
from typing import Any, Protocol

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from kb.api.limits import Slots
from kb.api.schemas import FileForm
from kb.core.errors import InvalidRequest, TooLarge

MAX_FIELDS_BYTES = 2**20  # all fields beside the file
MAX_UPLOADS = 32
FLAGS = ("force_ocr", "replace_tags", "force")


class Sink(Protocol):
    """Where the file's bytes go."""

    def write(self, data: bytes) -> None: ...


class MultipartUpload:
    """Takes the parser's events: the file's bytes go to `sink`, the fields are collected."""

    def __init__(self, sink: Sink, boundary: bytes) -> None:
        self.filename: str | None = None
        self._sink = sink
        self._fields: dict[str, list[str]] = {}
        self._field_bytes = 0
        self._reset()
        self.ended = False
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._reset,
                "on_header_field": self._on_header_field,
                "on_header_value": self._on_header_value,
                "on_header_end": self._on_header_end,
                "on_headers_finished": self._on_headers_finished,
                "on_part_data": self._on_part_data,
                "on_part_end": self._on_part_end,
                "on_end": self._on_end,
            },
        )

    def feed(self, block: bytes) -> None:
        try:
            self._parser.write(block)
        except FormParserError as wrong:
            raise InvalidRequest(f"The multipart body cannot be read: {wrong}") from wrong

    def form(self) -> FileForm:
        """The fields, checked like a JSON body."""
        values: dict[str, Any] = {}
        for name, given in self._fields.items():
            if name == "tags":
                values[name] = tag_list(given)
            elif len(given) > 1:
                raise InvalidRequest(f"The field {name!r} was sent {len(given)} times; send it once.")
            elif name == "metadata":
                values[name] = json_field(name, given[0])
            elif name in FLAGS:
                values[name] = flag(name, given[0])
            else:
                values[name] = given[0] or None
        return FileForm.model_validate(values)

    def _reset(self) -> None:
        self._headers: dict[bytes, bytes] = {}
        self._header_name = b""
        self._header_value = b""
        self._name = ""
        self._is_file = False
        self._value = bytearray()

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _on_header_end(self) -> None:
        self._headers[self._header_name.lower()] = self._header_value
        self._header_name = self._header_value = b""

    def _on_headers_finished(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        self._name = decoded(options.get(b"name", b""))
        self._is_file = b"filename" in options or self._name == "file"
        if not self._is_file:
            if self._name not in FileForm.model_fields:
                known = ", ".join(["file", *FileForm.model_fields])
                raise InvalidRequest(f"There is no field {self._name[:80]!r}. Known: {known}.")
            return
        if self._name != "file":
            raise InvalidRequest(f"A file was sent as the field {self._name[:80]!r}; send it as 'file'.")
        if self.filename is not None:
            raise InvalidRequest("More than one file was sent; send one request for each.")
        self.filename = base_name(decoded(options.get(b"filename", b"")))

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self._is_file:
            self._sink.write(data[start:end])
            return
        self._field_bytes += end - start
        if self._field_bytes > MAX_FIELDS_BYTES:
            raise TooLarge("The fields beside the file hold more than 1 MB.")
        self._value += data[start:end]

    def _on_part_end(self) -> None:
        if not self._is_file:
            self._fields.setdefault(self._name, []).append(decoded(bytes(self._value)))

    def _on_end(self) -> None:
        self.ended = True


async def receive(request: Request, sink: Sink) -> MultipartUpload:
    """Read the whole body; the file's bytes end up in `sink`."""
    _, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary")
    if not boundary:
        raise InvalidRequest("The Content-Type names no multipart boundary.")
    try:
        upload = MultipartUpload(sink, boundary)
    except FormParserError as wrong:
        raise InvalidRequest(f"The multipart boundary cannot be used: {wrong}") from wrong
    async for block in request.stream():
        if block:
            await run_in_threadpool(upload.feed, block)
    if not upload.ended:
        raise InvalidRequest("The multipart body ends too early. Send it again.")
    if upload.filename is None:
        raise InvalidRequest("No file was sent. Send it as the multipart field 'file'.")
    return upload


def upload_slots() -> Slots:
    return Slots(MAX_UPLOADS, f"{MAX_UPLOADS} files are being received already. Try again in a moment.")


def base_name(filename: str) -> str:
    """The last part of a path of any system, printable and at most 255 characters long."""
    name = PurePosixPath(filename.replace("\\", "/")).name
    name = "".join(char for char in name if char.isprintable())[:255]
    return name if name.strip(". ") else "upload"


def decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as wrong:
        raise InvalidRequest("A field or file name in the multipart body is not UTF-8.") from wrong


def tag_list(given: list[str]) -> list[str]:
    """Tags from repeated fields, or from one field with a JSON list."""
    if len(given) == 1 and given[0].lstrip().startswith("["):
        tags = json_field("tags", given[0])
        if isinstance(tags, list):
            return tags
    return [tag for tag in given if tag]


def json_field(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as wrong:
        raise InvalidRequest(f"The field {name!r} is not valid JSON: {wrong}") from wrong
    except RecursionError as wrong:
        raise InvalidRequest(f"The field {name!r} is nested too deeply.") from wrong


def flag(name: str, text: str) -> bool:
    known = {"true": True, "1": True, "false": False, "0": False, "": False}
    if text.lower() not in known:
        raise InvalidRequest(f"The field {name!r} is {text[:80]!r}; it is true or false.")
    return known[text.lower()]
