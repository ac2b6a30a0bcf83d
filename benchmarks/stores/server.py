"""What contestants need that serve HTTP, or that embed as kb does in an environment which is not kb's."""

import os
import socket
import time
from pathlib import Path

MODEL_DIR = "BENCHMARKS_MODEL_DIR"
START_SECONDS = 120


def model_dir() -> Path:
    """The model that kb itself uses, of which another environment knows nothing."""
    return Path(os.environ[MODEL_DIR])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def until_listening(port: int) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"nothing listens on port {port}")
