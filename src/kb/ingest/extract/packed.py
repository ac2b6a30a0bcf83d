"""What the edges of an archive say about it: the names of its members, whether it is a TAR."""

import struct
from collections.abc import Iterator

END = struct.Struct("<4s4H2LH")  # of a ZIP: signature, four counts, size and offset of the list of members, comment
LISTED = struct.Struct("<4s6H3L5H2L")  # a member in that list, before its name
LOCAL = struct.Struct("<4s5H3L2H")  # a member itself, before its name
CHECKSUM = slice(148, 156)  # in the header of a TAR's member, whose other bytes it sums up
TAR_HEADER = 512


def zip_names(head: bytes, tail: bytes) -> set[bytes]:
    """The names of a ZIP's members, as far as its first and last bytes have them."""
    listed = listed_names(tail)
    return {*listed, first_name(head)} if listed else set(found_names(head))


def first_name(head: bytes) -> bytes:
    return next(found_names(head), b"")


def found_names(head: bytes) -> Iterator[bytes]:
    """What looks like the name of a member: of an archive that is cut off, nothing else is known."""
    at = head.find(b"PK\x03\x04")
    while 0 <= at <= len(head) - LOCAL.size:
        start = at + LOCAL.size
        yield head[start : start + LOCAL.unpack_from(head, at)[-2]]
        at = head.find(b"PK\x03\x04", start)


def listed_names(tail: bytes) -> list[bytes]:
    """The names in the list at the end; of a list that begins before these bytes, the last ones."""
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or end + END.size > len(tail):
        return []
    start = end - END.unpack_from(tail, end)[5]
    if start >= 0:
        return chained(tail, start, end)
    at = tail.find(b"PK\x01\x02")
    while 0 <= at < end:  # a name or a comment may hold these bytes, too
        if names := chained(tail, at, end):
            return names
        at = tail.find(b"PK\x01\x02", at + 1)
    return []


def chained(tail: bytes, at: int, end: int) -> list[bytes]:
    """The names of members that are listed one behind the other, exactly up to the end."""
    names = []
    while at + LISTED.size <= end and tail.startswith(b"PK\x01\x02", at):
        fields = LISTED.unpack_from(tail, at)
        name, extra, comment = fields[10:13]
        names.append(tail[at + LISTED.size : at + LISTED.size + name])
        at += LISTED.size + name + extra + comment
    return names


def is_tar(head: bytes) -> bool:
    """Whether the first bytes are the header of a TAR's member: its checksum is right."""
    header = head[:TAR_HEADER]
    try:
        told = int(header[CHECKSUM].strip(b" \0") or b"-1", 8)
    except ValueError:
        return False
    return len(header) == TAR_HEADER and told == sum(header) - sum(header[CHECKSUM]) + 8 * ord(" ")
