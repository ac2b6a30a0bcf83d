"""`make containers`: drive a stack from outside, as agents and people would.

The stack (`tools/stacks.py`) is up when this starts; the keys are those of the environment. Every step prints what it
saw; the first that fails ends it.
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

MCP = f"http://127.0.0.1:{os.environ.get('KB_MCP_PORT', '3000')}"
ENGINE = f"http://127.0.0.1:{os.environ.get('KB_PORT', '8000')}"
NOTE = "The lighthouse keeper counts the ships at dawn."
DRAWING = b'<svg xmlns="http://www.w3.org/2000/svg"><text>The harbour chart shows three buoys</text></svg>'
FILE = b"".join(b"Line %06d of a file that comes in pieces.\n" % number for number in range(2000))
PIECE = 2**14
ENGINES = ("engine1", "engine2", "engine3")


def docker(*words: str) -> str:
    done = subprocess.run(["docker", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"docker {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


def compose(*words: str) -> str:
    return docker("compose", *words)


def fetch(url: str, body: Any = None, key: str | None = None) -> tuple[int, Any]:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, json.load(refused)


def call(name: str, **arguments: Any) -> Any:
    """Call one tool with the token; return its structured answer, also if it failed."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    status, answer = fetch(f"{MCP}/mcp", message, os.environ["KB_MCP_API_KEY"])
    assert status == 200, answer
    return answer["result"]["structuredContent"]


def found(text: str) -> bool:
    return any(text in hit["text"] for hit in call("kb_search", query=text)["results"])


def step(what: str, seen: object) -> None:
    print(f"{what}: {seen}", flush=True)


def until_healthy(service: str) -> float:
    started = time.perf_counter()
    while compose("ps", "--format", "{{.Health}}", service) != "healthy":
        time.sleep(0.2)
    return time.perf_counter() - started


def notes_survive_a_restart() -> None:
    added = call("kb_addnote", text=NOTE, tags=["harbour"])
    assert added["status"] == "completed", added
    assert found(NOTE)
    step("a note through MCP, with the token", f"document {added['document_id']}, found")
    compose("restart", "engine")
    step("the engine's container after a restart", f"healthy in {until_healthy('engine'):.1f} s")
    assert found(NOTE)
    step("the note after the restart", "found")


def uploads_can_be_tried_again() -> None:
    started = call("kb_upload_start", filename="pieces.txt", total_size=len(FILE))
    call("kb_upload_chunk", upload_id=started["upload_id"], chunk_index=0, data=base64.b64encode(FILE[:PIECE]).decode())
    compose("kill", "mcp")
    compose("up", "-d", "--wait", "--no-recreate", "mcp")
    lost = call("kb_upload_finish", upload_id=started["upload_id"])
    assert "kb_upload_start" in json.dumps(lost), lost
    step("an upload whose server was killed", lost["error"]["message"])
    again = call("kb_upload_start", filename="pieces.txt", total_size=len(FILE))
    for index in range(0, len(FILE), PIECE):
        data = base64.b64encode(FILE[index : index + PIECE]).decode()
        call("kb_upload_chunk", upload_id=again["upload_id"], chunk_index=index // PIECE, data=data)
    finished = call("kb_upload_finish", upload_id=again["upload_id"])
    job_id = finished["job_id"]
    while call("kb_jobs", job_id=job_id)["status"] in ("queued", "running"):
        time.sleep(1)
    job = call("kb_jobs", job_id=job_id)
    assert job["status"] == "completed", job
    step("the same upload, tried again", f"{job['chunks_created']} passages")


def the_volume_can_be_restored() -> None:
    """As docs/deploy.md says: a backup over REST, everything deleted, and the backup put into the volume again."""
    with tempfile.TemporaryDirectory() as folder:
        backup = Path(folder) / "kb.tar"
        key = {"Authorization": f"Bearer {os.environ['KB_API_KEY']}"}
        with urllib.request.urlopen(
            urllib.request.Request(f"{ENGINE}/api/v1/backup", headers=key), timeout=120
        ) as taken:
            backup.write_bytes(taken.read())
        backup.chmod(0o644)  # the container's user reads it
        Path(folder).chmod(0o755)
        clear = f"{ENGINE}/api/v1/documents?confirm=DELETE%20ALL"
        urllib.request.urlopen(urllib.request.Request(clear, headers=key, method="DELETE"), timeout=120).close()
        assert not found(NOTE)
        compose("stop", "engine", "mcp")
        words = (
            "run",
            "--rm",
            "--no-deps",
            "-T",
            "-v",
            f"{backup}:/kb.tar:ro",
            "engine",
            "restore",
            "/kb.tar",
            "--force",
        )
        step("a backup put into the volume again", compose(*words))
        compose("up", "-d", "--wait", "--no-recreate")
    assert found(NOTE)
    step("the note after the restore", "found")


def files_are_read_in_a_sandbox() -> None:
    """A read-only container without capabilities still lets the engine start the process that reads files."""
    started = call("kb_upload_start", filename="chart.svg", total_size=len(DRAWING))
    data = base64.b64encode(DRAWING).decode()
    call("kb_upload_chunk", upload_id=started["upload_id"], chunk_index=0, data=data)
    call("kb_upload_finish", upload_id=started["upload_id"])
    for _ in range(100):
        if found("The harbour chart shows three buoys"):
            step("a drawing, read in the sandbox", "found")
            return
        time.sleep(0.2)
    sys.exit("the drawing was not found")


def strangers_are_refused() -> None:
    for name, url, key in (
        ("MCP without a token", f"{MCP}/mcp", None),
        ("MCP with a wrong token", f"{MCP}/mcp", "wrong"),
        ("engine without its key", f"{ENGINE}/api/v1/status", None),
    ):
        status, answer = fetch(url, {} if key else None, key)
        assert status == 401, (name, status, answer)
        step(name, f"{status} {answer['error']['code']}")


def containers_are_hardened() -> None:
    for service in ("engine", "mcp"):
        tried = (
            "import os, socket\n"
            "print('user', os.getuid(), end=', ')\n"
            "try: open('/opt/venv/x', 'w')\n"
            "except OSError as error: print('root file system:', error.strerror, end=', ')\n"
            "socket.setdefaulttimeout(3)\n"
            "try: socket.create_connection(('1.1.1.1', 443)); print('reaches the internet')\n"
            "except OSError as error: print('internet:', error)\n"
        )
        seen = compose("exec", "-T", service, "python", "-c", tried)
        assert "user 10001" in seen, seen
        assert "Read-only file system" in seen, seen
        assert "reaches" not in seen, seen
        step(service, seen)
    seen = compose(
        "exec",
        "-T",
        "mcp",
        "python",
        "-c",
        "import importlib.util as u; print([m for m in "
        "('openvino', 'onnxruntime', 'numpy', 'apsw', 'kb.engine') if u.find_spec(m)])",
    )
    step("inference runtimes and engine code in the MCP image", seen)
    assert seen == "[]", seen


def every_engine_has_what_one_wrote() -> None:
    added = call("kb_addnote", text=NOTE, tags=["harbour"])
    assert added["status"] == "completed", added
    for engine in ENGINES:
        seen = compose("exec", "-T", engine, "kb", "search", NOTE, "--json")
        assert NOTE in seen, (engine, seen)
    step("a note through one engine", f"found through {', '.join(ENGINES)}")


def an_engine_may_die() -> None:
    compose("kill", ENGINES[0])
    assert found(NOTE)
    status, answer = fetch(f"{ENGINE}/api/v1/search", {"query": NOTE}, os.environ["KB_API_KEY"])
    assert status == 200, answer
    step("with an engine killed", "the note is found through MCP and through the load balancer")
    compose("up", "-d", "--wait", "--no-recreate", ENGINES[0])


def the_primary_may_die() -> None:
    """As docs/scale.md says: the standby is promoted, and taken to be alone."""
    compose("kill", "db1")
    compose("exec", "-T", "-u", "postgres", "db2", "pg_ctl", "promote", "-D", "/var/lib/postgresql/18/docker")
    promoted = time.perf_counter()
    for statement in ("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()"):
        compose("exec", "-T", "db2", "psql", "-qU", "kb", "-d", "kb", "-c", statement)
    while True:
        added = call("kb_addnote", text=f"{NOTE} Then the primary died.")
        if added.get("status") == "completed":
            break
        assert time.perf_counter() < promoted + 30, added
        time.sleep(0.2)
    step("a write after the standby was promoted", f"acknowledged after {time.perf_counter() - promoted:.1f} s")
    assert found(NOTE)
    step("the note from before", "found")


def sizes(*images: str) -> None:
    for image in images:
        size = int(docker("image", "inspect", image, "--format", "{{.Size}}"))
        step(f"size of {image}", f"{size / 2**20:.0f} MB")


def main(stack: str) -> int:
    sizes("kb-engine" if stack == "plain" else "kb-engine-postgres", "kb-mcp")
    strangers_are_refused()
    if stack == "cluster":
        every_engine_has_what_one_wrote()
        an_engine_may_die()
        the_primary_may_die()
        return 0
    notes_survive_a_restart()
    the_volume_can_be_restored()
    files_are_read_in_a_sandbox()
    uploads_can_be_tried_again()
    containers_are_hardened()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
