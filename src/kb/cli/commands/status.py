"""`kb status`: what the engine holds, what it is doing, and whether it is well."""

import argparse
import sys

from kb.cli.options import Commands, command, connect, print_json
from kb.core.types import Json

EXAMPLES = """
kb status
kb status --json
"""


def register(commands: Commands) -> None:
    command(commands, "status", run, EXAMPLES)


def run(args: argparse.Namespace) -> int:
    status = connect().status()
    if args.json:
        print_json(status)
    else:
        _show(status)
    return 0


def languages(multilingual: Json) -> str:
    """Whether questions find documents in other languages."""
    if not multilingual["installed"]:
        return "only the model's: to find documents in other languages, `kb model install potion-multilingual --from`"
    waiting = f"; {multilingual['waiting']} passages are still being prepared" if multilingual["waiting"] else ""
    return f"questions find documents in other languages{waiting}"


def _way(data_dir: str) -> str:
    """Who started the engine, if that is known on this machine."""
    from kb.cli.background.running import read

    running = read(data_dir)
    return running.described() if running else ""


def _show(status: Json) -> None:
    from kb.cli.screen import Screen, one_line
    from kb.core.sizes import readable_size

    screen = Screen(sys.stdout)
    documents, queue, storage = status["documents"], status["queue"], status["storage"]
    health, model, limits = status["health"], status["model"], status["limits"]
    kinds = ", ".join(f"{count} {kind}" for kind, count in documents["by_type"].items())
    colour = "green" if health["status"] == "healthy" else "red"
    deleted = f", {status['trash']} in the trash" if status.get("trash") else ""
    facts = {
        "engine": f"kb {status['version']}",
        "health": health["status"],
        "documents": f"{documents['total']}" + (f" ({kinds})" if kinds else "") + deleted,
        "passages": status["chunks"],
        "queue": f"{queue['queued']} queued, {queue['running']} running, {queue['failed']} failed",
        "storage": f"{readable_size(storage['bytes'])} in {storage['path']} ({storage['backend']})",
        "model": f"{model['name']}, {model['dimensions']} dimensions, on {status['device']}",
        "limits": f"{limits['max_file_mb']} MB a file, {limits['chunk_tokens']} tokens a passage",
        "sandbox": status["sandbox"],
        "kernels": status["kernels"],
        "languages": languages(status["multilingual"]),
        "changed": status["last_updated"] or "never",
    }
    if switching := status.get("switching"):
        facts["next model"] = f"{switching['to']}, {switching['progress']:.0%} of the passages are ready"
    if way := _way(storage["path"]):
        facts["runs as"] = way
    for name, value in facts.items():
        text = one_line(value)
        screen.say(f"{name:<10} {screen.style(text, colour) if name == 'health' else text}")
    for engine in status.get("engines", []):
        own = ", answers" * engine["self"] + ", leads" * engine["leads"]
        about = (
            f"{engine['id']} {engine['address']} kb {engine['version']} {engine['state']}{own}, at change "
            f"{engine['applied_seq']}, {engine['lag']} behind, seen {engine['seen_at']}"
        )
        screen.say(f"{'engine':<10} {one_line(about)}")
    for issue in health["issues"]:
        screen.say(screen.style(f"{'issue':<10} {one_line(issue)}", "red"))
