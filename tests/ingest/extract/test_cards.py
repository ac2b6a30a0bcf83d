"""Calendars and address cards: whole words, no signs of their own, no pictures."""

from collections.abc import Callable

from kb.ingest.extract import Part

Extract = Callable[..., list[Part]]


def test_folded_lines_are_whole_again(extract: Extract) -> None:
    (part,) = extract(
        b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nSUMMARY;LANGUAGE=en:Harb\r\n our board\\, autumn\r\n"
        b'ATTENDEE;CN="Ana: B":mailto:ana@x.org\r\nDESCRIPTION:Bring\\nthe minutes\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n',
        "a.ics",
    )
    assert part.text == "SUMMARY: Harbour board, autumn\nATTENDEE: mailto:ana@x.org\nDESCRIPTION: Bring\nthe minutes"


def test_a_card_is_decoded_and_its_picture_left_out(extract: Extract) -> None:
    (part,) = extract(
        b"BEGIN:VCARD\nVERSION:2.1\nN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCl=\n=6Cer;J=C3=B6rg\n"
        b"item1.ADR:;;Quay 1;Oslo;;;\nPHOTO;ENCODING=BASE64;JPEG:/9j/4AAQ\n SkZJ\nEND:VCARD\n"
        b"BEGIN:VCARD\nFN:Ada\nEND:VCARD",
        "people.vcf",
    )
    assert part.text == "N: Müller Jörg\nADR: Quay 1 Oslo\n\nFN: Ada"
    assert part.outcome.reason == "pictures and keys are left out: 1"
