"""Where each shell looks for completions, and what makes it look there: for `kb completion install` and `remove`."""

import os
from contextlib import suppress
from typing import NamedTuple

from kb.cli.connect.change import text_of
from kb.cli.connect.files import backed_up, replaced

BEGIN, END = "# >>> kb completion >>>", "# <<< kb completion <<<"
# Where bash finds the package that loads completions on demand; without it, ~/.bashrc has to.
BASH_COMPLETION = (
    "/usr/share/bash-completion/bash_completion",
    "/usr/local/etc/profile.d/bash_completion.sh",
    "/opt/homebrew/etc/profile.d/bash_completion.sh",
)


class Shell(NamedTuple):
    script: str  # the file that completes kb
    profile: str | None  # the file that must name it, where the shell does not look by itself
    lines: str  # what the profile says

    def install(self, text: str) -> list[str]:
        """Write the script, and the profile where needed. Return the files that were written."""
        replaced(self.script, text, private=True)
        if self.profile is None:
            return [self.script]
        before = text_of(self.profile) or ""
        after = _without(before) + f"{BEGIN}\n{self.lines}\n{END}\n"
        if after == before:
            return [self.script]
        return [self.script, *self._changed(before, after)]

    def remove(self) -> list[str]:
        """Undo the same. Return the files that were removed or changed."""
        changed = []
        with suppress(FileNotFoundError):
            os.unlink(self.script)
            changed.append(self.script)
        before = (text_of(self.profile) if self.profile else None) or ""
        if _without(before) != before:
            changed += self._changed(before, _without(before))
        return changed

    def _changed(self, before: str, after: str) -> list[str]:
        assert self.profile
        path = os.path.realpath(self.profile)  # often a link into a folder under version control
        copies = [backed_up(path)] if before else []
        replaced(path, after, private=not before)
        return [self.profile, *copies]


def shell(name: str) -> Shell:
    """bash, zsh or fish, of this user."""
    home = os.path.expanduser("~")
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    data = os.environ.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share")
    if name == "fish":
        return Shell(os.path.join(config, "fish", "completions", "kb.fish"), None, "")
    if name == "zsh":
        folder = os.path.join(data, "kb-completion")
        profile = os.path.join(os.environ.get("ZDOTDIR") or home, ".zshrc")
        return Shell(
            os.path.join(folder, "_kb"), profile, f"fpath=({_word(folder)} $fpath)\nautoload -Uz compinit && compinit"
        )
    script = os.path.join(data, "bash-completion", "completions", "kb")
    if any(map(os.path.exists, BASH_COMPLETION)):
        return Shell(script, None, "")
    return Shell(script, os.path.join(home, ".bashrc"), f"source {_word(script)}")


def _word(path: str) -> str:
    return "'" + path.replace("'", "'\\''") + "'"


def _without(text: str) -> str:
    """The profile without what kb wrote there; everything else stays."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(f"{END}\n")
    if begin and end:
        return before + after
    return text if not text or text.endswith("\n") else f"{text}\n"
