"""XML of any kind: paragraphs under the titles of their sections, or values with their paths; never a tag."""

from collections.abc import Callable

import pytest

from kb.ingest.extract import Part

Extract = Callable[..., list[Part]]


def test_running_text_becomes_paragraphs_under_their_titles(extract: Extract) -> None:
    book = """<?xml version="1.0"?>
    <book id="b1"><title>Tides</title><para>How the sea <emphasis>ris</emphasis>es.</para>
    <chapter><title>Ebb</title><para>It falls.<list><item>once</item><item>twice</item></list>a day</para></chapter>
    <binary>iVBORw0KGgo</binary></book>"""
    parts = extract(book.encode(), "tides.dbk")
    assert [(part.anchor.heading, part.text) for part in parts] == [
        ("Tides", "Tides\n\nHow the sea rises."),
        ("Tides > Ebb", "Ebb\n\nIt falls.\n\nonce\n\ntwice\n\na day"),
    ]
    assert parts[0].title == "Tides"


def test_of_an_office_file_in_one_xml_only_the_text_is_read(extract: Extract) -> None:
    flat = (
        '<?xml version="1.0"?><o:document xmlns:o="o" xmlns:t="t"><o:styles><t:font>Arial</t:font></o:styles>'
        "<o:body><t:p>Spring</t:p></o:body></o:document>"
    )
    assert [part.text for part in extract(flat.encode(), "a.fodt")] == ["Spring"]


def test_data_has_a_path_for_every_value_and_attribute(extract: Extract) -> None:
    feed = """<rss version="2.0"><channel><title>Harbour news</title>
    <item><title>Storm</title><link href="https://x.example/1"/>
    <description>&lt;p&gt;A &lt;b&gt;gale&lt;/b&gt; warning&lt;/p&gt;</description></item>
    <item><title>Calm</title><draft/></item></channel></rss>"""
    (part,) = extract(feed.encode(), "news.rss")
    assert part.text.splitlines() == [
        "version: 2.0",
        "channel.title: Harbour news",
        "channel.item[0].title: Storm",
        "channel.item[0].link.href: https://x.example/1",
        "channel.item[0].description: A **gale** warning",
        "channel.item[1].title: Calm",
        "channel.item[1].draft",
    ]
    assert (part.title, part.outcome.reason) == ("Harbour news", "7 values with their paths")


def test_a_property_list_has_the_names_that_it_gives(extract: Extract) -> None:
    listed = "<plist><dict><key>Name</key><string>Ada</string><key>Awake</key><true/></dict></plist>"
    (part,) = extract(f'<?xml version="1.0"?>{listed}'.encode(), "a.plist")
    assert part.text == "Name: Ada\nAwake.true"
    assert part.anchor.heading == "dict"


@pytest.mark.parametrize("damage", ["</rss>", "<item>cut of"])
def test_what_is_damaged_loses_its_tags_and_nothing_else(extract: Extract, damage: str) -> None:
    (part,) = extract(f'<?xml version="1.0"?><feed><a x="1">High &amp; dry</a>{damage}'.encode(), "a.xml")
    assert part.text.startswith("High & dry")
    assert "<" not in part.text
    assert (part.outcome.reason or "").startswith("read without its tags: its XML is damaged")


def test_what_is_only_named_like_it_is_plain_text(extract: Extract) -> None:
    (part,) = extract(b"just words", "a.xml")
    assert (part.text, part.outcome.reason) == ("just words", "read as plain text: there is no XML in it")


def test_entities_made_of_entities_are_refused(fails: Callable[..., str]) -> None:
    bomb = '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "b"><!ENTITY c "&b;&b;">]><a>&c;</a>'
    assert fails(bomb.encode(), "a.xml") == "too_complex"
