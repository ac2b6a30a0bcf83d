"""Latency, recall, memory and disk against the number of chunks, as one picture.

matplotlib lives with the rivals: `draw` starts this module in their environment.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Piece = dict[str, Any]
ROOT = Path(__file__).parent.parent
LABELS = ("hybrid", "hybrid, 10% tag", "hybrid, 1% tag", "hybrid, 0.1% tag", "vector", "fts")
GOALS = ((100_000, 3.0), (1_000_000, 20.0))


def draw(python: Path, scale: Sequence[Piece], rivals: Sequence[Piece], target: Path) -> None:
    figures = json.dumps({"scale": scale, "rivals": rivals})
    subprocess.run([python, "-m", "benchmarks.plot", target], input=figures, text=True, cwd=ROOT, check=True)


def main() -> None:
    figures = json.load(sys.stdin)
    import matplotlib as mpl  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415

    mpl.use("svg")
    # Words stay words, and the same figures give the same file.
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "kb", "font.size": 8, "axes.titlesize": 9})
    from matplotlib import pyplot as plt  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415

    page, ((search, same), (race, recall), (memory, disk)) = plt.subplots(3, 2, figsize=(9.5, 10.5))
    _kb(search, same, figures["scale"])
    _race(race, recall, figures["rivals"])
    _size(memory, disk, figures["scale"], figures["rivals"])
    page.tight_layout()
    page.savefig(sys.argv[1], metadata={"Date": None})


def _kb(search: Any, same: Any, scale: Sequence[Piece]) -> None:
    sizes = [piece["chunks"] for piece in scale]
    for label in LABELS:
        asked = [next(one for one in piece["asked"] if one["label"] == label) for piece in scale]
        search.loglog(sizes, [max(one["above"], 0.01) for one in asked], marker="o", label=label)
        same.semilogx(sizes, [one["same"] for one in asked], marker="o", label=label)
    _slope(search, scale)
    search.scatter(*zip(*GOALS, strict=True), marker="_", s=200, color="black", label="goal, hybrid")
    _titled(search, "kb through REST: p50 beyond embedding, ms")
    _titled(same, "kb: share of the exact top 10")
    same.axhline(0.97, color="grey", linestyle=":")


def _slope(search: Any, scale: Sequence[Piece]) -> None:
    """What linear growth from 10,000 chunks on would be."""
    first = next((piece for piece in scale if piece["chunks"] >= 10_000), None)
    if first and scale[-1]["chunks"] > first["chunks"]:
        start, end = first["chunks"], scale[-1]["chunks"]
        cost = max(first["asked"][0]["above"], 0.01)
        search.loglog([start, end], [cost, cost * end / start], color="grey", linestyle=":", label="linear")


def _race(race: Any, recall: Any, rivals: Sequence[Piece]) -> None:
    for name, colour, points in _by_name(rivals):
        sizes = [size for size, _ in points]
        for label, style in (("no filter", "-"), ("1%", "--")):
            searches = [one["searches"][label] for _, one in points]
            race.loglog(
                sizes,
                [one["p50"] for one in searches],
                style,
                marker="o",
                color=colour,
                label=f"{name}, {label}",
            )
            recall.semilogx(sizes, [one["recall"] for one in searches], style, marker="o", color=colour)
    _titled(race, "vector search in process: p50, ms")
    _titled(recall, "vector search in process: recall@10", legend=False)


def _size(memory: Any, disk: Any, scale: Sequence[Piece], rivals: Sequence[Piece]) -> None:
    sizes = [piece["chunks"] for piece in scale]
    for axes, what in ((memory, "memory_mb"), (disk, "disk_bytes")):
        unit = 2**20 if what == "memory_mb" else 1
        for name, colour, points in _by_name(rivals):
            values = [one[what] * unit / size for size, one in points]
            axes.loglog([size for size, _ in points], values, marker="o", color=colour, label=name)
    engine = [(piece["searched_mb"] - piece["empty_mb"]) * 2**20 / piece["chunks"] for piece in scale]
    memory.loglog(sizes, engine, "--", marker="o", color="black", label="kb serve")
    disk.loglog(
        sizes, [piece["disk_bytes"] / piece["chunks"] for piece in scale], "--", color="black", label="kb serve"
    )
    _titled(memory, "memory, bytes per chunk")
    _titled(disk, "disk, bytes per chunk")


def _by_name(rivals: Sequence[Piece]) -> list[tuple[str, str, list[tuple[int, Piece]]]]:
    """Each contestant's name, colour and figures by size; kb comes first, in black."""
    names = dict.fromkeys(one["name"] for piece in rivals for one in piece["contestants"])
    colours = ["black", *(f"C{number}" for number in range(len(names)))]
    return [
        (
            name,
            colour,
            [(piece["chunks"], one) for piece in rivals for one in piece["contestants"] if one["name"] == name],
        )
        for name, colour in zip(names, colours, strict=False)
    ]


def _titled(axes: Any, title: str, *, legend: bool = True) -> None:
    axes.set_title(title)
    axes.set_xlabel("chunks")
    axes.grid(alpha=0.3)
    if legend and axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=6)


if __name__ == "__main__":
    main()
