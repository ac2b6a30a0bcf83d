"""Comments in front of markup: many of them take no longer to look over than a few."""

import time

import pytest

from kb.ingest.extract import detect

COMMENT = b"<!-- a line of a banner -->\n"


@pytest.mark.parametrize(
    ("before", "after", "doc_type"),
    [
        (b'<?xml version="1.0"?>\n', b"<settings><a>1</a></settings>", "text"),
        (b"", b"plain text", "text"),
        (b'<?xml version="1.0"?>\n', b'<svg xmlns="http://www.w3.org/2000/svg"></svg>', "svg"),
        (b'<!DOCTYPE svg PUBLIC "x">', b'<svg xmlns="http://www.w3.org/2000/svg"></svg>', "svg"),
        (b"", b"<html><p>page</p></html>", "html"),
    ],
)
def test_many_comments_are_no_work(before: bytes, after: bytes, doc_type: str) -> None:
    began = time.process_time()
    assert detect.detect(before + COMMENT * 200 + after, b"", "file").doc_type == doc_type
    assert time.process_time() - began < 1
