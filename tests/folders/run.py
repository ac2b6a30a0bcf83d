"""One run: change the files, kill the engine, check; at the end compare with an engine that starts from scratch."""

import json
import signal
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from folders.disk import Disk
from support import EngineProcess, Http

PATIENCE = 180  # seconds until an index must be as the disk is
NOISE = 0.002  # of scores
COMPARED = ("title", "filename", "source_path", "doc_type", "media_type", "size_bytes", "content_hash", "chunk_count")


@dataclass
class Outcome:
    operations: int = 0
    kills: int = 0
    checks: int = 0
    confirmed: int = 0  # how often the brake had to be released
    kept: int = 0  # ids that were compared across moves and edits
    documents: int = 0
    questions: int = 0
    noise: float = 0.0  # the greatest difference of two scores
    slowest: float = 0.0  # seconds until an index was as the disk
    violations: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        facts = (
            f"{self.operations} operations, {self.kills} kills, {self.checks} checks (the slowest took "
            f"{self.slowest:.1f} s, the brake was released {self.confirmed} times), {self.kept} ids compared, "
            f"{self.documents} documents and {self.questions} questions compared with an index made from scratch "
            f"(scores differ by {self.noise:.4f} at most)"
        )
        return "\n".join([facts, *self.violations[:20], f"{len(self.violations)} violations"])


class Target:
    """An engine that watches the folder; it may be killed and started again."""

    def __init__(self, root: Path, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._root = root
        self.start()
        reply = self.http("POST", "/api/v1/folders", {"path": str(root), "tags": ["watched"]})
        assert reply.status == 201, reply.body
        self.id = reply.json["id"]

    def start(self) -> None:
        self.engine = EngineProcess(self._data_dir, KB_LOG_LEVEL="WARNING")
        self.http = Http(self.engine.url)

    def kill(self) -> None:
        self.engine.stop(signal.SIGKILL)

    def folder(self) -> Any:
        return self.http("GET", f"/api/v1/folders/{self.id}").json

    def confirm(self) -> None:
        self.http("POST", f"/api/v1/folders/{self.id}/scan", {"confirm": True})

    def documents(self) -> Iterator[Any]:
        offset = 0
        while page := self.http("GET", f"/api/v1/documents?limit=1000&offset={offset}&sort=created").json["documents"]:
            yield from page
            offset += len(page)

    def text(self, document_id: int) -> tuple[str, str]:
        """The text, and the passages with their anchors."""
        chunks = self.http("GET", f"/api/v1/documents/{document_id}").json["chunks"]
        passages = json.dumps([(chunk["text"], chunk["anchor"]) for chunk in chunks])
        return self.http("GET", f"/api/v1/documents/{document_id}/text").body.decode(), passages


def run(seed: int, operations: int, files: int, kills: int, questions: int) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="kb-folders-") as place:
        root = Path(place).resolve() / "root"
        root.mkdir()
        disk = Disk(root, seed, files)
        target = Target(root, Path(place) / "data")
        outcome = Outcome()
        try:
            ids = checked(target, disk, {}, outcome)
            for _ in range(kills):
                change(disk, operations // kills, target, outcome)
                ids = checked(target, disk, ids, outcome)
            compare(target, Target(root, Path(place) / "scratch"), disk, questions, outcome)
        finally:
            target.engine.stop()
    return outcome


def change(disk: Disk, operations: int, target: Target, outcome: Outcome) -> None:
    """Change files all the time, and kill the engine somewhere in between."""
    kill_at = disk.chance.randrange(operations)
    start_at = min(kill_at + disk.chance.randrange(1, 50), operations - 1)
    for number in range(operations):
        if number == kill_at:
            target.kill()
            outcome.kills += 1
        if number == start_at:
            target.start()
        disk.step()
        outcome.operations += 1
        time.sleep(disk.chance.choice([0, 0, 0.001, 0.005, 0.02]))


def checked(target: Target, disk: Disk, ids: dict[str, int], outcome: Outcome) -> dict[str, int]:
    """Wait until the index is as the disk; compare ids with those of the last check. Return those of now."""
    began = time.monotonic()
    wanted = {path: file.text for path, file in disk.files.items()}
    while True:
        found = {one["source_path"].removeprefix(f"{disk.root}/"): one for one in target.documents()}
        folder = target.folder()
        settled = folder["state"] == "watching" and folder["coverage"]["waiting"] == 0
        sizes = {path: len(text.encode()) for path, text in wanted.items()}
        if settled and {path: one["size_bytes"] for path, one in found.items()} == sizes:
            break
        if folder["state"] == "paused":
            outcome.confirmed += 1
            target.confirm()
        if time.monotonic() - began > PATIENCE:
            lost, extra = sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys())
            outcome.violations.append(f"not as the disk: {lost[:5]} lost, {extra[:5]} extra, {folder['message']}")
            break
        time.sleep(0.3)
    outcome.slowest = max(outcome.slowest, time.monotonic() - began)
    outcome.checks += 1
    for path, file in disk.files.items():
        if file.keeps_its_document and file.origin in ids and path in found:
            outcome.kept += 1
            if found[path]["id"] != ids[file.origin]:
                was = f"document {ids[file.origin]} at {file.origin}"
                outcome.violations.append(f"{path} is document {found[path]['id']}, and was {was} ({file})")
    disk.checked()
    return {path: one["id"] for path, one in found.items()}


def compare(target: Target, scratch: Target, disk: Disk, questions: int, outcome: Outcome) -> None:
    try:
        checked(scratch, disk, {}, outcome)
        ours, theirs = ({one["source_path"]: one for one in side.documents()} for side in (target, scratch))
        if ours.keys() != theirs.keys():
            outcome.violations.append(f"other paths: {sorted(ours.keys() ^ theirs.keys())[:5]}")
        for path in ours.keys() & theirs.keys():
            outcome.documents += 1
            for name in COMPARED:
                if ours[path][name] != theirs[path][name]:
                    said = f"{ours[path][name]!r} instead of {theirs[path][name]!r}"
                    outcome.violations.append(f"{path}: {name} is {said}")
            if target.text(ours[path]["id"]) != scratch.text(theirs[path]["id"]):
                outcome.violations.append(f"{path}: another text, or other passages")
        for _ in range(questions):
            compare_answers(target, scratch, question(disk), outcome)
        for check in target.http("GET", "/api/v1/doctor").json["checks"]:
            if check["problems"]:
                outcome.violations.append(f"the doctor finds: {check}")
    finally:
        scratch.engine.stop()


def question(disk: Disk) -> str:
    words = " ".join(disk.chance.sample(disk.files[disk.chance.choice(sorted(disk.files))].text.split(), 3))
    return words if disk.chance.random() < 0.5 else f"what is said of {words}"


def compare_answers(target: Target, scratch: Target, asked: str, outcome: Outcome) -> None:
    """The same passages with the same scores. Which of those at the end are cut off may differ.

    A vector differs in its last digits with the batch that it was embedded in.
    """
    outcome.questions += 1
    ours, theirs = (answers(side, asked) for side in (target, scratch))
    least = max(min(side.values(), default=0.0) for side in (ours, theirs)) + 2 * NOISE
    for one in ours.keys() | theirs.keys():
        here, there = ours.get(one, 0.0), theirs.get(one, 0.0)
        outcome.noise = max(outcome.noise, abs(here - there)) if here and there else outcome.noise
        if max(here, there) > least and abs(here - there) > NOISE:
            outcome.violations.append(f"{asked!r} finds {one} with {here} instead of {there}")


def answers(side: Target, asked: str) -> dict[tuple[str, str], float]:
    found = side.http.search(asked, top=20)["results"]
    return {(hit["source_path"], hit["text"]): hit["score"] for hit in found}
