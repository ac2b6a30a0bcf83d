"""Drawings of draw.io and canvases of Obsidian: what is written in them, and what is connected."""

import json
import zlib
from base64 import b64encode
from collections.abc import Callable
from urllib.parse import quote

from kb.ingest.extract import Part

Extract = Callable[..., list[Part]]
MODEL = """<mxGraphModel><root><mxCell id="0"/><mxCell id="1" parent="0"/>
<mxCell id="a" value="&lt;div&gt;Ebb &amp;amp; &lt;b&gt;flood&lt;/b&gt;&lt;/div&gt;at sea" vertex="1" parent="1"/>
<object id="b" label="Harbour" depth="7 m" placeholders="1"><mxCell vertex="1" parent="1"/></object>
<mxCell id="e" value="" edge="1" source="a" target="b" parent="1"/>
<mxCell id="l" value="fills" vertex="1" connectable="0" parent="e"/>
</root></mxGraphModel>"""
TEXT = "Ebb & flood\nat sea\n\nHarbour\ndepth: 7 m\n\nEbb & flood at sea → Harbour depth: 7 m: fills"


def packed(model: str) -> str:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return b64encode(packer.compress(quote(model).encode()) + packer.flush()).decode()


def test_labels_and_connections_are_read_packed_or_not(extract: Extract) -> None:
    pages = f'<diagram name="Tides">{MODEL}</diagram><diagram name="Copy">{packed(MODEL)}</diagram>'
    parts = extract(f'<?xml version="1.0" encoding="UTF-8"?>\n<mxfile host="x">{pages}</mxfile>'.encode(), "a.drawio")
    assert [(part.name, part.anchor.heading, part.text) for part in parts] == [
        ("diagram Tides", "Tides", TEXT),
        ("diagram Copy", "Copy", TEXT),
    ]


def test_a_label_has_a_line_for_each_of_its_blocks(extract: Extract) -> None:
    label = '<mxCell id="a" value="EBB&lt;div&gt;FLOOD&lt;/div&gt;&lt;div class=&quot;x&quot;&gt;slack&lt;/div&gt;"/>'
    (part,) = extract(f"<mxGraphModel><root>{label}</root></mxGraphModel>".encode(), "a.drawio")
    assert part.text == "EBB\nFLOOD\nslack"


def test_a_damaged_page_does_not_fail_the_others(extract: Extract) -> None:
    bomb = packed("<mxGraphModel>" + " " * (60 * 2**20))
    pages = f"<diagram>{MODEL}</diagram><diagram>7V1bc6M4Fv41</diagram><diagram>{bomb}</diagram>"
    parts = extract(f"<mxfile>{pages}</mxfile>".encode(), "a.drawio")
    assert [part.outcome.state for part in parts] == ["ok", "failed", "failed"]
    assert "unpacks to more than 50 MB" in (parts[2].outcome.reason or "")


def test_cards_and_connections_of_a_canvas_are_read(extract: Extract) -> None:
    at = {"x": 0, "y": 0, "width": 9, "height": 9}
    nodes = [
        {"id": "1", "type": "text", "text": "# Ebb\nLow water.", **at},
        {"id": "2", "type": "file", "file": "notes/flood.md", "subpath": "#High", **at},
        {"id": "3", "type": "link", "url": "https://example.org/moon", **at},
        {"id": "4", "type": "group", "label": "Tides", **at},
    ]
    edges = [{"id": "e", "fromNode": "1", "toNode": "2", "label": "then"}, {"id": "f", "fromNode": "2", "toNode": "9"}]
    (part,) = extract(json.dumps({"nodes": nodes, "edges": edges}).encode(), "a.canvas")
    assert part.text == (
        "# Ebb\nLow water.\n\nnotes/flood.md#High\n\nhttps://example.org/moon\n\nTides\n\n"
        "# Ebb Low water. → notes/flood.md#High: then"
    )
    assert part.outcome.reason == "4 cards, 2 connections"
