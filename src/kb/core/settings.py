"""Every KB_* setting, declared once: its name, its default and what it does.

`docs/settings.md` is generated from these declarations. `read` turns the environment into one frozen value;
a setting that cannot be understood is an error that names it.
"""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from kb.core.endpoint import ENGINE_URL, HOST, PORT, parsed, port_number, reached
from kb.core.errors import InvalidRequest

LOOPBACK = ("127.0.0.1", "localhost", "::1")
CONTRACTS = ("kb", "knowledge", "kb-v3")


def user_data_dir() -> Path:
    """The platform's folder for a user's data."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "kb"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "kb"


def bundled_model_dir() -> Path:
    """Where `make setup` puts the model: beside the interpreter that runs kb."""
    return Path(sys.prefix) / "share" / "kb" / "all-MiniLM-L6-v2"


def _path(text: str) -> Path:
    return Path(text).expanduser().absolute()


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise ValueError("it must be a whole number, 1 or more")
    return number


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip().lower() for name in text.split(",") if name.strip())


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"it is one of {', '.join(choices)}")
        return text

    return parse


def _contracts(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(_names(text)))
    unknown = set(names) - set(CONTRACTS)
    if unknown or not names:
        raise ValueError(f"the contracts are {', '.join(CONTRACTS)}")
    return names


def _paths(text: str) -> tuple[Path, ...]:
    return tuple(_path(part) for part in text.split(os.pathsep) if part)


def _base_url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise ValueError("it must start with http:// or https://")
    return text.rstrip("/")


def setting(name: str, parse: Callable[[str], Any], default: Any, text: str, shown: str | None = None) -> Any:
    """Declare one setting; `shown` describes a default that depends on the machine."""
    about = {"name": name, "parse": parse, "help": text, "shown": shown}
    if callable(default):
        return field(default_factory=default, metadata=about)
    return field(default=default, metadata=about)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    data_dir: Path = setting(
        "KB_DATA_DIR",
        _path,
        user_data_dir,
        "Folder that holds everything kb keeps: database, originals, temporary files.",
        "the platform's user data folder",
    )
    database_url: str = setting(
        "KB_DATABASE_URL",
        str,
        "",
        "Database to use. Only `sqlite:///` followed by a path is supported so far.",
        "`sqlite:///<KB_DATA_DIR>/kb.db`",
    )
    host: str = setting("KB_HOST", str, HOST, "Address that the engine listens on.")
    port: int = setting("KB_PORT", port_number, PORT, "Port that the engine listens on; 0 takes a free one.")
    api_key: str = setting(
        "KB_API_KEY", str, "", "Key that every request to the engine must carry as a Bearer token.", "none: open"
    )
    allowed_hosts: tuple[str, ...] = setting(
        "KB_ALLOWED_HOSTS",
        _names,
        (),
        "Host names, beyond loopback, under which the engine may be addressed; separated by commas.",
        "none",
    )
    engine_url: str = setting(
        "KB_ENGINE_URL",
        str,
        ENGINE_URL,
        "Where the command line and the MCP server find the engine.",
        "`http://<KB_HOST>:<KB_PORT>`",
    )
    mcp_host: str = setting("KB_MCP_HOST", str, "127.0.0.1", "Address that the MCP server listens on.")
    mcp_port: int = setting(
        "KB_MCP_PORT", port_number, 3000, "Port that the MCP server listens on; 0 takes a free one."
    )
    mcp_api_key: str = setting(
        "KB_MCP_API_KEY",
        str,
        "",
        "Key that agents must send to the MCP server as a Bearer token; it has nothing to do with KB_API_KEY.",
        "none: open",
    )
    mcp_allowed_hosts: tuple[str, ...] = setting(
        "KB_MCP_ALLOWED_HOSTS",
        _names,
        (),
        "Host names, beyond loopback, under which the MCP server may be addressed; separated by commas.",
        "none",
    )
    mcp_contracts: tuple[str, ...] = setting(
        "KB_MCP_CONTRACTS",
        _contracts,
        ("kb", "knowledge"),
        "Contracts that the MCP server offers, each at `/mcp/<name>`, the first at `/mcp` too: `kb`, `knowledge`, "
        "`kb-v3`; separated by commas.",
        "`kb,knowledge`",
    )
    mcp_collections: tuple[str, ...] = setting(
        "KB_MCP_COLLECTIONS",
        _names,
        (),
        "Collections that contract `kb-v3` knows beyond `documents`, `memory` and `workspace`; separated by commas.",
        "none",
    )
    mcp_file_roots: tuple[Path, ...] | None = setting(
        "KB_MCP_FILE_ROOTS",
        _paths,
        None,
        "Folders below which contract `knowledge` may read files, separated like PATH. Nothing hidden is read: no file "
        "or folder below them whose name begins with a dot.",
        "the user's home when bound to loopback, nothing otherwise",
    )
    mcp_public_url: str = setting(
        "KB_MCP_PUBLIC_URL",
        _base_url,
        "",
        "Where agents reach the MCP server, as upload addresses should say.",
        "the Host that the agent used",
    )
    mcp_upload_urls: str = setting(
        "KB_MCP_UPLOAD_URLS",
        _one_of("on", "off"),
        "on",
        "Whether an upload also gets a one-time address that takes the raw bytes with PUT.",
    )
    mcp_upload_seconds: int = setting(
        "KB_MCP_UPLOAD_SECONDS", _positive, 600, "Seconds without activity until an unfinished upload is dropped."
    )
    mcp_max_sessions: int = setting(
        "KB_MCP_MAX_SESSIONS",
        _positive,
        500,
        "Sessions that the MCP server keeps open at a time, for each contract; for one more, the one that was unused "
        "the longest ends.",
    )
    max_file_mb: int = setting("KB_MAX_FILE_MB", _positive, 100, "Largest file that is accepted, in MB of 2^20 bytes.")
    chunk_tokens: int = setting(
        "KB_CHUNK_TOKENS",
        _positive,
        200,
        "Tokens of a passage at most. The model's window (256) also holds the title and heading path.",
    )
    ocr: str = setting(
        "KB_OCR",
        _one_of("auto", "tesseract", "rapidocr", "off"),
        "auto",
        "What reads images and scanned pages: `tesseract`, `rapidocr`, `off`; `auto`: Tesseract where it is installed.",
    )
    model_dir: Path = setting(
        "KB_MODEL_DIR",
        _path,
        bundled_model_dir,
        "Folder with a sentence-embedding model: ONNX graph, tokenizer, pooling. Another model asks for a re-index.",
        "the model that `make setup` installs",
    )
    log_level: str = setting(
        "KB_LOG_LEVEL", _one_of("DEBUG", "INFO", "WARNING", "ERROR"), "INFO", "How much is logged."
    )
    log_format: str = setting("KB_LOG_FORMAT", _one_of("text", "json"), "text", "How log lines look.")

    @property
    def database_path(self) -> Path:
        if not self.database_url:
            return self.data_dir / "kb.db"
        scheme, _, path = self.database_url.partition("sqlite:///")
        if scheme or not path:
            raise InvalidRequest(
                f"KB_DATABASE_URL is {self.database_url!r}, but only sqlite:///PATH is supported. Unset it to use the "
                "default."
            )
        return _path(path)

    @property
    def loopback(self) -> bool:
        return self.host in LOOPBACK

    @property
    def mcp_loopback(self) -> bool:
        return self.mcp_host in LOOPBACK

    @property
    def file_roots(self) -> tuple[Path, ...]:
        """Where files may be read on an agent's word."""
        if self.mcp_file_roots is not None:
            return self.mcp_file_roots
        return (Path.home(),) if self.mcp_loopback else ()


@dataclass(frozen=True, slots=True)
class Declared:
    """One setting as the reference page shows it."""

    name: str
    default: str
    help: str


def declared() -> list[Declared]:
    """Every setting, in the order of declaration."""
    return [
        Declared(f.metadata["name"], f.metadata["shown"] or f"`{f.default}`", f.metadata["help"])
        for f in fields(Settings)
    ]


def read(environ: Mapping[str, str] | None = None) -> Settings:
    """The settings that the environment asks for; an empty variable counts as unset."""
    environ = os.environ if environ is None else environ
    given: dict[str, Any] = {}
    for f in fields(Settings):
        name = f.metadata["name"]
        if text := environ.get(name, ""):
            given[f.name] = parsed(name, text, f.metadata["parse"])
    settings = Settings(**given)
    if "engine_url" in given:
        return settings
    return replace(settings, engine_url=reached(settings.host, settings.port))
