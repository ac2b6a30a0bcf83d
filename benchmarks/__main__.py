"""`python -m benchmarks`: every figure about speed in one run, beside its goal.

A full run also writes `docs/benchmarks/speed.md`; `--quick` and a choice of parts only print.
"""

import argparse
import time
from collections.abc import Callable, Sequence

from benchmarks import embedding, machine, mcp, serving, shapes
from benchmarks.report import Section, write_page

PARTS: dict[str, Callable[[bool], list[Section]]] = {
    "embedding": lambda quick: [embedding.measure(quick=quick)],
    "lengths": lambda quick: [shapes.measure(quick=quick)],
    "engine": lambda quick: serving.measure(quick=quick),
    "mcp": lambda quick: mcp.measure(quick=quick),
}
HOW = """Repeat it with `make bench` (about 15 minutes on two cores; the rival's environment, `benchmarks/.env`, is made
on first use), or one part with `.venv/bin/python -m benchmarks --part engine`. `KB_BENCH_DATA` names the folder with
`scifact`; without it, sentences are generated. Ratios carry over to other machines better than times do."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--part", action="append", choices=list(PARTS), help="only this part; may be repeated")
    parser.add_argument("--quick", action="store_true", help="small sizes: to see that it works, not to measure")
    args = parser.parse_args(argv)
    head = f"Measured on {time.strftime('%Y-%m-%d', time.gmtime())}: {machine.describe()}."
    print(head, flush=True)
    sections: list[str] = []
    for name in args.part or PARTS:
        for section in PARTS[name](args.quick):
            sections.append(section.markdown())
            print(f"\n{sections[-1]}", flush=True)
    if not args.part and not args.quick:
        page = write_page("speed.md", ["# Speed", head, HOW, *sections])
        print(f"\nWritten to {page.relative_to(page.parents[2])}.")


if __name__ == "__main__":
    main()
