"""A folder that is changed at random, as people and editors change theirs, and what is in it."""

import os
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

WORDS = """boiler turbine orchard ledger antenna harbour glacier violin kidney bridge sensor greenhouse contract mineral
repaired measured painted rejected delivered sampled stored approved northern hollow frozen bilingual""".split()
FOLDERS = ["", "a", "b", "a/deep", "b/deep/er", "c", "with blank", "c/ünï"]
SUFFIXES = [".md", ".md", ".txt", ".txt", ".py"]


@dataclass(frozen=True, slots=True)
class File:
    """A file as it is, and what has become of it since the last check."""

    text: str
    origin: str | None = None  # where it was at the last check; None: it is newer
    moved: bool = False
    edited: bool = False

    @property
    def keeps_its_document(self) -> bool:
        """Whether its document must be the one of `origin`: it was moved, or edited, but not both."""
        return self.origin is not None and not (self.moved and self.edited)


class Disk:
    """All that happens is decided by the seed."""

    def __init__(self, root: Path, seed: int, size: int) -> None:
        self.root = root
        self.chance = random.Random(f"{seed} disk")
        self.files: dict[str, File] = {}
        self.links: set[str] = set()
        self.done: dict[str, int] = {}
        self._made = 0
        self._size = size
        for folder in FOLDERS:
            (root / folder).mkdir(parents=True, exist_ok=True)
        for _ in range(size):
            self.create()

    def checked(self) -> None:
        """From here on, changes count anew."""
        self.files = {path: File(file.text, path) for path, file in self.files.items()}

    def step(self) -> None:
        """One change."""
        kinds = [self.create] if len(self.files) < self._size else [self.delete, self.rename]
        kinds += [
            self.edit,
            self.edit,
            self.append,
            self.save_atomically,
            self.save_like_vim,
            self.rename,
            self.rename,
            self.move_over,
            self.swap,
            self.replace_by_another,
            self.touch,
            self.chmod,
            self.link,
        ]
        if self.chance.random() < 0.02:
            kinds = [self.rename_folder, self.swap_folders]
        kind = self.chance.choice(kinds)
        self.done[kind.__name__] = self.done.get(kind.__name__, 0) + 1
        kind()

    # Files

    def create(self) -> None:
        path = self._fresh()
        self._write(path, self._text(path))

    def edit(self) -> None:
        path = self._any()
        self._write(path, self._text(path))

    def append(self) -> None:
        path = self._any()
        more = f"\nAppended {self._word()} {self._mark()}.\n"
        with (self.root / path).open("a") as file:
            file.write(more)
        self._changed(path, self.files[path].text + more)

    def save_atomically(self) -> None:
        path = self._any()
        text = self._text(path)
        name = self.chance.choice([f".{os.path.basename(path)}.swp", f"{os.path.basename(path)}.tmp", "unnamed-save"])
        beside = self.root / os.path.dirname(path) / name
        beside.write_text(text)
        beside.rename(self.root / path)
        self._changed(path, text)

    def save_like_vim(self) -> None:
        """The old file becomes a backup, a new one is written, the backup is removed."""
        path = self._any()
        text = self._text(path)
        backup = self.root / f"{path}~"
        (self.root / path).rename(backup)
        (self.root / path).write_text(text)
        backup.unlink()
        self._changed(path, text)

    def rename(self) -> None:
        path, to = self._any(), self._fresh()
        if self.chance.random() < 0.5:  # the name stays, so that no title changes
            to = os.path.join(os.path.dirname(to), os.path.basename(path))
        if to in self.files or (self.root / to).is_symlink():
            return
        self._move(path, to)

    def move_over(self) -> None:
        path, to = self._any(), self._any()
        if path != to:
            self._move(path, to)

    def swap(self) -> None:
        one, other = self._any(), self._any()
        if one == other:
            return
        aside = self.root / os.path.dirname(one) / ".aside"
        (self.root / one).rename(aside)
        (self.root / other).rename(self.root / one)
        aside.rename(self.root / other)
        first, second = self.files[one], self.files[other]
        self.files[one], self.files[other] = replace(second, moved=True), replace(first, moved=True)

    def replace_by_another(self) -> None:
        path = self._any()
        (self.root / path).unlink()
        del self.files[path]
        self._write(path, self._text(path))

    def delete(self) -> None:
        path = self._any()
        (self.root / path).unlink()
        del self.files[path]

    def touch(self) -> None:
        os.utime(self.root / self._any())

    def chmod(self) -> None:
        (self.root / self._any()).chmod(self.chance.choice([0o600, 0o644, 0o400]))

    def link(self) -> None:
        if self.links and self.chance.random() < 0.5:
            path = self.links.pop()
            (self.root / path).unlink(missing_ok=True)
            return
        path = self._fresh()
        (self.root / path).symlink_to(self.root / self.chance.choice([self._any(), "..", "nowhere"]))
        self.links.add(path)

    # Folders

    def rename_folder(self) -> None:
        """Rename a folder, and make an empty one in its place."""
        folder = self.chance.choice([one for one in FOLDERS if one])
        to = f"{folder}-{self._mark()}"
        (self.root / folder).rename(self.root / to)
        (self.root / folder).mkdir()
        for name in FOLDERS:
            (self.root / name).mkdir(parents=True, exist_ok=True)
        self._moved_folder(lambda path: f"{to}/{path[len(folder) + 1 :]}" if path.startswith(f"{folder}/") else None)

    def swap_folders(self) -> None:
        one, other = self.chance.sample(["a", "b", "c"], 2)
        aside = self.root / ".aside"
        (self.root / one).rename(aside)
        (self.root / other).rename(self.root / one)
        aside.rename(self.root / other)
        for name in FOLDERS:
            (self.root / name).mkdir(parents=True, exist_ok=True)
        names = {one: other, other: one}

        def place(path: str) -> str | None:
            first, _, rest = path.partition("/")
            return f"{names[first]}/{rest}" if first in names and rest else None

        self._moved_folder(place)

    def _moved_folder(self, place: Callable[[str], str | None]) -> None:
        moved = {path: to for path in self.files if (to := place(path))}
        files = {to: replace(self.files[path], moved=True) for path, to in moved.items()}
        self.files = {path: file for path, file in self.files.items() if path not in moved} | files
        self.links = {place(path) or path for path in self.links}

    def _move(self, path: str, to: str) -> None:
        (self.root / path).rename(self.root / to)
        self.files[to] = replace(self.files.pop(path), moved=True)

    def _write(self, path: str, text: str) -> None:
        (self.root / path).write_text(text)
        self._changed(path, text)

    def _changed(self, path: str, text: str) -> None:
        self.files[path] = replace(self.files[path], text=text, edited=True) if path in self.files else File(text)

    def _any(self) -> str:
        return self.chance.choice(sorted(self.files)) if len(self.files) < 50 else self._some()

    def _some(self) -> str:
        """A file at random, without sorting thousands of them."""
        paths = list(self.files)
        return paths[self.chance.randrange(len(paths))]

    def _fresh(self) -> str:
        name = f"{self._word()} {self._mark()}{self.chance.choice(SUFFIXES)}"
        return os.path.join(self.chance.choice(FOLDERS), name)

    def _word(self) -> str:
        return self.chance.choice(WORDS)

    def _mark(self) -> str:
        self._made += 1
        return f"mark{self._made}"

    def _text(self, path: str) -> str:
        """A text that no other file has."""
        sentence = f"The {self._word()} was {self._word()} beside the {self._word()} {self._mark()}."
        if path.endswith(".md"):
            return f"# {self._word()} of {self._mark()}\n\n{sentence}\n"
        return f"def {self._word()}():\n    return '{sentence}'\n" if path.endswith(".py") else f"{sentence}\n"
