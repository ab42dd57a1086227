"""The long-lived parts: an emulated network, a far end, controllers. Each is a process of its own, started afresh.

`python -m pathcast.runtime.daemon KIND` reads one JSON line of configuration, answers with one JSON line when it stands
(or with an error document), then answers requests on its socket, a JSON line each. It ends at the request `down`, at a
SIGTERM, and when whoever started it closes its standard input, be it by dying, unless the line `detach` came there.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

from pathcast.errors import Exit, PathcastError
from pathcast.runtime.state import ENDED, KINDS, Record, clean, records, run_dir, see

# how long a part may take to hear that it shall end, and again to end
PATIENCE_S = 10.0
_DETACH = "detach\n"

# --- the side that asks ------------------------------------------------------------------------------------------


class Daemon:
    """A handle on a running part, by its socket. In a `with` it ends the part, unless that was detached."""

    def __init__(self, record: Record, process: subprocess.Popen[str] | None = None) -> None:
        self.record = record
        self._process = process
        self._detached = False

    def ask(self, verb: str, timeout: float = 30.0, **arguments: Any) -> Any:
        """Sends a request and returns its result; raises what the part raised."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(timeout)
            try:
                s.connect(str(self.record.socket))
                s.sendall(json.dumps({"verb": verb, **arguments}).encode() + b"\n")
                with s.makefile() as lines:
                    line = lines.readline()
            except OSError as error:
                line, reason = "", str(error)
            else:
                reason = "it closed the connection"
        if not line:
            name = f"{self.record.kind} `{self.record.id}`"
            raise PathcastError("gone", f"{name} does not answer: {reason}", "see `pathcast net list`")
        return _unwrap(json.loads(line))

    def detach(self) -> None:
        """Lets a part that this process has started outlive it."""
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(_DETACH)
        except OSError as error:
            told = f"{self.record.kind} `{self.record.id}` has ended by itself: {error.strerror}"
            raise PathcastError("gone", told) from None
        _close(self._process)
        self._process, self._detached = None, True

    def down(self) -> list[str]:
        """Ends the part and waits until it has removed what it made; says what ran in its namespaces and was ended,
        and what could not be removed.

        A command, which has no socket, gets a SIGTERM.
        """
        pidfd = self.record.open()
        ended: list[str] = []
        try:
            if self.record.socket.exists():
                with contextlib.suppress(PathcastError):
                    ended = self.ask("down", PATIENCE_S) or []
            elif pidfd is not None:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(pidfd, signal.SIGTERM)
            if self._process is not None:
                _end(self._process)
            elif pidfd is not None:
                self._wait(pidfd)
        finally:
            if pidfd is not None:
                os.close(pidfd)
        return ended + [what for what in clean() if what.startswith(ENDED)]  # of one that was killed

    def _wait(self, pidfd: int) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(pidfd, selectors.EVENT_READ)
            if not selector.select(PATIENCE_S):
                pid = self.record.pid
                raise PathcastError(
                    "gone",
                    f"process {pid} of {self.record.kind} `{self.record.id}` does not end",
                    f"`kill -9 {pid}`, then `pathcast undo`",
                )

    def __enter__(self) -> Daemon:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._detached:
            self.down()


def _unwrap(answer: dict[str, Any]) -> Any:
    if "error" in answer:
        e = answer["error"]
        raise PathcastError(e["code"], e["message"], e["hint"], e["exit"])
    return answer["result"]


def start(kind: str, config: dict[str, Any]) -> Daemon:
    """Starts a part and waits until it stands. It ends with the process that started it, or is detached."""
    process = subprocess.Popen(
        # -P, or Python would look for modules in the current directory first, which may be anybody's
        [sys.executable, "-I" if sys.flags.isolated else "-P", "-m", "pathcast.runtime.daemon", kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # a Ctrl-C at the terminal goes to the command, which then ends its parts
        text=True,
        bufsize=1,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(config) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if line:
            return Daemon(Record(**_unwrap(json.loads(line))), process)
    except BaseException:
        if _end(process):
            clean()
        raise
    _end(process)
    raise PathcastError("daemon", f"the {kind} process ended at its start with status {process.returncode}")


def _end(process: subprocess.Popen[str]) -> bool:
    """Tells a part to end and waits for it; says whether it took so long that it was killed."""
    _close(process)
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # with the programs that it waits for
        process.wait()
        return True
    return False


def _close(process: subprocess.Popen[str]) -> None:
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if stream is not None:
                stream.close()


def find(kind: str, id: str) -> Daemon:
    """The living part of that name; refuses others with the names that exist."""
    living = [r for r in records(kind) if r.alive]
    for record in living:
        if record.id == id:
            return Daemon(record)
    names = ", ".join(r.id for r in living) or "none"
    what = KINDS.get(kind, kind)
    if not living:
        see(f"{what}s", f"pathcast {kind} …")
    raise PathcastError("unknown", f"there is no {what} `{id}`; running: {names}", None, Exit.USAGE)


# --- the side that answers ---------------------------------------------------------------------------------------


def _document_of(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


class Part:
    """What a kind of part must offer: a record before it makes anything, then `up`, verbs, and `close`."""

    kind: str
    # whether it may be asked by several at once
    concurrent = False

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config

    def record(self) -> Record:
        raise NotImplementedError  # every part names what it is about to make

    def up(self) -> None:
        """Makes what the record names."""

    def ending(self, asker: int | None) -> list[str]:
        """Before it is closed at the word of the process `asker`: ends what others run in it, and says whose it was, or
        what of it stays."""
        return []

    def close(self) -> None:
        """Removes it."""


class Net(Part):
    """An emulated network."""

    kind = "net"
    _asker: int | None = None

    def record(self) -> Record:
        name = self.config["name"]
        hosts = {host: f"pc-{name}-{host}" for host in ("client", "server")}
        about = {"scenario": self.config.get("source"), "hosts": hosts}
        return Record.of_this_process(self.kind, name, {"namespaces": list(hosts.values())}, about)

    def up(self) -> None:
        from pathcast import _native

        sets = [tuple(pair) for pair in self.config["sets"]]  # JSON knows lists only
        id, base, called = self.config["name"], self.config.get("base"), self.config["called"]
        self._network = _native.Network(self.config["text"], sets, id, base, called)

    def describe(self) -> dict[str, Any]:
        return _document_of(self._network.describe())

    def set(self, link: str, direction: str | None, changes: list[list[str]]) -> dict[str, Any]:
        return _document_of(self._network.set(link, direction, [(key, value) for key, value in changes]))

    def restart(self, lead_ns: int) -> int:
        return self._network.restart(lead_ns)

    def ledger(self, reset: bool = False) -> dict[str, Any]:
        return _document_of(self._network.ledger(reset))

    def ending(self, asker: int | None) -> list[str]:
        self._asker = asker
        return self.record().end_inside(asker)

    def close(self) -> None:
        self.ending(self._asker)
        self._network.close()


class Serve(Part):
    """A far end that answers probes and receives transfers."""

    kind = "serve"

    def record(self) -> Record:
        return Record.of_this_process(self.kind, self.config["name"], {}, {"namespace": self.config.get("namespace")})

    def up(self) -> None:
        from pathcast import _native

        self._server = _native.Server(self.config.get("namespace"), json.dumps(self.config["server"]))

    def describe(self) -> dict[str, Any]:
        return _document_of(self._server.describe())

    def close(self) -> None:
        self._server.stop()


class Control(Part):
    """A controller in the kernel."""

    kind = "control"

    def record(self) -> Record:
        from pathcast import _native

        _native.kernel_ready()
        control = self.config["control"]
        self._name = _native.free_controller_name(control)
        about = {"control": control, "kernel_name": self._name, "version": _native.VERSION}
        id = f"{control.replace('_', '-')}-{os.getpid()}"
        return Record.of_this_process(self.kind, id, {"controllers": [self._name]}, about)

    def up(self) -> None:
        from pathcast import _native

        params = list(self.config["params"].items())
        self._loaded = _native.Controller.load(self.config["control"], params, self._name)

    def describe(self) -> dict[str, Any]:
        return _document_of(self._loaded.describe())

    def flows(self) -> dict[str, Any]:
        return _document_of(self._loaded.flows())

    def set(self, params: dict[str, int]) -> dict[str, Any]:
        return _document_of(self._loaded.set(list(params.items())))

    def close(self) -> None:
        self._loaded.unload()


class Steer(Part):
    """A controller of OpenFlow switches. What it has in them goes with it, unless it was told to keep it."""

    kind = "steer"
    concurrent = True

    def record(self) -> Record:
        return Record.of_this_process(self.kind, self.config["name"], {}, {})

    def up(self) -> None:
        from pathcast.steer.config import Config
        from pathcast.steer.controller import Controller
        from pathcast.steer.kept import place

        name = self.config["name"]
        self._keep, self._file = False, place(run_dir(), name)
        self._controller = Controller(Config.of(self.config["told"]), name, self._file)

    def begin(self, flows: Any, owner: Any = None) -> dict[str, Any]:
        from pathcast.steer.client import owner_of, plan_of

        return {"paths": list(self._controller.begin(plan_of(flows), owner_of(owner)).values())}

    def end(self, flows: Any) -> dict[str, Any]:
        from pathcast.steer.client import flow_of

        return {"ended": self._controller.end([flow_of(flow) for flow in flows])}

    def state(self) -> dict[str, Any]:
        return self._controller.state()

    def counters(self) -> dict[str, Any]:
        return self._controller.counters()

    def keep(self) -> None:
        self._keep = True

    def ending(self, asker: int | None) -> list[str]:
        from pathcast.steer.left import stays

        left = self._controller.close(self._keep)
        return [stays(self.config["name"], left, self._controller.listen, self._file)] if left else []

    def close(self) -> None:
        self._controller.close(self._keep)


PARTS = {part.kind: part for part in (Net, Serve, Control, Steer)}
# what a client may ask of a part; anything else is refused
VERBS = {"describe", "set", "restart", "ledger", "flows", "begin", "end", "state", "counters", "keep"}


class End:
    """An event that signals set: a pipe, since a handler may interrupt a lock's holder. Made in the main thread.

    The interpreter itself writes to the pipe, too: its handler does not run while the main thread sits in a read that
    the signal did not interrupt, be it that it came just before or was given to another thread.
    """

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        self.is_set = False
        os.set_blocking(self._write, False)
        signal.set_wakeup_fd(self._write)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self.set())

    def set(self) -> None:
        self.is_set = True
        os.write(self._write, b"x")

    def wait(self) -> None:
        os.read(self._read, 1)


def _document(error: Exception) -> dict[str, Any]:
    if isinstance(error, PathcastError):
        return error.document()
    return PathcastError("internal", "".join(traceback.format_exception_only(error)).strip()).document()


def _answer(part: Part, connection: socket.socket, lock: threading.Lock, end: End) -> None:
    with connection, contextlib.suppress(OSError), connection.makefile("rw") as stream:
        connection.settimeout(10)
        for line in stream:
            verb = ""
            try:
                request = json.loads(line)
                verb = request.pop("verb")
                if verb == "down":
                    answer = {"result": part.ending(_peer(connection))}
                elif verb in VERBS and hasattr(part, verb):
                    with contextlib.nullcontext() if part.concurrent else lock:
                        answer = {"result": getattr(part, verb)(**request)}
                else:
                    raise PathcastError("unknown", f"{part.kind} has no verb `{verb}`", None, Exit.USAGE)
            except Exception as error:  # one bad request must not end the part
                answer = _document(error)
            try:
                stream.write(json.dumps(answer) + "\n")
                stream.flush()
            finally:
                if verb == "down":  # the process waits for no answer that is on its way
                    end.set()


def _peer(connection: socket.socket) -> int:
    """The process at the other end; 0 where it cannot be seen from here."""
    return int(struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])


def _listen(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    mask = os.umask(0o177)
    try:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        listener.bind(str(path))
    finally:
        os.umask(mask)
    listener.listen(16)
    return listener


def _accept(part: Part, listener: socket.socket, end: End) -> None:
    lock = threading.Lock()
    while not end.is_set:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_answer, args=(part, connection, lock, end), daemon=True).start()


def _watch_stdin(end: End) -> None:
    """Ends the part with whoever started it, unless that one lets it go."""
    while line := sys.stdin.readline():
        if line == _DETACH:
            null = os.open(os.devnull, os.O_RDWR)
            for fd in range(3):
                os.dup2(null, fd)
            return
    end.set()


def _made(kind: str, config: dict[str, Any]) -> Part:
    if kind == Net.kind and config.get("scenario", {}).get("switches"):
        from pathcast.runtime.switched import SwitchedNet

        return SwitchedNet(config)
    return PARTS[kind](config)


def main(kind: str) -> int:
    """Runs one part until it is told to end."""
    end = End()
    line = sys.stdin.readline()
    if not line:
        return 1  # whoever started it has gone
    # from now on: what is being built when that one goes is taken down again
    threading.Thread(target=_watch_stdin, args=(end,), daemon=True).start()
    config = json.loads(line)
    try:
        part = _made(kind, config)
        record = part.record()
        record.claim()
    except Exception as error:
        _say(_document(error))
        return 1
    try:
        part.up()  # one that fails has removed what it had made
        try:
            listener = _listen(record.socket)
        except BaseException:
            part.close()
            raise
    except Exception as error:
        record.forget()
        _say(_document(error))
        return 1
    try:
        threading.Thread(target=_accept, args=(part, listener, end), daemon=True).start()
        _say({"result": vars(record)})
        end.wait()
    finally:
        listener.close()
        part.close()
        record.remove()
    return 0


def _say(answer: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # nobody is there any more, and the standard input says so too
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    status = main(sys.argv[1])
    sys.stdout.flush()
    os._exit(status)  # daemon threads may sit in a read of standard input
