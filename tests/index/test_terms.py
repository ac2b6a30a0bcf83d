"""What counts as the same word, as a table, and what holds for any text at all."""

import re
import sys
import threading
import time
import unicodedata

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.index.terms import MAX_TERM, STOP_WORDS, TOKENCHARS, index_terms, query_terms

LEGAL_TERM = re.compile(rf"(?:[a-z0-9{re.escape(TOKENCHARS)}]|[^\x00-\x9f\s\ud800-\udfff]){{1,{MAX_TERM}}}")

ANY_TEXT = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        # words
        ("The cats sat.", "the cat sat"),
        ("running runs RUN", "run run run"),
        ("the the", "the the"),
        ("Résumé resume RESUME", "resum resum resum"),
        ("Straße STRASSE", "strass strass"),
        ("ｆｕｌｌ ｗｉｄｔｈ １２", "full width 12"),
        ("ﬁne soft\u00adhyphen zero\u200bwidth", "fine softhyphen zerowidth"),
        ("p53 B12 90s 2nd 3f2a9c", "p53 b12 90s 2nd 3f2a9c"),
        ("COVID19 python3", "covid19 covid 19 python3 python 3"),
        ("x² H₂O", "x2 h2o"),
        # apostrophes
        ("Smith's Smith’s SMITH'S", "smith smith smith"),
        ("we'll they've I'm", "we they i"),
        ("don't DON’T dont", "dont dont dont"),
        ("l'homme d’accord O'Brien rock'n'roll", "l homm d accord o brien rock n roll"),
        # compounds: the whole and the parts
        ("foo_bar.baz-1.2", "foo_bar.baz-1.2 foo_bar foo bar baz 1 2"),
        ("v1.2.3.", "v1.2.3 v1 2 3"),
        ("(2023-10-05)", "2023-10-05 2023 10 05"),
        ("2023-10-05T12:30", "2023-10-05 2023 10 05 t12 30"),
        ("1,234.5", "1,234.5 1234.5 1 234 5"),
        ("a,b", "a b"),
        ("user@example.com,", "user@example.com user exampl com"),
        ("C++ C# C", "c++ c c# c c"),
        ("CD4+ cells", "cd4+ cd4 cd 4 cell"),
        ("R&D", "r&d r d"),
        ("__init__ foo__bar", "init foo__bar foo bar"),
        ("e.g. this", "e.g e g this"),
        ("wait...what", "wait what"),
        ("well-known", "wellknown well known"),
        ("e-mail e‑mail email", "email e mail email e mail email"),
        # case adds parts and changes nothing else
        ("getUserName getusername", "getusernam get user name getusernam"),
        ("HTTPServer2", "httpserver2 http server 2"),
        ("iPhone iphone", "iphon i phone iphon"),
        ("CPUs cpu", "cpus cpu cpu"),
        # other scripts
        ("книги книгами Книга", "книг книг книг"),
        ("ёлка елка а́втор йод", "елк елк автор йод"),
        ("مُدَرِّسَةٌ مدرسه المدرسة", "مدرس مدرس مدرس"),
        ("كتــاب كتاب", "كتاب كتاب"),
        ("שָׁלוֹם שלום", "שלום שלום"),
        ("Ελλάς ΕΛΛΑΣ", "ελλασ ελλασ"),
        ("हिन्दी भाषा", "हिन्दी भाषा"),
        ("٢٠٢٣ ２０２３", "2023 2023"),
        ("黑猫", "黑 黑猫 猫"),
        ("猫", "猫"),
        ("東京2020年", "東 東京 京 2020 年"),
        ("ラーメン ﾗｰﾒﾝ", "ラ ラー ー ーメ メ メン ン ラ ラー ー ーメ メ メン ン"),
        ("한국어", "한 한국 국 국어 어"),
        ("ที่นี่", "ที่ ที่นี่ นี่"),
        # symbols
        ("party 🎉🎉!", "parti 🎉 🎉"),
        ("👍🏽 ❤️ 🇩🇪🇫🇷", "👍 ❤ 🇩🇪 🇫🇷"),
        ("€5 → $5", "€ 5 → 5"),
        ("├── src █ ■ \ufffd", "src"),
        ("", ""),
        ("≠ ∞ ـ", "≠ ∞"),
        (" \t\n\0\x1b\ud800 -- ''", ""),
    ],
)
def test_a_text_is_indexed_as(text: str, terms: str) -> None:
    assert index_terms(text) == terms.split()


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("How do the cats run?", "cat run"),
        ("cats, cat and CATS", "cat"),
        ("to be or not to be", "to be or not"),
        ("state-of-the-art", "stateoftheart state art"),
        ("I don't know", "know"),
        ("what does the WHO say about US policy", "who say us polici"),
        ("WHAT DOES IT SAY", "say"),
        ("vitamin D, grade A", "vitamin d grade"),
        ("getUserName", "getusernam get user name"),
        ("黑猫在", "黑猫 猫在"),
        ("猫", "猫"),
        ("the 猫", "猫"),
        ("🎉", "🎉"),
        ("?!", ""),
    ],
)
def test_a_query_asks_for(text: str, terms: str) -> None:
    assert list(query_terms(text)) == terms.split()


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("resume", "her Résumé"),
        ("user name", "call getUserName()"),
        ("max_size", "self.max_size = 5"),
        ("1234", "1,234 items"),
        ("猫", "一只黑猫"),
        ("黑猫", "一只黑猫在这里"),
        ("ﾗｰﾒﾝ", "おいしいラーメン"),
        ("ประเทศ", "ประเทศไทย"),
        ("книга", "в этих книгах"),
        ("المدرسة", "في مَدرسة كبيرة"),
        ("12-05", "12\u201105"),
    ],
)
def test_a_query_finds_all_of_its_terms_in(query: str, text: str) -> None:
    assert set(query_terms(query)) <= set(index_terms(text))


def test_stop_words_are_plain_words() -> None:
    assert all(re.fullmatch("[a-z]+", word) for word in STOP_WORDS)


def test_fts5_sees_exactly_these_terms() -> None:
    everything = " ".join(map(chr, range(sys.maxunicode + 1)))
    text = everything + " foo_bar.baz-1.2 user@example.com C++ C# 1,234.5 R&D 黑猫 ที่นี่ 🇩🇪 Ⅷ"
    terms = index_terms(text)
    db = apsw.Connection(":memory:")
    # One statement is the store's own: what matters is the tokenizer.
    db.execute(f"""CREATE VIRTUAL TABLE t USING fts5(terms, tokenize = "ascii tokenchars '{TOKENCHARS}'")""")
    db.execute("CREATE VIRTUAL TABLE seen USING fts5vocab(t, instance)")
    db.execute("INSERT INTO t VALUES (?)", [" ".join(terms)])
    assert [term for (term,) in db.execute("SELECT term FROM seen ORDER BY offset")] == terms
    for term in terms[::97]:
        assert db.execute("SELECT count(*) FROM t WHERE t MATCH ?", [f'"{term}"']).fetchall() == [(1,)]


def test_no_character_makes_an_illegal_term() -> None:
    everything = " ".join(map(chr, range(sys.maxunicode + 1)))
    assert [term for term in index_terms(everything) if not LEGAL_TERM.fullmatch(term)] == []


@given(ANY_TEXT)
def test_any_text_gives_legal_terms(text: str) -> None:
    assert all(LEGAL_TERM.fullmatch(term) for term in index_terms(text) + list(query_terms(text)))


@given(ANY_TEXT)
def test_any_text_is_found_by_itself(text: str) -> None:
    indexed, asked = index_terms(text), query_terms(text)
    assert set(asked) <= set(indexed)
    assert bool(asked) == bool(indexed)


@given(st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"]), max_size=30))
def test_case_and_composition_do_not_matter_to_a_query(text: str) -> None:
    lower = set(index_terms(text.lower()))
    assert set(query_terms(unicodedata.normalize("NFD", text.lower()))) <= lower


@pytest.mark.parametrize(
    "unit",
    [
        "a", "a.", "a_", "_", "a-", "1,", "aB", "AAs", "a's ", "1111-11-11", "a\u0300", "\u0315\u0300", "\u0315\uff9e",
        "कि", "ก\u0e34", "\u0e34", "猫", "㍿", "🇩", "👍🏽", "\0", "\ud800", "word ", "ب\u064b\u0651",
    ],
)  # fmt: skip
def test_hostile_text_takes_no_more_than_linear_time(unit: str) -> None:
    def seconds(characters: int) -> float:
        text = "a" + unit * (characters // len(unit))
        best = float("inf")
        for _ in range(2):
            started = time.perf_counter()
            index_terms(text)
            query_terms(text)
            best = min(best, time.perf_counter() - started)
        return best

    small, large = seconds(5_000), seconds(40_000)
    assert large < max(0.05, small) * 30


def test_a_long_word_is_cut_alike_on_both_sides() -> None:
    word = "x" * 1_000_000
    assert index_terms(word) == list(query_terms(word))
    assert len(index_terms(word)[0]) <= MAX_TERM


def test_threads_agree() -> None:
    text = " ".join(f"running{'s' * (number % 7)} nationalisation{chr(97 + number % 26)}" for number in range(3000))
    expected = index_terms(text)
    answers: list[list[str]] = []

    def work() -> None:
        answers.extend(list(query_terms(text)) and index_terms(text) for _ in range(3))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [expected] * 18
