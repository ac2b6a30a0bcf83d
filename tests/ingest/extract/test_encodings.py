"""Text in the encodings that people have used: the exact text with its encoding in the ledger, or a failure."""

import random
from pathlib import Path

import pytest

from kb.core.errors import JobFailure
from kb.ingest.extract import parts
from kb.ingest.extract.detect import detect
from kb.ingest.extract.encoding import Decoded, damaged, decoded
from kb.ingest.extract.part import Part
from kb.ingest.extract.tools import Reading, Source, unread
from kb.ingest.extract.wide import wide_encoding
from kb.ingest.sandbox.ocr import OcrChoice
from kb.ingest.sandbox.process import ProcessLimits
from kb.ingest.sandbox.sandbox import Sandbox

SAID = {
    "ar": "وصلت القافلة إلى الواحة بعد غروب الشمس، وجلس المسافرون حول النار يتحدثون عن الطريق الطويل.",
    "cs": "Příliš žluťoučký kůň úpěl ďábelské ódy. Nad městem se zvedla mlha a řeka tiše šuměla pod mostem.",
    "de": "Die Mühle am Bach gehörte früher dem Großvater; heute führt ein schmaler Weg über die Brücke dorthin.",
    "el": "Το καράβι έφυγε νωρίς το πρωί από το λιμάνι και οι ναύτες τραγουδούσαν παλιά τραγούδια της θάλασσας.",
    "es": "El año pasado la montaña se cubrió de nieve; según el guía, nadie había visto algo así jamás.",
    "he": "הרכבת האחרונה יצאה מהתחנה בשעה מאוחרת, והנוסעים ישבו בשקט והביטו בחלונות החשוכים.",
    "ja": "山の上の小さな駅で、私たちは次の列車を待っていました。雪が静かに降り、遠くで犬が鳴いていた。",
    "ko": "할머니는 매일 아침 마당에 나가 꽃에 물을 주셨다. 봄이 오면 온 동네에 향기가 가득했다.",
    "pl": "Zażółć gęślą jaźń. Wieczorem przyszły wędrowne ptaki i usiadły na gałęziach starej wierzby nad rzeką.",
    "ru": "Старый мельник каждое утро выходил к реке и долго смотрел на воду, вспоминая прежние годы.",
    "tr": "Küçük köyün çocukları akşamüstü ırmağın kıyısında toplanır, yaşlı balıkçının öykülerini dinlerdi.",
    "zh": "清晨的市场十分热闹，卖菜的老人把新鲜的白菜摆得整整齐齐，孩子们在人群里跑来跑去。",
    "zh-tw": "清晨的市場十分熱鬧，賣菜的老人把新鮮的白菜擺得整整齊齊，孩子們在人群裡跑來跑去。",
}
WRITTEN = [
    ("ar", "cp1256", "Windows-1256"),
    ("cs", "cp1250", "Windows-1250"),
    ("cs", "iso8859_2", "ISO-8859-2"),
    ("de", "latin_1", "Windows-1252"),
    ("el", "cp1253", "Windows-1253"),
    ("es", "cp1252", "Windows-1252"),
    ("he", "cp1255", "Windows-1255"),
    ("ja", "cp932", "Shift-JIS"),
    ("ja", "euc_jp", "EUC-JP"),
    ("ja", "iso2022_jp", "ISO-2022-JP"),
    ("ko", "euc_kr", "EUC-KR"),
    ("pl", "cp1250", "Windows-1250"),
    ("pl", "iso8859_2", "ISO-8859-2"),
    ("ru", "cp1251", "Windows-1251"),
    ("ru", "koi8_r", "KOI8-R"),
    ("tr", "cp1254", "Windows-1254"),
    ("zh", "gbk", "GB18030"),
    ("zh-tw", "big5", "Big5"),
]
WIDE = ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]
ENGLISH = "The mill at the end of the lane was sold twice before the war, and nobody has lived in it since. " * 3


RARE = "café|naïve|it’s|100 €|20 °C|£5|“quoted”|Zürich|señor|Smørrebrød|São Paulo|5 µm|± 3|a – b|Ångström|© 2020|façade"


class NoOcr:
    def read(self, image: object) -> Reading:
        return unread("not here", "ocr_failed")


def read(folder: Path, name: str, data: bytes) -> list[Part]:
    """As the engine does: by the format that the bytes have."""
    (file := folder / name).write_bytes(data)
    return list(parts(detect(data[:65536], data[-65536:], name).doc_type, Source(file, name), NoOcr()))


@pytest.mark.parametrize(("language", "encoding", "name"), WRITTEN)
def test_a_text_is_read_in_its_encoding_which_the_ledger_names(
    tmp_path: Path, language: str, encoding: str, name: str
) -> None:
    (part,) = read(tmp_path, "notes.txt", SAID[language].encode(encoding))
    assert part.text == SAID[language]
    assert part.outcome.state == "ok"
    assert (part.outcome.reason or "").startswith(f"read as {name}")


def test_the_sandbox_has_loaded_what_the_detector_knows(tmp_path: Path) -> None:
    limits = ProcessLimits(memory_mb=500, seconds=30, output_mb=1, idle_seconds=30)
    sandbox = Sandbox(lambda: OcrChoice("tesseract"), limits, limits)
    try:
        for language, encoding, _ in WRITTEN:
            (file := tmp_path / "notes.txt").write_bytes(SAID[language].encode(encoding))
            (part,) = sandbox.parts("text", Source(file, file.name), lambda: None)
            assert part.text == SAID[language]
    finally:
        sandbox.close()


@pytest.mark.parametrize("encoding", WIDE)
@pytest.mark.parametrize("language", sorted(SAID))
def test_wide_characters_need_no_byte_order_mark(tmp_path: Path, language: str, encoding: str) -> None:
    (part,) = read(tmp_path, "notes.txt", SAID[language].encode(encoding))
    assert (part.text, part.outcome.reason) == (SAID[language], f"read as {encoding[:6].upper()}")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_byte_order_mark_decides(tmp_path: Path, encoding: str) -> None:
    (part,) = read(tmp_path, "notes.txt", SAID["ko"].encode(encoding))
    assert (part.text, part.outcome.reason) == (SAID["ko"], f"read as {encoding.upper()}")


@pytest.mark.parametrize("data", [ENGLISH.encode(), SAID["ru"].encode(), SAID["zh"].encode("utf-8-sig")])
def test_of_utf8_the_ledger_says_nothing(data: bytes) -> None:
    assert decoded(data).reason is None


@pytest.mark.parametrize("rare", RARE.split("|"))
def test_a_single_letter_is_enough_for_western_text(rare: str) -> None:
    text = f"{ENGLISH}{rare} {ENGLISH}"
    assert decoded(text.encode("cp1252")).text == text


@pytest.mark.parametrize("line", ["Grüße aus Köln", "naïve", "año", "Über", "São Paulo", "it’s 20 °C"])
def test_a_line_is_western_unless_it_cannot_be(line: str) -> None:
    assert decoded(line.encode("cp1252")).text == line


def test_iso_8859_15_is_told_by_the_letters_that_only_it_has() -> None:
    text = "Le chœur de l'école chante à l'entrée ; l'œuvre a coûté 30 €."
    found = decoded(text.encode("iso8859_15"))
    assert (found.text, found.reason) == (text, "read as ISO-8859-15")


@pytest.mark.parametrize("said", ["utf-8", "iso-8859-1", "windows-1252", "utf-16", "no-such-charset"])
@pytest.mark.parametrize(("language", "encoding"), [("ar", "cp1256"), ("ru", "koi8_r"), ("ja", "cp932"), ("zh", "gbk")])
def test_a_page_that_declares_something_else_is_read_as_it_is(
    tmp_path: Path, language: str, encoding: str, said: str
) -> None:
    page = f'<html><head><meta charset="{said}"><title>x</title></head><body><p>{SAID[language]}</p></body></html>'
    (part,) = read(tmp_path, "page.html", page.encode(encoding))
    assert part.text == SAID[language]
    assert "read as" in (part.outcome.reason or "")


def test_a_declaration_decides_what_bytes_alone_cannot(tmp_path: Path) -> None:
    page = f'<html><head><meta charset="iso-8859-2"></head><body><p>{ENGLISH} Dvořák.</p></body></html>'
    (part,) = read(tmp_path, "page.html", page.encode("iso8859_2"))
    assert part.text.endswith("Dvořák.")
    assert part.outcome.reason == "read as ISO-8859-2, as it says"


@pytest.mark.parametrize(("language", "encoding"), [("ru", "koi8_r"), ("ar", "cp1256")])
def test_a_wrong_declaration_of_east_asia_spells_no_syllables(language: str, encoding: str) -> None:
    """Most bytes are a syllable of half width as Shift-JIS."""
    text = f'<meta charset="Shift_JIS">{SAID[language]}'
    assert decoded(text.encode(encoding)).text == text
    damage = b"\x81\x20"  # a place that Shift-JIS cannot read
    assert damaged((SAID[language] * 9).encode(encoding) + damage, "cp932") is None
    assert damaged((SAID["ja"] * 9).encode("cp932") + damage, "cp932") is not None


def test_a_sign_at_the_end_of_a_word_is_a_letter_of_another_encoding() -> None:
    text = '<meta charset="iso-8859-1">Naucz się, jak stworzyć prostą wersję.'
    assert decoded(text.encode("iso8859_2")).text == text
    formula = '<meta charset="iso-8859-1">It took 5 ± 1 s, x±1 at most, £3 and 2¼ miles.'
    assert decoded(formula.encode("latin_1")).text == formula


def test_a_source_declares_its_encoding_in_its_first_lines(tmp_path: Path) -> None:
    source = f"#!/usr/bin/python\n# -*- coding: cp1250 -*-\nname = 'Dvořák'\n# {ENGLISH}\n"
    (part,) = read(tmp_path, "names.py", source.encode("cp1250"))
    assert (part.text, part.outcome.reason) == (source, "read as Windows-1250, as it says")


def test_a_page_in_wide_characters_is_a_page(tmp_path: Path) -> None:
    (part,) = read(tmp_path, "saved", f"<!doctype html><p>{SAID['el']}</p>".encode("utf-16-le"))
    assert part.text == SAID["el"]


def test_a_drawing_is_read_as_its_bytes_are_whatever_it_declares(tmp_path: Path) -> None:
    svg = f'<?xml version="1.0" encoding="iso-8859-1"?><svg xmlns="http://www.w3.org/2000/svg"><text>{SAID["ru"]}</text></svg>'
    (part,) = read(tmp_path, "drawing.svg", svg.encode("cp1251"))
    assert part.text == SAID["ru"]
    assert part.outcome.reason == "read as Windows-1251, though it says iso8859-1"


def test_a_damaged_place_in_utf8_is_marked_and_counted() -> None:
    text = SAID["ru"]
    found = decoded(text.encode()[:-3] + b"\xff.")
    assert found.text == text[:-2] + "\ufffd."
    assert found.reason == "read as UTF-8; 1 place that is not UTF-8 became �"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (SAID["ru"].encode("cp855"), "looks like cp855"),
        (SAID["ar"].encode("mac_arabic"), "not clear which"),
        ("Questo comando è un alias di ls".encode("cp850"), "not clear which"),
        ("Aquest comandament és una còpia".encode("cp850"), "not clear which"),
        ("Het is maar één commando".encode("mac_roman"), "not clear which"),
        (bytes(range(128, 256)) * 4, "not clear which"),
        (SAID["de"].encode("utf-16")[:-1], "not valid UTF-16"),
        (SAID["de"].encode() + bytes(3), "bytes that no text has"),
    ],
)
def test_what_is_not_clear_fails_with_a_sentence(data: bytes, why: str) -> None:
    with pytest.raises(JobFailure, match=why) as failed:
        decoded(data)
    assert failed.value.code == "corrupt"


def test_what_is_written_with_the_bytes_of_ascii_alone_is_not_taken_for_ascii() -> None:
    found = decoded(f"notes: {SAID['zh']}".encode("hz"))
    assert (found.text, found.reason) == (f"notes: {SAID['zh']}", "read as HZ (Chinese)")
    for plain in (b"rm ~{old} ~{ab~}", b"a ~{!!~} b", b"\x1b[31mred\x1b[0m"):
        assert decoded(plain) == Decoded(plain.decode())


def test_a_wrong_declaration_does_not_decide_about_one_letter() -> None:
    page = '<meta charset="iso-8859-1"><p>Zobacz dokumentację oryginalnego polecenia</p>'
    assert decoded(page.encode("iso8859_2")).text == page


def test_a_control_character_that_strayed_into_a_text_is_left_out(tmp_path: Path) -> None:
    (part,) = read(tmp_path, "notes.txt", SAID["de"].encode() * 9 + b"\2end")
    assert part.text == SAID["de"] * 9 + " end"
    assert part.outcome.reason == "1 control character is left out"
    assert decoded(SAID["de"].encode("cp1252") + b"\x1a\x1a").text == SAID["de"]


def test_bytes_of_a_program_are_not_taken_for_letters_of_asia() -> None:
    assert wide_encoding(b"\0\1\2gobblesnout") is None
    chance = random.Random(16)
    assert [size for size in range(4, 600, 2) if wide_encoding(chance.randbytes(size))] == []
    for text in ("Hello", "春眠不覚暁。", "Привет", "안녕 하세요"):
        for encoding in ("utf-16-le", "utf-16-be"):
            assert wide_encoding(text.encode(encoding)) == encoding
