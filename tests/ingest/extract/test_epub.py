"""EPUB: chapters in the order of the book, under the titles of its table of contents."""

from collections.abc import Callable

import pytest

from kb.ingest.extract import Part
from made import epub

Extract = Callable[..., list[Part]]
ENCRYPTION = '<encryption><EncryptedData><EncryptionMethod Algorithm="{}"/></EncryptedData></encryption>'


def test_chapters_come_in_the_order_of_the_book_under_their_titles(extract: Extract) -> None:
    parts = extract(
        epub(
            {
                "z.xhtml": "<h1>Ebb</h1><p>Water falls.</p>",
                "y.xhtml": "<p>It falls on.</p>",
                "x.xhtml": "<p>Half tide.</p><h2 id='f'>Flood</h2><p>Water <a id='q'/>rises.</p>",
            },
            [("The ebb", "z.xhtml"), ("The flood", "x.xhtml#f"), ("Slack", "x.xhtml#nowhere")],
        )
    )
    assert [(part.anchor.chapter, part.text) for part in parts] == [
        ("The ebb", "# Ebb\n\nWater falls."),
        ("The ebb", "It falls on."),
        ("The ebb", "Half tide."),
        ("The flood", "## Flood\n\nWater rises."),
    ]
    assert [part.name for part in parts] == ["chapter The ebb"] * 3 + ["chapter The flood"]
    assert (parts[0].title, parts[0].metadata, parts[0].total) == ("On tides", {"author": "Ada Moon"}, 3)


def test_the_table_of_contents_of_a_newer_book_is_read(extract: Extract) -> None:
    nav = '<html xmlns:e="e"><nav e:type="toc"><ol><li><a href="a.xhtml">Spring <b>tide</b></a></li></ol></nav></html>'
    opf = (
        '<package><manifest><item id="n" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/>'
        '<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/></spine>'
        "</package>"
    )
    (part,) = extract(epub({"a.xhtml": "Full moon."}, members={"book/nav.xhtml": nav, "book/all.opf": opf}))
    assert (part.anchor.chapter, part.text) == ("Spring tide", "Full moon.")


def test_a_chapter_without_a_title_has_its_number(extract: Extract) -> None:
    (part,) = extract(epub({"a.xhtml": "Untold."}))
    assert (part.name, part.anchor.chapter) == ("chapter 1", "1")


def test_a_page_that_is_missing_does_not_fail_the_others(extract: Extract) -> None:
    book = epub({"a.xhtml": "Here.", "b.xhtml": "Gone."}, [("A", "a.xhtml"), ("B", "b.xhtml")])
    book = book.replace(b"book/b.xhtml", b"book/c.xhtml")
    assert [(part.name, part.text, part.outcome.state, part.outcome.reason) for part in extract(book)] == [
        ("chapter A", "Here.", "ok", None),
        ("chapter B", "", "failed", "'book/b.xhtml' is missing"),
    ]


def test_hidden_text_of_a_chapter_is_marked(extract: Extract) -> None:
    shown, hidden = extract(epub({"a.xhtml": "<p>Seen.</p><p style='display:none'>Unseen words.</p>"}))
    assert (shown.text, hidden.text, hidden.hidden) == ("Seen.", "Unseen words.", True)
    assert hidden.name == "chapter 1, hidden text"


@pytest.mark.parametrize(
    ("algorithm", "read"),
    [("http://www.w3.org/2001/04/xmlenc#aes128-cbc", False), ("http://www.idpf.org/2008/embedding", True)],
)
def test_a_protected_book_is_encrypted_unless_only_its_fonts_are(
    extract: Extract, fails: Callable[..., str], algorithm: str, read: bool
) -> None:
    book = epub({"a.xhtml": "Read me."}, members={"META-INF/encryption.xml": ENCRYPTION.format(algorithm)})
    if read:
        assert extract(book)[0].text == "Read me."
    else:
        assert fails(book) == "encrypted"


def test_hostile_books_fail_within_bounds(fails: Callable[..., str]) -> None:
    good = epub({"a.xhtml": "x"})
    assert fails(good[: len(good) // 2], "a.epub") == "corrupt"
    assert fails(epub({"a.xhtml": "x"}, members={"META-INF/container.xml": "<container/>"})) == "corrupt"
    assert fails(epub({"a.xhtml": " " * (60 * 2**20)})) == "too_complex"
    assert fails(epub({"a.xhtml": "<div>" * 200_000})) == "too_complex"
    bomb = '<!DOCTYPE p [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><package>&b;</package>'
    assert fails(epub({"a.xhtml": "x"}, members={"book/all.opf": bomb})) == "too_complex"
    assert fails(epub({})) == "no_text"


def test_a_page_that_is_named_often_is_read_once(extract: Extract) -> None:
    item = '<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/>'
    opf = f"<package><manifest>{item}</manifest><spine>{'<itemref idref=`a`/>' * 5000}</spine></package>".replace(
        "`", '"'
    )
    assert len(extract(epub({"a.xhtml": "Once."}, members={"book/all.opf": opf}))) == 1
