"""The sample documents: real files with the text that should come out of them, and hostile ones.

`MANIFEST.tsv` lists most of them; those in `nasty-derived` were made from others and are listed by their folder.
"""

import csv
import gzip
import html
import json
import re
import shutil
import subprocess
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

WORD = re.compile(r"\w+")
NOT_TEXT = re.compile(r"<!--.*?-->|!\[[^\]]*\]\([^)]*\)|</?\w+[^>]*>|(?<=\])\([^)\s]*\)", re.DOTALL)  # Markdown's own
TEXT_NODE = re.compile(rb"<(?:w:t|a:t|t|x:t)(?: [^>]*)?>([^<]*)<")
PARAGRAPH_END = re.compile(rb"</(?:w|a):p>|<w:(?:br|tab)\b[^>]*/>|<a:br\b")
ANY_TEXT = re.compile(rb">([^<]+)<")
ATTRIBUTE = re.compile(rb"(?:descr|title|name|displayName|author)=\"([^\"]*)\"")
WORD_PARTS = re.compile(r"word/(document|header|footer|footnotes|endnotes|comments)\d*\.xml")
SLIDE_PARTS = re.compile(r"ppt/(slides|notesSlides)/\w+\.xml")


@dataclass(frozen=True)
class Sample:
    path: Path
    group: str  # the folder it lies in
    expected: Path | None
    tags: str

    @property
    def name(self) -> str:
        return self.path.name.removesuffix(".gz")

    @property
    def is_nasty(self) -> bool:
        return self.group.startswith("nasty")

    @cached_property
    def data(self) -> bytes:
        raw = self.path.read_bytes()
        return gzip.decompress(raw) if self.path.suffix == ".gz" else raw

    @cached_property
    def suffix(self) -> str:
        return Path(self.name).suffix.lstrip(".").lower()

    def reference(self) -> tuple[str, str] | None:
        """The expected text and its source; None if there is no reference."""
        if self.is_nasty:
            return None
        if self.suffix == "pdf":
            return pdftotext(self.path)
        if self.group == "html-articles":
            return article(self.path), "article bodies"
        if self.expected and self.expected.suffix != ".json":
            text = self.expected.read_text(encoding="utf-8", errors="replace")
            return (
                html.unescape(NOT_TEXT.sub(" ", text)) if self.expected.suffix == ".md" else html.unescape(text)
            ), "expected text"
        if self.group == "office-poi" and self.suffix in ("docx", "pptx"):
            return raw_text_nodes(self.path), "raw text nodes"
        return None


def samples(folder: Path) -> Iterator[Sample]:
    with (folder / "MANIFEST.tsv").open(encoding="utf-8", newline="") as listed:
        for row in csv.DictReader(listed, delimiter="\t"):
            expected = folder / row["expected"] if row["expected"] else None
            yield Sample(folder / row["path"], row["path"].split("/")[0], expected, row["tags"])
    for path in sorted((folder / "nasty-derived").iterdir()):
        yield Sample(path, "nasty-derived", None, "nasty")


def pdftotext(path: Path) -> tuple[str, str] | None:
    program = shutil.which("pdftotext")
    if program is None:
        return None
    done = subprocess.run([program, "-q", str(path), "-"], capture_output=True, timeout=120, check=False)
    return (done.stdout.decode(errors="replace"), "pdftotext") if done.returncode == 0 else None


def article(path: Path) -> str:
    truth = json.loads((path.parent / "expected" / "ground-truth.json").read_text(encoding="utf-8"))
    return str(truth[path.name.partition(".")[0]]["articleBody"])


def raw_text_nodes(path: Path) -> str:
    with zipfile.ZipFile(path) as archive:
        parts = [
            PARAGRAPH_END.sub(b"<t> <", archive.read(name))
            for name in archive.namelist()
            if WORD_PARTS.match(name) or SLIDE_PARTS.match(name)
        ]
    return html.unescape("".join(node.decode(errors="replace") for part in parts for node in TEXT_NODE.findall(part)))


def words(text: str) -> Counter[str]:
    return Counter(WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


@dataclass(frozen=True, slots=True)
class Score:
    precision: float
    recall: float

    @property
    def f1(self) -> float:
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def score(found: str, expected: str, also: Counter[str] | None = None) -> Score:
    """How many words of one are in the other, each as often as it occurs.

    A word that is also in `also` is not wrong, though it was not expected.
    """
    ours, theirs = words(found), words(expected)
    right = (ours & (theirs | (also or Counter()))).total()
    return Score(right / max(1, ours.total()), (ours & theirs).total() / max(1, theirs.total()))


def words_in_file(path: Path) -> Counter[str]:
    """The words in all text nodes, values and alternative texts of an Office file."""
    with zipfile.ZipFile(path) as archive:
        parts = [PARAGRAPH_END.sub(b"> <", archive.read(name)) for name in archive.namelist() if name.endswith(".xml")]
    nodes = [node.decode(errors="replace") for part in parts for node in ANY_TEXT.findall(part)]
    told = [text.decode(errors="replace") for part in parts for text in ATTRIBUTE.findall(part)]
    return words(html.unescape("".join(nodes) + " " + " ".join(told)))
