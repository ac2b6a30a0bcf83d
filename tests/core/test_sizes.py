"""Sizes as a person reads them."""

import pytest

from kb.core.sizes import readable_size


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1023 bytes"),
        (1024, "1.0 KB"),
        (64 * 2**10, "64.0 KB"),
        (3 * 2**19, "1.5 MB"),
        (100 * 2**20, "100.0 MB"),
        (2**31, "2.0 GB"),
        (2**51, "2048.0 TB"),
    ],
)
def test_a_size_is_shown_in_the_largest_unit_that_it_fills(size: int, text: str) -> None:
    assert readable_size(size) == text
