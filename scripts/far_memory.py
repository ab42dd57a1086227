"""The memory of a far end under load: far_memory.py PROGRAM [--short] [--greedy] runs it on loopback, with 32 sessions
that all transfer and measure at once, and fails where it has ever had more than 32 MB in memory. --short: less of both,
in a few seconds. --greedy: each measures with all the bytes that a far end grants, for 10 s a direction."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from pathcast.worlds.host import Host
from pathcast.worlds.measurement import Request

SESSIONS, MOST_BYTES = 32, 32_000_000
TRANSFER_BYTES, SHORT_BYTES = 20_000_000, 2_000_000
LIMITS = [f"{name}=64" for name in ("sessions", "sessions-per-key", "sessions-per-source", "measuring")]


def load(where: str, key: Path, short: bool, greedy: bool) -> list[BaseException]:
    """Opens all sessions and waits for their end; what went wrong."""
    errors: list[BaseException] = []
    opened = threading.Barrier(SESSIONS)
    size, request = (SHORT_BYTES, Request(effort="light", time_s=1.0)) if short else (TRANSFER_BYTES, Request())
    if greedy:
        request = Request(bytes=1_000_000_000, time_s=10.0, whole=True)

    def session() -> None:
        try:
            with Host(where, key) as world:
                name = world.paths[0].name
                opened.wait(60)
                world.transfer([name], size)
                world.measure([name], request)
        except Exception as error:
            opened.abort()
            errors.append(error)

    threads = [threading.Thread(target=session) for _ in range(SESSIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def main(program: str, short: bool = False, greedy: bool = False) -> int:
    """The exit status."""
    with tempfile.TemporaryDirectory() as directory:
        key = Path(directory, "key")
        subprocess.run([program, "--new-key", key], check=True, stdout=subprocess.DEVNULL)
        limits = [word for limit in LIMITS for word in ("--limit", limit)]
        command = [program, "--key-file", str(key), "--bind", "127.0.0.1", "--port", "0", *limits]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as far:
            try:
                assert far.stdout is not None
                errors = load(far.stdout.readline().split()[-1], key, short, greedy)
                status = Path(f"/proc/{far.pid}/status").read_text()
            finally:
                far.terminate()
    [most] = [1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")]
    print(f"{program}: {most / 1e6:.1f} MB at most with {SESSIONS} sessions at once, {len(errors)} of them failed")
    for error in errors[:1]:
        print(error, file=sys.stderr)
    return int(bool(errors) or most > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--short" in sys.argv[2:], "--greedy" in sys.argv[2:]))
