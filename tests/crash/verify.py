"""What must be true at the end, asked through REST: everything acknowledged is found, once, and nothing else."""

import time
from collections import defaultdict
from typing import Any

from crash.changes import State, read
from crash.plan import Addition
from crash.writers import Journal
from support import Http

DRAIN_SECONDS = 900


def drained(http: Http) -> bool:
    queue = http("GET", "/api/v1/status").json["queue"]
    return not queue["queued"] and not queue["running"]


def until_drained(http: Http) -> None:
    end = time.monotonic() + DRAIN_SECONDS
    while not drained(http):
        if time.monotonic() > end:
            raise AssertionError("the queue does not become empty")
        time.sleep(0.1)


def check(http: Http, plans: list[list[Addition]], states: dict[int, State], journal: Journal) -> int:
    """Every violation goes to the journal; how many documents there are."""
    documents = every_document(http)
    wanted = {step.identity: step for steps in plans for step in steps}  # of a path, the last content
    found = by_identity(documents, states)
    for identity, step in wanted.items():
        check_addition(http, step, found.pop(identity, []), journal)
    for identity, extra in found.items():
        journal.wrong(f"nobody asked for {identity}: {extra}")
    for id_, state in states.items():
        check_note(http, id_, state, journal)
    check_jobs(http, journal)
    chunks = sum(document["chunk_count"] for document in documents)
    metrics = http("GET", "/metrics").body.decode()
    if f"kb_chunks {float(chunks)}" not in metrics:
        journal.wrong(f"the index in memory does not hold the {chunks} published chunks")
    return len(documents)


def every_document(http: Http) -> list[Any]:
    documents: list[Any] = []
    while True:
        page = http("GET", f"/api/v1/documents?sort=created&order=asc&limit=1000&offset={len(documents)}").json
        documents += page["documents"]
        if len(documents) >= page["total"] or not page["documents"]:
            return documents


def by_identity(documents: list[Any], states: dict[int, State]) -> dict[tuple[str, ...], list[Any]]:
    found: dict[tuple[str, ...], list[Any]] = defaultdict(list)
    for document in documents:
        if document["id"] in states:
            continue
        if document["source_path"] is not None:
            found["path", document["source_path"]].append(document)
        elif document["doc_type"] == "note":
            found["note", document["content_hash"], *sorted(document["tags"])].append(document)
        else:
            found["file", document["content_hash"]].append(document)
    return found


def check_addition(http: Http, step: Addition, documents: list[Any], journal: Journal) -> None:
    if len(documents) != 1:
        journal.wrong(f"{step.mark} is there {len(documents)} times: {documents}")
        return
    (document,) = documents
    if document["content_hash"] != step.sha256:
        journal.wrong(f"{step.source_path} does not have its last content, {step.mark}: {document}")
        return
    if sorted(document["tags"]) != sorted(step.tags):
        journal.wrong(f"{step.mark} has other tags than {step.tags}: {document}")
    original = http("GET", f"/api/v1/documents/{document['id']}/original")
    if original.status != 200 or original.body != step.text.encode():
        journal.wrong(f"the original of {step.mark} is not what was sent: {original.status}")
    check_found(http, step.mark, document["id"], journal)


def check_found(http: Http, mark: str, id_: int, journal: Journal) -> None:
    hits = http.search(mark, mode="fts")["results"]
    if not hits or {hit["document_id"] for hit in hits} != {id_}:
        journal.wrong(f"a search for {mark} does not find document {id_}, and it alone: {hits}")


def check_note(http: Http, id_: int, state: State, journal: Journal) -> None:
    seen = read(http, id_, state)
    if seen != state:
        journal.wrong(f"note {id_} should be {state}, but is {seen}")
    for number, text in enumerate(state.texts):
        mark = Addition(text).mark
        if text == state.text and not state.deleted:
            check_found(http, mark, id_, journal)
        # Where nothing has the word, a search takes the most similar one.
        elif hits := [hit for hit in http.search(mark, mode="fts")["results"] if mark in hit["text"]]:
            journal.wrong(f"version {number + 1} of note {id_} is still found: {hits}")


def check_jobs(http: Http, journal: Journal) -> None:
    """What was acknowledged as a job is known as a job, and it ended well."""
    jobs: dict[str, Any] = {}
    while page := http("GET", f"/api/v1/jobs?limit=1000&offset={len(jobs)}").json["jobs"]:
        jobs |= {job["id"]: job for job in page}
    for job_id, addition in journal.job_ids.items():
        if (status := jobs.get(job_id, {}).get("status")) != "completed":
            journal.wrong(f"job {job_id} of {addition.mark} is {status}: {jobs.get(job_id)}")
    for job in jobs.values():
        if job["status"] != "completed":
            journal.wrong(f"a job did not complete: {job}")
