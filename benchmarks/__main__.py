"""`python -m benchmarks`: every figure about speed, beside its goal.

A full run writes `docs/benchmarks/speed.md`; `--quick` and a choice of its parts only print. The parts about scale and
rivals keep the figures of each size, so that they can be run one after the other, and write `docs/benchmarks/scale.md`
from what is there.
"""

import argparse
import time
from collections.abc import Callable, Sequence

from benchmarks import crowd, embedding, machine, mcp, serving, shapes, sized
from benchmarks.report import Section, write_page

PARTS: dict[str, Callable[[bool], list[Section]]] = {
    "embedding": lambda quick: [embedding.measure(quick=quick)],
    "lengths": lambda quick: [shapes.measure(quick=quick)],
    "engine": lambda quick: serving.measure(quick=quick),
    "crowd": lambda quick: [crowd.measure(quick=quick)],
    "mcp": lambda quick: mcp.measure(quick=quick),
}
HOW = """Repeat it with `make bench` (the first time over an hour on two cores: the rivals' environment,
`benchmarks/.env`, and stores of up to a million chunks are made then), or one part with
`.venv/bin/python -m benchmarks --part engine`. `KB_BENCH_DATA` names the folder with `scifact`; without it, sentences
are generated. Ratios carry over to other machines better than times do."""


def main(argv: Sequence[str] | None = None) -> None:
    parts = [*PARTS, *sized.PARTS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--part", action="append", choices=parts, help="only this part; may be repeated")
    parser.add_argument("--quick", action="store_true", help="small sizes: to see that it works, not to measure")
    parser.add_argument("--sizes", type=_sizes, metavar="N,N", help="chunks, for the parts about scale and rivals")
    parser.add_argument("--again", action="store_true", help="measure also what those parts measured before")
    parser.add_argument("--without", action="append", default=[], metavar="RIVAL", help="who does not take part")
    args = parser.parse_args(argv)
    head = f"Measured on {time.strftime('%Y-%m-%d', time.gmtime())}: {machine.describe()}."
    print(head, flush=True)
    wanted = args.part or parts
    sections: list[str] = []
    for name in filter(PARTS.__contains__, wanted):
        for section in PARTS[name](args.quick):
            sections.append(section.markdown())
            print(f"\n{sections[-1]}", flush=True)
    if not args.part and not args.quick:
        page = write_page("speed.md", ["# Speed", head, HOW, *sections])
        print(f"\nWritten to {page.relative_to(page.parents[2])}.")
    if by_size := [name for name in wanted if name in sized.PARTS]:
        corpus = sized.measure(by_size, args.sizes, args.without, quick=args.quick, again=args.again)
        print("\n" + "\n\n".join(sized.tables(corpus)))
        if not args.quick:
            sized.write(corpus, head)


def _sizes(text: str) -> list[int]:
    return [int(word.replace("_", "")) for word in text.split(",")]


if __name__ == "__main__":
    main()
