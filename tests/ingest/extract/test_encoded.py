"""Encoded bytes stay in the text, are in no passage, and the ledger counts them; words, tables and hashes are kept."""

import base64
import binascii
import hashlib
import random

import pytest

from kb.ingest.extract.encoded import Encoded, encoded_spans

CHANCE = random.Random(7)
BYTES = CHANCE.randbytes(3000)
PROSE = "The mill at the end of the lane was sold twice before the war, and has been empty since.\n" * 8


def lines(text: str, width: int) -> str:
    return "\n".join(text[at : at + width] for at in range(0, len(text), width)) + "\n"


def dump(data: bytes) -> str:
    rows = (data[at : at + 16] for at in range(0, len(data), 16))
    return "".join(f"{at * 16:08x}: {row.hex(' ', 2)}  {'.' * len(row)}\n" for at, row in enumerate(rows))


def uuencoded(data: bytes) -> str:
    rows = (data[at : at + 45] for at in range(0, len(data), 45))
    return "begin 644 a.bin\n" + "".join(binascii.b2a_uu(row, backtick=True).decode() for row in rows) + "`\nend"


PLAIN64 = base64.b64encode(BYTES).decode()
ENCODED = {
    "base64 in lines of 76": lines(PLAIN64, 76),
    "base64 in one line": PLAIN64,
    "base64 of addresses": base64.urlsafe_b64encode(BYTES).decode(),
    "quoted base64 in a reply": "".join(f"> {line}\n" for line in lines(PLAIN64, 72).splitlines()),
    "base64 in a program": "".join(f'    "{line}"\n' for line in lines(PLAIN64, 64).splitlines()),
    "hex": BYTES.hex(),
    "hex in lines": lines(BYTES.hex(), 78),
    "a hex dump": dump(BYTES),
    "uuencode": uuencoded(BYTES),
    "ascii85": base64.b85encode(BYTES).decode(),
}
KEPT = {
    "prose": PROSE,
    "hashes": "".join(hashlib.sha256(bytes([n])).hexdigest() + "\n" for n in range(200)),
    "short hashes": "".join(hashlib.sha1(bytes([n])).hexdigest() + f"  file-{n}.txt\n" for n in range(200)),
    "base64 hashes": "".join(base64.b64encode(hashlib.sha256(bytes([n])).digest()).decode() + "\n" for n in range(200)),
    "a long address": "https://example.org/" + "a%20b/" * 500 + "?q=" + "x1Y" * 100,
    "numbers": "[" + ",".join(str(CHANCE.random()) for _ in range(400)) + "]",
    "dense JSON": "{" + ",".join(f'"property{n}":{{"name":"value"}}' for n in range(400)) + "}",
    "a path": "/".join(["usr", "share", "Documents", "kb2"] * 120),
    "camel case": "getElementByIdAndClassName" * 60,
    "genes": lines("".join(CHANCE.choice("ACGT") for _ in range(3000)), 60),
    "Chinese": "清晨的市场十分热闹卖菜的老人把新鲜的白菜摆得整整齐齐" * 200,
    "a table": "| 12 | 3f | a0 |\n" * 200,
    "a token": "eyJ" + base64.urlsafe_b64encode(BYTES[:500]).decode(),
    "a short dump": dump(BYTES[:128]),
}


@pytest.mark.parametrize("what", ENCODED)
def test_encoded_bytes_are_found_from_first_to_last(what: str) -> None:
    text = f"{PROSE}\n{ENCODED[what]}\n{PROSE}"
    ((start, end),) = encoded_spans(text)
    assert text[:start].split() == PROSE.split()
    assert text[end:].split() == PROSE.split()
    assert end - start > 0.95 * len(ENCODED[what])


@pytest.mark.parametrize("what", KEPT)
def test_what_people_write_and_look_for_is_kept(what: str) -> None:
    assert encoded_spans(f"{PROSE}\n{KEPT[what]}\n{PROSE}") == []


def test_a_hostile_text_takes_no_longer_than_its_length() -> None:
    nearly = dump(BYTES[: 15 * 16]) + "\n"  # a line short of a dump
    for piece in (
        nearly,
        "A1b" * 330 + " ",
        "A1bc" * 12 + "\n",
        "0" * 999 + "g",
        "begin 644 x\n",
        "00000000 " * 9 + "\n",
    ):
        assert len(encoded_spans(piece * (2_000_000 // len(piece)))) <= 1


def test_the_ledger_says_how_much_was_left_out() -> None:
    left = Encoded().with_spans([(0, 2000)]).with_spans([(5, 1505), (9000, 9500)])
    assert left.reason == "encoded bytes left out of the index: 3 places, 4 KB"
    assert Encoded(1, 300).reason == "encoded bytes left out of the index: 1 place, 1 KB"
