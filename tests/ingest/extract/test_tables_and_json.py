"""CSV, TSV, JSON and JSON Lines: read by their structure, or as plain text with the reason in the ledger."""

import json
from collections.abc import Callable

import pytest

from kb.ingest.extract import Part

Extract = Callable[..., list[Part]]


def test_rows_stand_under_the_names_of_their_columns(extract: Extract) -> None:
    rows = "\n".join(f"Port {number},{number}.5 m" for number in range(100))
    parts = extract(f"Port,Height\r\n{rows}\n\n".encode(), "tides.csv")
    assert {part.name for part in parts} == {"text"}
    assert {part.anchor.heading for part in parts} == {"Port | Height"}
    assert parts[0].outcome.reason == "2 columns, named by the first row, separated by commas"
    numbers = [part.anchor.rows.split("-") for part in parts if part.anchor.rows]
    assert (numbers[0][0], numbers[-1][1]) == ("1", "101")
    assert [int(last) + 1 for _, last in numbers[:-1]] == [int(first) for first, _ in numbers[1:]]
    assert parts[1].text.startswith(f"Port {int(numbers[1][0]) - 2} | ")


@pytest.mark.parametrize(
    ("name", "text", "read", "reason"),
    [
        ("a.csv", 'a;b\n1,5;"x; ""y""\nz"', 'a | b\n1,5 | x; "y" z', "named by the first row, separated by semicolons"),
        ("a.csv", "a|b\n1|2", "a | b\n1 | 2", "separated by vertical bars"),
        ("a.tsv", 'a\tb\n5" pipe\t"loose', 'a | b\n5" pipe | "loose', "separated by tabs"),
        ("a.csv", "1,2\n3,4", "1 | 2\n3 | 4", "2 columns, without names, separated by commas"),
        ("a.csv", "a,b,\n1,2,\n", "a | b |\n1 | 2 |", "3 columns, without names"),
        ("a.csv", "a,a\n1,2", "a | a\n1 | 2", "without names"),
    ],
)
def test_how_a_table_is_written_is_found_out(extract: Extract, name: str, text: str, read: str, reason: str) -> None:
    (part,) = extract(text.encode(), name)
    assert "\n".join(line.rstrip() for line in part.text.splitlines()) == read
    assert reason in (part.outcome.reason or "")


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.csv", "a,b\n1,2\n3\n", "read as plain text: row 3 has 1 cell, not 2 as the first"),
        ("a.csv", "a,b\n" + "1,2\n" * 500 + "1,2,3\n", "read as plain text: row 502 has 3 cells, not 2 as the first"),
        ("a.csv", "Just words.\nAnd more of them.", "read as plain text: it has one column only"),
        ("a.csv", 'a,b\n1,"' + "never closed\n" * 9, "read as plain text: line 10 is not written as a table"),
        ("a.tsv", "a,b\n1,2", "read as plain text: it has one column only"),
        ("a.json", "{'a': 1}", "read as plain text: it is not valid JSON: Expecting property name"),
        ("a.json", "[" * 100_000, "read as plain text: its JSON is nested too deeply"),
        ("a.json", '{"a":' * 300 + "1" + "}" * 300, "read as plain text: its JSON is nested too deeply"),
        ("a.jsonl", '{"a": 1}\nno\n', "read as plain text: line 2: it is not valid JSON"),
    ],
)
def test_what_lacks_the_structure_is_plain_text(extract: Extract, name: str, text: str, reason: str) -> None:
    (part,) = extract(text.encode(), name)
    assert part.text == text
    assert part.outcome.state == "ok"
    assert (part.outcome.reason or "").startswith(reason)


def test_wide_rows_name_each_value(extract: Extract) -> None:
    names = [f"measure number {number}" for number in range(30)]
    parts = extract(f"{','.join(names)}\n{','.join(map(str, range(30)))}\n".encode(), "wide.csv")
    assert "measure number 0: 0 | measure number 1: 1 | " in parts[-1].text
    assert parts[-1].anchor.rows == "2-2"


def test_a_table_in_an_older_encoding_says_which(extract: Extract) -> None:
    (part,) = extract("Stadt,Höhe\nKöln,für\n".encode("cp1252"), "a.csv")
    assert part.text == "Stadt | Höhe\nKöln | für"
    assert part.outcome.reason == "read as Windows-1252; 2 columns, named by the first row, separated by commas"


def test_every_value_has_its_path(extract: Extract) -> None:
    value = {
        "name": "Ebb",
        "tags": ["low", "slow"],
        "at": {"port": "Brest", "m": 1.50, "open": True},
        "none": [],
        "x": None,
    }
    (part,) = extract(json.dumps(value, indent=2).encode(), "a.json")
    assert part.text.splitlines() == [
        "name: Ebb",
        "tags: low, slow",
        "at.port: Brest",
        "at.m: 1.5",
        "at.open: true",
        "none: []",
        "x: null",
    ]
    assert (part.anchor.heading, part.outcome.reason) == (None, "7 values with their paths")


def test_a_large_value_is_cut_where_its_structure_is(extract: Extract) -> None:
    ports = [{"name": f"Port {number}", "tide": {"high": number, "low": -number}} for number in range(50)]
    parts = extract(json.dumps({"north": {"ports": ports}}).encode(), "a.json")
    assert len(parts) > 3
    assert {part.anchor.heading for part in parts} == {"north > ports"}
    assert all(".name: Port" in part.text.splitlines()[0] for part in parts), "each piece begins with a port"
    assert sum(part.text.count("tide.low") for part in parts) == 50


def test_numbers_and_repeated_keys_stay_as_they_are_written(extract: Extract) -> None:
    (part,) = extract(b'{"a": 1.10, "a": 12345678901234567890123, "b": NaN}', "a.json")
    assert part.text == "a: 1.10\na: 12345678901234567890123\nb: NaN"


def test_json_lines_name_their_rows(extract: Extract) -> None:
    rows = "\n".join(json.dumps({"port": f"Port {number}", "tide": {"m": number}}) for number in range(1, 61))
    parts = extract(f"{rows}\n\n".encode(), "a.jsonl")
    assert parts[0].text.startswith("port: Port 1\ntide.m: 1\n\nport: Port 2")
    assert (parts[0].anchor.rows or "").startswith("1-")
    assert (parts[-1].anchor.rows or "").endswith("-60")
    assert parts[0].outcome.reason == "60 rows"
