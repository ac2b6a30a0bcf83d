"""What it costs that a query has a length which the runtime has not seen yet.

OpenVINO prepares its kernels for every new shape of input, ONNX Runtime does not. In a fresh process, one query of
each length is embedded for the first time; then others of the same lengths.
"""

import random

from benchmarks import texts
from benchmarks.race import kb_racer
from benchmarks.report import Section, median, percentile
from kb.core.settings import bundled_model_dir
from kb.embedding.embedder import SHORT_QUERY
from kb.embedding.tokenizer import Tokenizer

SPECIAL_TOKENS = 2
SHORTEST, LONGEST = 4, 2 * SHORT_QUERY  # tokens, the special ones included
REPEATS = 5


def measure(*, quick: bool) -> Section:
    tokenizer = Tokenizer(bundled_model_dir() / "tokenizer.json")
    words = texts.one_token_words(tokenizer)
    chance = random.Random(3)
    lengths = list(range(SHORTEST, LONGEST + 1, 8 if quick else 1))
    chance.shuffle(lengths)

    def queries() -> list[str]:
        return [" ".join(chance.choices(words, k=length - SPECIAL_TOKENS)) for length in lengths]

    with kb_racer() as kb:
        kb.run("queries", [" ".join(chance.choices(words, k=1)) for _ in range(5)])  # the very first costs more
        rounds = [kb.run("queries", queries()) for _ in range(1 + REPEATS)]
        device = kb.device
    rows = []
    for label, own in (
        (f"up to {SHORT_QUERY} tokens", [at for at, length in enumerate(lengths) if length <= SHORT_QUERY]),
        (f"{SHORT_QUERY + 1} to {LONGEST} tokens", [at for at, length in enumerate(lengths) if length > SHORT_QUERY]),
    ):
        first = [rounds[0][at] * 1000 for at in own]
        later = [times[at] * 1000 for times in rounds[1:] for at in own]
        rows.append([label, *(f"{share(times):.1f}" for times in (first, later) for share in (median, _p95))])
    return Section(
        "Queries of a new length",
        f"{len(lengths)} lengths from {min(lengths)} to {max(lengths)} tokens in a fresh process, {device}: one query "
        f"of each length, then {REPEATS} others of each. Milliseconds to embed one.",
        ("", "first p50", "first p95", "later p50", "later p95"),
        rows,
        [f"Above {SHORT_QUERY} tokens, lengths are rounded up, so that seven of eight new ones are not new."],
    )


def _p95(times: list[float]) -> float:
    return percentile(times, 0.95)
