"""The one file with settings: TOML, with the names that the environment has too. The environment wins.

The command line reads it at every start, so TOML's reader is imported only where there is a file. A file that cannot be
understood is an error that names the line; a name or a value that no setting has is one as well, never ignored.
"""

import os
from typing import NamedTuple

from kb.core.errors import InvalidRequest

VARIABLE = "KB_CONFIG"


class ConfigFile(NamedTuple):
    path: str
    values: dict[str, str]  # by the name of the setting, as the environment would say it

    def where(self, name: str) -> str:
        """The file, and the line that sets this name."""
        with open(self.path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.partition("=")[0].strip(" \t\"'") == name:
                    return f"{self.path}, line {number}"
        return self.path


def path() -> str:
    """Where the file is, or would be.

    The same folder on every platform: on macOS the usual one holds kb's data, which a restore replaces as a whole.
    """
    if named := os.environ.get(VARIABLE):
        return os.path.abspath(os.path.expanduser(named))
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(base, "kb", "config.toml")


def read() -> ConfigFile:
    """What the file says; nothing where there is none, unless KB_CONFIG names it."""
    place = path()
    try:
        with open(place, "rb") as file:
            data = file.read()
    except FileNotFoundError as missing:
        if os.environ.get(VARIABLE):
            raise InvalidRequest(
                f"KB_CONFIG names {place}, which does not exist. Unset it, or begin that file with: kb config set"
            ) from missing
        return ConfigFile(place, {})
    except OSError as wrong:
        raise InvalidRequest(f"The settings in {place} cannot be read: {wrong.strerror}.") from wrong
    return ConfigFile(place, parsed(place, data))


def parsed(place: str, data: bytes) -> dict[str, str]:
    """The settings in the text of a file."""
    import tomllib  # noqa: PLC0415 - see above

    try:
        said = tomllib.loads(data.decode())
    except ValueError as wrong:
        raise InvalidRequest(f"{place} is not TOML: {wrong}. A setting looks like KB_PORT = 8100.") from wrong
    for name, value in said.items():
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise InvalidRequest(
                f'{place} sets {name} to something else than a text or a whole number. Write {name} = "TEXT".'
            )
    return {name: str(value) for name, value in said.items()}
