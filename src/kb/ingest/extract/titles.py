"""The title that a file gives itself, unless a program made it up."""

import re

from kb.ingest.extract.tidy import detail

PROGRAM = re.compile(r"^microsoft (?:office )?\w+ - ", re.IGNORECASE)  # what was printed into a PDF
SUFFIX = re.compile(r"\.\w{2,4}$")
# A single word with a suffix, or several with one that only files have.
FILE_NAME = re.compile(
    r"\S*\.\w{2,4}|.*\.(?:docx?|dotx?|odt|rtf|txt|wpd|pages|pptx?|odp|xlsx?|ods|csv|pdf|ps|eps|dvi|tex|indd|qxd|pmd|cdr"
    r"|dwg|vsdx?|html?|tiff?|png|jpe?g|gif|bmp|tmp)",
    re.IGNORECASE,
)
# What programs write where a person named nothing, in the languages that they come in.
NO_TITLE = re.compile(
    r"[\W\d]*"
    r"|\W*(?:untitled|no title|sans titre|ohne titel|sin t[ií]tulo|senza titolo|无标题|無題|без названия).*"
    r"|\W*(?:anonymous|unspecified|unknown|none|null|undefined|title|blank page|about:blank|full page photo)\W*"
    r"|(?:(?:microsoft )?(?:word )?document|dokument|documento|book|mappe|classeur|libro|cartel|文档|文書) ?\d*"
    r"|(?:slide|diapositiv[ae]|folie|dia|slajd|слайд|スライド|幻灯片|슬라이드) ?\d+"
    r"|(?:microsoft )?(?:powerpoint )?presentation ?\d*"
    r"|(?=.*powerpoint)(?:\S+[ -]){0,3}\S*(?:presenta|präsenta|présenta|презента|プレゼン|演示文稿|簡報)\S*"
    r"(?: \S+){0,3}",
    re.IGNORECASE,
)


def real_title(text: str | None) -> str | None:
    """The title in a file's metadata; None for the name of a file, for `(anonymous)`, `Slide 1` and the like."""
    title = detail(text)
    named = PROGRAM.sub("", title)
    if named != title and " " in named:  # a person chose the name of that file
        named = SUFFIX.sub("", named)
    return None if FILE_NAME.fullmatch(named) or NO_TITLE.fullmatch(named) else named
