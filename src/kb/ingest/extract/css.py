"""What a style says about whether a text is shown: as much of CSS as a single rule about an element can say."""

import re

SHADE = r"(?:white|#fff(?:fff)?(?:ff)?|rgba?\(\s*255\s*,\s*255\s*,\s*255[^)]*\))"
WAYS = (
    ("not displayed", re.compile(r"(?:^|;)\s*display\s*:\s*none")),
    ("not displayed", re.compile(r"(?:^|;)\s*visibility\s*:\s*(?:hidden|collapse)")),
    ("transparent", re.compile(r"(?:^|;)\s*(?:fill-)?opacity\s*:\s*0*\.?0*%?\s*(?:;|!|$)")),
    ("transparent", re.compile(r"(?:^|;)\s*(?:color|fill)\s*:\s*transparent")),
    ("tiny", re.compile(r"(?:^|;)\s*font-size\s*:\s*0*\.?(?:0+|(?<=\.)\d+)(?:px|pt)?\s*(?:;|!|$)")),
    ("outside of the page", re.compile(r"(?:^|;)\s*(?:left|top|right|text-indent|margin-left)\s*:\s*-\d{4,}")),
)
WHITE = re.compile(rf"(?:^|;)\s*(?:color|fill)\s*:\s*{SHADE}\s*(?:;|!|$)")
BACKGROUND = re.compile(r"background|bgcolor")


def way_hidden(style: str, *, on_white: bool) -> str | None:
    """The way in which a style hides a text; None if it does not."""
    style = style.lower()
    for way, rule in WAYS:
        if rule.search(style):
            return way
    return "white" if on_white and WHITE.search(style) and not BACKGROUND.search(style) else None
