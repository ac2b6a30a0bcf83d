"""Links as people write them in Markdown."""

import time

import pytest

from kb.core.link_syntax import aliases, name_of, path_of, targets


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("See [[Note]] and [[Note]] again", ["Note"]),
        ("[[Note|shown]] [[dir/Note#A heading|x]]", ["Note", "dir/Note#A heading"]),
        ("[[Note^block]] [[Note#^block]]", ["Note^block", "Note#^block"]),
        ("![[picture.png]] ![[Note#part]]", ["picture.png", "Note#part"]),
        ("a table | [[Note\\|shown]] |", ["Note"]),
        ("[x](other.md) ![y](img/a%20b.png)", ["other.md", "img/a b.png"]),
        ("[z](<with space.md>) [t](o.md \"title\")", ["with space.md", "o.md"]),
        ("[ref]\n\n[ref]: ../up/there.md", ["../up/there.md"]),
        ("[a](https://example.org) [b](mailto:x@example.org) [c](//host/x) [d](#heading) [[#heading]]", []),
        ("`[[no]]` [[yes]]\n```\n[[no]]\n[x](no.md)\n```\n[[also]]", ["yes", "also"]),
        ("~~~\n[[no]]\n```\n[[no]]\n~~~\n[[yes]]", ["yes"]),
        ("[[]] [[ ]] [](x.md) [[half", ["x.md"]),
        ("[[Größe]] [[笔记]]", ["Größe", "笔记"]),
        ("\\[[no]] \\[x](no.md) [[yes]]", ["yes"]),
    ],
)  # fmt: skip
def test_targets_are_found_as_they_are_written(text: str, found: list[str]) -> None:
    assert targets(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("---\ntitle: x\naliases: [One, \"Two words\"]\n---\nText", ["One", "Two words"]),
        ("---\naliases:\n  - One\n  - 'Two'\ntags: [x]\n---\n", ["One", "Two"]),
        ("---\nalias: Only\n---\n", ["Only"]),
        ("aliases: [no]\n", []),
        ("---\ntags: x\n---\naliases: [no]\n", []),
    ],
)  # fmt: skip
def test_aliases_stand_in_the_front_matter(text: str, found: list[str]) -> None:
    assert aliases(text) == found


def test_names_are_compared_without_case_and_suffix() -> None:
    assert name_of("Some Dir/GRO\u0308SSE.MD") == name_of("größe") == "grösse"
    assert (path_of("dir/Note#Heading"), path_of("Note^b1"), path_of("#own")) == ("dir/Note", "Note", "")


@pytest.mark.parametrize("piece", ["[", "[[", "[[a", "[a](", "`", "[a]: ", "![", "[[a|", "---\n", "[x](<", "]("])
def test_hostile_text_takes_no_longer_than_its_length(piece: str) -> None:
    text = piece * (400_000 // len(piece))
    started = time.process_time()
    targets(text)
    aliases("---\n" + text)
    assert time.process_time() - started < 5
