"""Embedding against sentence-transformers on torch: passages per second, time of a query, and the same vectors.

The contestants take turns, round by round, so that a noisy machine disturbs both alike; between them the machine
multiplies matrices, which says how much of what arithmetic allows each of them reaches.
"""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks import machine, texts
from benchmarks.race import Racer, kb_racer, torch_racer
from benchmarks.report import Section, median, percentile, verdict
from kb.core.settings import bundled_model_dir
from kb.embedding.tokenizer import Tokenizer

PASSAGE_TOKENS = 198
GOAL_RATIO = 2.0 if machine.has_bf16() else 1.0  # twice as fast where bfloat16 is to be had, slower nowhere
GOAL_QUERY = 0.25
GOAL_COSINE = 0.999
# all-MiniLM-L6-v2: the multiplications that dominate its work.
LAYERS, WIDTH, SPECIAL_TOKENS = 6, 384, 2


@dataclass(slots=True)
class Tally:
    """What one contestant did in all rounds."""

    rates: list[float] = field(default_factory=list)  # passages per second, one per round
    queries: list[float] = field(default_factory=list)  # milliseconds


def measure(*, quick: bool) -> Section:
    rounds, count, asked = (3, 32, 20) if quick else (8, 192, 60)
    tokenizer = Tokenizer(bundled_model_dir() / "tokenizer.json")
    passages = texts.passages(count, PASSAGE_TOKENS, tokenizer)
    questions = texts.questions((rounds + 1) * asked)
    ours, theirs, peaks = Tally(), Tally(), []
    with tempfile.TemporaryDirectory() as scratch, kb_racer() as kb, torch_racer(Path(scratch)) as torch:
        for racer in (kb, torch):  # to warm up
            racer.run("passages", passages[:32])
            racer.run("queries", questions[-asked:])
        for number in range(rounds):
            own = questions[number * asked : (number + 1) * asked]
            for racer, tally in ((kb, ours), (torch, theirs)):
                tally.rates.append(count / racer.run("passages", passages)[0])
                tally.queries += [second * 1000 for second in racer.run("queries", own)]
            peaks.append(machine.sgemm_gflops())
        cosine = _least_cosine(kb, torch, passages, questions[-asked:], Path(scratch))
        return _section(kb, torch, ours, theirs, cosine, max(peaks), f"{rounds} rounds of {count} passages")


def passage_gflop() -> float:
    """What embedding one passage takes: projections and feed-forward by token, attention by pairs of tokens."""
    tokens = PASSAGE_TOKENS + SPECIAL_TOKENS
    return LAYERS * (24 * tokens * WIDTH**2 + 4 * tokens**2 * WIDTH) / 1e9


def _least_cosine(kb: Racer, torch: Racer, passages: list[str], questions: list[str], scratch: Path) -> float:
    least = 1.0
    for do, given in (("passages", passages), ("queries", questions)):
        vectors = []
        for racer in (kb, torch):
            saved = scratch / f"{racer.name}.npy"
            racer.run("passages" if do == "passages" else "queries", given, save=saved)
            vectors.append(np.load(saved))
        least = min(least, float((vectors[0] * vectors[1]).sum(axis=1).min()))
    return least


def _section(kb: Racer, torch: Racer, ours: Tally, theirs: Tally, cosine: float, peak: float, effort: str) -> Section:
    ratio = median([mine / other for mine, other in zip(ours.rates, theirs.rates, strict=True)])
    best = max(ours.rates) / max(theirs.rates)
    query = median(theirs.queries) / median(ours.queries)

    def row(racer: Racer, tally: Tally) -> list[str]:
        return [
            racer.device,
            f"{median(tally.rates):.1f}",
            f"{max(tally.rates):.1f}",
            f"{max(tally.rates) * passage_gflop() / peak:.0%}",
            f"{median(tally.queries):.1f}",
            f"{percentile(tally.queries, 0.95):.1f}",
            f"{racer.load_seconds:.1f}",
            f"{racer.peak_mb:.0f}",
        ]

    remarks = [
        f"Passages: **{ratio:.2f} times** the rival's rate (median of the rounds' ratios; best against best "
        f"{best:.2f}). Goal: at least {GOAL_RATIO}, {verdict(ratio >= GOAL_RATIO)} on this processor.",
        f"A query takes {1 / query:.2f} of the rival's time (p50). Goal: at most {GOAL_QUERY}, "
        f"{verdict(1 / query <= GOAL_QUERY)}.",
        f"Least cosine between both, over all passages and queries: {cosine:.5f}. Goal: at least {GOAL_COSINE}, "
        f"{verdict(cosine >= GOAL_COSINE)}.",
        f"numpy's best rate for float32 matrices in the same run was {peak:.0f} GFLOP/s; a passage takes "
        f"{passage_gflop():.1f} GFLOP. {_bound(max(theirs.rates) * passage_gflop() / peak)}",
    ]
    about = (
        f"{effort} of {PASSAGE_TOKENS} tokens ({texts.source()}), and 8-word queries one by one, each asked once; the "
        "contestants take turns with the same weights and the same number of threads. Passages per second: median and "
        "best of the rounds. Peak: the share of numpy's float32 rate that the best round reaches."
    )
    heads = ("", "passages/s", "best", "of peak", "query p50 ms", "p95 ms", "load s", "RSS MB")
    return Section("Embedding", about, heads, [row(kb, ours), row(torch, theirs)], remarks)


def _bound(rival_share: float) -> str:
    if machine.has_bf16():
        return "This processor computes in bfloat16, so float32's peak is not the bound for kb."
    return (
        "This processor does not compute in bfloat16: both contestants do the same float32 arithmetic, which is the "
        f"bound. The rival already reaches {rival_share:.0%} of the peak, so no program can be more than "
        f"{1 / rival_share:.2f} times as fast as it at this precision."
    )
