"""`kill -9` of every part at any time, while jobs run and lines are watched: what was said to be kept is there, the
next start is clean, nothing is left. PATHCAST_KILLS: how many (none: no test), 1 to 9 at once; PATHCAST_KILLS_S: no
more of them after so many seconds; PATHCAST_KILLS_OUT: a CSV; PATHCAST_SEED."""

from __future__ import annotations

import csv
import os
import random
import secrets
import time
from datetime import datetime, timedelta

import killing
import pytest
from conftest import COMMAND, eventually
from killing import FAR, WRITER, House, Part, clean_start, kept, own_cgroup, told, words_of

from pathcast.history.testing import Postgres

KILLS = int(os.environ.get("PATHCAST_KILLS", "0"))
LONGEST_S = float(os.environ.get("PATHCAST_KILLS_S", "inf"))
pytestmark = pytest.mark.privileged
SENT = 12_000_000


@pytest.fixture
def server():
    """PostgreSQL, where there is one."""
    if Postgres.lacks():
        yield None
        return
    made = Postgres()
    yield made
    made.remove()


@pytest.fixture
def house(pathcast, site, name, tmp_path, monkeypatch, server):
    for variable, value in (("STATE_DIR", tmp_path / "state"), ("CONFIG", tmp_path / "config/pathcast.toml")):
        monkeypatch.setenv(f"PATHCAST_{variable}", str(value))
    file = str(tmp_path / "history.db")
    other = file if server is None else server.database("kills")
    monkeypatch.setenv("PATHCAST_HISTORY", file)
    with own_cgroup(f"pc-kills-{secrets.token_hex(4)}") as cgroup:
        made = House(pathcast, site, name, tmp_path, cgroup, list(dict.fromkeys((file, other))))
        try:
            furnish(made, file, other)
            yield made
        finally:
            made.close()
            pathcast("net", "down", name)


def furnish(house: House, file: str, other: str) -> None:
    """All parts, none of which is started yet."""
    here, far = house.client, house.server
    assert house.here("line", "add", "dsl", "--from", "10.77.1.2").returncode == 0
    assert house.here("line", "add", "cable", "--from", "10.77.2.2", "--prefer", 1).returncode == 0
    minutes = [f"{datetime.now() + timedelta(minutes=n):%H:%M}" for n in range(120)]
    times = [word for at in minutes for word in ("--at", at)]
    size = ("--size", f"{SENT}B")
    for job, at in (("nightly", times), ("direct", ["--at", "00:00"])):
        added = house.here("job", "add", job, *at, *size, "--retries", 3, "--", *house.send(SENT))
        assert added.returncode == 0, added.stderr
    up = lambda word: lambda said: word in said  # noqa: E731
    watching = ("watch", FAR, "--every", "10s", "--max", "500MB/day", "--jsonl", "--alert", "*.down")
    Part(house, "serve", [COMMAND, "serve", "--open", "--json"], prefix=far, ready=up("{"))
    watch = [COMMAND, *watching]
    Part(house, "watch", watch, prefix=here, history=other, ready=up("watching"))
    elsewhere = {"PATHCAST_STATE_DIR": str(house.directory / "state2")}
    Part(house, "second watch", watch, prefix=here, history=file, ready=up("watching"), env=elsewhere)
    measure = [COMMAND, "measure", FAR, "--light", "--repeat", "1s", "--jsonl"]
    Part(house, "measure", measure, prefix=here, history=file)
    for name, history in (("writer", file), ("writer to a server", other)):
        Part(house, name, [killing.sys.executable, "-c", WRITER], history=history, ready=up("\n"))
    daemon = [COMMAND, "job", "daemon", "--every", "1"]
    Part(house, "job daemon", daemon, prefix=here, history=other, ready=up("ready"))
    Part(house, "job run", [COMMAND, "job", "run", "direct"], prefix=here, history=file, endless=False)
    run = [COMMAND, "run", "--paths", "auto", *size, "--", *house.send(SENT)]
    Part(house, "run", run, prefix=here, history=other, endless=False)
    Part(house, "control", [COMMAND, "control", "load", "reno"], ready=up("until this command ends"))
    net = [COMMAND, "net", "up", house.topology, "--name", f"{house.name}-b"]
    Part(house, "net up", net, endless=False)
    line = [COMMAND, "line", "set", "cable", "--routes"]
    Part(house, "line --routes", line, prefix=here, endless=False)
    add = [COMMAND, "job", "add", "other", "--at", "00:00", "--units", house.directory / "units", "--", "true"]
    Part(house, "job add", add, prefix=here, endless=False)
    # those that others have started
    held = lambda kind, more: lambda words: "pathcast.runtime.daemon" in words and kind in words  # noqa: E731
    is_run = lambda words, job: "run" in words and "--paths" in words and job in words  # noqa: E731
    Part(house, "held controller", [], victim=held("control", ()))
    second = f"{house.name}-b"
    Part(house, "net", [], victim=lambda words: False)
    house.parts["net"].pids = lambda: [of["pid"] for of in house.records() if of["id"] == second]  # type: ignore[method-assign]
    Part(house, "job run of the daemon", [], victim=lambda words: "nightly" in words and "--due" in words)
    Part(house, "run of a job", [], victim=lambda words: is_run(words, "nightly") or is_run(words, "direct"))


def ends(house: House, name: str) -> None:
    """What is begun again and again is begun where it is not there."""
    part = house.parts[name]
    if not part.command or (part.process is not None and part.process.poll() is None):
        return
    if name == "net up":
        house.pathcast("net", "down", f"{house.name}-b")
    if name == "job add":
        house.here("job", "remove", "other", "--units", house.directory / "units")
    if name == "line --routes":
        house.here("line", "remove", "cable")
        house.here("undo")
        assert house.here("line", "add", "cable", "--from", "10.77.2.2", "--prefer", 1).returncode == 0
    part.start()


SAYS = {
    "watch": killing.said_by_watch,
    "second watch": killing.said_by_watch,
    "measure": killing.said_by_measure,
    "writer": killing.said_by_writer,
    "writer to a server": killing.said_by_writer,
}
# who ends with another one that is killed
ENDS_WITH = {"control": "held controller"}
# who is killed within its start, since that is all of it
SHORT = ("line --routes", "job add", "net up")


def test_whatever_is_killed_nothing_is_lost_and_nothing_is_left(house, server, pathcast):
    chance = random.Random(int(os.environ.get("PATHCAST_SEED", "18")))
    names = list(house.parts)
    whom: list[str] = []
    while len(whom) < KILLS:
        whom += chance.sample(names, len(names))
    killed = dict.fromkeys(names, 0)
    faults: list[str] = []
    seen = dict.fromkeys(("nightly", "direct"), 0)
    for name in ("serve", *names):
        ends(house, name)
    silent = 0
    number, deadline = -1, time.monotonic() + LONGEST_S
    while sum(killed.values()) < KILLS and time.monotonic() < deadline:
        number += 1
        if len(whom) < 9:
            whom += chance.sample(names, len(names))
        size = chance.randint(1, 9)
        group = list(dict.fromkeys(whom[:size]))
        del whom[:size]
        if server is not None and number % 10 == 4:
            server.stop(chance.choice(["immediate", "fast"]))
        if server is not None and number % 10 == 8:
            server.start()
        if number % 5 == 2:
            silent = chance.choice([0, 1, 2])
            for line in (1, 2):
                pathcast("net", "set", house.name, f"wan{line}", f"loss={int(line == silent)}")
        for other in names:
            if other not in SHORT:
                ends(house, other)
        if "net" in group:
            ends(house, "net up")
            house.parts["net up"].process.wait(60)
        waited = [name for name in group if name not in SHORT]
        eventually(lambda waited=waited: all(house.parts[name].pids() for name in waited), 8)
        for name in group:
            if name in SHORT and not (name == "net up" and "net" in group):
                ends(house, name)
        time.sleep(chance.uniform(0.2, 1.5))
        pids = []
        for name in group:
            pids += (gone := house.parts[name].kill())
            killed[name] += len(gone)
        assert eventually(lambda pids=pids: not any(words_of(pid) for pid in pids), 30)
        name = ", ".join(group)
        print(f"{time.strftime('%X')} {number} {name}: {len(pids)}", flush=True)
        # the next start, of whatever part
        begun = [other for other in names if other not in SHORT]
        for other in begun:
            ends(house, other)
        started = house.here("control", "list")
        if started.returncode or started.stderr:
            faults.append(f"{number} {name}: control list: {started.stderr}")
        if not eventually(lambda: not house.wrong(), 10):
            faults.append(f"{number} {name}: left {house.wrong()}")
        for of in house.parts.values():
            if of.command and not clean_start(of):
                faults.append(f"{number} {name}: {of.name} said {of.errors()[-600:]}")
            if of.command and of.endless and not of.goes_on() and not {of.name, ENDS_WITH.get(of.name)} & {*group}:
                faults.append(f"{number} {name}: {of.name} has ended: {of.errors()[-300:]}")
        for job in seen:
            if len(events := told(house, job)) < seen[job]:
                faults.append(f"{number} {name}: the log of {job} has become shorter")
            seen[job] = len(events)
    if server is not None and number % 10 in (4, 5, 6, 7):
        server.start()
    for part in house.parts.values():
        part.end()
    for line in (1, 2):
        pathcast("net", "set", house.name, f"wan{line}", "loss=0")
    own = {house._sink.pid, *(of["pid"] for of in house.records() if of["kind"] == "net")}
    ours = lambda: [pid for pid in set(house.site.processes()) - own if "postgres" not in (words_of(pid) or [""])[0]]  # noqa: E731
    assert eventually(lambda: not ours(), 90), [
        *faults,
        *map(words_of, ours()),
    ]
    # what was said is there
    everything = set().union(*(kept(history) for history in house.histories))
    rows = []
    for name in names:
        said = SAYS[name](house.parts[name]) if name in SAYS else set()
        lost = len(said - everything)
        rows.append({"part": name, "kills": killed[name], "records said to be kept": len(said) or "", "lost": lost})
        if lost:
            faults.append(f"{name}: {lost} of {len(said)} records are lost: {list(said - everything)[:3]}")
    done = [of for job in seen for of in told(house, job) if of["event"] == "ended" and of["status"] == 0]
    # nothing is left
    house.pathcast("net", "down", f"{house.name}-b")
    house.here("job", "remove", "other", "--units", house.directory / "units")
    house.here("line", "remove", "cable")
    undone = house.here("undo")
    faults += [line for line in undone.stdout.splitlines() if line.startswith("not removed")]
    faults += [f"at the end: {of}" for of in house.wrong()]
    if (rules := house.rules()) != house.rules_at_first:
        faults.append(f"rules: {set(rules) ^ set(house.rules_at_first)}")
    if house.endpoints() != house.at_first:
        faults.append(f"endpoints: {house.endpoints() ^ house.at_first}")
    faults += [f"unit {path}" for path in (house.directory / "units").glob("*")]
    faults += [f"temporary file {path}" for path in house.temporary()]
    if out := os.environ.get("PATHCAST_KILLS_OUT"):
        with open(out, "w", newline="") as file:
            table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            table.writeheader()
            table.writerows(rows)
    records = sum(int(row["records said to be kept"] or 0) for row in rows)
    print(f"\n{sum(killed.values())} kills, {records} records, {len(done)} jobs done")
    print("\n".join(faults))
    assert not faults
    assert sum(killed.values()) >= KILLS or time.monotonic() > deadline
