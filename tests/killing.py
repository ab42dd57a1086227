"""Parts of pathcast that live long or change something, to be killed at any time; what they said to be kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from conftest import LINES, eventually
from test_cli_run import SEND

FAR = "10.77.101.1"
# adds acts for ever, and tells the key of each when it is kept
WRITER = """
from pathcast.history import place
from pathcast.history.journal import Journal
from pathcast.history.testing import forecast, measure, transfer
import itertools, time
journal = Journal(place.find())
for n in itertools.count():
    print((measure, transfer, forecast)[n % 3](journal), flush=True)
    time.sleep(0.02)
"""
# takes all bytes of many at once, whoever breaks off
SINK = """
import socket, socketserver
class Taken(socketserver.BaseRequestHandler):
    def handle(self):
        try:
            while self.request.recv(1 << 16):
                pass
        except OSError:
            pass
class Sink(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads, request_queue_size = True, 64
    def __init__(self):
        super().__init__(("", 0), Taken, bind_and_activate=False)
        self.socket = socket.socket(proto=262)
        self.server_bind()
        self.server_activate()
sink = Sink()
print(sink.server_address[1], flush=True)
sink.serve_forever()
"""
# what goes wrong with it is no word of pathcast's
QUIET = "import os; os.dup2(os.open(os.devnull, os.O_WRONLY), 2)\n"
Key = tuple[object, ...]


@contextmanager
def own_cgroup(name: str) -> Iterator[Path]:
    """A cgroup that this process and what it starts are in: runs make theirs below it."""
    [mount] = [p for p in map(Path, ("/sys/fs/cgroup/unified", "/sys/fs/cgroup")) if (p / "cgroup.procs").exists()]
    [line] = [x for x in Path("/proc/self/cgroup").read_text().splitlines() if x.startswith("0::")]
    outer = mount / line.removeprefix("0::/")
    own = outer / name
    own.mkdir()
    (own / "cgroup.procs").write_text(str(os.getpid()))
    try:
        yield own
    finally:
        for below in (*own.glob("pathcast-*"), own):
            for pid in (below / "cgroup.procs").read_text().split():
                with suppress(OSError):
                    (outer / "cgroup.procs").write_text(pid)
        assert eventually(lambda: not (own / "cgroup.procs").read_text(), 10)
        for below in (*own.glob("pathcast-*"), own):
            below.rmdir()


def words_of(pid: int) -> list[str]:
    """The command line of a process; empty where it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1]
    except OSError:
        return []


class House:
    """Two lines to a far end, with parts at both; `here` runs a command at the end with the lines."""

    def __init__(self, pathcast, site, name, directory: Path, cgroup: Path, histories: list[str]) -> None:
        self.pathcast, self.site, self.name, self.directory, self.cgroup = pathcast, site, name, directory, cgroup
        self.histories = histories
        self.parts: dict[str, Part] = {}
        self.topology = directory / "topology.toml"
        self.topology.write_text(LINES)
        assert pathcast("net", "up", self.topology, "--name", name).returncode == 0
        self.client, self.server = (("ip", "netns", "exec", f"pc-{name}-{host}") for host in ("client", "server"))
        self.at_first = self.endpoints()
        self.rules_at_first = self.rules()
        with open(directory / "sink.out", "wb") as out:
            program = [*self.server, sys.executable, "-c", SINK]
            self._sink = subprocess.Popen(program, stdout=out)
        assert eventually(lambda: (directory / "sink.out").read_text().endswith("\n"))
        self.port = int((directory / "sink.out").read_text())

    def close(self) -> None:
        for part in self.parts.values():
            part.end()
        self._sink.kill()
        self._sink.wait()

    def here(self, *arguments: object, **more):
        return self.pathcast(*arguments, prefix=self.client, **more)

    def ip(self, *words: str) -> str:
        return subprocess.run([*self.client, "ip", *words], capture_output=True, text=True, check=True).stdout

    def endpoints(self) -> set[str]:
        return {line.split()[0] for line in self.ip("mptcp", "endpoint", "show").splitlines()}

    def rules(self) -> list[str]:
        """Rules and routes of all tables, but for those of the local table."""
        routes = self.ip("route", "show", "table", "all").splitlines()
        return sorted([*self.ip("rule", "show").splitlines(), *(of for of in routes if "table local" not in of)])

    def send(self, bytes: int) -> list[str]:
        """A program that sends so many."""
        return [sys.executable, "-c", QUIET + SEND, FAR, str(self.port), str(bytes)]

    def records(self) -> list[dict]:
        found = []
        for path in self.site.path.glob("*.json"):
            with suppress(OSError, ValueError):
                found.append(json.loads(path.read_text()))
        return found

    def wrong(self) -> list[str]:
        """What a dead process has left that the next start should have removed."""
        alive = [of for of in self.records() if words_of(of["pid"])]
        names = {record["id"] for record in alive}
        found = [f"record {of['kind']} {of['id']}" for of in self.records() if not words_of(of["pid"])]
        runs = {f"pathcast-{of['id']}" for of in alive if of["kind"] == "run"}
        found += [f"cgroup {path.name}" for path in self.cgroup.glob("pathcast-*") if path.name not in runs]
        if self.name in names:
            meant = self.at_first | {a for of in alive for a in of["made"].get("endpoints", ())}
            found += [f"endpoint {address}" for address in self.endpoints() - meant]
        return found

    def temporary(self) -> list[str]:
        """Files of a writing that came to no end."""
        places = (self.directory, self.site.path)
        patterns = (".claim-*", ".writing-*", ".job-*", "*.new", ".pathcast*")
        return [str(path) for place in places for pattern in patterns for path in place.rglob(pattern)]


class Part:
    """A command that goes on, or that is begun again and again. said: whole lines of its standard output."""

    def __init__(
        self,
        house: House,
        name: str,
        command: list[object],
        *,
        prefix: tuple[str, ...] = (),
        history: str | None = None,
        ready: Callable[[str], bool] = lambda said: True,
        victim: Callable[[list[str]], bool] | None = None,
        env: dict[str, str] | None = None,
        endless: bool = True,
    ) -> None:
        self.house, self.name, self.ready, self.victim, self.endless = house, name, ready, victim, endless
        self.command = [*prefix, *map(str, command)]
        self.environment = {**os.environ, **({"PATHCAST_HISTORY": history} if history else {}), **(env or {})}
        self.process: subprocess.Popen | None = None
        self.starts = 0
        house.parts[name] = self

    def _file(self, number: int, kind: str) -> Path:
        return self.house.directory / f"{self.name}.{number}.{kind}"

    def start(self) -> None:
        self.starts += 1
        with open(self._file(self.starts, "out"), "wb") as out, open(self._file(self.starts, "err"), "wb") as err:
            self.process = subprocess.Popen(
                self.command, stdout=out, stderr=err, stdin=subprocess.DEVNULL, env=self.environment
            )

    def said(self) -> list[str]:
        """Of all its lives."""
        texts = [self._file(number, "out").read_text() for number in range(1, self.starts + 1)]
        return [line for text in texts for line in text[: text.rfind("\n") + 1].splitlines()]

    def errors(self) -> str:
        """What it has said on its standard error in this life."""
        return self._file(self.starts, "err").read_text(errors="replace") if self.starts else ""

    def stands(self) -> bool:
        assert self.process is not None
        text = self._file(self.starts, "out").read_text() + self.errors()
        return self.process.poll() is not None or self.ready(text)

    def goes_on(self) -> bool:
        """Whether it runs, as it should."""
        assert self.process is not None
        return self.process.poll() is None or not self.endless

    def pids(self) -> list[int]:
        """Whom to kill."""
        if self.victim is None:
            return [] if self.process is None or self.process.poll() is not None else [self.process.pid]
        return [pid for pid in self.house.site.processes() if self.victim(words_of(pid))]

    def kill(self) -> list[int]:
        """Kills what is there of it; whom."""
        killed = []
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
        if self.victim is None and self.process is not None:
            self.process.wait()
        return killed

    def end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise


def kept(history: str) -> set[Key]:
    """What a history holds, its spool included: by keys, and by what their commands print of them."""
    from pathcast.history import place as places
    from pathcast.history.store import Store
    from pathcast.history.tables import NAMES

    place = places.parse(history)
    rows: dict[str, list[dict]] = {name: [] for name in NAMES}
    # the spool first: what is sent meanwhile is in the database then
    for file in place.spool.glob("*.json") if place.spool.is_dir() else ():
        with suppress(FileNotFoundError):
            for name, of in json.loads(file.read_text())["rows"].items():
                rows[name] += of
    store = Store(place)
    if store.exists:
        with store.reading() as connection:
            for name in ("measurement", "transfer", "forecast", "event"):
                rows[name] += [dict(row) for row in connection.execute(NAMES[name].select()).mappings()]
    store.close()
    found: set[Key] = {("id", row["id"]) for of in rows.values() for row in of if "id" in row}
    for row in rows["measurement"]:
        found |= {("id", row["act"]), ("measured", row["elapsed_s"])}  # a row for each path and direction
    for row in rows["transfer"]:
        found.add(("sent", row["job"], row["bytes"]))
    for row in rows["event"]:
        if row["kind"] == "alert":
            found.add(("alert", row["about"]["at"], row["about"]["path"], row["about"]["state"]))
    return found


def said_by_writer(part: Part) -> set[Key]:
    return {("id", line) for line in part.said()}


def said_by_measure(part: Part) -> set[Key]:
    documents = [json.loads(line) for line in part.said()]
    return {("measured", of["elapsed_s"]) for of in documents if "error" not in of}


def said_by_watch(part: Part) -> set[Key]:
    return {("alert", of["at"], of["path"], of["state"]) for of in map(json.loads, part.said())}


def told(house: House, job: str) -> list[dict]:
    """A job's events."""
    file = house.directory / "state/jobs" / f"{job}.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def clean_start(of: Part) -> bool:
    """Whether nothing of its beginning was wrong."""
    return not any(word in of.errors() for word in ("Traceback", "internal", "not removed"))
