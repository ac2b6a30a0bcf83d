"""The Makefile has what it declares and what the pages tell people to run."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
RULES = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))


def test_every_declared_target_has_a_rule() -> None:
    declared = re.search(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)
    assert declared is not None
    assert set(declared[1].split()) - RULES == set()


def test_every_target_that_a_page_names_has_a_rule() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    named = {name for page in pages for name in re.findall(r"`make ([a-z-]+)", page.read_text(encoding="utf-8"))}
    assert "test" in named
    assert named - RULES == set()
