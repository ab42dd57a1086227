"""What this machine can do for pathcast: each check tries the thing itself, none reads a version and hopes."""

from __future__ import annotations

import os
import platform
import secrets
import shutil
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OK, DEGRADED, MISSING = "ok", "degraded", "missing"
_MPTCP = 262
_CAP_NET_ADMIN, _CAP_SYS_ADMIN = 12, 21


@dataclass(frozen=True)
class Check:
    """One line of the report. `needed_for` names what does not work without it; `mend` says how to get it."""

    name: str
    status: str
    detail: str
    needed_for: str
    mend: str | None = None


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _capable(capability: int) -> bool:
    status = _read("/proc/self/status") or ""
    effective = next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), "0")
    return bool(int(effective, 16) >> capability & 1)


def kernel() -> Check:
    """Kernel release: 5.16 has MPTCP_FULL_INFO's relatives, 6.12 what the controllers need."""
    release = platform.release()
    numbers = tuple(int(x) for x in release.split("-")[0].split(".")[:2] if x.isdigit())
    if numbers >= (6, 5):
        return Check("kernel", OK, release, "everything")
    return Check("kernel", DEGRADED, release, "per-subflow statistics", "a kernel from 6.5 on")


def privilege() -> Check:
    """CAP_NET_ADMIN."""
    need = "world emu, choice of subflows, controllers"
    if _capable(_CAP_NET_ADMIN):
        return Check("privilege", OK, "CAP_NET_ADMIN", need)
    return Check("privilege", MISSING, "no CAP_NET_ADMIN", need, "run as root")


def enters_namespaces() -> bool:
    """Whether this process may enter a network namespace: CAP_SYS_ADMIN."""
    return _capable(_CAP_SYS_ADMIN)


def ip_program() -> Check:
    """The program `ip`."""
    found = shutil.which("ip", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if found:
        return Check("iproute2", OK, found, "world emu")
    return Check("iproute2", MISSING, "no program `ip`", "world emu", "apt-get install iproute2")


def switches() -> Check:
    """Open vSwitch's programs, whose service need not run."""
    from pathcast.steer.ovs import PACKAGE, lacking

    need = "switches in namespaces"
    if names := lacking():
        return Check("openvswitch", MISSING, f"no {', '.join(names)}", need, f"apt-get install {PACKAGE}")
    return Check("openvswitch", OK, "its programs", need)


def namespaces() -> Check:
    """Makes and removes a network namespace."""
    name = f"pc-doctor-{secrets.token_hex(3)}"
    try:
        made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
        if made.returncode == 0:
            return Check("namespaces", OK, "made and removed one", "world emu")
        return Check("namespaces", MISSING, made.stderr.strip(), "world emu", "run as root, outside of a container")
    except FileNotFoundError:
        return Check("namespaces", MISSING, "no program `ip`", "world emu", "apt-get install iproute2")
    finally:
        if Path("/run/netns", name).exists():
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)


def tun() -> Check:
    """Opens /dev/net/tun."""
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError as error:
        mend = "modprobe tun; in a container, pass /dev/net/tun in; run as root"
        return Check("tun", MISSING, f"/dev/net/tun: {error.strerror}", "world emu", mend)
    return Check("tun", OK, "/dev/net/tun", "world emu")


def mptcp() -> Check:
    """Makes a Multipath TCP socket."""
    need = "transfers over several paths"
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, _MPTCP).close()
    except OSError as error:
        mend = "sysctl -w net.mptcp.enabled=1"
        if not Path("/proc/sys/net/mptcp").exists():
            mend = "a kernel built with CONFIG_MPTCP (Debian's are)"
        return Check("mptcp", MISSING, error.strerror or str(error), need, mend)
    return Check("mptcp", OK, f"net.mptcp.enabled={_read('/proc/sys/net/mptcp/enabled')}", need)


def path_manager() -> Check:
    """Whether the choice of subflows can be ours."""
    managers = _read("/proc/sys/net/mptcp/available_path_managers")
    old = _read("/proc/sys/net/mptcp/pm_type")
    need = "choosing subflows by address pair"
    if _read("/proc/sys/net/mptcp/path_manager") == "userspace":
        detail = (
            "net.mptcp.path_manager is `userspace`: other programs get no further subflows (left by a killed process?)"
        )
        return Check("path manager", DEGRADED, detail, need, "sysctl -w net.mptcp.path_manager=kernel")
    if (managers and "userspace" in managers) or old is not None:
        return Check("path manager", OK, managers or f"pm_type={old}", need)
    return Check("path manager", MISSING, "no user-space path manager", need, "a kernel from 5.19 on")


def controllers() -> Check:
    """Congestion controllers of the kernel."""
    available = (_read("/proc/sys/net/ipv4/tcp_available_congestion_control") or "").split()
    default = _read("/proc/sys/net/ipv4/tcp_congestion_control")
    detail = f"{' '.join(available)}; default {default}"
    if {"reno", "cubic"} <= set(available):
        return Check("controllers", OK, detail, "--control")
    return Check("controllers", DEGRADED, detail, "--control cubic", "modprobe tcp_cubic")


def realtime() -> Check:
    """Asks for SCHED_FIFO in a thread of its own process."""
    pid = os.fork()
    if pid == 0:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        except OSError:
            os._exit(1)
        os._exit(0)
    granted = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    need = "an emulator that keeps its time (release errors below 0.2 ms, not several ms)"
    if granted:
        return Check("real-time threads", OK, "SCHED_FIFO", need)
    mend = "CAP_SYS_NICE, and the root cgroup where RT_GROUP_SCHED is set"
    return Check("real-time threads", DEGRADED, "SCHED_FIFO is refused", need, mend)


def wakeups() -> Check:
    """Whether real-time threads wake up in time now, with the processors kept awake as the emulator keeps them."""
    from pathcast.machine import late_share

    late = late_share(500)
    need = "an emulator that keeps its time"
    if late <= 0.01:
        return Check("wake-ups", OK, f"{100 * late:.1f} % of real-time wake-ups more than 1 ms late", need)
    detail = f"{100 * late:.1f} % of real-time wake-ups are more than 1 ms late"
    mend = "leave the machine alone; on a virtual machine, ask for processors of its own"
    return Check("wake-ups", DEGRADED, detail, need, mend)


def bpf() -> Check:
    """Type information of the kernel, and the privilege to load programs."""
    need = "the papers' controllers in the kernel"
    if not Path("/sys/kernel/btf/vmlinux").exists():
        return Check("bpf", MISSING, "no /sys/kernel/btf/vmlinux", need, "a kernel built with CONFIG_DEBUG_INFO_BTF")
    from pathcast import _native
    from pathcast.errors import PathcastError

    try:
        _native.kernel_ready()
    except PathcastError as error:
        return Check("bpf", MISSING, error.message, need, error.hint)
    return Check("bpf", OK, "BTF, CAP_BPF and struct_ops for controllers", need)


def compiler() -> Check:
    """Compiles an empty program for the kernel."""
    need = "building pathcast with the papers' controllers for the kernel"
    command = ["clang", "-target", "bpf", "-x", "c", "-c", "-o", os.devnull, "-"]
    try:
        done = subprocess.run(command, input="", capture_output=True, text=True)
    except OSError:
        return Check("clang", DEGRADED, "no program `clang`", need, "apt-get install clang")
    if done.returncode == 0:
        return Check("clang", OK, "compiles for the kernel", need)
    return Check("clang", DEGRADED, done.stderr.strip(), need, "a clang with the target bpf (Debian's has it)")


def cgroup() -> Check:
    """A cgroup-v2 mount."""
    need = "`run`: a program under a controller"
    for line in (_read("/proc/self/mountinfo") or "").splitlines():
        before, _, after = line.partition(" - ")
        if after.startswith("cgroup2 "):
            return Check("cgroup v2", OK, before.split()[4], need)
    return Check("cgroup v2", DEGRADED, "not mounted", need, "mount -t cgroup2 none /sys/fs/cgroup/unified")


def clock() -> Check:
    """Whether the kernel believes its clock to be synchronised."""
    from pathcast.machine import clock_state

    state = clock_state()
    need = "absolute one-way delays between hosts"
    if state["synchronised"]:
        return Check("clock", OK, f"synchronised within {state['maximum_error_s'] * 1e3:.1f} ms", need)
    return Check("clock", DEGRADED, "not synchronised", need, "run chrony or ptp4l")


def processors() -> Check:
    """Two are what the emulator's numbers were measured on."""
    count, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    need = "an emulator that keeps its time"
    if count >= 2:
        return Check("processors", OK, f"{count}, load {load:.1f}", need)
    return Check("processors", DEGRADED, f"{count}", need, "two or more processors")


def packages() -> Check:
    """The Python packages of the extras."""
    from importlib.util import find_spec

    from pathcast.errors import install, on_index

    lacking = [n for n in ("numpy", "sklearn", "matplotlib", "pyarrow") if find_spec(n) is None]
    if lacking:
        return Check("python packages", MISSING, f"no {', '.join(map(on_index, lacking))}", "demo", install(lacking))
    return Check("python packages", OK, "prediction and plots", "demo")


def history() -> Check:
    """The history can be read, and nothing waits for it."""
    from pathcast.errors import PathcastError
    from pathcast.history import place
    from pathcast.history.spool import Spool
    from pathcast.history.store import Store

    need = "recording what is measured and sent"
    try:
        where = place.find()
        if where is None:
            return Check("history", OK, f"{place.ENVIRONMENT}={place.OFF}", need)
        store, waiting = Store(where), len(Spool(where.spool))
        if store.exists:
            with store.reading():
                pass
        store.close()
    except PathcastError as error:
        return Check("history", DEGRADED, error.message, need, error.hint or f"{place.ENVIRONMENT} names another one")
    detail = where.shown if store.exists else f"{where.shown}, nothing yet"
    if waiting:
        mend = "`pathcast history list` takes them there"
        acts = "1 act waits" if waiting == 1 else f"{waiting} acts wait"
        return Check("history", DEGRADED, f"{detail}; {acts} in {where.spool}", need, mend)
    return Check("history", OK, detail, need)


CHECKS: tuple[Callable[[], Check], ...] = (
    kernel,
    privilege,
    ip_program,
    switches,
    namespaces,
    tun,
    mptcp,
    path_manager,
    controllers,
    realtime,
    wakeups,
    processors,
    bpf,
    compiler,
    cgroup,
    clock,
    packages,
    history,
)


def run() -> list[Check]:
    """Every check, in order."""
    return [check() for check in CHECKS]


def changed() -> list[dict[str, Any]]:
    """What pathcast has changed on this host, living or left behind."""
    from pathcast.control import kernel
    from pathcast.runtime import state
    from pathcast.steer import left

    parts = [
        {"kind": r.kind, "id": r.id, "pid": r.pid, "alive": r.alive, "made": r.made, "about": r.about}
        for r in state.records()
    ]
    pins = [
        {
            "kind": "controller",
            "id": i.kernel_name,
            "pid": None,
            "alive": not i.stale,
            "made": {"pins": [i.path]},
            "about": {"control": i.name, "version": i.version},
        }
        for i in kernel.instances()
        if i.path is not None
    ]
    recorded = [r.id for r in state.records("steer")]
    entries = [
        {
            "kind": "steer",
            "id": name,
            "pid": None,
            "alive": False,
            "made": {"entries": [f"entries in {switch}" for switch in switches]},
            "about": {},
        }
        for name, switches in left.names(state.run_dir(), recorded).items()
    ]
    return parts + pins + entries


def missing(*names: str) -> list[Check]:
    """Those of the named checks that are missing: for tests that skip, and errors that explain."""
    return [c for c in run() if c.name in names and c.status == MISSING]
