"""What it costs that a query has a length which the runtime has not seen yet.

OpenVINO prepares its kernels for every new shape of input. In a fresh process, one query of each length is embedded
for the first time; then others of the same lengths.
"""

import random

from benchmarks import texts
from benchmarks.race import kb_racer
from benchmarks.report import Section, median, percentile
from kb.settings import bundled_model_dir
from kb.tokens import Tokenizer

SHORTEST, LONGEST = 3, 66  # tokens without the two special ones
REPEATS = 5


def measure(*, quick: bool) -> Section:
    tokenizer = Tokenizer(bundled_model_dir() / "tokenizer.json")
    words = texts.one_token_words(tokenizer)
    chance = random.Random(3)
    lengths = list(range(SHORTEST, LONGEST + 1, 8 if quick else 1))
    chance.shuffle(lengths)

    def queries() -> list[str]:
        return [" ".join(chance.choices(words, k=length)) for length in lengths]

    with kb_racer() as kb:
        kb.run("queries", [" ".join(chance.choices(words, k=2))] * 5)  # the very first inference costs more
        first = [second * 1000 for second in kb.run("queries", queries())]
        later = [second * 1000 for _ in range(REPEATS) for second in kb.run("queries", queries())]
        device = kb.device
    rows = [
        ["the first time a length is seen", f"{median(first):.1f}", f"{percentile(first, 0.95):.1f}"],
        ["later", f"{median(later):.1f}", f"{percentile(later, 0.95):.1f}"],
    ]
    return Section(
        "Queries of a new length",
        f"{len(lengths)} lengths from {min(lengths)} to {max(lengths)} tokens in a fresh process, {device}: one query "
        f"of each length, then {REPEATS} others of each.",
        ("milliseconds to embed a query", "p50", "p95"),
        rows,
        [f"A length that was not seen before costs {median(first) - median(later):.1f} ms more (p50), once."],
    )
