"""Latency, recall, ingest rate, memory and disk against the number of chunks, as one picture.

matplotlib lives with the rivals: `draw` starts this module in their environment.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Piece = dict[str, Any]

ROOT = Path(__file__).parent.parent
ENGINE = "kb serve"
LABELS = ("hybrid", "hybrid, 10% tag", "hybrid, 1% tag", "hybrid, 0.1% tag", "vector", "fts")
FILTERS = ("no filter", "10%", "1%")
LEAST = 0.01  # milliseconds: what cannot be told from nothing


def draw(
    python: Path,
    scale: Sequence[Piece],
    rivals: Sequence[Piece],
    goals: dict[int, float],  # milliseconds by size
    slope: float | None,
    target: Path,
) -> None:
    figures = json.dumps({"scale": scale, "rivals": rivals, "goals": sorted(goals.items()), "slope": slope})
    subprocess.run([python, "-m", "benchmarks.plot", target], input=figures, text=True, cwd=ROOT, check=True)


def main() -> None:
    figures = json.load(sys.stdin)
    import matplotlib as mpl  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415

    mpl.use("svg")
    # Words stay words, and the same figures give the same file.
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "kb", "font.size": 8, "axes.titlesize": 9})
    from matplotlib import pyplot as plt  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415

    page, rows = plt.subplots(4, 3, figsize=(11, 12), sharex=True)
    (latency, same, key), took, recall, (rate, memory, disk) = rows
    _engine(latency, same, figures["scale"])
    _goals(latency, figures["scale"], figures["goals"], figures["slope"])
    lines = _lines(figures["rivals"], figures["scale"])
    for number, label in enumerate(FILTERS):
        _draw(took[number], f"vector search in process, {label}: p50, ms", lines, _searched(label, "p50"))
        _draw(recall[number], f"vector search in process, {label}: recall@10", lines, _searched(label, "recall"))
        recall[number].set_yscale("linear")
    _draw(rate, "filling with known vectors, chunks/s", lines, lambda one, size: size / one["fill_seconds"])
    _draw(memory, "memory, bytes per chunk", lines, lambda one, size: one["memory_mb"] * 2**20 / size)
    _draw(disk, "disk, bytes per chunk", lines, lambda one, size: one["disk_bytes"] / size)
    key.axis("off")
    key.legend(*took[0].get_legend_handles_labels(), loc="center", title="in process and pgvector")
    page.tight_layout()
    page.savefig(sys.argv[1], metadata={"Date": None})


def _engine(latency: Any, same: Any, scale: Sequence[Piece]) -> None:
    """The engine through REST."""
    sizes = [piece["chunks"] for piece in scale]
    for label in LABELS:
        asked = [next(one for one in piece["asked"] if one["label"] == label) for piece in scale]
        latency.plot(sizes, [max(one["above"], LEAST) for one in asked], marker=".", label=label)
        same.plot(sizes, [one["same"] for one in asked], marker=".")
    _titled(latency, f"{ENGINE}: p50 of REST beyond embedding, ms")
    _titled(same, f"{ENGINE}: share of the exact top 10")
    same.set_yscale("linear")
    same.set_ylim(bottom=min(0.95, same.get_ylim()[0]))


def _goals(latency: Any, scale: Sequence[Piece], goals: Sequence[tuple[int, float]], slope: float | None) -> None:
    """What is aimed at, and what linear growth from 10,000 chunks on would be."""
    latency.scatter(*zip(*goals, strict=True), marker="_", s=200, color="black", label="goal, hybrid")
    if slope is not None:
        first, last = next(piece for piece in scale if piece["chunks"] >= 10_000), scale[-1]
        cost, growth = max(first["asked"][0]["above"], LEAST), last["chunks"] / first["chunks"]
        label = f"linear (hybrid: exponent {slope:.2f})"
        latency.plot([first["chunks"], last["chunks"]], [cost, cost * growth], "k:", label=label)
    latency.legend(fontsize=6)


def _lines(rivals: Sequence[Piece], scale: Sequence[Piece]) -> dict[str, dict[int, Piece]]:
    """Each contestant's figures by size; kb comes first. What the engine takes stands beside them."""
    lines: dict[str, dict[int, Piece]] = {}
    for piece in rivals:
        for one in piece["contestants"]:
            lines.setdefault(one["name"], {})[piece["chunks"]] = one
    lines[ENGINE] = {
        piece["chunks"]: {
            "memory_mb": piece["searched_mb"] - piece["empty_mb"],
            "disk_bytes": piece["disk_bytes"],
            "fill_seconds": piece["seconds"],
        }
        for piece in scale
    }
    return lines


def _searched(label: str, figure: str) -> Callable[[Piece, int], float | None]:
    return lambda one, _: one["searches"][label][figure] if "searches" in one else None


def _draw(
    axes: Any, title: str, lines: dict[str, dict[int, Piece]], value: Callable[[Piece, int], float | None]
) -> None:
    for number, (name, by_size) in enumerate(lines.items()):
        values = [value(one, size) for size, one in by_size.items()]
        own = name in ("kb", ENGINE)
        style = {"color": "black" if own else f"C{number - 1}", "linestyle": "--" if name == ENGINE else "-"}
        axes.plot(list(by_size), values, marker=".", linewidth=2 if own else 1, label=name, **style)
    _titled(axes, title)


def _titled(axes: Any, title: str) -> None:
    axes.set_title(title)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.tick_params(which="both", labelbottom=True)
    axes.minorticks_off()
    axes.grid(alpha=0.3)


if __name__ == "__main__":
    main()
