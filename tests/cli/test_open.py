"""`kb search --files` and `--open`: paths for other programs, the original for a person. `kb open`: the web page."""

from pathlib import Path

import pytest

from support import Http

from .conftest import Kb


@pytest.fixture
def opener(kb: Kb) -> Kb:
    """A platform's opener that writes down what it was given."""
    bin_folder = kb.folder / "bin"
    bin_folder.mkdir()
    for name in ("xdg-open", "open"):
        (bin_folder / name).write_text('#!/bin/sh\nprintf %s "$1" > opened\n[ ! -f "$1" ] || cat "$1" > content\n')
        (bin_folder / name).chmod(0o755)
    return Kb(kb.url, kb.folder, {"PATH": f"{bin_folder}:/usr/bin:/bin"})


def test_only_paths_are_printed_each_once(kb: Kb, tag: str, http: Http) -> None:
    long = kb.folder / "long.md"
    long.write_text("".join(f"# Part {n}\n\n{'The boiler needs water. ' * 60}\n\n" for n in range(4)))
    (kb.folder / "other.md").write_text("A boiler is mentioned here")
    kb("add", "long.md", "other.md", "--tags", tag)
    http.add_note("The boiler in a note", tags=[tag])
    ran = kb("search", "boiler", "--tags", tag, "--files")
    assert sorted(ran.out.splitlines()) == sorted([str(long), str(kb.folder / "other.md")])
    assert ran.err == "kb: 1 document found without a path, such as notes.\n"
    nothing = kb("search", "boiler", "--tags", f"{tag}-none", "--files")
    assert (nothing.code, nothing.out) == (0, "")
    assert nothing.err.startswith("kb: ")


def test_the_file_itself_is_opened_while_it_is_there_and_a_copy_otherwise(opener: Kb, tag: str) -> None:
    file = opener.folder / "lease.md"
    file.write_text("The lease was signed in May")
    opener("add", "lease.md", "--tags", tag)
    assert opener("search", "signed lease", "--tags", tag, "--open").code == 0
    assert (opener.folder / "opened").read_text() == str(file)
    file.unlink()
    assert opener("search", "signed lease", "--tags", tag, "--open").code == 0
    copy = Path((opener.folder / "opened").read_text())
    assert copy.name == "lease.md"
    assert (opener.folder / "content").read_text() == "The lease was signed in May"
    assert copy.stat().st_mode & 0o777 == 0o600


def test_a_program_is_opened_in_the_editor_at_the_line_of_the_passage(opener: Kb, tag: str) -> None:
    editor = opener.folder / "bin" / "vim"
    editor.write_text('#!/bin/sh\nprintf "%s " "$@" > opened\n')
    editor.chmod(0o755)
    file = opener.folder / "boats.py"
    functions = [f"def {name}():\n" + f"    use('{name}')\n" * 30 for name in ("row", "moor")]
    file.write_text("\n\n".join(functions))
    opener("add", "boats.py", "--tags", tag)
    assert opener("search", "moor", "--tags", tag, "--open", EDITOR="vim -R").code == 0
    assert (opener.folder / "opened").read_text() == f"-R +34 {file} "
    opener("search", "moor", "--tags", tag, "--open", EDITOR="an-editor-without-lines")
    assert (opener.folder / "opened").read_text() == str(file)


def test_a_note_is_opened_as_markdown(opener: Kb, tag: str, http: Http) -> None:
    http.add_note("A note to open", tags=[tag])
    opener("search", "note to open", "--tags", tag, "--open")
    assert (opener.folder / "opened").read_text().endswith(".md")
    assert (opener.folder / "content").read_text() == "A note to open"


def test_what_cannot_be_opened_is_told(kb: Kb, opener: Kb, tag: str, http: Http) -> None:
    nothing = opener("search", "x", "--tags", tag, "--open")
    assert (nothing.code, "nothing to open" in nothing.err) == (3, True)
    http.add_note("A note to open", tags=[tag])
    missing = opener("search", "note", "--tags", tag, "--open", PATH="/nowhere")
    assert (missing.code, "cannot be started" in missing.err) == (6, True)


def test_the_page_is_opened_at_its_start_at_a_document_or_at_a_question(opener: Kb, http: Http) -> None:
    note = http.add_note("A note for the page")
    for words, path in (
        ((), "/"),
        ((str(note),), f"/d/{note}"),
        (("is it", "100% tea?"), "/?q=is%20it%20100%25%20tea%3F"),
    ):
        ran = opener("open", *words)
        assert (ran.code, ran.out) == (0, f"{opener.url}{path}\n"), ran.err
        assert (opener.folder / "opened").read_text() == opener.url + path


def test_the_key_stands_behind_the_hash_and_is_not_printed(opener: Kb) -> None:
    ran = opener("open", KB_API_KEY="key/with#signs")
    assert (ran.code, ran.out) == (0, f"{opener.url}/\n"), ran.err
    assert (opener.folder / "opened").read_text() == f"{opener.url}/#key=key%2Fwith%23signs"


def test_what_the_page_cannot_show_is_told(kb: Kb, opener: Kb) -> None:
    assert opener("open", "999999").code == 3
    missing = opener("open", PATH="/nowhere", KB_API_KEY="hush")
    assert (missing.code, f"open {kb.url}/ in a browser" in missing.err, "hush" in missing.err) == (6, True, False)
    assert opener("open", KB_ENGINE_URL="http://127.0.0.1:9").code == 6
