"""The compose files of a stack, for `make containers`: their names, or all of them as a single file.

`check-containers` takes one file, and can pull no images: those of PostgreSQL and HAProxy are built from
`containers/standins/` then.
"""

import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent
STACKS = {
    "plain": ["compose.yaml"],
    "postgres": ["compose.yaml", "compose.postgres.yaml"],
    "cluster": ["compose.cluster.yaml"],
}
STANDINS = {"postgres:18": "postgres.Dockerfile", "haproxy:3.0": "haproxy.Dockerfile"}


def merged(below: Any, above: Any) -> Any:
    """Both, as compose merges files: mappings key by key, lists one behind the other, else the one above."""
    if isinstance(below, dict) and isinstance(above, dict):
        return below | {key: merged(below[key], value) if key in below else value for key, value in above.items()}
    if isinstance(below, list) and isinstance(above, list):
        return below + above
    return above


def one_file(stack: str) -> Any:
    whole: Any = {}
    for name in STACKS[stack]:
        whole = merged(whole, yaml.safe_load((ROOT / name).read_text(encoding="utf-8")))
    for service in whole["services"].values():
        if dockerfile := STANDINS.get(service["image"]):
            service["image"] = f"kb-standin-{dockerfile.partition('.')[0]}"
            service["build"] = {"context": "containers/standins", "dockerfile": dockerfile}
    return whole


if __name__ == "__main__":
    wanted, stack = sys.argv[1:]
    if wanted == "files":
        sys.stdout.write(":".join(STACKS[stack]))  # as COMPOSE_FILE has them
    else:
        yaml.safe_dump(one_file(stack), sys.stdout, sort_keys=False)
