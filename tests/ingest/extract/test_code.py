"""Program sources, read in the real sandbox: the definitions in each language, and what is too much to parse."""

import pytest

from kb.ingest.extract.languages import LANGUAGES, SUFFIXES, language_of, query
from kb.ingest.sandbox.sandbox import Sandbox

from .conftest import Extract

SOURCES = {
    "a.py": ("class Boat:\n    def row(self):\n        pass\n", ["Boat", "Boat.row"]),
    "a.js": ("class Boat { row() {} }\nconst moor = () => 1;\nexports.sink = function() {}\n",
             ["Boat", "Boat.row", "moor", "exports.sink"]),
    "a.ts": ("export class Boat { row(): void {} }\ninterface Crew {}\nnamespace Sea { function f() {} }\n",
             ["Boat", "Boat.row", "Crew", "Sea", "Sea.f"]),
    "a.tsx": ("export const Boat = () => <b>boat</b>;\n", ["Boat"]),
    "a.go": ("package a\ntype Boat struct{}\nfunc (b *Boat[T]) Row() {}\nfunc Moor() {}\n",
             ["Boat", "Boat.Row", "Moor"]),
    "a.rs": ("struct Boat<T> {}\nimpl<T> Sail for Boat<T> { fn row() {} }\nmod sea { fn f() {} }\n",
             ["Boat", "Boat", "Boat.row", "sea", "sea.f"]),
    "a.java": ("class Boat { Boat() {} void row() {} }\n", ["Boat", "Boat.Boat", "Boat.row"]),
    "a.c": ("struct boat { int x; };\nstatic int *row(void) { return 0; }\n", ["boat", "row"]),
    "a.h": ("namespace sea { template <class T> class Boat { int row() { } }; }\nint sea::f() { return 1; }\n",
            ["sea", "sea.Boat", "sea.Boat.row", "sea.f"]),
    "a.cs": ("namespace Sea { class Boat { void Row() {} } }\n", ["Sea", "Sea.Boat", "Sea.Boat.Row"]),
    "a.rb": ("module Sea\n  class Boat\n    def row; end\n    def self.moor; end\n  end\nend\n",
             ["Sea", "Sea.Boat", "Sea.Boat.row", "Sea.Boat.moor"]),
    "a.php": ("<?php\nclass Boat { function row() {} }\nfunction moor() {}\n", ["Boat", "Boat.row", "moor"]),
    "a.sh": ("row() { echo; }\nfunction moor { echo; }\n", ["row", "moor"]),
    "a.kt": ("class Boat(val x: Int) {\n    fun row() = 1\n}\nfun moor() {}\n", ["Boat", "Boat.row", "moor"]),
    "a.swift": ("class Boat {\n  init(x: Int) {}\n  func row() -> Int { 1 }\n}\n", ["Boat", "Boat.init", "Boat.row"]),
    "a.scala": ("object Sea {\n  def row() = 1\n}\ncase class Boat(x: Int)\n", ["Sea", "Sea.row", "Boat"]),
    "a.lua": ("local function row() end\nfunction Boat:moor() end\nBoat.sink = function() end\n",
              ["row", "Boat.moor", "Boat.sink"]),
    "a.sql": ("CREATE TABLE sea.boats (id int);\nCREATE VIEW crews AS SELECT 1;\n", ["sea.boats", "crews"]),
}  # fmt: skip


def paths(symbols: list[tuple[int, int, str]]) -> list[str]:
    """The path of names of each definition."""
    around: list[tuple[int, str]] = []
    found = []
    for start, end, name in symbols:
        around = [one for one in around if one[0] > start]
        around.append((end, name))
        found.append(".".join(name for _, name in around))
    return found


@pytest.mark.parametrize("name", SOURCES)
def test_the_definitions_of_a_program_are_found(extract: Extract, name: str) -> None:
    source, names = SOURCES[name]
    (part,) = extract(source.encode(), name)
    assert (part.text, paths(part.symbols)) == (source, names)


def test_every_language_has_a_source_here_and_a_query_that_compiles() -> None:
    assert {SUFFIXES[name.partition(".")[2]] for name in SOURCES} | {"cpp"} == set(LANGUAGES)
    for language in LANGUAGES:
        query(language)


@pytest.mark.parametrize(
    ("name", "source", "kept"),
    [
        ("a.py", "x = 1  # not of it\n# Rows.\n@once(\n    1\n)\ndef row():\n    pass\n", "# Rows.\n@once("),
        ("a.ts", "let x;\n\n/** Rows. */\n@Once()\nexport class Boat {}\n", "/** Rows. */\n@Once()"),
        ("a.rs", "use x;\n\n// Not of it.\n\n/// Rows.\n#[inline]\npub fn row() {}\n", "/// Rows.\n#[inline]"),
        ("a.java", "import x;\n/** Rows. */\n@Once class Boat {}\n", "/** Rows. */"),
        ("a.cpp", "int x;\n// Rows.\ntemplate <class T>\nclass Boat {};\n", "// Rows.\ntemplate"),
    ],
)
def test_comments_and_decorators_belong_to_what_they_stand_before(
    extract: Extract, name: str, source: str, kept: str
) -> None:
    (part,) = extract(source.encode(), name)
    start, end, _ = part.symbols[0]
    assert source[start:end].startswith(kept)


def test_definitions_count_characters_not_bytes(extract: Extract) -> None:
    source = "# Ein Boot für die Größe: 🚣\n\ndef größe():\n    return 'ü'\n\nrest = 1\n"
    (part,) = extract(source.encode(), "a.py")
    ((start, end, name),) = part.symbols
    assert (source[start:end], name) == ("def größe():\n    return 'ü'", "größe")


@pytest.mark.parametrize(
    ("name", "first", "language"),
    [
        ("tool", "#!/usr/bin/env python3\n", "python"),
        ("tool", "#!/usr/bin/env -S node --test\n", "javascript"),
        ("tool", "#!/bin/sh -e\n", "bash"),
        ("Rakefile", "task :x\n", "ruby"),
        ("A.PY", "", "python"),
        ("a.toml", "#!/bin/sh\n", "bash"),
        ("a.toml", "x = 1\n", None),
    ],
)
def test_the_language_is_told_by_the_name_or_the_first_line(name: str, first: str, language: str | None) -> None:
    assert language_of(name, first) == language


def test_a_source_in_another_language_is_read_without_definitions(extract: Extract) -> None:
    (part,) = extract(b"let x = 1\n", "a.ml")
    assert (part.symbols, part.outcome.reason) == ([], None)


def test_a_source_that_is_too_large_to_parse_says_that_it_is_cut_by_lines(extract: Extract) -> None:
    (part,) = extract(b"function a(b){return b+1}" * 50_000, "min.js")
    assert (part.symbols, part.outcome.state) == ([], "ok")
    assert part.outcome.reason == "cut by lines, not by its functions: it has more than 1 MB"


@pytest.mark.parametrize("source", ["(" * 9_000, "{" * 9_000, "def f():\n" * 9_000, "class A:\n def f(\x1b[\n" * 99])
def test_nested_and_broken_sources_are_read_whole(extract: Extract, source: str) -> None:
    (part,) = extract(source.encode(), "a.py" if "def" in source else "a.js")
    assert part.text == source


def test_a_source_that_takes_too_long_is_cut_by_lines(extract: Extract) -> None:
    (part,) = extract(b"(" * 200_000, "a.js")
    assert part.outcome.reason == "cut by lines, not by its functions: parsing it takes more than 5 seconds"


def test_the_definitions_of_a_stored_text_are_found_again(sandbox: Sandbox) -> None:
    text = "# ü\ndef row():\n    pass\n"
    assert sandbox.symbols("a.py", text, lambda: None) == [(0, 23, "row")]
    assert sandbox.symbols("a.py", "", lambda: None) == []
