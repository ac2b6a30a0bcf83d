"""`python -m cluster.hammer URL SECONDS`: searches a second of one engine that is asked over one connection."""

import http.client
import json
import sys
import time
from urllib.parse import urlsplit

from crash.plan import WORDS

QUESTIONS = [f"{first} {second} number" for first in WORDS for second in WORDS if first != second]


def main() -> None:
    url, seconds = sys.argv[1], float(sys.argv[2])
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    count, began = 0, time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        body = json.dumps({"query": QUESTIONS[count % len(QUESTIONS)]})
        connection.request("POST", "/api/v1/search", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        found = json.loads(answer.read())
        assert found.get("results"), found
        count += 1
    sys.stdout.write(json.dumps(count / passed))


if __name__ == "__main__":
    main()
