"""Pages a second: extraction in the sandbox and chunking, without embedding, against markitdown in the same run."""

import json
import resource
import subprocess
import time
from pathlib import Path

from benchmarks.environment import MARKITDOWN
from benchmarks.report import Section, verdict
from kb.core.settings import Settings, bundled_model_dir
from kb.embedding.tokenizer import Tokenizer
from kb.ingest.chunking.chunker import chunk
from kb.ingest.extract import FORMATS, Source
from kb.ingest.sandbox import ocr
from kb.ingest.sandbox.sandbox import Sandbox

REPORTS = 6  # the smallest: the rival takes minutes for them
GOAL_PAGES = 100.0
GOAL_RATIO = 10.0
RIVAL_PROGRAM = """
import json, sys, time
from markitdown import MarkItDown
converter = MarkItDown()
for path in sys.argv[1:]:
    started = time.perf_counter()
    text = converter.convert(path).text_content
    print(json.dumps({"seconds": time.perf_counter() - started, "characters": len(text)}), flush=True)
"""


def race(folder: Path) -> Section:
    """The same reports through both, one after the other."""
    reports = sorted((folder / "financebench").glob("*.pdf"), key=lambda path: path.stat().st_size)[:REPORTS]
    tokenizer = Tokenizer(bundled_model_dir() / "tokenizer.json")
    sandbox = Sandbox(lambda: ocr.choose("off"))
    budget = Settings().chunk_tokens
    extracted(sandbox, tokenizer, budget, reports[0])  # starts the process
    with subprocess.Popen(
        [MARKITDOWN.python(), "-c", RIVAL_PROGRAM, *map(str, reports)], stdout=subprocess.PIPE, text=True
    ) as rival:
        assert rival.stdout
        theirs = sum(json.loads(line)["seconds"] for line in rival.stdout)
    ours, count = 0.0, 0
    before = cpu_seconds()
    for report in reports:
        found, seconds = extracted(sandbox, tokenizer, budget, report)
        count += found
        ours += seconds
    sandbox.close()  # only then its processor time is known
    spent = cpu_seconds() - before
    ratio = theirs / ours
    rows = [
        ["kb", f"{count / ours:.0f}", f"≥ {GOAL_PAGES:.0f}, {verdict(count / ours >= GOAL_PAGES)}"],
        [
            MARKITDOWN.packages[0],
            f"{count / theirs:.1f}",
            f"kb is {ratio:.0f}×, goal {GOAL_RATIO:.0f}×, {verdict(ratio >= GOAL_RATIO)}",
        ],
    ]
    about = (
        f"{len(reports)} financial reports of {count} pages in all, first all through markitdown, then through kb. kb: "
        "extraction in the sandbox and chunking, without embedding; markitdown: conversion, everything loaded before."
    )
    remark = (
        f"kb took {spent:.1f} s of processor time in two processes, start included: {count / spent:.0f} pages for each "
        "such second. On a machine that others use too, the figures above are lower than they would be alone."
    )
    return Section("Pages a second", about, ("", "pages/s", "goal"), rows, [remark])


def cpu_seconds() -> float:
    """Processor time of this process and of those that it started and that have ended."""
    own, ended = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime


def extracted(sandbox: Sandbox, tokenizer: Tokenizer, budget: int, path: Path) -> tuple[int, float]:
    """How many pages there are, and how long reading and cutting them took."""
    started = time.perf_counter()
    count = 0
    for part in sandbox.parts("pdf", Source(path, path.name), lambda: None):
        chunk(part.text, FORMATS["pdf"].kind, tokenizer, budget)
        count += 1
    return count, time.perf_counter() - started
