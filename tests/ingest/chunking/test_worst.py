"""The worst texts: cutting them takes a few bytes a character, gives the memory back, and can be stopped any time."""

import json
import subprocess
import sys
import time
from itertools import pairwise

import pytest

from kb.core.errors import JobCancelled
from kb.core.settings import bundled_model_dir
from kb.embedding.tokenizer import Tokenizer
from kb.ingest.chunking.chunker import Kind, chunk

MEGABYTE = 10**6
WORST = {
    "punctuation": ".,;:!?-()/",
    "one line": "abc.def!",
    "one word": "a",
    "CJK": "漢字仮名",
    "newlines": "\n",
    "accents": "a" + "\u0301\u0302\u0323" * 5,
    "short lines": "a\n",
    "sentences": ". ",
    "headings": "#\n",
    "rows": "|\n",
    "underlined": "a\n-\n",
    "bars": "|-",
}

# In a process of its own: the peak is that of the process.
MEASURE = """
import json, re, sys
from pathlib import Path
from kb.ingest.chunking.chunker import chunk
from kb.core.settings import bundled_model_dir
from kb.embedding.tokenizer import Tokenizer

def status(name):
    return int(re.search(name + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024

unit, characters, kind = json.loads(sys.argv[1])
tokenizer = Tokenizer(bundled_model_dir() / "tokenizer.json")
for passage in chunk(unit * 1000 + " end.", kind, tokenizer, 200):
    pass
text = unit * (characters // len(unit)) + " end."
before = status("VmRSS")
for passage in chunk(text, kind, tokenizer, 200):
    pass
print(json.dumps([status("VmHWM") - before, status("VmRSS") - before]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured with /proc")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("punctuation", "text"),
        ("CJK", "text"),
        ("one word", "markdown"),
        ("short lines", "markdown"),
        ("headings", "markdown"),
    ],
)
def test_cutting_takes_a_few_bytes_a_character_and_gives_them_back(name: str, kind: Kind) -> None:
    given = json.dumps([WORST[name], MEGABYTE, kind])
    done = subprocess.run([sys.executable, "-c", MEASURE, given], check=True, capture_output=True)
    peak, kept = json.loads(done.stdout)
    assert peak < 60 * MEGABYTE  # 30 for what is encoded at a time; it was 540
    assert kept < 45 * MEGABYTE  # what the allocator keeps at hand


@pytest.mark.parametrize("kind", ["text", "markdown"])
@pytest.mark.parametrize("name", WORST)
def test_cutting_looks_all_the_time_whether_to_stop(name: str, kind: Kind) -> None:
    asked = [time.thread_time()]

    def interrupt() -> None:
        asked.append(time.thread_time())

    tokenizer = Tokenizer(bundled_model_dir() / "tokenizer.json")
    chunk(WORST[name] * (MEGABYTE // 5 // len(WORST[name])) + " end.", kind, tokenizer, 200, interrupt)
    asked.append(time.thread_time())
    assert max(after - before for before, after in pairwise(asked)) < 0.5


def test_cutting_stops_when_it_is_told_to() -> None:
    started = time.monotonic()

    def interrupt() -> None:
        if time.monotonic() - started > 0.2:
            raise JobCancelled

    tokenizer = Tokenizer(bundled_model_dir() / "tokenizer.json")
    with pytest.raises(JobCancelled):
        chunk("." * (20 * MEGABYTE), "text", tokenizer, 200, interrupt)
    assert time.monotonic() - started < 5  # a fraction of a second, on a machine with nothing else to do
