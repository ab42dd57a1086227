"""The controller's sockets, clock and thread, around the machine: switches connect to it, any thread may ask it.

It listens at `tcp:ADDRESS:PORT`, or at `unix:PATH`, which switches in any network namespace of this host reach.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from pathcast.errors import PathcastError, missing, usage
from pathcast.machine import machine_id
from pathcast.steer import kept as keeping
from pathcast.steer.client import Owner
from pathcast.steer.config import Config
from pathcast.steer.machine import Machine, Ticket
from pathcast.steer.rules import COOKIE, Flow
from pathcast.steer.switch import Session

_CHUNK = 1 << 16
# what a switch may leave unread before it is sent away
_MOST_UNREAD = 1 << 24
# connections; a process may have 1024 descriptors
MOST_SWITCHES = 256
# longer than a switch may take for a barrier of every step
_ANSWER_S = 15.0
_SWEEP_S = 5.0


def cookie(name: str) -> int:
    """Of the entries of the controller of this name on this host, whatever other hosts are called."""
    host = machine_id() or socket.gethostname()
    return COOKIE | int.from_bytes(hashlib.sha256(f"pathcast steer\0{host}\0{name}".encode()).digest()[:4], "big")


def listener(target: str) -> tuple[socket.socket, str]:
    """A socket that switches connect to, and its target as they are told it; port 0: the system's choice.

    Raises PathcastError: exit 2 for what is no target, 1 (`in-use`) where somebody listens there, 5 without the right.
    """
    kind, _, place = target.partition(":")
    if kind == "unix" and place:
        return _unix(Path(place)), target
    host, _, port = place.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    try:
        if kind != "tcp" or not port.isdecimal() or not 0 <= int(port) <= 65535:
            raise ValueError
        version = ip_address(bare).version
    except ValueError:
        told = f"`{target}` is no place to listen at: allowed are tcp:ADDRESS:PORT, tcp:[ADDRESS]:PORT, unix:PATH"
        raise usage(told) from None
    made = socket.socket(socket.AF_INET if version == 4 else socket.AF_INET6)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    _bind(made, (bare, int(port)), target)
    return made, f"tcp:{host}:{made.getsockname()[1]}"


def _unix(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(OSError):
        probe.connect(str(path))
        made.close()
        raise PathcastError("in-use", f"somebody listens at unix:{path}", "end it, or choose another --listen")
    with contextlib.suppress(OSError):
        if path.is_socket():
            path.unlink()  # of one that was killed
    mask = os.umask(0o177)
    try:
        _bind(made, str(path), f"unix:{path}")
    finally:
        os.umask(mask)
    return made


def _bind(made: socket.socket, address: Any, target: str) -> None:
    try:
        made.bind(address)
        made.listen(64)
        made.setblocking(False)
    except OSError as error:
        made.close()
        if error.errno == errno.EADDRINUSE:
            told = f"somebody listens at {target} already, another controller perhaps"
            raise PathcastError("in-use", told, "end it, or choose another --listen") from None
        if error.errno == errno.EACCES:
            raise missing(f"no right to listen at {target}", "run as root, or choose another --listen") from None
        raise PathcastError("listen", f"cannot listen at {target}: {error.strerror or error}") from None


def _answer(future: Future[Any], result: Any = None, error: BaseException | None = None) -> bool:
    """Gives a request its answer; False where nobody waits for it any more."""
    if not future.set_running_or_notify_cancel():
        return False
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
    return True


class _Connection:
    """A switch's socket and its session."""

    def __init__(self, sock: socket.socket, session: Session) -> None:
        self.socket, self.session = sock, session


class Controller:
    """name: by which it knows its own entries again; file: where it writes what the next one of its name needs.

    sweep: it takes over nothing, to remove what is there.
    """

    def __init__(self, config: Config, name: str = "steer", file: Path | None = None, sweep: bool = False) -> None:
        kept = keeping.load(file) if file is not None else None
        self._listener, listen = listener(config.listen)
        self._file = file
        # the host may be called otherwise by now
        mark = kept.cookie if kept is not None else cookie(name)
        told, known = replace(config, listen=listen), kept
        if sweep and kept is not None:
            known = keeping.Kept(switches=kept.switches)
        self._written = known
        self._sweeps = sweep
        self.machine = Machine(told, mark, secrets.token_bytes(16), known, time.monotonic())
        self.listen = listen
        self._connections: dict[Session, _Connection] = {}
        self._calls: list[tuple[Callable[[float], Ticket | None], Future[Any]]] = []
        self._futures: dict[int, tuple[Ticket, Future[Any]]] = {}
        self._lock = threading.Lock()
        self._over, self._closed, self._why = False, False, "the controller has ended"
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        self._keep()
        self._thread = threading.Thread(target=self._run, name="steer", daemon=True)
        self._thread.start()

    # --- any thread ------------------------------------------------------------------------------------------------

    def begin(self, plan: Mapping[Flow, str], owner: Owner | None = None) -> dict[Flow, str]:
        """As `client.Client.begin` has it; without an owner the flows stay."""
        found = self._ask(lambda now: self.machine.begin(plan, owner, now), withdraws=True)
        return dict(zip(plan, found["paths"], strict=True))

    def end(self, flows: Iterable[Flow]) -> int:
        """Flows that have ended; how many there were."""
        gone = list(flows)
        return int(self._ask(lambda now: self.machine.end(gone, now))["ended"])

    def state(self) -> dict[str, Any]:
        """Switches, links, hosts, paths, flows, and what is wrong."""
        return dict(self._ask(lambda now: Ticket(result=self.machine.state())))

    def counters(self) -> dict[str, Any]:
        """Bytes and packets by path and by flow, of this moment."""
        return dict(self._ask(self.machine.count))

    def sweep(self) -> None:
        """Removes its entries from the switches that are connected; what was planned is forgotten."""
        self._ask(self.machine.clear, _SWEEP_S)

    def close(self, keep: bool = False) -> list[str]:
        """Ends it; its entries are removed from the switches that are there, unless they shall be kept. Says from which
        they could not be removed, which the next one of its name, and `undo`, still know."""
        if self._closed:
            return []
        self._closed = True
        if not keep:
            with contextlib.suppress(PathcastError):
                self.sweep()
        with self._lock:
            self._over = True
        self._wake()
        self._thread.join()
        for one in list(self._connections.values()):
            one.socket.close()
        self._selector.close()
        self._listener.close()
        if self.listen.startswith("unix:"):
            Path(self.listen.removeprefix("unix:")).unlink(missing_ok=True)
        left = {} if keep else self.machine.switches.holding()
        if self._file is not None and not keep:
            with contextlib.suppress(OSError):  # what is written there names them, too
                if left:
                    keeping.store(self._file, keeping.Kept(self.listen, self.machine.cookie, left))
                else:
                    self._file.unlink(missing_ok=True)
        os.close(self._wake_read)
        os.close(self._wake_write)
        return list(left)

    def __enter__(self) -> Controller:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(
        self, call: Callable[[float], Ticket | None], patience_s: float | None = None, withdraws: bool = False
    ) -> Any:
        """withdraws: what is asked for is undone when its answer comes too late."""
        patience_s = _ANSWER_S if patience_s is None else patience_s
        future: Future[Any] = Future()
        with self._lock:
            if self._over:
                raise PathcastError("gone", self._why)
            self._calls.append((call, future))
        self._wake()
        try:
            return future.result(patience_s)
        except TimeoutError:
            if withdraws and not future.cancel():
                return future.result()  # it has come by now
            self._wake()
            raise PathcastError("gone", f"the controller has not answered within {patience_s:.0f} s") from None

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_write, b"x")

    # --- its own thread --------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._loop()
        except BaseException as error:  # a fault of ours: whoever asks hears of it; switches go on without us
            self._why = f"the controller has ended by a fault of its own: {error!r}"
            raise
        finally:
            with self._lock:
                self._over, calls = True, self._calls
            for future in [one for _, one in (*self._futures.values(), *calls)]:
                _answer(future, error=PathcastError("gone", self._why))
            # switches see at once that nobody is there, whoever closes the rest
            for one in (self._listener, *(one.socket for one in self._connections.values())):
                one.close()

    def _loop(self) -> None:
        while not self._over:
            wait = self.machine.wake_at() - time.monotonic()
            ready = self._selector.select(max(0.0, wait))
            for chosen, events in ready:
                if chosen.fileobj is self._listener:
                    self._accept()
                elif chosen.data is None:
                    os.read(self._wake_read, _CHUNK)
                else:
                    self._serve(chosen.data, events)
            self._take_calls()
            # by now everything is read that came while this process may have been asleep
            if time.monotonic() >= self.machine.wake_at():
                self.machine.tick(time.monotonic())
                self._keep()
            self._finish()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            sock, _ = self._listener.accept()
            if len(self._connections) >= MOST_SWITCHES:
                # whoever says nothing makes room
                if (oldest := self.machine.oldest_stranger()) is None:
                    sock.close()
                    return
                self._drop(oldest)
                self.machine.lost(oldest, "", time.monotonic())
            sock.setblocking(False)
            if sock.family != socket.AF_UNIX:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            one = _Connection(sock, self.machine.connected(time.monotonic()))
            self._connections[one.session] = one
            self._selector.register(sock, selectors.EVENT_READ, one)

    def _serve(self, one: _Connection, events: int) -> None:
        if one.session not in self._connections or not events & selectors.EVENT_READ:
            return
        try:
            data, why = one.socket.recv(_CHUNK), "it closed the connection"
        except BlockingIOError:
            return
        except OSError as error:
            data, why = b"", str(error.strerror)
        if data:
            self.machine.received(one.session, data, time.monotonic())
        else:
            self._drop(one.session)
            self.machine.lost(one.session, why, time.monotonic())

    def _take_calls(self) -> None:
        with self._lock:
            calls, self._calls = self._calls, []
        for key, (ticket, future) in list(self._futures.items()):
            if future.cancelled():
                del self._futures[key]
                self.machine.withdraw(ticket, time.monotonic())
        for call, future in calls:
            if future.cancelled():
                continue
            try:
                asked = call(time.monotonic())
            except Exception as error:  # a request that cannot be read must not end the controller
                _answer(future, error=error)
                continue
            if asked is None:
                _answer(future)
            elif asked.result is not None:
                self._settle(asked, future)
            else:
                self._futures[id(asked)] = (asked, future)

    def _settle(self, ticket: Ticket, future: Future[Any]) -> None:
        """Answers a request; undoes it where nobody waits for it any more."""
        if not _answer(future, ticket.result, ticket.error):
            self.machine.withdraw(ticket, time.monotonic())

    def _finish(self) -> None:
        """Sends what is queued, closes what is over, writes down what has changed, answers."""
        for session in self.machine.closing:
            self._flush(session)  # why it is sent away
            self._drop(session)
        self.machine.closing.clear()
        for session in list(self._connections):
            self._flush(session)
        if self.machine.settled:
            self._keep()
        for ticket in self.machine.settled:
            _, future = self._futures.pop(id(ticket), (None, None))
            if future is not None:
                self._settle(ticket, future)
        self.machine.settled.clear()

    def _flush(self, session: Session) -> None:
        one = self._connections.get(session)
        if one is None:
            return
        try:
            if session.out:
                del session.out[: one.socket.send(session.out)]
        except BlockingIOError:
            pass
        except OSError as error:
            self._drop(session)
            self.machine.lost(session, str(error.strerror), time.monotonic())
            return
        if len(session.out) > _MOST_UNREAD:
            self._drop(session)
            self.machine.lost(session, "it reads nothing", time.monotonic())
            return
        writes = selectors.EVENT_WRITE if session.out else 0
        self._selector.modify(one.socket, selectors.EVENT_READ | writes, one)

    def _drop(self, session: Session) -> None:
        one = self._connections.pop(session, None)
        if one is not None:
            self._selector.unregister(one.socket)
            one.socket.close()

    def _keep(self) -> None:
        if self._file is None or self._sweeps:
            return
        kept = self.machine.kept()
        if kept != self._written:
            try:
                keeping.store(self._file, kept)
            except OSError as error:
                self.machine.note(f"cannot write {self._file}: {error.strerror}; a restart begins anew")
                return
            self._written = kept
