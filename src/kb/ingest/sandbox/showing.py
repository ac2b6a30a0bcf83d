"""Inside a sandboxed process: a page drawn, a passage found on its page, the cells around a citation.

Each request brings one file. Answers are those of `views.py`.
"""

import json
import os
from collections.abc import Callable
from typing import Any

import pypdfium2

from kb.core.errors import JobFailure
from kb.core.types import Json
from kb.ingest.extract import Source, drawn, image, load
from kb.ingest.extract.cells import Window, window
from kb.ingest.extract.pdf import opened
from kb.ingest.extract.pdf_places import Places
from kb.ingest.sandbox.confine import FONTS, Needs

MAX_BOXES = 5000  # of one passage
DIGITS = 2  # of a point
NICE = 5  # a search goes first

Send = Callable[[dict[str, Any], bytes], None]


class Showing:
    needs = Needs(readable=FONTS)

    def __init__(self, send: Send) -> None:
        self._send = send
        os.nice(NICE)
        self._asks = {"image": self._image, "boxes": self._boxes, "cells": self._cells}
        load()

    def answer(self, request: Json, payload: bytes, files: list[int]) -> None:
        self._asks[request["ask"]](Source(files[0], ""), request, payload.decode())

    def _image(self, source: Source, request: Json, _: str) -> None:
        if request["doc_type"] == "image":
            with image.opened(source.open()) as picture:
                if not image.turn_to(picture, request["page"]):
                    return self._send({"kind": "beyond", "pages": image.page_count(picture)}, b"")
                drawing = drawn.picture(picture, request["width"])
        else:
            document = opened(source)
            if not 0 < request["page"] <= len(document):
                return self._send({"kind": "beyond", "pages": len(document)}, b"")
            drawing = drawn.page_of_pdf(document, request["page"] - 1, request["width"])
        return self._send({"kind": "drawing"}, drawing)

    def _boxes(self, source: Source, request: Json, text: str) -> None:
        """Where `text[start:end]` stands; `text` is what extraction made of the page."""
        if request["doc_type"] == "image":
            with image.opened(source.open()) as picture:
                if not image.turn_to(picture, request["page"]):
                    return self._send({"kind": "beyond", "pages": image.page_count(picture)}, b"")
                width, height = image.upright_size(picture)
            return self._send({"kind": "places", "width": width, "height": height, "boxes": [], "exact": False}, b"")
        document = opened(source)
        if not 0 < request["page"] <= len(document):
            return self._send({"kind": "beyond", "pages": len(document)}, b"")
        try:
            places = Places(document, request["page"] - 1)
        except pypdfium2.PdfiumError:
            raise JobFailure("corrupt", "The page cannot be read.") from None
        start, end = request["start"], request["end"]
        at = located(places.text.text, text, start, end)
        boxes, exact = ([], False) if at is None else places.boxes(at, at + end - start)
        answer = {
            "kind": "places",
            "width": round(places.sheet.width, DIGITS),
            "height": round(places.sheet.height, DIGITS),
            "boxes": [[round(edge, DIGITS) for edge in box] for box in boxes[:MAX_BOXES]],
            "exact": exact and len(boxes) <= MAX_BOXES,
        }
        places.close()
        return self._send(answer, b"")

    def _cells(self, source: Source, request: Json, _: str) -> None:
        rows = window(source, request["sheet"], Window(*request["window"]))
        if rows is None:
            self._send({"kind": "no_sheet"}, b"")
        else:
            self._send({"kind": "cells"}, json.dumps(rows).encode())


def located(page: str, text: str, start: int, end: int) -> int | None:
    """Where on the page a passage starts, by the text around it, or by itself if it stands there only once."""
    passage = text[start:end]
    if not passage.strip():
        return None
    at = page.find(text)
    if at >= 0:
        return at + start
    return page.find(passage) if page.count(passage) == 1 else None
