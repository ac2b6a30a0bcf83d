"""Files that an agent names, when somebody exchanges them meanwhile."""

import os
from pathlib import Path
from typing import Any

import pytest

from kb.mcp.uploads.files import FileRefusedError, opened


def test_the_open_file_is_checked_and_not_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link is turned to a secret after its first check, and back before its second."""
    (tmp_path / ".ssh").mkdir()
    secret, harmless, link = tmp_path / ".ssh" / "key.html", tmp_path / "page.html", tmp_path / "link.html"
    secret.write_text("secret")
    harmless.write_text("harmless")
    link.symlink_to(harmless)
    really_open = os.open

    def turned(path: Any, *given: Any) -> int:
        link.unlink()
        link.symlink_to(secret)
        number = really_open(path, *given)
        link.unlink()
        link.symlink_to(harmless)
        return number

    monkeypatch.setattr(os, "open", turned)
    with pytest.raises(FileRefusedError) as refused, opened(str(link), [tmp_path]):
        pass
    assert refused.value.kind == "path_not_allowed"


def test_a_file_that_is_gone_meanwhile_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "page.html"
    path.write_text("harmless")
    really_open = os.open

    def removed(*given: Any) -> int:
        number = really_open(*given)
        path.unlink()
        return number

    monkeypatch.setattr(os, "open", removed)
    with pytest.raises(FileRefusedError) as refused, opened(str(path), [tmp_path]):
        pass
    assert refused.value.kind == "file_not_readable"
