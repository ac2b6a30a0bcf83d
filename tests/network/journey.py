"""Everything that kb does, once: the model installed, engine, MCP server, command line, extraction and OCR.

    journey.py FOLDER

Runs where there is no network but loopback. Any failure ends it with an exit code.
"""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import made
from kb.core.settings import bundled_model_dir
from kb.ingest.sandbox.ocr import load_reader
from mcp_server.agents import McpProcess, agent
from support import EngineProcess, Http

WRITTEN = "Harbour master"
FILES = {
    "report.pdf": made.pdf(["The harbour was dredged in May.", made.picture("Page two", (612, 792))]),
    "letter.docx": made.docx(made.paragraph("The pier is closed on Sundays.")),
    "talk.pptx": made.pptx([made.shape("Ships and their anchors")]),
    "tides.xlsx": made.xlsx({"Tides": [["Day", "High"], ["Monday", 4]]}),
    "page.html": b'<html><body><p>Ferries</p><img src="http://192.0.2.9/x.png"></body></html>',
    "drawing.svg": b'<svg xmlns="http://www.w3.org/2000/svg"><text>Buoy</text>'
    b'<image href="http://192.0.2.9/x.png"/></svg>',
    "sign.png": made.encoded(made.picture(WRITTEN)),
    "sign.jpg": made.encoded(made.picture("No swimming"), "JPEG"),
    "note.md": b"# Tide\n\nHigh water comes twice a day.",
}


def command(*words: str, **environment: str) -> None:
    done = subprocess.run(words, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"


def install_model(target: Path) -> None:
    """Twice: from files at hand, and when everything is there already."""
    install = (sys.executable, "-m", "kb.embedding.model", "install", "--to", str(target))
    command(*install, "--from", str(bundled_model_dir()))
    command(*install)


def use_command_line(url: str, folder: Path) -> None:
    files = folder / "files"
    files.mkdir()
    for name, content in FILES.items():
        (files / name).write_bytes(content)
    for words in (
        ("add", str(files), "--tags", "sea"),
        ("addnote", "The dog is called Rex."),
        ("search", "who is the dog"),
        ("list",),
        ("status",),
        ("doctor",),
        ("duplicates",),
        ("backup", str(folder / "kb.tar")),
        ("restore", str(folder / "kb.tar"), "--data-dir", str(folder / "restored")),
    ):
        command(sys.executable, "-m", "kb.cli.main", *words, KB_ENGINE_URL=url)


async def use_agents(mcp: McpProcess) -> None:
    for contract in ("kb", "knowledge", "kb-v3"):
        async with agent(mcp.at(contract)) as client:
            assert (await client.client.list_tools()).tools
    async with agent(mcp.at("kb")) as client:
        assert not (await client("kb_search", query="harbour")).failed


def read_picture_unconfined() -> None:
    """The sandbox refuses sockets before anything is seen of them, so the same reader runs outside it, too."""
    gray = made.picture(WRITTEN).convert("L")
    assert any(WRITTEN in line.text for line in load_reader("rapidocr").read(gray.tobytes(), gray.width, gray.height))


def main(folder: Path) -> None:
    model = folder / "model"
    install_model(model)
    settings = {"KB_OCR": "rapidocr", "KB_MODEL_DIR": str(model)}
    engine = EngineProcess(folder / "data", **settings)
    mcp = McpProcess(folder / "mcp.log", engine.url)
    try:
        use_command_line(engine.url, folder)
        asyncio.run(use_agents(mcp))
        found = Http(engine.url).search(WRITTEN, top=3)["results"]
        assert any(WRITTEN in hit["text"] for hit in found), found
    finally:
        mcp.stop()
        engine.process.kill()
        engine.process.wait()
    # A copy of the engine, forked by a library, would hold its port and its lock.
    port = engine.url.rpartition(":")[2]
    assert EngineProcess(folder / "data", **settings, KB_PORT=port).stop() == 0
    read_picture_unconfined()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
