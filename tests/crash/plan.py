"""What is sent: notes, files, the same again, and new contents for known paths. A seed decides all of it."""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass

WRITERS = 3
WAIT_SECONDS = 20
WORDS = """boiler turbine orchard ledger antenna harbour glacier violin kidney bridge sensor greenhouse contract mineral
repaired measured painted rejected delivered sampled stored approved northern hollow frozen bilingual""".split()


@dataclass(frozen=True, slots=True)
class Addition:
    """One request that adds something. It is sent until it is acknowledged."""

    text: str
    filename: str | None = None  # None: a note
    tags: tuple[str, ...] = ()
    source_path: str | None = None
    wait: int = 0

    @property
    def is_note(self) -> bool:
        return self.filename is None

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def mark(self) -> str:
        """The word that only this content has."""
        return next(word for word in self.text.split() if word.startswith("mark"))

    @property
    def identity(self) -> tuple[str, ...]:
        """What makes two requests mean the same document."""
        if self.source_path is not None:
            return ("path", self.source_path)
        return ("note", self.sha256, *sorted(self.tags)) if self.is_note else ("file", self.sha256)


class Maker:
    """Makes contents that all differ, each with a word of its own."""

    def __init__(self, seed: int, name: str) -> None:
        self.chance = random.Random(f"{seed} {name}")
        self._name = name
        self._made = 0

    def text(self, sentences: int = 1) -> str:
        self._made += 1
        body = " ".join(
            f"The {' '.join(self.chance.choices(WORDS, k=8))} number {self.chance.randrange(10**6)}."
            for _ in range(sentences)
        )
        return f"Note {word(self._name, self._made)} {body}"


def word(name: str, number: int) -> str:
    """A word that nothing else shares a term with: letters only, since a search also finds the parts of `covid19`."""
    return f"mark{name}" + "".join("bcdfghjklm"[int(digit)] + "o" for digit in f"{number:05d}")


def plans(seed: int, notes: int, files: int) -> list[list[Addition]]:
    """One list for each writer. A path has one writer, so the order of its contents is certain."""
    return [
        plan(Maker(seed, "w" + "xyz"[writer]), writer, share(notes, writer), share(files, writer))
        for writer in range(WRITERS)
    ]


def share(count: int, writer: int) -> int:
    return len(range(writer, count, WRITERS))


def plan(maker: Maker, writer: int, notes: int, files: int) -> list[Addition]:
    chance = maker.chance
    singles = [Addition(maker.text(), tags=tags_of(chance), wait=wait_of(chance)) for _ in range(notes)]
    singles += [file_of(maker, f"file-{writer}-{number}") for number in range(files)]
    chance.shuffle(singles)
    steps = list(singles)
    for again in chance.sample(singles, len(singles) // 10):
        steps.insert(chance.randrange(steps.index(again) + 1, len(steps) + 1), again)
    for number in range(max(1, (notes + files) // 20)):
        merge(chance, steps, replacements(maker, f"/crash/{writer}/{number}"))
    return steps


def replacements(maker: Maker, path: str) -> list[Addition]:
    """New contents for one path, sometimes back to an old one: the last one must win."""
    is_file = maker.chance.random() < 0.5
    texts = [maker.text(maker.chance.choice((1, 40))) for _ in range(maker.chance.randrange(2, 4))]
    if maker.chance.random() < 0.5:
        texts.append(texts[0])
    filename = f"{path[1:].replace('/', '-')}.md" if is_file else None
    return [Addition(text, filename, source_path=path, wait=wait_of(maker.chance)) for text in texts]


def merge(chance: random.Random, steps: list[Addition], more: Sequence[Addition]) -> None:
    """Put `more` among the steps, keeping its order; half of the time close together."""
    at = chance.randrange(len(steps) + 1)
    for step in more:
        steps.insert(at, step)
        at = min(at + 1 + (chance.randrange(20) if chance.random() < 0.5 else 0), len(steps))


def file_of(maker: Maker, name: str) -> Addition:
    chance = maker.chance
    text = maker.text(chance.choice((1, 3, 60)))
    if markdown := chance.random() < 0.5:
        text = f"# {text}\n\n## Details\n\n{chance.choice(WORDS)} and {chance.choice(WORDS)}\n"
    return Addition(text, f"{name}.{'md' if markdown else 'txt'}", tags_of(chance), wait=wait_of(chance))


def tags_of(chance: random.Random) -> tuple[str, ...]:
    return tuple(chance.sample(("red", "green", "blue"), chance.randrange(3)))


def wait_of(chance: random.Random) -> int:
    return WAIT_SECONDS if chance.random() < 0.2 else 0
