"""`kb config` and the file with settings: the environment wins, and a mistake in the file is named with its line."""

import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Kb


@pytest.fixture
def alone(tmp_path: Path) -> Kb:
    """`kb` with an empty home, and an engine that is away."""
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": "", "XDG_DATA_HOME": "", "KB_ENGINE_URL": ""}
    return Kb("", tmp_path, home)


@pytest.fixture
def file(alone: Kb) -> Path:
    path = alone.folder / ".config" / "kb" / "config.toml"
    path.parent.mkdir(parents=True)
    return path


def settings(kb: Kb, **environment: str) -> dict[str, tuple[str, str]]:
    rows = kb("config", "--json", **environment).json["settings"]
    return {row["name"]: (row["source"], row["value"]) for row in rows}


def test_the_file_is_used_by_every_process_and_the_environment_wins(alone: Kb, file: Path) -> None:
    file.write_text('KB_PORT = 9\nKB_MCP_HOST = "localhost"\n')
    found = settings(alone, KB_MCP_HOST="::1")
    assert found["KB_PORT"] == ("file", "9")
    assert found["KB_ENGINE_URL"] == ("default", "http://127.0.0.1:9")
    assert found["KB_MCP_HOST"] == ("environment", "::1")
    assert found["KB_MCP_PORT"] == ("default", "3000")
    assert "http://127.0.0.1:9 is unreachable" in alone("search", "anything").err
    assert "http://127.0.0.1:9 is unreachable" in alone("status", KB_PORT="").err
    assert "http://127.0.0.1:1 is unreachable" in alone("status", KB_PORT="1").err


def test_set_and_unset_keep_everything_else(alone: Kb, file: Path) -> None:
    file.write_text("# mine\nKB_PORT = 9  # because\n\nKB_OCR = 'off'")
    assert alone("config", "set", "KB_PORT", "8100").code == 0
    assert alone("config", "set", "KB_DATA_DIR", 'C:\\"odd" ä').code == 0
    assert file.read_text() == '# mine\nKB_PORT = 8100\n\nKB_OCR = \'off\'\nKB_DATA_DIR = "C:\\\\\\"odd\\" ä"\n'
    assert alone("config", "unset", "KB_PORT").code == 0
    assert alone("config", "unset", "KB_PORT").out.endswith("says so already.\n")
    assert file.read_text().startswith("# mine\n\nKB_OCR = 'off'\n")
    assert alone("config", "path").out == f"{file}\n"


def test_a_secret_is_never_shown_and_its_file_is_private(alone: Kb, file: Path) -> None:
    told = alone("config", "set", "KB_API_KEY", "-", stdin="s3cret\n")
    assert (told.code, "s3cret" in told.out + told.err) == (0, False)
    assert file.stat().st_mode & 0o777 == 0o600
    assert settings(alone)["KB_API_KEY"] == ("file", "********")
    file.chmod(0o644)
    assert f"chmod 600 {file}" in alone("config").err


def test_the_password_in_an_address_is_never_shown_and_its_file_is_private(alone: Kb, file: Path) -> None:
    for url in ("postgresql://kb:s3cr/et@db.example.org/kb", "postgresql://kb@db.example.org/kb?password=s3cr/et&a=b"):
        told = alone("config", "set", "KB_DATABASE_URL", url)
        assert (told.code, "s3cr" in told.out + told.err) == (0, False)
        assert settings(alone)["KB_DATABASE_URL"] == ("file", url.replace("s3cr/et", "********"))
    file.chmod(0o644)
    assert "holds KB_DATABASE_URL" in alone("config").err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("KB_OCR = 'off'\nKB_PROT = 9\n", "line 2: There is no setting KB_PROT. Do you mean KB_PORT?"),
        ("\nport = 9\n", "line 2: There is no setting port. Do you mean KB_PORT?"),
        ("KB_PORT = 'many'\n", "line 1: KB_PORT is 'many'"),
        ("KB_OCR = 'perhaps'\n", "line 1: KB_OCR is 'perhaps'"),
        ("KB_PORT = 9\nKB_PORT = 9\n", "line 2"),
        ("KB_PORT: 9\n", "is not TOML"),
        ("KB_ALLOWED_HOSTS = ['a']\n", "KB_ALLOWED_HOSTS to something else than a text"),
        ("[KB_PORT]\n", "KB_PORT to something else"),
    ],
)
def test_a_mistake_in_the_file_is_named(alone: Kb, file: Path, text: str, said: str) -> None:
    file.write_text(text)
    for words in (["config"], ["status"], ["up"], ["mcp"]):
        ran = alone(*words)
        assert (ran.code, str(file) in ran.err, said in ran.err) == (2, True, True), ran.err


def test_what_is_wrong_in_the_file_can_be_mended_by_command(alone: Kb, file: Path) -> None:
    file.write_text("KB_PROT = 9\nKB_PORT = 'many'\n")
    assert alone("config", "set", "KB_PROT", "9").code == 2
    assert alone("config", "set", "KB_PORT", "lots").code == 2
    assert alone("config", "unset", "KB_PROT").code == 0
    assert alone("config", "set", "KB_PORT", "9").code == 0
    assert file.read_text() == "KB_PORT = 9\n"


def test_a_named_file_must_exist_unless_it_is_begun(alone: Kb, tmp_path: Path) -> None:
    named = str(tmp_path / "elsewhere" / "kb.toml")
    assert f"{named}, which does not exist" in alone("status", KB_CONFIG=named).err
    assert alone("config", "set", "KB_PORT", "9", KB_CONFIG=named).code == 0
    assert "127.0.0.1:9" in alone("status", KB_CONFIG=named).err


def test_of_two_changes_at_once_neither_is_lost(alone: Kb) -> None:
    names = ["KB_PORT", "KB_MCP_PORT", "KB_MAX_FILE_MB", "KB_CHUNK_TOKENS"]
    running = [alone.begin("config", "set", name, "77") for name in names]
    assert [process.communicate() and process.returncode for process in running] == [0, 0, 0, 0]
    assert [settings(alone)[name] for name in names] == [("file", "77")] * 4


def test_without_a_file_the_reader_of_toml_is_not_imported(alone: Kb, file: Path) -> None:
    program = "import sys; from kb.core.endpoint import place; place(); sys.exit('tomllib' in sys.modules)"
    environment = alone._environment({})
    assert subprocess.run([sys.executable, "-c", program], env=environment, check=False).returncode == 0
    file.write_text("")
    assert subprocess.run([sys.executable, "-c", program], env=environment, check=False).returncode == 1


def test_an_unknown_action_is_a_mistake(alone: Kb) -> None:
    assert "kb config set NAME VALUE" in alone("config", "set", "KB_PORT").err
    assert alone("config", "frobnicate").code == 2
