"""What the command-line, fault and world tests share: the command, private run directories, users without rights."""

from __future__ import annotations

import functools
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from forked import Forked

Found = TypeVar("Found")

ROOT = Path(__file__).parents[1]
# slow evidence: scripts/evidence runs it
collect_ignore = [] if os.environ.get("PATHCAST_KILLS") else ["test_kills.py"]
COMMAND = Path(sys.executable).with_name("pathcast")
NEEDED = ("privilege", "iproute2", "namespaces", "tun", "mptcp")
NOBODY = 65534
# never a measure of speed: only so that a hang ends
PATIENCE_S = 90

SMALL = """
name = "small"
[[link]]
name = "wan1"
a = "client"
b = "server"
rate = "40Mbit"
delay = "5ms"
[[link]]
name = "wan2"
a = "client"
b = "server"
rate = "40Mbit"
delay = "8ms"
[[path]]
name = "path1"
links = ["wan1"]
[[path]]
name = "path2"
links = ["wan2"]
"""

# two lines to one address
LINES = """
name = "lines"
[[link]]
name = "wan1"
a = "client"
b = "isp"
rate = "20Mbit"
delay = "5ms"
[[link]]
name = "wan2"
a = "client"
b = "isp"
rate = "20Mbit"
delay = "8ms"
[[link]]
name = "isp-s"
a = "isp"
b = "server"
rate = "100Mbit"
delay = "1ms"
[[path]]
name = "path1"
links = ["wan1", "isp-s"]
[[path]]
name = "path2"
links = ["wan2", "isp-s"]
remote = "path1"
"""


@functools.cache
def _report() -> tuple:
    from pathcast.service import doctor

    return tuple(doctor.missing(*NEEDED))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips a privileged test for what `doctor` lists as missing, by name."""
    if item.get_closest_marker("privileged") and _report():
        pytest.skip("missing: " + "; ".join(f"{check.name} ({check.detail})" for check in _report()))


def _private(mode: int = 0o700) -> Path:
    path = Path(tempfile.mkdtemp(prefix="pc-run-"))  # short: sockets lie in it
    path.chmod(mode)
    return path


def _processes(run_dir: Path) -> list[int]:
    """Living processes whose environment names this run directory."""
    mark = f"PATHCAST_RUN_DIR={run_dir}\0".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if mark in (entry / "environ").read_bytes() + b"\0":
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def _sweep(run_dir: Path) -> None:
    """Ends what a failed test left: only processes and namespaces of its own run directory."""
    from pathcast.runtime import state

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATHCAST_RUN_DIR", str(run_dir))
        for pid in _processes(run_dir):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        eventually(lambda: not _processes(run_dir))
        os.chown(run_dir, os.geteuid(), os.getegid())  # one of `open_site`
        state.clean()
    shutil.rmtree(run_dir, ignore_errors=True)


def eventually(condition: Callable[[], object], seconds: float = PATIENCE_S) -> bool:
    """Whether the condition comes true before patience ends."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def calm(do: Callable[[], Found], spoilt: Callable[[Found], object]) -> Found:
    """What comes of it: tried again while a busy machine spoils that, until patience ends."""
    deadline = time.monotonic() + PATIENCE_S
    while spoilt(found := do()) and time.monotonic() < deadline:
        pass
    return found


def asked(run: Callable[..., Done], *arguments: object) -> Done:
    """A command's answer, once what it measured can be trusted (exit 3, or no rate: what runs beside it)."""

    def untold(answer: Done) -> bool:
        if answer.returncode or "--json" not in arguments or not answer.json["schema"].startswith("pathcast.measure/"):
            return answer.returncode == 3
        wanted = ("out",) if answer.json["effort"] == "light" else ("out", "in")
        ways = [way for path in answer.json["paths"] if path["down"] is None for way in path["directions"].items()]
        return any(of["available_bps"]["value"] is None for way, of in ways if way in wanted)

    return calm(lambda: run(*arguments), untold)


@pytest.fixture(scope="session", autouse=True)
def _session_run_dir():
    """Nothing here touches the records, the history and the lines of this host's own pathcast."""
    path = _private()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATHCAST_RUN_DIR", str(path))
        patch.setenv("PATHCAST_HISTORY", "off")
        patch.setenv("PATHCAST_STATE_DIR", str(path / "state"))
        patch.setenv("PATHCAST_CONFIG", str(path / "pathcast.toml"))
        yield path
        _sweep(path)


class Site:
    """One private run directory and what goes on in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def records(self) -> list[str]:
        """Records and sockets; locks may stay, they name nothing."""
        return sorted(p.name for p in self.path.iterdir() if p.suffix in (".json", ".sock"))

    def processes(self) -> list[int]:
        return _processes(self.path)

    def namespaces(self) -> list[str]:
        """Namespaces that the records of this site name, and that exist."""
        found = []
        for file in self.path.glob("*.json"):
            found += json.loads(file.read_text())["made"].get("namespaces", [])
        return [n for n in found if Path("/run/netns", n).exists()]

    def empty(self) -> bool:
        return not self.records() and not self.processes()


@pytest.fixture
def site(monkeypatch):
    """A run directory of the test's own."""
    path = _private()
    monkeypatch.setenv("PATHCAST_RUN_DIR", str(path))
    yield Site(path)
    _sweep(path)


class Done(subprocess.CompletedProcess):
    """A finished command."""

    @property
    def json(self) -> dict:
        """Its one JSON document."""
        return json.loads(self.stdout)

    @property
    def error(self) -> dict:
        """Its error document, which says the exit status that it had."""
        error = self.json["error"]
        assert set(error) == {"code", "message", "hint", "exit"}
        assert error["exit"] == self.returncode
        return error


@pytest.fixture(scope="session")
def pathcast():
    """Runs the command to its end: begun anew where it has an environment, a directory or a user of its own, else in a
    copy of one that has begun already, in the network namespace `inside`."""
    copied = Forked()

    def run(
        *arguments: object,
        prefix: tuple[str, ...] = (),
        cwd: Path | None = None,
        env: dict | None = None,
        inside: str | None = None,
    ) -> Done:
        command = [*prefix, str(COMMAND), *map(str, arguments)]
        environment = {**os.environ, "COLUMNS": "200", **(env or {})}
        if prefix or cwd or env:
            none = subprocess.DEVNULL
            begun = subprocess.run(
                command, capture_output=True, text=True, timeout=PATIENCE_S, cwd=cwd, env=environment, stdin=none
            )
            found = begun.returncode, begun.stdout, begun.stderr
        else:
            found = copied.run(command, environment, PATIENCE_S, inside)
        done = Done(command, *found)
        assert "Traceback" not in done.stderr
        return done

    yield run
    copied.end()


@pytest.fixture(scope="session")
def far():
    """`pathcast-far` as developers build it: the one that is built with the Rust tests, else built here."""
    if built := os.environ.get("PATHCAST_FAR"):
        return built
    subprocess.run(["cargo", "build", "--quiet", "--locked", "--package", "pathcast-far"], cwd=ROOT, check=True)
    return str(Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"), "debug", "pathcast-far"))


@pytest.fixture
def start():
    """Starts the command, or another one, in the background; ended after the test."""
    running = []

    def start(*arguments: object, command: tuple[str, ...] = (str(COMMAND),)) -> subprocess.Popen:
        process = subprocess.Popen(
            [*command, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        running.append(process)
        return process

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def wait_for():
    return eventually


@pytest.fixture
def name():
    """A network's name that nobody else has."""
    return f"t-{secrets.token_hex(4)}"


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """A small two-path topology."""
    file = tmp_path_factory.mktemp("topology", numbered=True) / "small.toml"
    file.write_text(SMALL)
    return file


@pytest.fixture
def net(pathcast, site, name, small):
    """A network that is up, by its name."""
    assert pathcast("net", "up", small, "--name", name).returncode == 0
    yield name
    pathcast("undo", "--all")


def _closed(path: Path) -> Path | None:
    """The uppermost directory on the way to `path` that others may not enter."""
    for directory in reversed(path.parents):
        if not directory.stat().st_mode & 0o001:
            return directory
    return None


@pytest.fixture(scope="session")
def nobody():
    """What to put before a command so that a user without rights runs it.

    Where the interpreter or this tree lies in a closed directory, such as root's home, a mount namespace of the
    command's own opens the way to it, and to nothing else there.
    """
    if os.geteuid() != 0:
        yield ()
        return
    drop = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    trees = [Path(p).resolve() for p in (sys.base_prefix, sys.prefix, ROOT)]
    blocked = [(tree, _closed(tree)) for tree in trees if _closed(tree) is not None]
    if not blocked:
        yield drop
        return
    script, keep = ["set -e"], Path(tempfile.mkdtemp(prefix="pc-keep-"))
    for number, (tree, _) in enumerate(blocked):
        (keep / str(number)).mkdir()
        script.append(f"mount --bind '{tree}' '{keep}/{number}'")
    for closed in dict.fromkeys(closed for _, closed in blocked):
        script.append(f"mount -t tmpfs -o mode=755 tmpfs '{closed}'")
    for number, (tree, _) in enumerate(blocked):
        script.append(f"mkdir -p '{tree}' && mount --bind '{keep}/{number}' '{tree}'")
    script.append('exec "$@"')
    yield ("unshare", "--mount", "sh", "-c", "\n".join(script), "sh", *drop)
    shutil.rmtree(keep)  # empty here: what is mounted on it was mounted in the command's namespace only


@pytest.fixture
def open_site(site):
    """The test's run directory, given to the user without rights."""
    if os.geteuid() == 0:
        os.chown(site.path, NOBODY, NOBODY)
    return site


REACH = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 9), float(sys.argv[2]))
except ConnectionRefusedError:
    print("reached")
except TimeoutError:
    print("lost")
"""


@pytest.fixture
def reach(pathcast):
    """Whether an address answers from the client of a network: nobody listens there, and the host says so."""

    def reach(net, address, seconds=60):
        done = pathcast("net", "exec", net, "client", "--", sys.executable, "-c", REACH, address, seconds)
        assert done.stdout in ("reached\n", "lost\n"), done
        return done.stdout == "reached\n"

    return reach


@pytest.fixture
def office(pathcast, site, name, start, tmp_path, wait_for):
    """Runs commands at the end with the two lines; the other one serves."""
    topology = tmp_path / "topology.toml"
    topology.write_text(LINES)
    assert pathcast("net", "up", topology, "--name", name).returncode == 0
    hosts = json.loads(Path(site.path, f"net-{name}.json").read_text())["about"]["hosts"]
    enter = {host: ("ip", "netns", "exec", namespace) for host, namespace in hosts.items()}
    server = start("serve", "--open", "--json", command=(*enter["server"], str(COMMAND)))
    assert server.stdout.readline()

    class Office:
        far_end = server

        def __call__(self, *arguments, command=COMMAND):
            """Runs the command at that end."""
            if command == COMMAND:
                return pathcast(*arguments, inside=hosts["client"])
            words = [*enter["client"], command, *map(str, arguments)]
            done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
            return Done(words, done.returncode, done.stdout, done.stderr)

        def begin(self, *arguments):
            return start(*arguments, command=(*enter["client"], str(COMMAND)))

        def silent(self, line, loss=1):
            """The line swallows packets, and nobody says so."""
            assert pathcast("net", "set", name, f"wan{line}", f"loss={loss}").returncode == 0

        def unplug(self, line):
            assert self("link", "set", f"p{line}", "down", command="ip").returncode == 0

        def plug(self, line):
            """The interface and what its removal took away."""
            self("link", "set", f"p{line}", "up", command="ip")
            to = ("10.77.101.1", "dev", f"p{line}", "src", f"10.77.{line}.2")
            for where in (("metric", 9 + line), ("table", 99 + line)):
                assert self("route", "replace", *to, *where, command="ip").returncode == 0

    yield Office()
    pathcast("undo", "--all")
