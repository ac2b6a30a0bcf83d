"""A mail as Outlook stores it (MSG): properties in an OLE container (MS-OXMSG)."""

import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.header import Header
from email.mime.application import MIMEApplication
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from email.utils import format_datetime

import olefile

from kb.core.errors import JobFailure
from kb.ingest.extract.containers.eml import MAX_ATTACHMENTS, chosen, html_parts
from kb.ingest.extract.containers.letter import Attachment, Body, Letter
from kb.ingest.extract.mime import text_of
from kb.ingest.extract.part import Part
from kb.ingest.extract.tidy import one_line, tidy
from kb.ingest.extract.tools import Source

SUBJECT, HEADERS, SENT, RECEIVED = 0x0037, 0x007D, 0x0039, 0x0E06
SENDER_NAME, SENDER_ADDRESS, SENDER_SMTP = 0x0C1A, 0x0C1F, 0x5D01
OTHER_SENDER_NAME, OTHER_SENDER_ADDRESS = 0x0042, 0x0065
TO, CC, PLAIN, HTML = 0x0E04, 0x0E03, 0x1000, 0x1013
RECIPIENT_KIND, NAME, ADDRESS, SMTP_ADDRESS = 0x0C15, 0x3001, 0x3003, 0x39FE
DATA, SHORT_NAME, LONG_NAME, MEDIA_TYPE, CONTENT_ID = 0x3701, 0x3704, 0x3707, 0x370E, 0x3712
CODEPAGE, HTML_CODEPAGE = 0x3FFD, 0x3FDE

TEXT, BYTES, OBJECT, TEXT_OF_CODEPAGE = 0x001F, 0x0102, 0x000D, 0x001E
ENTRY = struct.Struct("<HHI8s")  # of a property of fixed size: type, number, flags, value
# How the list of these properties begins: the message, one inside of another, an attachment or recipient.
OUTERMOST, EMBEDDED, CHILD = 32, 24, 8
CODEPAGES = {65001: "utf-8", 20127: "ascii", 28591: "iso8859-1", 1200: "utf-16-le"}
EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
LARGEST = 100 * 2**20  # bytes of one property
MAX_DEPTH = 5  # messages inside of each other
RECIPIENTS = 200

Folder = tuple[str, ...]


class Properties:
    """The properties of a message, an attachment or a recipient, which is a folder of the container."""

    def __init__(self, ole: olefile.OleFileIO, folder: Folder, head: int, codepage: str = "cp1252") -> None:
        self._ole = ole
        self._folder = folder
        self._fixed = dict(self._fixed_properties(head))
        self.codepage = self._codepage(CODEPAGE) or codepage

    def text(self, number: int) -> str:
        if (data := self._stream(number, TEXT)) is not None:
            return data.decode("utf-16-le", "replace").rstrip("\0")
        data = self._stream(number, TEXT_OF_CODEPAGE) or b""
        return text_of(data.rstrip(b"\0"), self.codepage).text

    def line(self, *numbers: int) -> str:
        """The first of these that there is, on one line."""
        return next(filter(None, (one_line(self.text(number)) for number in numbers)), "")

    def data(self, number: int) -> bytes | None:
        return self._stream(number, BYTES)

    def number(self, number: int) -> int:
        return int.from_bytes(self._fixed.get(number, b"")[:4], "little")

    def moment(self, *numbers: int) -> str:
        """The first of these times that there is, in ISO 8601."""
        for number in numbers:
            ticks = int.from_bytes(self._fixed.get(number, b""), "little")
            if 0 < ticks < 2**62:
                return (EPOCH + timedelta(microseconds=ticks // 10)).replace(microsecond=0).isoformat()
        return ""

    def html_codepage(self) -> str:
        return self._codepage(HTML_CODEPAGE) or self.codepage

    def embedded(self) -> Folder | None:
        """The folder of a message inside of this attachment."""
        folder = (*self._folder, f"__substg1.0_{DATA:04X}{OBJECT:04X}")
        return folder if self._ole.exists([*folder, "__properties_version1.0"]) else None

    def _codepage(self, number: int) -> str | None:
        found = self.number(number)
        return CODEPAGES.get(found, f"cp{found}") if found else None

    def _stream(self, number: int, kind: int) -> bytes | None:
        return read(self._ole, (*self._folder, f"__substg1.0_{number:04X}{kind:04X}"))

    def _fixed_properties(self, head: int) -> Iterator[tuple[int, bytes]]:
        data = read(self._ole, (*self._folder, "__properties_version1.0")) or b""
        for at in range(head, len(data) - ENTRY.size + 1, ENTRY.size):
            _, number, _, value = ENTRY.unpack_from(data, at)
            yield number, value


def letter_of(source: Source) -> Letter:
    try:
        ole = olefile.OleFileIO(source.open())
    except (OSError, ValueError, struct.error, IndexError) as error:
        raise JobFailure("corrupt", f"The mail is cut off or damaged: {error}") from None
    if not ole.exists("__properties_version1.0"):
        raise JobFailure("corrupt", "It is named like a mail of Outlook, but holds none.")
    return message(ole, (), OUTERMOST)


def message(ole: olefile.OleFileIO, folder: Folder, head: int, depth: int = 1) -> Letter:
    held = Properties(ole, folder, head)
    names = folders(ole, folder)
    recipients = [Properties(ole, (*folder, name), CHILD, held.codepage) for name in names if "__recip" in name]
    attachments = [name for name in names if name.startswith("__attach")]
    if len(attachments) > MAX_ATTACHMENTS:
        raise JobFailure("too_complex", f"The mail has more than {MAX_ATTACHMENTS} attachments.")
    return Letter(
        subject=held.line(SUBJECT),
        sender=addressed(
            held.line(SENDER_NAME, OTHER_SENDER_NAME),
            held.line(SENDER_SMTP, SENDER_ADDRESS, OTHER_SENDER_ADDRESS),
        ),
        to=listed(recipients, 1) or held.line(TO),
        cc=listed(recipients, 2) or held.line(CC),
        date=held.moment(SENT, RECEIVED),
        bodies=chosen([[body] for body in bodies(held)]),
        attachments=[attachment(ole, (*folder, name), held, depth) for name in attachments],
    )


def bodies(held: Properties) -> Iterator[Body]:
    """The same text in several forms, the plain one first."""
    if plain := tidy(held.text(PLAIN)):
        yield Body([Part("text", plain)])
    page = held.data(HTML)
    if page is not None:
        found = text_of(page.rstrip(b"\0"), held.html_codepage())
        yield Body(list(html_parts(found)))
    elif text := held.text(HTML):
        yield Body(list(html_parts(text_of(text.encode("utf-8", "replace"), "utf-8"))))


def attachment(ole: olefile.OleFileIO, folder: Folder, parent: Properties, depth: int) -> Attachment:
    held = Properties(ole, folder, CHILD, parent.codepage)
    name = held.line(LONG_NAME, SHORT_NAME, NAME) or None
    inner = held.embedded()
    if inner is None:
        data = held.data(DATA)
        failure = "It is not in the mail, or not as a file." if data is None else None
        kind = held.line(MEDIA_TYPE).lower() or "application/octet-stream"
        return Attachment(name, kind, data or b"", bool(held.line(CONTENT_ID)), failure)
    name = f"{(name or 'message').removesuffix('.msg').removesuffix('.eml')}.eml"
    if depth >= MAX_DEPTH:
        return Attachment(name, "message/rfc822", b"", failure="It is nested too deeply to be read.")
    return Attachment(name, "message/rfc822", written(message(ole, inner, EMBEDDED, depth + 1)))


def written(letter: Letter) -> bytes:
    """A letter as it would travel: a message inside of a container has no file of its own."""
    made = MIMEMultipart()
    told = {"Subject": letter.subject, "From": letter.sender, "To": letter.to, "Cc": letter.cc}
    for name, value in told.items():
        if value:
            made[name] = Header(value, "utf-8").encode()
    if letter.date:
        made["Date"] = format_datetime(datetime.fromisoformat(letter.date))
    text = "\n\n".join(part.text for body in letter.bodies for part in body.parts if not part.hidden)
    made.attach(MIMEText(text, "plain", "utf-8"))
    for one in letter.attachments:
        if not one.failure:
            file = MIMEApplication(one.data)
            file.add_header("Content-Disposition", "attachment", filename=one.name or "file")
            made.attach(file)
    return made.as_bytes()


def folders(ole: olefile.OleFileIO, folder: Folder) -> list[str]:
    """The names of the folders in this one, in order."""
    found = (path for path in ole.listdir(streams=False, storages=True) if len(path) == len(folder) + 1)
    return sorted(path[-1] for path in found if tuple(path[:-1]) == folder)


def read(ole: olefile.OleFileIO, path: Folder) -> bytes | None:
    """A stream of the container; None where there is none, or it is damaged."""
    name = list(path)
    try:
        if not ole.exists(name) or ole.get_size(name) > LARGEST:
            return None
        data: bytes = ole.openstream(name).read()
    except (OSError, ValueError, struct.error, IndexError):
        return None
    return data


def listed(recipients: list[Properties], kind: int) -> str:
    found = [
        addressed(held.line(NAME), held.line(SMTP_ADDRESS, ADDRESS))
        for held in recipients[:RECIPIENTS]
        if held.number(RECIPIENT_KIND) == kind
    ]
    return ", ".join(filter(None, found))


def addressed(name: str, address: str) -> str:
    """Name and address as a mail has them; an address of Exchange's own says nothing."""
    if "@" not in address or address in name:
        return name
    return f"{name} <{address}>" if name else address
