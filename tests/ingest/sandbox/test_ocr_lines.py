"""Lines of an image keep their places, whichever program read them."""

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from kb.ingest.extract.tools import ReadLine, reading
from kb.ingest.sandbox.ocr import lines, load_reader

TABLE = """\
level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext
1\t1\t0\t0\t0\t0\t0\t0\t640\t480\t-1\t
2\t1\t1\t0\t0\t0\t36\t92\t582\t269\t-1\t
3\t1\t1\t1\t0\t0\t36\t92\t582\t92\t-1\t
4\t1\t1\t1\t1\t0\t36\t92\t544\t30\t-1\t
5\t1\t1\t1\t1\t1\t36\t92\t60\t24\t96.06\tHerons
5\t1\t1\t1\t1\t2\t109\t90\t20\t34\t95.9\twait
4\t1\t1\t1\t2\t0\t36\t126\t582\t31\t-1\t
5\t1\t1\t1\t2\t1\t36\t126\t90\t31\t96.1\tby\ta
5\t1\t1\t1\t2\t1\t36\t126\t90\t31\t96.1\tmorning
5\t1\t1\t1\t2\t2\t136\t126\t90\t31\t95\t\x20
3\t1\t1\t2\t0\t0\t36\t192\t582\t92\t-1\t
5\t1\t1\t2\t1\t1\t36\t192\t90\t31\t96.1\tGeese
5\t1\t2\t1\t1\t1\t36\t292\t90\t31\t96.1\tleave
"""


def test_the_table_of_tesseract_is_lines_with_their_boxes() -> None:
    assert lines(TABLE) == [
        ReadLine("Herons wait", (36, 90, 129, 124)),
        ReadLine("morning", (36, 126, 126, 157)),
        ReadLine(""),
        ReadLine("Geese", (36, 192, 126, 223)),
        ReadLine(""),
        ReadLine("leave", (36, 292, 126, 323)),
    ]


def test_a_tesseract_without_tables_still_gives_its_text() -> None:
    assert lines("Herons wait\n\nGeese leave\n\x0c") == [
        ReadLine("Herons wait"),
        ReadLine(""),
        ReadLine("Geese leave"),
        ReadLine(""),
    ]


def test_lines_are_found_again_in_the_text_that_was_put_right() -> None:
    found = reading(
        [
            ReadLine("  \ufb01ne   day ", (1, 2, 3, 4)),
            ReadLine(""),
            ReadLine(""),
            ReadLine("\x00"),
            ReadLine("end", (5, 6, 7, 8)),
        ]
    )
    assert found.text == "fine day\n\nend"
    assert [(found.text[start:end].strip(), box) for start, end, *box in found.lines] == [
        ("fine day", [1, 2, 3, 4]),
        ("end", [5, 6, 7, 8]),
    ]


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_rapidocr_says_where_a_line_stands_in_the_image_as_it_was(turns: int) -> None:
    page = Image.new("L", (900, 600), "white")
    ImageDraw.Draw(page).text((90, 60), "Herons wait for the tide", "black", ImageFont.load_default(48))
    ImageDraw.Draw(page).text((90, 160), "and leave in the evening", "black", ImageFont.load_default(48))
    turned = np.ascontiguousarray(np.rot90(np.asarray(page), -turns))
    found = load_reader("rapidocr").read(turned.tobytes(), turned.shape[1], turned.shape[0])
    assert "Herons" in found[0].text
    for line in found:
        assert line.box
        left, top, right, bottom = line.box
        inside = turned[top:bottom, left:right]
        assert (inside < 128).sum() > 0.2 * (turned < 128).sum()
    boxed = np.zeros(turned.shape, bool)
    for line in found:
        left, top, right, bottom = line.box or (0, 0, 0, 0)
        boxed[top:bottom, left:right] = True
    assert (turned[~boxed] < 128).sum() < 0.02 * (turned < 128).sum()
