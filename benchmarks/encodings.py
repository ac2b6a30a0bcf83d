# ruff: noqa: A005 - nothing imports it by its name alone
"""`python -m benchmarks.encodings TEXTS.json`: texts of many languages in the encodings that they were written in.

TEXTS.json is `{"ru": ["a text", ...], ...}`; Arabic, Chinese, English and Spanish also come from the sets of
`KB_BENCH_DATA`. Each text is encoded and read again: as it is, in a page without a declaration, and in pages that
declare the right encoding or another one. A text comes back exactly, or a failure says why; anything else is wrong.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks import texts
from kb.core.errors import JobFailure
from kb.ingest.extract.encoding import decoded, prepare

TEXTS = 20  # of each encoding
# Encodings as programs write them (Windows' own Big5, Shift-JIS and EUC-KR), and the languages that use them.
USED = {
    "gb18030": ["zh"],
    "cp950": ["zh-tw"],
    "cp932": ["ja"],
    "euc_jp": ["ja"],
    "cp949": ["ko"],
    "koi8_r": ["ru"],
    "cp1251": ["ru", "uk"],
    "cp1250": ["cs", "pl"],
    "iso8859_2": ["cs", "pl"],
    "cp1253": ["el"],
    "iso8859_7": ["el"],
    "cp1254": ["tr"],
    "cp1255": ["he"],
    "cp1256": ["ar"],
    "cp1252": ["de", "en", "es", "fr"],
    "latin_1": ["de", "en", "es", "fr"],
    "utf-16-le": ["ar", "en", "ru", "zh"],
    "utf-16-be": ["ar", "en", "ru", "zh"],
    "utf-32-le": ["ar", "en", "ru", "zh"],
    "utf-32-be": ["ar", "en", "ru", "zh"],
}
# Encodings of the same letters, which pages declare by mistake.
SIBLINGS = {
    "cp1250": "iso-8859-2",
    "iso8859_2": "cp1250",
    "cp1253": "iso-8859-7",
    "iso8859_7": "cp1253",
    "cp1251": "koi8-r",
}
PAGE = "<!doctype html><html><head>{}<title>page</title></head><body><p>{}</p></body></html>"
SAID = '<meta charset="{}">'


def corpus(file: str | None) -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads(Path(file).read_text("utf-8")) if file else {}
    for language in ("ar", "en", "es", "zh"):
        if (path := texts.data_dir() / f"xquad-{language}" / "corpus.jsonl").exists():
            found[language] = [line["text"] for line in texts.read_lines(path)]
    return found


def encoded(encoding: str, found: dict[str, list[str]]) -> Iterator[tuple[str, bytes]]:
    """Texts that the encoding can spell and ASCII cannot, taking turns among the languages."""
    languages = [language for language in USED[encoding] if language in found]
    for language in languages:
        usable = []
        for text in found[language]:
            try:
                data = text.encode(encoding)
            except UnicodeEncodeError:
                continue
            if not text.isascii() and not text.startswith("\ufeff"):
                usable.append((text, data))
        yield from usable[:: max(1, len(usable) * len(languages) // TEXTS)][: TEXTS // len(languages)]


def outcome(text: str, data: bytes) -> str:
    try:
        return "exact" if decoded(data).text == text else "WRONG"
    except JobFailure:
        return "failed"


def main() -> int:
    prepare()
    found, wrong = corpus(sys.argv[1] if len(sys.argv) > 1 else None), 0
    for encoding in USED:
        ends: Counter[str] = Counter()
        begun = time.perf_counter()
        for text, data in encoded(encoding, found):
            ends[outcome(text, data)] += 1
        took = (time.perf_counter() - begun) / max(1, ends.total())
        for text, _ in encoded(encoding, found):
            for said in ("", *map(SAID.format, ("utf-8", "iso-8859-1", encoding, SIBLINGS.get(encoding, "cp1251")))):
                page = PAGE.format(said, text)
                ends[f"{outcome(page, page.encode(encoding))} in a page"] += 1
        wrong += ends["WRONG"] + ends["WRONG in a page"]
        print(
            f"{encoding:10}", ", ".join(f"{count} {end}" for end, count in sorted(ends.items())), f"{took * 1e3:.1f} ms"
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
