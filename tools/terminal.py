"""A picture of the terminal, made from what commands really print: `python -m tools.terminal OUT.svg 'COMMAND' ...`.

Each command runs on a terminal of its own, so that it shows its colours; of those, kb's own are drawn.
"""

import html
import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

COLUMNS = 92
LINE, CELL = 19, 8.4
COLOURS = {"31": "#f7768e", "32": "#9ece6a", "33": "#e0af68", "36": "#7dcfff", "2": "#7a81a3"}
ESCAPE = re.compile("\x1b\\[([0-9;]*)m")


def shown(command: str) -> list[str]:
    master, slave = pty.openpty()
    environment = os.environ | {"COLUMNS": str(COLUMNS), "TERM": "xterm"}
    process = subprocess.Popen(shlex.split(command), stdin=slave, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    output = b""
    try:
        while block := os.read(master, 65536):
            output += block
    except OSError:  # how Linux says that the other side is closed
        pass
    process.wait()
    os.close(master)
    # What a progress line drew is gone once it was cleared.
    return [line.rpartition("\x1b[K")[2].rstrip("\r") for line in output.decode().rstrip().split("\n")]


def drawn(line: str, y: int) -> str:
    spans, style = [], ""
    for number, part in enumerate(ESCAPE.split(line)):
        if number % 2:
            codes = part.split(";")
            colour = next((COLOURS[code] for code in codes if code in COLOURS), "")
            style = (f' fill="{colour}"' if colour else "") + (' font-weight="bold"' if "1" in codes else "")
        elif part:
            spans.append(f"<tspan{style}>{html.escape(part)}</tspan>")
    return f'<text x="16" y="{y}" xml:space="preserve">{"".join(spans)}</text>'


def picture(lines: list[str]) -> str:
    width, height = round(COLUMNS * CELL) + 32, len(lines) * LINE + 32
    body = "\n".join(drawn(line, 30 + number * LINE) for number, line in enumerate(lines))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="#1a1b26"/>\n'
        f'<g font-family="Menlo, Consolas, monospace" font-size="14" fill="#c0caf5">\n{body}\n</g>\n</svg>\n'
    )


def main(out: str, commands: list[str]) -> None:
    lines: list[str] = []
    for command in commands:
        lines += [f"\x1b[32m$\x1b[0m \x1b[1m{command}\x1b[0m", *shown(command), ""]
    Path(out).write_text(picture(lines[:-1]), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
