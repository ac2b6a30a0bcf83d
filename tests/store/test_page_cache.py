"""Drawn pages are kept as long as there is room, and go with their original."""

import os
from pathlib import Path

from kb.store.page_cache import PageCache

ONE, OTHER = "a" * 64, "b" * 64


def test_the_pages_that_were_not_looked_at_for_longest_go_first(tmp_path: Path) -> None:
    cache = PageCache(tmp_path / "pages", budget=5000)
    for number in range(4):
        cache.put(ONE, str(number), bytes([number]) * 1000)
        os.utime(tmp_path / "pages" / ONE / str(number), (number, number))
    assert cache.get(ONE, "0") == bytes(1000)  # it is the latest from now on
    cache.put(OTHER, "4", b"4" * 1000)
    kept = [number for number in range(5) if cache.get(OTHER if number == 4 else ONE, str(number))]
    assert kept == [0, 3, 4]
    assert sum(path.stat().st_size for path in tmp_path.glob("pages/*/*")) <= 5000


def test_pages_go_with_their_original(tmp_path: Path) -> None:
    cache = PageCache(tmp_path / "pages")
    for original in (ONE, OTHER):
        cache.put(original, "1", b"page")
    cache.remove(ONE)
    assert (cache.get(ONE, "1"), cache.get(OTHER, "1")) == (None, b"page")
    cache.sweep({ONE})
    assert list((tmp_path / "pages").iterdir()) == []


def test_what_cannot_be_kept_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "pages").write_text("in the way")
    cache = PageCache(tmp_path / "pages")
    cache.put(ONE, "1", b"page")
    assert cache.get(ONE, "1") is None
