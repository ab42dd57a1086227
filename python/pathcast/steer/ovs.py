"""Open vSwitch with its userspace datapath in a network namespace: own processes, database, directory and sockets.

The system's own service is neither asked nor touched. Both processes get a SIGKILL from the kernel when whoever started
them dies. Bridges speak OpenFlow 1.3 only and fail secure: without a controller their flows stay, and go on.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from pathcast.errors import PathcastError, missing, usage

PACKAGE = "openvswitch-switch"
PROGRAMS = ("ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-appctl")
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
# how long a process may take to answer, and to end
PATIENCE_S = 10.0
# names of devices in Linux
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,14}")
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
# what a port's socket may hold: some 500 super-packets of 64 KB. The default holds three, and what is more is lost
ROOM_BYTES = 64 << 20
# of Linux, for those that Python does not name
_PIDFD_GETFD, _SO_SNDBUFFORCE, _SO_RCVBUFFORCE, _SO_DOMAIN = 438, 32, 33, 39


def lacking() -> list[str]:
    """The programs of Open vSwitch that this host does not have."""
    return [name for name in PROGRAMS if shutil.which(name, path=_PATH) is None]


def check() -> None:
    """Raises PathcastError (exit 5) where Open vSwitch is not installed."""
    if names := lacking():
        raise missing(f"Open vSwitch is not installed: no {', '.join(names)}", f"install the Debian package {PACKAGE}")


class Switches:
    """The switches of one namespace, which must exist; `directory` is made, and removed at `close`."""

    def __init__(self, namespace: str, directory: Path, large: bool = False) -> None:
        """large: super-packets (TSO) pass whole, over ports that take them, which have to do the checksums too; and the
        datapath goes before other programs of this machine, as a switch's own processor would.
        """
        self.namespace, self.directory, self.large = namespace, directory, large
        self.bridges: list[str] = []
        self._running: list[subprocess.Popen[bytes]] = []

    def up(self) -> None:
        """Starts database and datapath; what was begun is removed where that fails. Raises exit 5 or 1."""
        check()
        self.directory.mkdir(mode=0o700)
        try:
            # a unix socket's path holds 107 bytes, so names are short
            self._call("ovsdb-tool", "create", f"{self.directory}/db", str(SCHEMA))
            self._spawn("ovsdb-server", f"{self.directory}/db", f"--remote=punix:{self._socket}")
            self._until(self._socket)
            self._vsctl("--no-wait", "init")
            if self.large:
                self._vsctl("--no-wait", "set", "open_vswitch", ".", "other_config:userspace-tso-enable=true")
            self._spawn("ovs-vswitchd", f"unix:{self._socket}")
            if self.large:
                with contextlib.suppress(PermissionError):
                    os.sched_setscheduler(self._running[-1].pid, os.SCHED_FIFO, os.sched_param(1))
            self._vsctl("show")
        except BaseException:
            self.close()
            raise

    def add(self, bridge: str, ports: Sequence[str | None], *, number: int, flows: int | None = None) -> None:
        """Makes a switch of the namespace's devices: OpenFlow ports 1, 2, … in order, None for one that is not used;
        `number` is its datapath id.

        flows: most entries of its table; what is more is refused, not evicted. Raises exit 2 for names that no device
        can have or a number out of range, 1 where the switch cannot use a device.
        """
        used = [(at, port) for at, port in enumerate(ports, 1) if port is not None]
        for name in (bridge, *(port for _, port in used)):
            if not _NAME.fullmatch(name):
                raise usage(f"`{name}` is not the name of a device: 1 to 15 letters, digits, `_` and `-`")
        if bridge in self.bridges:
            raise usage(f"there is a switch `{bridge}` already")
        if not 1 <= number < 1 << 48:
            raise usage(f"datapath id {number}: allowed are 1 to {(1 << 48) - 1}")
        if flows is not None and not 0 <= flows <= 1_000_000:
            raise usage(f"a table of {flows} flows: allowed are 0 to 1000000")
        words = ["add-br", bridge, "--", "set", "bridge", bridge, "datapath_type=netdev", "protocols=OpenFlow13"]
        words += ["fail_mode=secure", f"other-config:datapath-id={number:016x}"]
        # in-band rules would be hidden ones of its own
        words += ["other-config:disable-in-band=true"]
        if flows is not None:
            words += ["--", "--id=@t", "create", "flow_table", f"flow_limit={flows}", "overflow_policy=refuse"]
            words += ["--", "set", "bridge", bridge, "flow_tables:0=@t"]
        for at, port in used:
            words += ["--", "add-port", bridge, port, "--", "set", "interface", port, f"ofport_request={at}"]
        self._vsctl(*words)
        if not self.bridges:
            # the datapath keeps an answer for all flows alike, and takes a new entry in only later, after its barrier
            control = f"--target={self.directory}/ovs-vswitchd.ctl"
            self._call("ovs-appctl", control, f"--timeout={PATIENCE_S:.0f}", "upcall/disable-megaflows")
        self.bridges.append(bridge)
        for at, port in used:
            found = self._vsctl("get", "interface", port, "ofport", "error").split("\n")
            if found[0] != str(at):
                reason = found[1].strip('"') if len(found) > 1 and found[1] != "[]" else f"it is port {found[0]}"
                self.bridges.remove(bridge)
                self._vsctl("del-br", bridge)
                raise PathcastError("switch", f"switch `{bridge}` cannot have `{port}` as its port {at}: {reason}")
        self._widen()

    def control(self, bridge: str, *targets: str) -> None:
        """Tells a switch its controllers, as `tcp:127.0.0.1:6653` or, of any namespace, `unix:PATH`."""
        words, made = [], []
        for at, target in enumerate(targets):
            if target.startswith("unix:"):
                # the only unix socket that it connects to
                way = self.directory / f"{bridge}.controller{at or ''}"
                way.unlink(missing_ok=True)
                way.symlink_to(Path(target.removeprefix("unix:")).absolute())
                target = f"unix:{way}"
            # one that comes again is found within a second, not eight
            words += [f"--id=@c{at}", "create", "controller", f'target="{target}"', "max_backoff=1000", "--"]
            made.append(f"@c{at}")
        self._vsctl("--", *words, "set", "bridge", bridge, f"controller={','.join(made)}")

    def management(self, bridge: str) -> str:
        """Where a switch listens for OpenFlow of programs on this host."""
        return f"unix:{self.directory}/{bridge}.mgmt"

    def processes(self) -> list[int]:
        """The pids of what runs."""
        return [one.pid for one in self._running if one.poll() is None]

    def close(self) -> None:
        """Ends both processes and removes the directory; to be called any number of times."""
        for one in reversed(self._running):
            one.terminate()
        for one in reversed(self._running):
            try:
                one.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()
        self._running.clear()
        self.bridges.clear()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _widen(self) -> None:
        """Gives the ports' sockets room: a switch that waits for a processor must not lose packets."""
        pid = self._running[-1].pid
        libc, pidfd = ctypes.CDLL(None, use_errno=True), os.pidfd_open(pid)
        try:
            for name in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    if not os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:"):
                        continue
                    fd = libc.syscall(_PIDFD_GETFD, pidfd, int(name), 0)
                    if fd < 0:
                        raise OSError(ctypes.get_errno(), "pidfd_getfd")
                    with socket.socket(fileno=fd) as one:
                        if one.getsockopt(socket.SOL_SOCKET, _SO_DOMAIN) == socket.AF_PACKET:
                            for option in (_SO_SNDBUFFORCE, _SO_RCVBUFFORCE):
                                one.setsockopt(socket.SOL_SOCKET, option, ROOM_BYTES)
        finally:
            os.close(pidfd)

    @property
    def _socket(self) -> Path:
        return self.directory / "s"

    def _environment(self) -> dict[str, str]:
        places = ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR")
        return {**os.environ, "PATH": _PATH, **dict.fromkeys(places, str(self.directory))}

    def _spawn(self, *words: str) -> None:
        log = self.directory / f"{words[0]}.log"
        inside = ["setpriv", "--pdeathsig", "KILL", "ip", "netns", "exec", self.namespace, *words]
        inside += ["--no-chdir", f"--unixctl={self.directory}/{words[0]}.ctl", "-vsyslog:off"]
        with log.open("wb") as file:
            self._running.append(
                subprocess.Popen(inside, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=self._environment())
            )

    def _until(self, path: Path) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not path.exists():
            if self._running[-1].poll() is not None or time.monotonic() > deadline:
                raise self._failed("ovsdb-server does not start")
            time.sleep(0.01)

    def _vsctl(self, *words: str) -> str:
        return self._call("ovs-vsctl", f"--db=unix:{self._socket}", f"--timeout={PATIENCE_S:.0f}", *words)

    def _call(self, *words: str) -> str:
        done = subprocess.run(words, capture_output=True, text=True, env=self._environment())
        if done.returncode:
            raise self._failed(f"{words[0]} failed: {done.stderr.strip() or f'status {done.returncode}'}")
        return done.stdout.strip()

    def _failed(self, told: str) -> PathcastError:
        lines = []
        for log in sorted(self.directory.glob("*.log")):
            with contextlib.suppress(OSError):
                # INFO is of no use to who asks why
                lines += [line for line in log.read_text(errors="replace").splitlines() if "|INFO|" not in line][-3:]
        return PathcastError("switch", "; ".join([told, *lines]))
