"""A process that shows pages, taken over: a request for a sheet says what it answers, payload included."""

import json
import sys

from kb.ingest.sandbox.program import Pipe

if __name__ == "__main__":
    pipe = Pipe()
    while pipe.waits(float(sys.argv[3])):
        frame, _ = pipe.receive()
        said, payload = json.loads(json.loads(frame.message)["sheet"])
        pipe.send(said, payload.encode())
