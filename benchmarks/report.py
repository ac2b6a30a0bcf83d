"""Measured figures as tables that read well on a terminal and in a Markdown page alike."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

DOCS = Path(__file__).parent.parent / "docs" / "benchmarks"


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a report: what was measured, the figures, and what they mean."""

    title: str
    about: str  # how it was measured
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    remarks: Sequence[str] = ()

    def markdown(self) -> str:
        parts = [f"## {self.title}", self.about, table(self.heads, self.rows)]
        if self.remarks:
            parts.append("\n".join(f"- {remark}" for remark in self.remarks))
        return "\n\n".join(parts)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with even columns: the first to the left, figures to the right."""
    widths = [max(3, *(_width(line[at]) for line in (heads, *rows))) for at in range(len(heads))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join("| " + " | ".join(_aligned(line, widths)) + " |" for line in (heads, rule, *rows))


def write_page(name: str, parts: Sequence[str]) -> Path:
    DOCS.mkdir(parents=True, exist_ok=True)
    page = DOCS / name
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return page


def percentile(values: Sequence[float], share: float) -> float:
    return float(np.percentile(np.asarray(values), share * 100))


def median(values: Sequence[float]) -> float:
    return percentile(values, 0.5)


def verdict(reached: bool) -> str:
    return "reached" if reached else "missed"


def _aligned(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    padding = [" " * (width - _width(cell)) for cell, width in zip(line, widths, strict=True)]
    return [line[0] + padding[0], *(pad + cell for pad, cell in zip(padding[1:], line[1:], strict=True))]


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
