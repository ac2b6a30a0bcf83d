"""A proxy in front of a PostgreSQL server that counts round trips: how often an answer was awaited."""

import re
import socket
import threading
from types import TracebackType


class RoundTrips:
    """Every connection is forwarded by two threads. What is sent after an answer begins another round trip."""

    def __init__(self, port: int) -> None:
        self.count = 0
        self._port = port
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))

    def __enter__(self) -> "RoundTrips":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._listener.close()

    def url(self, direct: str) -> str:
        return re.sub(rf":{self._port}\b", f":{self._listener.getsockname()[1]}", direct)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._port))
            answered = threading.Event()
            answered.set()
            for source, target, asks in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._forward, args=(source, target, answered, asks), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, answered: threading.Event, asks: bool) -> None:
        try:
            while data := source.recv(2**16):
                if not asks:
                    answered.set()
                elif answered.is_set():
                    answered.clear()
                    with self._lock:
                        self.count += 1
                target.sendall(data)
        except OSError:
            pass
        finally:
            source.close()
            target.close()
