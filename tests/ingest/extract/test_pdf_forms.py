"""Forms in PDFs: what was filled in is found once, with the name of its field where the page does not say it."""

from collections.abc import Callable

from kb.ingest.extract import Part
from made import assembled, stream

Extract = Callable[..., list[Part]]
FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
DRAWN = "/Tx BMC BT /Helv 12 Tf 2 4 Td ({}) Tj ET EMC"
COMB, PASSWORD, COMBO = 1 << 24, 1 << 13, 1 << 17  # flags of a field


def form(*fields: tuple[str, str], xfa: bytes = b"") -> bytes:
    """A PDF of one page with these widgets: their entries, and what is drawn for them."""
    objects = [b"", b"", FONT, stream(b"BT /Helv 12 Tf 50 740 Td (Application for a berth in the harbour) Tj ET")]
    widgets = []
    for at, (entries, drawn) in enumerate(fields):
        box = "/Type /XObject /Subtype /Form /BBox [0 0 200 20] /Resources << /Font << /Helv 3 0 R >> >>"
        objects.append(stream(drawn.encode("latin-1"), box))
        look = f"<< /Yes {len(objects)} 0 R >>" if "/AS" in entries else f"{len(objects)} 0 R"
        place = f"/Rect [50 {700 - 30 * at} 250 {720 - 30 * at}]"
        shared = f"/Type /Annot /Subtype /Widget {place} /AP << /N {look} >> /DA (/Helv 12 Tf)"
        objects.append(f"<< {shared} {entries} >>".encode())
        widgets.append(b"%d 0 R" % len(objects))
    if xfa:
        objects.append(stream(xfa))
        xfa = b"/XFA [(template) %d 0 R]" % len(objects)
    listed = b" ".join(widgets)
    fields_of = b"<< /Fields [%s] %s /DR << /Font << /Helv 3 0 R >> >> >>" % (listed, xfa)
    only_adobe = b"/NeedsRendering true" if xfa else b""
    objects[0] = b"<< /Type /Catalog /Pages 2 0 R %s /AcroForm %s >>" % (only_adobe, fields_of)
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Annots [%s] " % listed
    objects.append(page + b"/Resources << /Font << /Helv 3 0 R >> >> >>")
    objects[1] = b"<< /Type /Pages /Count 1 /Kids [%d 0 R] >>" % len(objects)
    objects.append(b"<< /Title (Berth) >>")
    return assembled(objects)


def lines(parts: list[Part]) -> list[str]:
    return parts[0].text.split("\n")[1:]


def test_a_value_that_is_drawn_is_not_told_twice(extract: Extract) -> None:
    data = form(("/FT /Tx /T (boat) /V (Grey Heron)", DRAWN.format("Grey Heron")))
    assert lines(extract(data)) == ["Grey Heron"]


def test_a_value_that_is_not_drawn_is_told_with_its_field(extract: Extract) -> None:
    data = form(("/FT /Tx /T (boat) /TU (Name of the boat) /V (Grey Heron)", ""), ("/FT /Tx /T (mooring)", ""))
    assert lines(extract(data)) == ["[Name of the boat: Grey Heron]"]


def test_ticks_and_choices_are_told(extract: Extract) -> None:
    options = "/Opt [(Buoy) (Quay) (Pier)]"
    parts = extract(
        form(
            ("/FT /Btn /T (insured) /V /Yes /AS /Yes", "q Q"),
            ("/FT /Btn /T (leaky) /V /Off /AS /Off", "q Q"),
            ("/FT /Btn /T (flag) /Ff 32768 /V /Danish /AS /Danish", "q Q"),
            (f"/FT /Ch /T (kind) /V (Quay) {options}", DRAWN.format("Buoy Quay Pier")),
            (f"/FT /Ch /T (sail) /Ff {COMBO} /V (q) /Opt [[(b) (Buoy)] [(q) (Quay)]]", DRAWN.format("Quay")),
        )
    )
    assert lines(parts) == ["Buoy Quay Pier Quay", "[insured: checked]", "[flag: Danish]", "[kind: Quay]"]


def test_a_number_in_a_comb_is_found_as_a_whole(extract: Extract) -> None:
    drawn = "/Tx BMC BT /Helv 12 Tf 2 4 Td (4) Tj 40 0 Td (7) Tj 40 0 Td (1) Tj 40 0 Td (1) Tj ET EMC"
    data = form((f"/FT /Tx /T (sail number) /Ff {COMB} /MaxLen 4 /V (4711)", drawn))
    assert lines(extract(data))[-1] == "[sail number: 4711]"


def test_passwords_are_not_read_and_hidden_fields_are_hidden(extract: Extract) -> None:
    parts = extract(
        form(
            (f"/FT /Tx /T (code) /Ff {PASSWORD} /V (sesame)", ""),
            ("/FT /Tx /T (state) /V (draft 7) /F 2", ""),
        )
    )
    assert [(part.text.split("\n")[-1], part.hidden) for part in parts] == [
        ("Application for a berth in the harbour", False),
        ("[state: draft 7]", True),
    ]


def test_a_form_that_only_adobe_draws_gives_its_captions_and_values(extract: Extract) -> None:
    template = (
        '<template xmlns="http://www.xfa.org/schema/xfa-template/3.3/"><subform><draw><value><text>Berth</text></value>'
        '</draw><field name="boat"><caption><value><text>Boat</text></value></caption></field></subform></template>'
    )
    page, xfa = extract(form(xfa=template.encode()))
    assert page.text == "Application for a berth in the harbour"
    assert (xfa.name, xfa.text, xfa.anchor.page) == ("page 1, XFA form", "Berth\nBoat", 1)
    assert xfa.outcome.reason == "what its XML says, without the layout"
