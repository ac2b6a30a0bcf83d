"""Text in, index terms out: the one place that decides what counts as the same word.

What is indexed and what is asked go through the same steps, so that they meet. Terms joined by spaces are
handed to FTS5's built-in `ascii` tokenizer with `TOKENCHARS`: a term consists of ASCII letters and digits in
lower case, characters of `TOKENCHARS` and characters beyond ASCII, never of white space, quotes or control
characters, and has at most `MAX_TERM` characters. Any string is legal, and the time taken is linear.

- Case, width, accents, vowel points and invisible characters do not matter: `Résumé` is `resume`.
- A compound is one term and so is each of its parts: `foo_bar.baz-1.2`, `getUserName`, `user@example.com`,
  `C++`, `1,234.5` (and `1234.5`). Punctuation around it is not part of it. Case only adds parts, so `iPhone`
  still is `iphone`; a hyphen between letters is not written, so `e-mail` still is `email`.
- Words of plain letters are stemmed as English, Russian or Arabic by their script. Digits make a word exact, and
  two letters or more before a number are a part: `python3` is `python` too.
- English endings after an apostrophe (`'s`, `'ll`) are dropped, `don't` is `dont`, any other apostrophe
  separates: `l'homme` is `l` and `homme`.
- Scripts without spaces are indexed as characters and as overlapping pairs; a query asks for the pairs, or
  for the character where it stands alone.
- A symbol is a term of its own: emoji, currencies beyond ASCII, arrows; not what only draws lines and boxes.
"""

import re
import threading
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise

import Stemmer  # type: ignore[import-not-found]

VERSION = "1"
TOKENCHARS = "_-.+#@,&"
MAX_TERM = 64

_STOP_WORDS = """
    a about above after again against all also am an and any are as at be because been before being below
    between both but by can could did do does doing down during each few for from further had has have
    having he her here hers herself him himself his how i if in into is it its itself just me more most my
    myself no nor not of off on once only or other our ours ourselves out over own same she should so some
    such than that the their theirs them themselves then there these they this those through to too under
    until up very was we were what when where which while who whom whose why will with would you your yours
    yourself yourselves arent cant couldnt didnt doesnt dont hadnt hasnt havent isnt shouldnt wasnt werent
    wont wouldnt
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())


def _combining_marks() -> str:
    """For a character class: `\\w` leaves combining marks out, and Indic words are written with them."""
    ranges: list[list[int]] = []
    for code in chain(range(0x300, 0x3100), range(0xA66F, 0xAC00), range(0xFB1E, 0xFE30)):
        if not unicodedata.category(chr(code)).startswith("M"):
            continue
        if ranges and code == ranges[-1][1] + 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    # Beyond the basic plane whole blocks will do: a range there costs time at every character of every text.
    blocks = [
        [0x101FD, 0x11FFF],
        [0x16AF0, 0x16FF1],
        [0x1BC9D, 0x1BC9E],
        [0x1D165, 0x1D244],
        [0x1E000, 0x1E94A],
    ]
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges + blocks)


_MARK = _combining_marks()
# Han, kana, bopomofo, Hangul, Thai, Lao, Myanmar and Khmer, without their blocks' digits and punctuation.
_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u103f\u1050-\u108f\u109a-\u109d\u1100-\u11ff"
    "\u1780-\u17d3\u17dc\u17dd\u3005-\u3007\u3021-\u302f\u3031-\u3035\u303b\u303c\u3041-\u309a\u309d-\u309f"
    "\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97c\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa76\uaa7a-\uaa7f\uac00-\ud7a3\ud7b0-\ud7fb\uf900-\ufaff"
    "\U00017000-\U00018d8f\U0001aff0-\U0001b2ff\U00020000-\U0003ffff"
)
_SYMBOL = (
    "\u00a2-\u00a5\u00a9\u00ac\u00ae\u00b0\u00b1\u00d7\u00f7\u20a0-\u20cf\u2100-\u23ff\u2600-\u27bf\u27c0-\u27e5"
    "\u27f0-\u27ff\u2900-\u2982\u2999-\u29d7\u29dc-\u29fb\u29fe-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff"
)
_LETTERS = rf"[^\W_{_UNSPACED}]+"
# The bounds keep the matcher's own stack small on hostile text; no word has that many marks or parts.
_WORD = rf"{_LETTERS}(?:[{_MARK}]+{_LETTERS}){{0,64}}[{_MARK}]*"
_PIECE = re.compile(
    r"\d{4}-\d\d-\d\d(?=T\d)"  # the day of an ISO 8601 time
    rf"|{_WORD}(?:(?:[.@&-]|_+|(?<=\d),(?=\d)){_WORD}){{0,32}}"
    r"(?:\+\+|[+#](?!\w)|['’](?:[sSdDmM]|[lL][lL]|[rRvV][eE]|(?<=[nN]['’])[tT])(?!\w))?"
    rf"|[{_UNSPACED}]+"
    r"|[\U0001f1e6-\U0001f1ff]{2}"  # a flag
    rf"|[{_SYMBOL}]"
)
_RUN = re.compile(rf"[{_UNSPACED}]")
_UNIT = re.compile(rf".[{_MARK}]{{0,30}}")
_LONG_MARKS = re.compile(rf"[{_MARK}\uff9e\uff9f]{{31,}}")
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\U0001f3fb-\U0001f3ff\U000e0000-\U000e0fff]"
)
# й is a letter of its own, and Russian endings are told by it; every other accent goes.
_ACCENT = re.compile(
    "[\u0300-\u0305\u0307-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u065f\u0670"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]|(?<!\u0438)\u0306"
)
_ARABIC_VARIANTS = str.maketrans("ىة", "يه")
_FOREIGN_DIGIT = re.compile(r"[^\D0-9]")
_SEGMENT = re.compile(rf"[\w{_MARK}]+")
_CAMEL = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_HUMP = re.compile(
    r"_+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z](?!s(?![a-z]))[a-z])|(?<=[a-z])(?=[0-9])"
    r"|(?<=[A-Z]{2})s(?![a-z])"  # the plural of an acronym: CPUs
)
_NUMBERED = re.compile(r"([A-Za-z]{2,})([0-9]+)")
_RUSSIAN = re.compile("[а-я]+")
_ARABIC = re.compile("[\u0620-\u064a]+")


def index_terms(text: str) -> list[str]:
    """Every term of a text, in order, as often as it occurs."""
    terms: list[str] = []
    for piece in _pieces(text):
        if piece >= "\u0e01" and _RUN.match(piece):
            terms += _run_terms(piece)
        elif len(piece) <= MAX_TERM:
            terms += _word_terms(piece)
        else:
            terms += map(_term, _surfaces(piece))
    return terms


@dataclass(slots=True)
class Asked:
    """How a question has a term."""

    word: str  # folded, but not stemmed
    count: int = 0

    @property
    def is_word(self) -> bool:
        """Whether it has only letters, of a script with spaces between words: anything else cannot be misspelt."""
        return self.word.isalpha() and not _RUN.search(self.word)


def query_terms(text: str) -> dict[str, Asked]:
    """What to look for: the terms in order, without stop words unless there is nothing else."""
    wanted: dict[str, Asked] = {}
    stopped: dict[str, Asked] = {}
    shouting = text.isupper()
    for piece in _pieces(text):
        if _RUN.match(piece):
            units = _UNIT.findall(piece)
            for pair in map("".join, pairwise(units)) if len(units) > 1 else units:
                wanted.setdefault(pair, Asked(pair)).count += 1
            continue
        # WHO, US and IT are no pronouns.
        is_name = len(piece) > 1 and piece.isupper() and not shouting
        for surface in _surfaces(piece):
            kind = stopped if surface in STOP_WORDS and not is_name else wanted
            kind.setdefault(_term(surface), Asked(surface)).count += 1
    return wanted or stopped


def word_with(text: str, term: str) -> str | None:
    """The first word of a text that has this term."""
    for piece in _pieces(text):
        if not _RUN.match(piece):
            for surface in _surfaces(piece):
                if _term(surface) == term:
                    return surface
    return None


def _pieces(text: str) -> list[str]:
    """Words and compounds, runs of scripts without spaces, symbols; as written but for width and the like."""
    if not text.isascii():
        # Normalising sorts neighbouring marks in time that grows with the square of their number.
        text = unicodedata.normalize("NFKC", _LONG_MARKS.sub(lambda marks: marks[0][:30], text))
        text = _INVISIBLE.sub("", text).replace("\u2010", "-")
    return _PIECE.findall(text)


def _run_terms(run: str) -> Iterator[str]:
    units = _UNIT.findall(run)
    for unit, after in pairwise(units):
        yield unit
        yield unit + after
    yield units[-1]


@lru_cache(maxsize=2**15)
def _word_terms(piece: str) -> tuple[str, ...]:
    return tuple(map(_term, _surfaces(piece)))


def _surfaces(piece: str) -> list[str]:
    """The words that a piece stands for, folded but not stemmed: the whole, then its parts."""
    if not piece[0].isalnum():
        return [piece]
    piece, _, ending = piece.replace("’", "'").partition("'")
    if ending in ("t", "T"):
        piece += ending
    whole = _fold(piece)
    solid = whole.replace("-", "")
    surfaces = [solid if solid.isalpha() else whole]
    if "," in whole:
        surfaces.append(whole.replace(",", ""))
    for segment in _SEGMENT.findall(piece):
        if segment != piece:
            surfaces.append(_fold(segment))
        if "_" in segment or _CAMEL.search(segment):
            surfaces.extend(map(_fold, _HUMP.split(segment)))
        elif numbered := _NUMBERED.fullmatch(segment):
            surfaces.extend(map(_fold, numbered.groups()))
    return [surface for surface in surfaces if surface]


def _fold(word: str) -> str:
    if word.isascii():
        return word.lower()
    word = _ACCENT.sub("", unicodedata.normalize("NFD", word.casefold()))
    word = unicodedata.normalize("NFC", word).translate(_ARABIC_VARIANTS)
    return _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), word)


class _Stemmers(threading.local):
    """Stemmers must not be shared, so each thread has its own. Their caches are off: `_word_terms` is one."""

    def __init__(self) -> None:
        self.english = Stemmer.Stemmer("english", 0)
        self.russian = Stemmer.Stemmer("russian", 0)
        self.arabic = Stemmer.Stemmer("arabic", 0)


_stemmers = _Stemmers()


def _term(surface: str) -> str:
    word = surface[:MAX_TERM]
    stem = word
    if not word.isalpha():
        return word
    if word.isascii():
        stem = _stemmers.english.stemWord(word)
    elif _RUSSIAN.fullmatch(word):
        stem = _stemmers.russian.stemWord(word)
    elif _ARABIC.fullmatch(word):
        # The stemmer knows the feminine ending by its full spelling, which writers often shorten.
        full = word[:-1] + "ة" if word.endswith("ه") else word
        stem = _stemmers.arabic.stemWord(full).translate(_ARABIC_VARIANTS)
    return stem or word
