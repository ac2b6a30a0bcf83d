"""How many cores may be used."""

import os

import pytest

from kb.core.cpu import usable_cores


def test_threads_are_as_many_as_cores_may_be_used() -> None:
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("this platform does not bind threads to cores")
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)
    assert 1 <= usable_cores() <= len(allowed)
