"""In which encoding the bytes of a text are, and the text.

Certain signs come first: a byte order mark, valid UTF-8, the shape of UTF-16 and UTF-32. Then the encoding that the
file declares, if the bytes agree; then the one that they look like most. A reading that no language has is refused:
a failure can be put right, text that was read wrongly is never found again.
"""

import codecs
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import chardet

from kb.core.errors import JobFailure
from kb.ingest.extract.detect import BOMS, END_OF_DOS, NEVER_IN_TEXT, strays
from kb.ingest.extract.wide import wide_encoding

# What is read, and how the ledger calls it.
NAMES = {
    "cp1252": "Windows-1252",
    "iso8859-15": "ISO-8859-15",
    "cp1250": "Windows-1250",
    "iso8859-2": "ISO-8859-2",
    "iso8859-16": "ISO-8859-16",
    "cp1251": "Windows-1251",
    "koi8-r": "KOI8-R",
    "koi8-u": "KOI8-U",
    "iso8859-5": "ISO-8859-5",
    "cp866": "DOS-866",
    "cp1253": "Windows-1253",
    "iso8859-7": "ISO-8859-7",
    "cp1254": "Windows-1254",
    "cp1255": "Windows-1255",
    "iso8859-8": "ISO-8859-8",
    "cp1256": "Windows-1256",
    "iso8859-6": "ISO-8859-6",
    "cp1257": "Windows-1257",
    "cp1258": "Windows-1258",
    "cp874": "Windows-874 (Thai)",
    "gb18030": "GB18030 (Chinese)",
    "cp950": "Big5",
    "big5hkscs": "Big5-HKSCS",
    "cp932": "Shift-JIS",
    "euc_jp": "EUC-JP",
    "cp949": "EUC-KR",
    "iso2022_jp_2": "ISO-2022-JP",
    "hz": "HZ (Chinese)",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "utf-32-le": "UTF-32",
    "utf-32-be": "UTF-32",
}
# Encodings of which another one has every character, and more: programs write the larger and declare the smaller.
LARGER = {
    "ascii": ("cp1252",),
    "iso8859-1": ("cp1252",),
    "iso8859-9": ("cp1254",),
    "iso8859-11": ("cp874",),
    "tis-620": ("cp874",),
    "gb2312": ("gb18030",),
    "gbk": ("gb18030",),
    "big5": ("cp950", "big5hkscs"),
    "big5hkscs": ("cp950", "big5hkscs"),
    "shift_jis": ("cp932",),
    "shift_jis_2004": ("cp932",),
    "shift_jisx0213": ("cp932",),
    "euc_jis_2004": ("euc_jp",),
    "euc_jisx0213": ("euc_jp",),
    "euc_kr": ("cp949",),
    "iso2022_jp": ("iso2022_jp_2",),
}
# Written with the bytes of ASCII, and what the other characters begin with.
ESCAPED = {"iso2022_jp_2": b"\x1b$", "hz": b"~{"}
MANY_BYTES = ("gb18030", "cp950", "big5hkscs", "cp932", "euc_jp", "cp949")
SELDOM = ("iso8859-16",)  # comes behind those that are nearly as likely: hardly a file is written in it
OF_LATIN = ("cp1252", "iso8859-15", "cp1250", "iso8859-2", "iso8859-16", "cp1254", "cp1257")
DECLARATIONS = (
    re.compile(rb"\A\s*<\?xml[^>]*?\sencoding\s*=\s*[\"']([\w.:-]+)", re.IGNORECASE),
    re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE),
    re.compile(rb"\A(?:[^\n]*\n)?[^\n]*coding[:=][ \t]*([\w.-]+)"),  # Python, Emacs, Vim: in the first two lines
)
DECLARED_WITHIN = 4096  # bytes
DECLARED = re.compile(rb"(?:charset|coding)\s*[=:]\s*[\"']?[\w.:-]+", re.IGNORECASE)
SAMPLE = 65536  # bytes that the detector sees
CONTEXT = 4096  # bytes of a line before and after a character
FEW = 5  # characters beyond ASCII, which can be anything
WEAK = 0.03  # a score that says little: of a few words
NEAR = 0.9  # of the best score: as likely as that
AGREES = 0.995  # of the best score: nothing in the bytes speaks for another than what the file declares
POSSIBLE = 0.5  # of the best score: of a few letters, the declaration may be right
RARE = 200  # characters to each place that is damaged
WIDE = "WF"  # how Unicode calls the width of the characters of East Asia
MOSTLY = 0.8
PLAIN = re.compile(rb"[A-Za-z]+")
PAIR = re.compile(rb"[\x80-\xff]{2}")
HIGH = re.compile(rb"[\x80-\xff]")
C1 = re.compile(r"[\x80-\x9f]")
FOREIGN = re.compile(r"[^\x00-\x7f]")
JUDGED = 200_000  # characters of a reading that are looked at
NO_ENDS = frozenset("±¿¡¦¬¯¼¾£")  # signs that end no word; in encodings of Central Europe they are letters
NO_WORDS = frozenset(
    "ŠšŽž"
)  # neither words nor doubled, but where DOS has the "è" of Italian, and Mac the "é" of Dutch
CLOSED = frozenset("‘’")  # what a quotation ends with that begins with a "‚", where DOS has the "é"
JOINERS = frozenset("’‘·‐‑–—…")  # signs that stand in words
ODD = 0.08  # of the characters beyond ASCII that may stand oddly: names of products, formulas
LEAST = 0.05  # what an apostrophe counts that begins a word: it may be right
LATIN = ("LATIN", "MICRO", "FEMININE", "MASCULINE")  # what stands beside ASCII letters in a word, by its name
SPACED = bytes.maketrans(NEVER_IN_TEXT, b" " * len(NEVER_IN_TEXT))
CONVERT = "Convert it to UTF-8 and add it again."


@dataclass(frozen=True, slots=True)
class Decoded:
    text: str
    reason: str | None = None  # what the ledger says about it; None for UTF-8


def prepare() -> None:
    """Have the detector load what it knows: in the sandbox it could not later."""
    for text, encoding in (
        ("À bientôt, à Zürich", "cp1252"),
        ("Съешь ещё этих булок", "cp1251"),
        ("春眠不覚暁", "cp932"),
    ):
        ranked(text.encode(encoding))


def decoded(data: bytes, said: str | None = None) -> Decoded:
    """The text of a file. Raises JobFailure if no encoding fits or it is not clear which.

    `said` is the encoding that stands beside it, as in a mail.
    """
    for bom, encoding in BOMS:
        if data.startswith(bom):
            return by_mark(data, encoding)
    if data.translate(None, NEVER_IN_TEXT) != data:
        return strayed(data) or without_mark(data)
    data = data.rstrip(END_OF_DOS)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return damaged_utf8(data) or older(data, said or declared(data))
    return escaped(data) or Decoded(text)


def by_mark(data: bytes, encoding: str) -> Decoded:
    name = "UTF-8" if encoding == "utf-8-sig" else encoding.upper()
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        raise JobFailure(
            "corrupt", f"The file says it is {name}, but it is not valid {name}. Was it cut or damaged?"
        ) from None
    return Decoded(text, None if name == "UTF-8" else f"read as {name}")


def strayed(data: bytes) -> Decoded | None:
    """UTF-8 with a control character here and there, which becomes a space."""
    count = strays(data)
    text = strictly(data.translate(SPACED), "utf-8") if count else None
    characters = "1 control character is" if count == 1 else f"{count} control characters are"
    return None if text is None else Decoded(text, f"{characters} left out")


def without_mark(data: bytes) -> Decoded:
    encoding = wide_encoding(data)
    if encoding is None:
        raise JobFailure(
            "corrupt", "The file starts like text but holds bytes that no text has. Was it cut or damaged?"
        )
    try:
        return Decoded(data.decode(encoding), f"read as {NAMES[encoding]}")
    except UnicodeDecodeError:
        name = NAMES[encoding]
        raise JobFailure(
            "corrupt", f"The file starts like {name}, but it is not valid {name}. Was it cut or damaged?"
        ) from None


def escaped(data: bytes) -> Decoded | None:
    """Text with sequences that stand for other characters. Colours of a terminal and signs in a program are none."""
    for encoding, begin in ESCAPED.items():
        text = strictly(data, encoding) if begin in data and data.isascii() else None
        if (
            text
            and begin.decode() not in text
            and any(character.isalpha() and is_wide(character) for character in text)
        ):
            return Decoded(text, f"read as {NAMES[encoding]}")
    return None


def damaged_utf8(data: bytes) -> Decoded | None:
    """UTF-8 with a damaged place here and there, such as a character that was cut."""
    text = data.decode("utf-8", "replace")
    marks = text.count("\ufffd") - data.count("\ufffd".encode())
    foreign = sum(1 for _ in FOREIGN.finditer(text)) - marks
    if marks * 20 > foreign:
        return None
    return Decoded(text, f"read as UTF-8; {places(marks)} that {'is' if marks == 1 else 'are'} not UTF-8 became �")


def places(count: int) -> str:
    return "1 place" if count == 1 else f"{count} places"


def older(data: bytes, said: str | None) -> Decoded:
    """Text of an encoding that knows the characters of some languages only; `said` is the one that it declares."""
    scores = ranked(sample(data))
    best = max(scores.values(), default=0.0)
    guess = [encoding for encoding, score in scores.items() if score >= NEAR * best]
    for encoding in larger(said) if said else ():
        if agrees(data, encoding, scores, best):
            return Decoded(data.decode(encoding), f"read as {NAMES[encoding]}, as it says")
        if encoding in MANY_BYTES and (found := damaged(data, encoding)):
            return found
    paired = next(iter(scores), "") not in MANY_BYTES or PAIR.search(data)  # no character of theirs stands alone
    if (best < WEAK or not paired) and mostly_ascii(data):
        guess = ["cp1252", *guess]
    elif "cp1252" in guess:  # by far the most frequent: what is only as likely stands behind it
        guess = [*western(data, guess), *guess]
    looks = ""
    for encoding in sorted(guess, key=SELDOM.__contains__):
        if encoding not in NAMES:  # those behind it are less likely
            looks = f" It looks like {encoding}, which is not read."
            if encoding.startswith("utf-8"):
                looks = " It looks like UTF-8 that is cut off or damaged."
            break
        if text := fitting(data, encoding):
            return Decoded(text, f"read as {NAMES[encoding]}{misled(said)}")
    raise JobFailure(
        "corrupt", f"The file is not UTF-8, and it is not clear which other encoding it has.{looks} {CONVERT}"
    )


def agrees(data: bytes, said: str, scores: dict[str, float], best: float) -> bool:
    """Whether nothing in the bytes speaks for another encoding than the one that the file declares."""
    text = fitting(data, said)
    if text is None:
        return False
    foreign = sum(1 for _ in FOREIGN.finditer(text))
    few = said in OF_LATIN and (foreign < FEW or foreign * 100 < len(text))  # the letters tell little then
    likeliest = strictly(data, next(iter(scores), said))
    as_good = likeliest is None or oddities(text) <= oddities(likeliest)
    return as_good and scores.get(said, 0.0) >= (POSSIBLE if few else AGREES) * best


def mostly_ascii(data: bytes) -> bool:
    """Whether a few accents stand among plain letters, in places where Windows-1252 has letters or signs."""
    text = strictly(data, "cp1252")
    foreign = sum(1 for _ in HIGH.finditer(data))
    return text is not None and 2 * foreign <= sum(map(len, PLAIN.findall(data))) and oddities(text) == 0


def western(data: bytes, guess: list[str]) -> list[str]:
    """Windows-1252, unless ISO-8859-15 has letters where that has signs: both are alike but for a few of them."""
    both = [encoding for encoding in ("cp1252", "iso8859-15") if encoding in guess]
    return sorted(both, key=lambda encoding: oddities(data.decode(encoding, "replace")))


def misled(said: str | None) -> str:
    return f", though it says {said}" if said else ""


def declared(data: bytes) -> str | None:
    """The encoding that a file says it has, if Python knows it."""
    head = data[:DECLARED_WITHIN]
    for pattern in DECLARATIONS:
        if found := pattern.search(head):
            try:
                return codecs.lookup(found[1].decode("ascii")).name
            except LookupError:
                continue
    return None


def larger(encoding: str) -> tuple[str, ...]:
    return LARGER.get(encoding, (encoding,) if encoding in NAMES else ())


def sample(data: bytes) -> bytes:
    """The lines with characters beyond ASCII, up to some size; without what the file says about its encoding."""
    lines, size, at = [], 0, 0
    while size < SAMPLE and (found := HIGH.search(data, at)):
        start = max(data.rfind(b"\n", max(at, found.start() - CONTEXT), found.start()) + 1, at)
        if found.start() - start > CONTEXT:
            start = found.start()
        end = data.find(b"\n", found.start(), found.start() + SAMPLE - size)
        at = end + 1 if end >= 0 else found.start() + SAMPLE - size
        lines.append(data[start:at])
        size += at - start
    return DECLARED.sub(b"", b"".join(lines))


def ranked(data: bytes) -> dict[str, float]:
    """Encodings and their scores, the best first."""
    scores: dict[str, float] = {}
    for found in chardet.detect_all(data, compat_names=False, ignore_threshold=True, max_bytes=SAMPLE):
        if found["encoding"]:
            name = found["encoding"].lower()
            for encoding in LARGER.get(name, (name,)):
                scores.setdefault(encoding, found["confidence"])
    return scores


def strictly(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return None


def fitting(data: bytes, encoding: str) -> str | None:
    """The text, if the bytes are valid and what they spell could be a language."""
    text = strictly(data, encoding)
    return text if text is not None and could_be_language(text) else None


def damaged(data: bytes, encoding: str) -> Decoded | None:
    """Text in the encoding of East Asia that it declares, with a damaged place here and there."""
    text = data.decode(encoding, "replace")
    marks, foreign = text.count("\ufffd"), FOREIGN.findall(text[:JUDGED])
    wide = sum(map(is_wide, foreign))
    if not 0 < marks * RARE <= sum(1 for _ in FOREIGN.finditer(text)) or wide < MOSTLY * len(foreign):
        return None  # as Shift-JIS, Russian and Arabic spell syllables of half width
    return Decoded(text, f"read as {NAMES[encoding]}, as it says; {places(marks)} that cannot be read became �")


def could_be_language(text: str) -> bool:
    return not C1.search(text) and oddities(text) <= ODD


def oddities(text: str) -> float:
    """The share of characters beyond ASCII that stand where no language has them.

    Signs in words, capitals after small letters, letters of two alphabets in a word.
    """
    foreign, odd = 0, 0.0
    for before, at, after in neighbours(text[:JUDGED]):
        foreign += 1
        kind = unicodedata.category(at)
        if at == "¤" or kind in ("Cc", "Cn", "Co"):
            odd += 1
        elif kind[0] in "SPN" and cased(after):
            begins = at == "¶" or (kind == "No" and not before.isdigit())  # "½il": a letter of another encoding
            odd += begins or (cased(before) and at not in JOINERS)
            odd += LEAST if at == "’" and not before.isalnum() else 0
            odd += at == "‚" and CLOSED.isdisjoint(text)
        elif at in NO_ENDS and before.islower() and not after.isalnum():
            odd += 1
        elif kind[0] == "L":
            odd += kind == "Lu" and before.islower() and not after.isupper()
            odd += ascii_letter(before + after) and not latin(at)
            odd += accented(at) and any(character.isalpha() and not latin(character) for character in before + after)
            odd += at in NO_WORDS and (after == at or (before + after).isspace())
    return odd / max(foreign, 1)


def cased(character: str) -> bool:
    """Whether it is a letter of a script with capitals: in others, signs stand between letters."""
    return character.lower() != character.upper()


def ascii_letter(around: str) -> bool:
    return any(character.isascii() and character.isalpha() for character in around)


@cache
def accented(character: str) -> bool:
    return unicodedata.name(character, "").startswith("LATIN")


@cache
def latin(character: str) -> bool:
    return unicodedata.name(character, "").startswith(LATIN) or is_wide(character)


@cache
def is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in WIDE


def neighbours(text: str) -> Iterator[tuple[str, str, str]]:
    for found in FOREIGN.finditer(text):
        at = found.start()
        yield text[at - 1 : at] or " ", text[at], text[at + 1 : at + 2] or " "
