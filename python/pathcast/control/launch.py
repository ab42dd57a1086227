"""A program run under a controller: loads it, runs the program, joins what both have counted."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

from pathcast.control import kernel
from pathcast.control.watch import Watch
from pathcast.errors import PathcastError, usage
from pathcast.runtime.state import Record, clean, network_namespace, run_dir

if TYPE_CHECKING:
    from pathcast import _native
    from pathcast.runtime.daemon import Daemon
    from pathcast.steer.fabric import Fabric

# how often the measured available bandwidth is looked at: connections may be short
_LOOK_S = 0.25
# how long connections may take to be gone from the kernel after the program's end
_LAST_S = 0.5

# controllers of paced trains, and the rate above which TCP makes bunches of them
_TRAINS = ("imtcp", "imtcp_bg")
_BUNCHED_BPS = 24e6

Ends = tuple[str, str]


class Running:
    """A program that runs, for whoever steers it, from any thread."""

    def __init__(self, run: _native.Launch, controls: kernel.Controls) -> None:
        self._run, self._controls = run, controls
        self._names: dict[str, str] = {}
        self.record: Record | None = None

    def known(self, control: str | None, kernel_name: str | None) -> None:
        """What the kernel calls a controller that is loaded already."""
        if control is not None and kernel_name is not None:
            self._names[control] = kernel_name

    def kernel_name(self, control: str) -> str:
        """What the kernel calls it; loaded if it is not yet."""
        if control not in self._names:
            self._names[control] = self._controls.kernel_name(control) or control
        return self._names[control]

    def seen(self) -> dict[str, Any] | None:
        """Of every pair of addresses what was sent and received (`paths`), and by local address how many connections to
        other hosts are open (`open`); None where it does not run."""
        text = self._run.seen()
        found: dict[str, Any] | None = None if text is None else json.loads(text)
        return found

    def order(self, control: str, pace: int | None) -> None:
        """This controller from now on, and at most `pace` byte/s of each connection and subflow."""
        self._run.order(self.kernel_name(control), pace)

    def renew(self, addresses: Sequence[str]) -> None:
        """The lines have these addresses now, for the next `allow`."""
        if self.record is not None:  # before an endpoint of it is made
            made = self.record.made.setdefault("endpoints", [])
            made += [address for address in addresses if address not in made]
            self.record.tell({})
        self._run.renew(list(addresses))

    def allow(self, addresses: Sequence[str]) -> tuple[list[str], list[str]]:
        """These local addresses only, of those of the run; those of the others that stay as backups, since their
        endpoints are the user's, and those that stay since another run uses their endpoints."""
        return self._run.allow(list(addresses))

    def tell(self, progress: dict[str, Any]) -> None:
        """How far it is, for whoever looks at this host's runs."""
        if self.record is not None:
            self.record.tell({"progress": progress})

    def end(self) -> bool:
        """Tells the program, and what it has started, to end; whether it was there."""
        return self._run.end()

    def kill(self) -> bool:
        """Ends them at once; whether the program was there."""
        return self._run.kill()


class Steer(Protocol):
    """Who steers a run. first, pace: as `Running.allow` and `order` have them, before the program begins; controls:
    those that it may choose later."""

    @property
    def first(self) -> Sequence[str]: ...
    @property
    def pace(self) -> int | None: ...
    @property
    def controls(self) -> Sequence[str]: ...
    def beside(self, running: Running) -> AbstractContextManager[object]:
        """Lasts as long as the program."""
        ...


def launch(
    command: Sequence[str],
    control: str | None = None,
    sets: Sequence[str] = (),
    *,
    mptcp: bool = False,
    paths: Sequence[str] = (),
    user: str | None = None,
    steer: Steer | None = None,
    network: tuple[Fabric, Sequence[str]] | None = None,
    ended: Callable[[int, dict[str, Any] | None], object] | None = None,
    job: str | None = None,
) -> tuple[int, dict[str, Any]]:
    """Runs `command` to its end: its exit status, 128 + n after signal n, and the report ("pathcast.run/1").

    control: a controller of the register, which is loaded for this run with `sets` over its defaults, or any that the
    kernel has by its name there (`pathcast control load --pin` brings one). Standard streams are ours. To be called on
    the main thread. steer: changes lines, controller and pace while it runs. network: who is told of its subflows over
    a steered network, one for each of these paths; in place of `paths`. ended: hears of the status as soon as the
    program has ended, with what `Running.seen` tells. job: whose run it is, for others to read.

    Raises what `Launch::run` of crates/launch names; the exit of a command that cannot be run is 127
    or 126.
    """
    from pathcast import _native

    clean()
    with ExitStack() as stack:
        part, name = None, control
        if control in kernel.loadable() and control not in kernel.KERNELS_OWN:
            part = stack.enter_context(kernel.hold(control, kernel.parse_sets(control, sets)))
            name = part.record.about["kernel_name"]
        elif sets:
            raise usage("--set needs a --control that pathcast loads: " + ", ".join(kernel.loadable()))
        elif control is not None and control in {c["name"] for c in kernel.register()} - set(kernel.KERNELS_OWN):
            kernel.check(control)
        id = str(os.getpid())
        run = _native.Launch(id, list(command), run_dir(), name, mptcp, list(paths), user, steer is not None, network)
        running, first, pace = Running(run, stack.enter_context(closing(kernel.Controls()))), None, None
        if steer is not None:
            first, pace = list(steer.first), steer.pace
            running.known(control, name)
            for other in steer.controls:  # what cannot be loaded is said before the program begins
                running.kernel_name(other)
        about = {
            "command": list(command),
            "control": control,
            "namespace": network_namespace(),
            "steered": steer is not None,
            "job": job,
        }
        record = Record.of_this_process("run", id, json.loads(run.made()), about)
        record.claim()
        running.record = record
        stack.callback(record.forget)
        measured = _Measured(part) if part else None
        try:
            with (
                Watch(part, _LOOK_S, measured.see) if part and measured else nullcontext(),
                steer.beside(running) if steer is not None else nullcontext(),
            ):
                hears = None if ended is None else lambda status: ended(status, running.seen())
                status, text = run.run(first, pace, hears)
        except PathcastError as error:
            error.exit = getattr(error, "status", error.exit)  # 127, 126: as shells have them
            if error.code == "unknown-control":
                error.message += f"; pathcast has: {', '.join(kernel.loadable())}"
            raise
        document = json.loads(text)
        document["control"], document["kernel_name"] = control, name
        for path in document["paths"]:
            path["available_bps"] = measured.available(path["local"], path["remote"]) if measured else None
        document["controller"] = measured.counted() if measured else None
        document["notes"] += _bunched(control, document) if part else []
        try:
            stack.pop_all().close()
        except (PathcastError, OSError) as error:  # the program has run, and its status is what is asked for
            document["notes"].append(f"something is left: {error}; `pathcast undo` removes it")
        return status, document


def _bunched(control: str | None, document: dict[str, Any]) -> list[str]:
    """What a user should know whose devices take bunches of packets where the controller wants them one by one."""
    fast = {
        path["local"]
        for path in document["paths"]
        if path["bytes_sent"] * 8 > _BUNCHED_BPS * document["elapsed_s"] or (path["available_bps"] or 0) > _BUNCHED_BPS
    }
    if control not in _TRAINS or not fast:
        return []
    try:
        shown = subprocess.run(["ip", "-json", "-details", "address"], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []  # it is advice
    devices = [
        device["ifname"]
        for device in json.loads(shown)
        if device.get("gso_max_segs", 1) > 1 and fast & {a.get("local") for a in device.get("addr_info", [])}
    ]
    return [
        f"{control} measures well above {_BUNCHED_BPS / 1e6:.0f} Mbit/s only where packets leave one by one: "
        f"`ip link set dev {device} gso_max_segs 1`"
        for device in devices
    ]


class _Measured:
    """What a controller measures on each path, and what it has counted."""

    def __init__(self, part: Daemon) -> None:
        self._part = part
        self._available: dict[Ends, dict[int, int]] = {}

    def see(self, _time: float, flows: list[dict[str, Any]]) -> None:
        """Remembers the last result of each connection."""
        for flow in flows:
            if flow["available_bps"]:
                ends = (_host(flow["local"]), _host(flow["remote"]))
                self._available.setdefault(ends, {})[flow["id"]] = flow["available_bps"]

    def available(self, local: str, remote: str) -> int | None:
        """What the latest connection that measured on that path has found [bit/s]; None if none did."""
        found = self._available.get((local, remote))
        return found[max(found)] if found else None

    def counted(self) -> dict[str, Any] | None:
        """The controller's own counts: bytes of ended and of live flows, and what it could not do."""
        end = time.monotonic() + _LAST_S
        try:
            while (seen := self._part.ask("flows"))["flows"] and time.monotonic() < end:
                time.sleep(0.02)  # a live flow is shown as it was at an ACK before
            described = self._part.ask("describe")
        except PathcastError:
            return None
        flows = [*seen["ended"], *seen["flows"]]
        sums = {k: sum(f[k] for f in flows) for k in ("bytes_acked", "bytes_sent", "bytes_received")}
        return {"parameters": described["parameters"], "counts": described["counts"], **sums}


def _host(socket_address: str) -> str:
    """The address of `ADDRESS:PORT` or `[ADDRESS]:PORT`."""
    return socket_address.rpartition(":")[0].strip("[]")
