"""The code pages that old files name by numbers, as Python calls them."""

import codecs

DEFAULT_PAGE = "cp1252"
# The character sets that fonts are of, as code pages.
CHARSETS = {
    77: "mac_roman",
    128: "cp932",
    129: "cp949",
    130: "johab",
    134: "cp936",
    136: "cp950",
    161: "cp1253",
    162: "cp1254",
    163: "cp1258",
    177: "cp1255",
    178: "cp1256",
    186: "cp1257",
    204: "cp1251",
    222: "cp874",
    238: "cp1250",
    254: "cp437",
    255: "cp850",
}
PAGES = {10000: "mac_roman", 65001: "utf-8", 1200: DEFAULT_PAGE, 708: "iso8859-6", 709: "iso8859-6"}
ANSI, DEFAULT = 0, 1  # character sets that leave the choice to the document


def page_of_charset(charset: int, document: str) -> str:
    """The code page of a font; `document` is the one that the whole file has."""
    return document if charset in (ANSI, DEFAULT) else CHARSETS.get(charset, document)


def page_of_number(number: int) -> str:
    """The code page of this number, or Windows-1252 where Python knows none."""
    name = PAGES.get(number, f"cp{number}")
    try:
        codecs.lookup(name)
    except LookupError:
        return DEFAULT_PAGE
    return name
