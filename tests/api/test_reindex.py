"""Making the index anew: online, atomic, and nothing is lost when it is interrupted."""

import signal
import threading
from pathlib import Path

from support import Http, StartEngine

NOTES = 40


def fill(http: Http) -> dict[int, str]:
    texts = [f"Note {n}: the tamarin number {n} lives in enclosure {n * 7}." for n in range(NOTES)]
    return {http.add_note(text, tags=[f"n{n}"]): text for n, text in enumerate(texts)}


def answers(http: Http, ids: dict[int, str]) -> list[list[tuple[int, str, float]]]:
    """What a few questions are answered with, chunk ids apart."""
    found = [http.search(f"tamarin number {n}", top=5)["results"] for n in range(0, NOTES, 7)]
    return [[(hit["document_id"], hit["text"], round(hit["score"], 4)) for hit in hits] for hits in found]


def test_the_new_index_answers_like_the_old_one(start_engine: StartEngine) -> None:
    own = Http(start_engine().url)
    ids = fill(own)
    long_id = own.add_file("long.md", b"# Apes\n\n## Gibbon\n\n" + b"Gibbons sing at dawn. " * 200).json["document_id"]
    before, chunks = answers(own, ids), own("GET", f"/api/v1/documents/{long_id}").json["chunks"]
    done = own("POST", "/api/v1/reindex?wait=120")
    assert (done.status, done.json["status"]) == (202, "completed")
    assert answers(own, ids) == before
    again = own("GET", f"/api/v1/documents/{long_id}").json
    assert [(c["text"], c["anchor"]) for c in again["chunks"]] == [(c["text"], c["anchor"]) for c in chunks]
    assert (again["version"], again["updated_at"]) == (1, None)
    status = own("GET", "/api/v1/status").json
    assert (status["documents"]["total"], status["chunks"]) == (NOTES + 1, NOTES + len(chunks))


def test_searches_and_changes_go_on_meanwhile(start_engine: StartEngine) -> None:
    own = Http(start_engine().url)
    ids = fill(own)
    job_id = own("POST", "/api/v1/reindex").json["job_id"]
    assert own("POST", "/api/v1/reindex").json["job_id"] == job_id
    changed, gone = list(ids)[3], list(ids)[-1]
    own("PATCH", f"/api/v1/notes/{changed}", {"text": "The tamarin has become a marmoset"})
    own("DELETE", f"/api/v1/documents/{gone}")
    added = own.add_note("An aye-aye arrived in the middle of it")
    failures: list[str] = []

    def ask() -> None:
        while not ended.is_set():
            if len(own.search("tamarin", mode="fts", top=100)["results"]) != NOTES - 1:
                failures.append("a note was missing")

    ended = threading.Event()
    asker = threading.Thread(target=ask)
    asker.start()
    job = own.ended(job_id)
    ended.set()
    asker.join()
    assert (job["status"], failures) == ("completed", [])
    assert [hit["document_id"] for hit in own.search("marmoset", mode="fts")["results"]] == [changed]
    assert [hit["document_id"] for hit in own.search("aye-aye", mode="fts")["results"]] == [added]
    assert gone not in {hit["document_id"] for hit in own.search("tamarin", top=100)["results"]}


def test_killed_in_the_middle_nothing_is_lost(start_engine: StartEngine) -> None:
    first = start_engine()
    own = Http(first.url)
    ids = fill(own)
    before = answers(own, ids)
    own("POST", "/api/v1/reindex")
    first.stop(signal.SIGKILL)
    again = Http(start_engine().url)
    assert answers(again, ids) == before
    (job,) = [job for job in again("GET", "/api/v1/jobs").json["jobs"] if job["kind"] == "reindex"]
    assert again.ended(job["id"])["status"] == "completed"
    assert answers(again, ids) == before


def test_other_chunks_need_it_and_get_it(start_engine: StartEngine, tmp_path: Path) -> None:
    first = start_engine()
    text = "\n\n".join(f"Paragraph {n}: the loris number {n} moves slowly and at night." for n in range(40))
    id_ = Http(first.url).add_note(text)
    count = Http(first.url)("GET", f"/api/v1/documents/{id_}").json["chunk_count"]
    first.stop()
    second = start_engine(arguments=["--reindex"], KB_CHUNK_TOKENS="60")
    own = Http(second.url)
    (job,) = [job for job in own("GET", "/api/v1/jobs").json["jobs"] if job["kind"] == "reindex"]
    assert own.ended(job["id"])["status"] == "completed"
    assert own("GET", f"/api/v1/documents/{id_}").json["chunk_count"] > 2 * count
    assert "number 39" in own.search("loris number 39", mode="fts", top=1)["results"][0]["text"]
    assert own.search("slow animals at night")["total"] > 0
    own.add_note("Written after the new index")
    second.stop()
    third = start_engine(KB_CHUNK_TOKENS="60")
    assert Http(third.url).search("after the new index", mode="fts")["total"] == 1


def test_a_file_that_is_being_added_meanwhile_keeps_every_chunk(start_engine: StartEngine) -> None:
    own = Http(start_engine().url)
    fill(own)
    text = "\n\n".join(f"Paragraph {n}: the indri number {n} sings at dawn. " * 6 for n in range(120)).encode()
    job_id = own.add_file("long.txt", text, wait=0).json["job_id"]
    assert own("POST", "/api/v1/reindex?wait=120").json["status"] == "completed"
    job = own.ended(job_id)
    document = own("GET", f"/api/v1/documents/{job['document_id']}").json
    assert job["status"] == "completed"
    assert len(document["chunks"]) == document["chunk_count"] == job["chunks_created"]
