"""Jupyter notebooks: every cell with its headings, outputs as text, nothing of their pictures."""

import json
from collections.abc import Callable

from kb.ingest.extract import Part
from made import notebook, run, written

Extract = Callable[..., list[Part]]
PNG = "iVBORw0KGgoAAAANSUhEUg" * 400


def test_every_cell_is_a_part_under_its_headings(extract: Extract) -> None:
    parts = extract(
        notebook(
            written("# Tides", "Twice a day.", "## Spring tides", "After a full moon."),
            run("height = 4\nheight"),
            written("## Neap tides"),
            written("```", "# no heading", "```"),
            {"cell_type": "raw", "source": "raw words"},
        ),
        "tides.ipynb",
    )
    assert [(part.name, part.anchor.cell, part.anchor.heading, part.text) for part in parts] == [
        ("cell 1", 1, "Tides", "# Tides\nTwice a day."),
        ("cell 1", 1, "Tides > Spring tides", "## Spring tides\nAfter a full moon."),
        ("cell 2", 2, "Tides > Spring tides", "height = 4\nheight"),
        ("cell 3", 3, "Tides > Neap tides", "## Neap tides"),
        ("cell 4", 4, "Tides > Neap tides", "```\n# no heading\n```"),
        ("cell 5", 5, "Tides > Neap tides", "raw words"),
    ]
    assert (parts[0].title, parts[0].total) == ("Tides", 5)


def test_outputs_are_read_as_text_and_pictures_are_counted(extract: Extract) -> None:
    (part,) = extract(
        notebook(
            run(
                "measure()",
                {"output_type": "stream", "name": "stdout", "text": ["10%\r", "99%\rdone\n", "\x1b[31mred\x1b[0m"]},
                {"output_type": "execute_result", "data": {"text/plain": ["4.2 metres"], "text/html": "<b>4.2</b>"}},
                {"output_type": "display_data", "data": {"text/plain": "<Figure size 640x480>", "image/png": PNG}},
                {"output_type": "error", "ename": "ValueError", "evalue": "too low", "traceback": ["\x1b[0mline 1"]},
            )
        )
    )
    assert part.text == "measure()\n\ndone\nred\n\n4.2 metres\n\nValueError: too low"
    assert (part.outcome.state, part.outcome.reason) == ("ok", "pictures in its output are not read: 1")


def test_an_output_that_has_only_forms_without_text_is_counted(extract: Extract) -> None:
    table = {"text/html": "<table><tr><td>4711</td></tr></table>"}
    (part,) = extract(notebook(run("show()", {"output_type": "display_data", "data": table})))
    assert part.outcome.reason == "forms without text in its output are not read: 1"


def test_a_picture_inside_a_markdown_cell_is_no_text(extract: Extract) -> None:
    (part,) = extract(notebook(written(f"Low ![ebb](data:image/png;base64,{PNG}) water <img src='data:x,{PNG}'>")))
    assert part.text == "Low ![ebb] water <img src=''>"


def test_the_cells_of_an_old_notebook_are_read(extract: Extract) -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": "Ebb"},
        {"cell_type": "code", "input": "fall()", "outputs": [{"output_type": "pyout", "text": ["low"], "png": PNG}]},
    ]
    data = json.dumps({"worksheets": [{"cells": cells}], "nbformat": 3}).encode()
    assert [(part.text, part.anchor.heading) for part in extract(data)] == [("## Ebb", "Ebb"), ("fall()\n\nlow", "Ebb")]


def test_an_author_is_metadata(extract: Extract) -> None:
    (part,) = extract(notebook(run("x"), metadata={"title": "Tide tables", "authors": [{"name": "Ada"}, {"name": 7}]}))
    assert (part.title, part.metadata) == ("Tide tables", {"author": "Ada"})


def test_broken_notebooks_fail_with_a_reason(fails: Callable[..., str]) -> None:
    assert fails(notebook(written("cut off"))[:40], "a.ipynb") == "corrupt"
    assert fails(b"[]", "a.ipynb") == "corrupt"
    assert fails(b'{"cells": 7, "nbformat": 4}', "a.ipynb") == "no_text"
    assert fails(b"[" * 100_000, "a.ipynb") == "too_complex"
    assert fails(notebook(*[run("")] * 20_001), "a.ipynb") == "too_complex"
    odd = notebook(1, {"cell_type": "code", "source": {}, "outputs": [7, {"data": [], "text": 9}]})  # type: ignore[arg-type]
    assert fails(odd, "a.ipynb") == "no_text"
