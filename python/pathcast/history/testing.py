"""For tests: a real PostgreSQL of their own, acts that are easy to tell apart, a clock that obeys."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

from pathcast.history.clock import Moment
from pathcast.history.identity import PathKey
from pathcast.history.journal import Journal
from pathcast.history.rows import Act, Origin

KEY1 = PathKey("cable", "key:far", "10.0.0.2", "192.0.2.1")
KEY2 = PathKey("dsl", "key:far", "10.0.1.2", "192.0.2.1")
KEYS = {"path1": KEY1, "path2": KEY2}


class Clock:
    """Called it gives its moment; `passes` and `is_set` change it."""

    def __init__(self) -> None:
        self.at = Moment(1_790_000_000_000_000, 5_000_000_000, "boot-1")

    def __call__(self) -> Moment:
        return self.at

    def passes(self, seconds: float) -> None:
        step = round(seconds * 1e6)
        self.at = replace(self.at, utc_us=self.at.utc_us + step, boot_us=self.at.boot_us + step)

    def is_set(self, seconds: float) -> None:
        self.at = replace(self.at, utc_us=self.at.utc_us + round(seconds * 1e6))

    def boots(self) -> None:
        self.at = Moment(self.at.utc_us + 60_000_000, 1_000_000, self.at.boot + "'")


def origin(world: str = "host", **circumstances) -> Origin:
    return Origin(world, "far.example.org", "measure", circumstances, "host-1", "here")


def value(number: float, why: str | None = None) -> dict:
    return {"value": number, "low": 0.9 * number, "high": 1.1 * number, "why": why}


def measured(available_bps: float = 20e6, names=("path1",), keys=KEYS, why: str | None = None) -> dict:
    """The document of a measurement."""
    one = {
        "capacity_bps": value(2 * available_bps),
        "available_bps": value(available_bps, why),
        "delay_s": {"minimum": value(0.01), "median": value(0.012)},
        "loss": {"lost": 1, "packets": 100},
        "bytes": 50_000,
    }
    paths = [
        {
            "name": name,
            "local": keys[name].local,
            "remote": keys[name].remote,
            "directions": {"out": one, "in": {**one, "available_bps": value(2 * available_bps)}},
            "rtt_s": value(0.03),
            "shared_with": [],
            "down": None,
        }
        for name in names
    ]
    return {"paths": paths, "probe_bytes": 100_000, "elapsed_s": 2.0, "method": "ride", "effort": "usual", "notes": []}


def sent(bytes: int = 10_000_000, rate_bps: float = 20e6, control: str = "cubic") -> dict:
    """The document of a transfer."""
    seconds = bytes * 8 / rate_bps
    return {
        "bytes": bytes,
        "elapsed_s": seconds,
        "throughput_bps": rate_bps,
        "control": control,
        "protocol": "mptcp",
        "subflows": [],
    }


def forecast_of(size_bytes: int = 10_000_000, names=("path1",), control: str = "cubic", rate_bps: float = 25e6) -> dict:
    """The document of a forecast with one option."""
    rate = {"value": rate_bps, "low": 0.8 * rate_bps, "high": 1.2 * rate_bps}
    options = [{"paths": list(names), "control": control, "throughput_bps": rate}]
    return {"size_bytes": size_bytes, "options": options, "chosen": list(names), "chosen_control": control}


def measure(journal: Journal, available_bps: float = 20e6, names=("path1",), keys=KEYS, **about) -> str:
    """Adds a measurement of now."""
    act = journal.act(origin(**about))
    act.measurement(measured(available_bps, names, keys), keys, ("out", "in"))
    journal.add(act)
    return act.id


def transfer(journal: Journal, names=("path1",), keys=KEYS, bytes: int = 10_000_000, **about) -> str:
    """Adds a transfer of now, an equal share over each path."""
    act = journal.act(origin())
    over = [(keys[name], name, bytes // len(names), 1000) for name in names]
    act.transfer(sent(bytes, **about), over)
    journal.add(act)
    return act.id


def forecast(journal: Journal, names=("path1",), keys=KEYS, size_bytes: int = 10_000_000, **about) -> str:
    """Adds a forecast of now."""
    act: Act = journal.act(origin())
    act.forecast(forecast_of(size_bytes, names, **about), {name: keys[name] for name in names}, size_bytes)
    journal.add(act)
    return act.id


class Postgres:
    """A server of Debian's PostgreSQL in a directory of its own, reached by a socket there; it runs as nobody."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="pc-pg-"))
        self._user: tuple[str, ...] = ()
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.directory, nobody.pw_uid, nobody.pw_gid)
            self._user = ("setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups")
        self._run("initdb", "--no-sync", "-A", "trust", "-U", "test", "-E", "UTF8", "-D", str(self.directory / "data"))
        self.start()

    @staticmethod
    def lacks() -> str | None:
        """Why there is none, for who skips."""
        try:
            import psycopg  # noqa: F401
        except ImportError:
            return "missing: psycopg (no Python package)"
        return None if _program("initdb") else "missing: postgresql (no initdb)"

    def start(self) -> None:
        settings = f"-c listen_addresses= -c unix_socket_directories={self.directory} -c shared_buffers=16MB"
        quick = "-c max_connections=20 -c fsync=off"
        log = self.directory / "log"
        where = ("-D", str(self.directory / "data"), "-l", str(log), "-o", f"{settings} {quick}")
        self._run("pg_ctl", "-w", *where, "start")

    def stop(self, mode: str = "immediate") -> None:
        self._run("pg_ctl", "-w", "-m", mode, "-D", str(self.directory / "data"), "stop")

    def url(self, database: str) -> str:
        return f"postgresql://test@/{database}?host={self.directory}"

    def database(self, name: str, template: str = "template1") -> str:
        """A new one: its URL."""
        import psycopg

        with psycopg.connect(self.url("postgres").replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY file_copy')
        return self.url(name)

    def remove(self) -> None:
        if (self.directory / "data/postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self.directory)

    def _run(self, program: str, *arguments: str) -> None:
        # the server keeps what it inherits: a pipe would never end
        with open(os.devnull, "w") as nothing:
            where = self.directory if not self._user else "/"
            command = [*self._user, _program(program), *arguments]
            subprocess.run(command, check=True, stdout=nothing, stderr=nothing, cwd=where, timeout=120)


def _program(name: str) -> str | None:
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(found[-1]) if found else shutil.which(name)
