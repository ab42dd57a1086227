"""A web browser of nothing but downloads: a program in the readers' namespace that fetches pages at given times.

Standard input: a JSON line with `address`, `port` and `pages` ([seconds, bytes]); it fetches one page, answers with a
line, and waits for a line with `at_ns` (CLOCK_MONOTONIC) and `until_s`. Each page is a connection of its own, in a
thread of its own. Then it prints for each page when it was asked for, how long it took (or until the end), and whether
it came.
"""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time

# a page that a run begins with, so that both ends have done everything once [byte]
FIRST_BYTES = 1000


class Page:
    """One page on its way."""

    def __init__(self, address: str, port: int, size: int, zero: float) -> None:
        self.place, self.size, self.zero = (address, port), size, zero
        self.asked_s, self.took_s, self.failed = 0.0, None, None

    def fetch(self) -> None:
        """From connecting to the last byte."""
        began = time.monotonic()
        self.asked_s = began - self.zero
        try:
            connection = http.client.HTTPConnection(*self.place, timeout=60)
            connection.request("GET", f"/{self.size}")
            response = connection.getresponse()
            got = 0
            while part := response.read(1 << 16):
                got += len(part)
            took = time.monotonic() - began
            connection.close()
            if (response.status, got) != (200, self.size):
                raise http.client.HTTPException(f"status {response.status}, {got} of {self.size} bytes")
            self.took_s = took
        except (OSError, http.client.HTTPException) as error:
            self.failed = f"{type(error).__name__}: {error}"


def main() -> int:
    """Exit status 1 where the server did not answer."""
    about = json.loads(sys.stdin.readline())
    first = Page(about["address"], about["port"], FIRST_BYTES, 0.0)
    first.fetch()
    print(json.dumps({"ready": first.took_s is not None, "failed": first.failed}), flush=True)
    line = sys.stdin.readline()
    if first.failed or not line:
        return 1
    go = json.loads(line)
    zero, pages = go["at_ns"] / 1e9, []
    for at_s, size in about["pages"]:
        time.sleep(max(0.0, zero + at_s - time.monotonic()))
        page = Page(about["address"], about["port"], size, zero)
        threading.Thread(target=page.fetch, daemon=True).start()
        pages.append(page)
    while time.monotonic() < zero + go["until_s"] and any(p.took_s is None and not p.failed for p in pages):
        time.sleep(0.05)
    time.sleep(max(0.0, zero + go["until_s"] - time.monotonic()))
    found = [[p.asked_s, p.took_s or go["until_s"] - p.asked_s, p.took_s is not None] for p in pages]
    print(json.dumps({"pages": found, "failed": next((p.failed for p in pages if p.failed), None)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
