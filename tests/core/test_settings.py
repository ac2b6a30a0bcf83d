"""Settings come from the environment, are declared once, and a wrong one is named."""

import importlib.metadata
import re
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import kb
from kb.core.errors import InvalidRequest
from kb.core.settings import Settings, declared, read, user_data_dir


def test_an_empty_environment_gives_the_documented_defaults() -> None:
    settings = read({})
    assert (settings.host, settings.port) == ("127.0.0.1", 8000)
    assert settings.engine_url == "http://127.0.0.1:8000"
    assert settings.max_file_mb == 100
    assert settings.api_key == ""
    assert settings.data_dir == user_data_dir()
    assert settings.database_path == settings.data_dir / "kb.db"
    assert settings.loopback


def test_an_empty_variable_counts_as_unset() -> None:
    assert read({"KB_PORT": "", "KB_API_KEY": ""}) == read({})


def test_every_setting_is_read_from_its_variable() -> None:
    settings = read(
        {
            "KB_DATA_DIR": "/srv/kb",
            "KB_HOST": "0.0.0.0",
            "KB_PORT": "0",
            "KB_API_KEY": "secret",
            "KB_ALLOWED_HOSTS": "kb.example, Engine ,",
            "KB_ENGINE_URL": "https://kb.example/engine",
            "KB_MAX_FILE_MB": "5",
            "KB_LOG_LEVEL": "DEBUG",
            "KB_LOG_FORMAT": "json",
        }
    )
    assert settings.data_dir == Path("/srv/kb")
    assert settings.database_path == Path("/srv/kb/kb.db")
    assert (settings.host, settings.port, settings.loopback) == ("0.0.0.0", 0, False)
    assert settings.allowed_hosts == ("kb.example", "engine")
    assert settings.engine_url == "https://kb.example/engine"
    assert (settings.max_file_mb, settings.log_level, settings.log_format) == (5, "DEBUG", "json")


def test_the_engine_is_where_it_was_told_to_listen() -> None:
    assert read({"KB_PORT": "8111"}).engine_url == "http://127.0.0.1:8111"
    assert read({"KB_HOST": "0.0.0.0", "KB_PORT": "8111"}).engine_url == "http://127.0.0.1:8111"
    assert read({"KB_HOST": "::1"}).engine_url == "http://[::1]:8000"
    assert read({"KB_PORT": "8111", "KB_ENGINE_URL": "http://engine"}).engine_url == "http://engine"


def test_an_error_says_what_is_expected_and_not_what_python_thinks() -> None:
    told = {}
    for setting in declared():
        with suppress(InvalidRequest):  # most take any text
            read({setting.name: "\0"})
            continue
        with pytest.raises(InvalidRequest, match=rf"{setting.name} is '\\x00', which cannot be used: ") as wrong:
            read({setting.name: "\0"})
        told[setting.name] = wrong.value.message
    assert {"KB_PORT", "KB_MCP_PORT", "KB_MAX_FILE_MB", "KB_OCR", "KB_MCP_PUBLIC_URL"} <= told.keys()
    assert not [message for message in told.values() if re.search("literal|convert|null byte", message)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("KB_PORT", "eight"),
        ("KB_PORT", "8_0"),
        ("KB_PORT", "8" * 5000),
        ("KB_MCP_PORT", "3e3"),
        ("KB_PORT", "65536"),
        ("KB_PORT", "-1"),
        ("KB_MAX_FILE_MB", "0"),
        ("KB_CHUNK_TOKENS", "many"),
        ("KB_LOG_LEVEL", "loud"),
        ("KB_LOG_FORMAT", "xml"),
    ],
)
def test_a_setting_that_cannot_be_understood_is_named(name: str, value: str) -> None:
    with pytest.raises(InvalidRequest, match=f"{name} is '{value}'"):
        read({name: value})


def test_the_database_may_lie_elsewhere_but_only_in_sqlite(tmp_path: Path) -> None:
    assert read({"KB_DATABASE_URL": f"sqlite:///{tmp_path}/x.db"}).database_path == tmp_path / "x.db"
    with pytest.raises(InvalidRequest, match="KB_DATABASE_URL"):
        _ = read({"KB_DATABASE_URL": "mysql://host/kb"}).database_path


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has one folder for all")
def test_the_data_folder_follows_the_platform(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert read({}).data_dir == tmp_path / "kb"


def test_every_setting_says_what_it_does_and_has_a_default_that_can_be_shown() -> None:
    names = [setting.name for setting in declared()]
    assert len(set(names)) == len(names)
    for setting in declared():
        assert setting.name.startswith("KB_")
        assert len(setting.help) > 10
        assert setting.default
        assert str(Path.home()) not in setting.default


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Settings().port = 1  # type: ignore[misc]


def test_the_installed_package_has_the_version_that_the_code_states() -> None:
    assert importlib.metadata.version("kb-server") == kb.__version__
