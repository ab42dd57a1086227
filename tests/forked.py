"""Runs the command in a copy of an interpreter that has loaded it already: a process as any, without the time in which
it starts. Standard output and error, exit status, signals, environment and the interpreter's end are its own, and a
network namespace where it is to be in one."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

# what most commands need, and nothing that starts threads
LOADED = ("pathcast._native", "pydantic", "rich.table", "rich.progress", "sqlalchemy")
FDS = 3
# of <sched.h> and <sys/mount.h>
CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
MS_REC, MS_SLAVE, MNT_DETACH = 0x4000, 1 << 19, 2


class Forked:
    """The interpreter that is copied; it ends with this one."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        command = [sys.executable, Path(__file__), str(theirs.fileno())]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env={key: value for key, value in os.environ.items() if not key.startswith("PATHCAST_")}
            | {"COLUMNS": "200"},
            cwd="/",
        )
        theirs.close()
        self._socket, self._asking = ours, threading.Lock()

    def run(
        self, command: list[str], environment: dict[str, str], timeout_s: float, inside: str | None = None
    ) -> tuple[int, str, str]:
        """Status, standard output and standard error of `command`, run to its end in the network namespace `inside`."""
        (out, out_theirs), (err, err_theirs) = os.pipe(), os.pipe()
        ours, theirs = socket.socketpair()
        of = {"command": command, "environment": environment, "cwd": os.getcwd(), "inside": inside}
        asked = json.dumps(of).encode()
        with self._asking:  # several threads may ask at once
            socket.send_fds(self._socket, [len(asked).to_bytes(4, "big")], [out_theirs, err_theirs, theirs.fileno()])
            self._socket.sendall(asked)
        for fd in (out_theirs, err_theirs):
            os.close(fd)
        theirs.close()
        with ours:
            pid = int.from_bytes(_exactly(ours, 4), "big")
            told, deadline = {out: b"", err: b""}, time.monotonic() + timeout_s
            try:
                left = {out, err}
                while left:
                    ready = select.select(left, [], [], max(0.0, deadline - time.monotonic()))[0]
                    if not ready:
                        os.kill(pid, signal.SIGKILL)
                        raise subprocess.TimeoutExpired(command, timeout_s, told[out], told[err])
                    for fd in ready:
                        read = os.read(fd, 1 << 16)
                        told[fd] += read
                        if not read:
                            left.remove(fd)
            finally:
                os.close(out)
                os.close(err)
            status = os.waitstatus_to_exitcode(int.from_bytes(_exactly(ours, 4), "big"))
        return status, told[out].decode(), told[err].decode()

    def end(self) -> None:
        self._socket.close()
        self._process.wait()


def _exactly(sock: socket.socket, count: int) -> bytes:
    read = b""
    while len(read) < count:
        more = sock.recv(count - len(read))
        if not more:
            raise EOFError
        read += more
    return read


def enter(name: str) -> None:
    """Into a network namespace, with the /sys that tells of it: as `ip netns exec`."""
    libc = ctypes.CDLL(None, use_errno=True)

    def call(function: str, *arguments: object) -> None:
        if getattr(libc, function)(*arguments) != 0:
            raise OSError(ctypes.get_errno(), f"{function}: {os.strerror(ctypes.get_errno())}")

    with open(f"/run/netns/{name}") as namespace:
        call("setns", namespace.fileno(), CLONE_NEWNET)
    only_read = os.statvfs("/sys").f_flag & os.ST_RDONLY
    call("unshare", CLONE_NEWNS)
    call("mount", b"none", b"/", None, ctypes.c_ulong(MS_SLAVE | MS_REC), None)
    libc.umount2(b"/sys", MNT_DETACH)  # where there is one
    call("mount", name.encode(), b"/sys", b"sysfs", ctypes.c_ulong(only_read), None)


def serve(asking: socket.socket) -> list[str] | None:
    """In the copies: the words after the command's name. Here: None, when nobody asks any more."""
    running: dict[int, tuple[int, socket.socket]] = {}
    while True:
        for fd in select.select([asking, *running], [], [])[0]:
            if fd in running:
                pid, answer = running.pop(fd)
                answer.sendall(os.waitpid(pid, 0)[1].to_bytes(4, "big"))
                answer.close()
                os.close(fd)
                continue
            head, fds, _, _ = socket.recv_fds(asking, 4, FDS)
            if not head:
                return None
            asked = json.loads(_exactly(asking, int.from_bytes(head, "big")))
            out, err, answering = fds
            pid = os.fork()
            if pid == 0:
                for one in (asking, *(answer for _, answer in running.values())):
                    one.close()
                for number in running:
                    os.close(number)
                os.dup2(out, 1)
                os.dup2(err, 2)
                for number in fds:
                    os.close(number)
                if asked["inside"]:
                    enter(asked["inside"])
                os.chdir(asked["cwd"])
                os.environ.clear()
                os.environ.update(asked["environment"])
                sys.argv = asked["command"]
                return asked["command"][1:]
            answer = socket.socket(fileno=answering)
            os.close(out)
            os.close(err)
            answer.sendall(pid.to_bytes(4, "big"))
            running[os.pidfd_open(pid)] = pid, answer


def load() -> None:
    from importlib import import_module

    from typer.main import get_command

    from pathcast.cli import app, runner  # noqa: F401

    get_command(app.app)
    for name in LOADED:
        import_module(name)
    gc.collect()
    gc.freeze()  # the collector of a copy would write to every page, and so copy it


if __name__ == "__main__":
    sys.path.pop(0)  # as of the command, which no directory is added to
    load()
    words = serve(socket.socket(fileno=int(sys.argv[1])))
    if words is not None:
        from pathcast.cli import main

        sys.exit(main())
