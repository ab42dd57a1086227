"""A run in the emulator: nginx and the background flow in the namespace `client`, readers of its pages in `server`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pathcast.errors import PathcastError, missing
from pathcast.runtime import daemon
from pathcast.worlds.emu import Emu, Topology
from pathcast.worlds.flows import Flow
from pathcast.worlds.results import Verdict

from . import fetch
from .simulated import PATH, asked, background, summary, topology

_PORT = 8080
_PATIENCE_S = 10.0
# the ledger is read so often
_EVERY_S = 0.2
# between the call and the pages' zero: the background flow connects within it
_LEAD_S = 1.0
_PROGRAMS = {"nginx": "nginx-light", "ip": "iproute2"}
_CONFIG = """\
daemon off;
master_process off;
pid {place}/nginx.pid;
error_log {place}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  sendfile on;
  keepalive_timeout 0;
  client_body_temp_path {place}/body;
  proxy_temp_path {place}/proxy;
  fastcgi_temp_path {place}/fastcgi;
  uwsgi_temp_path {place}/uwsgi;
  scgi_temp_path {place}/scgi;
  server {{ listen {address}:{port} backlog=1024; root {place}/pages; }}
}}
"""


def program(name: str) -> str:
    """Its path; raises PathcastError (exit 5) that names the Debian package."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if found is None:
        raise missing(f"no program {name}", f"apt-get install {_PROGRAMS[name]}")
    return found


@contextmanager
def web_server(namespace: str, address: str, sizes: set[int], control: str) -> Iterator[None]:
    """nginx with a page (a sparse file) of each size, under a congestion controller that the kernel has."""
    command = [program("ip"), "netns", "exec", namespace]
    subprocess.run([*command, "sysctl", "-qw", f"net.ipv4.tcp_congestion_control={control}"], check=True)
    with tempfile.TemporaryDirectory(prefix="pathcast-web-") as name:
        place = Path(name)
        (place / "pages").mkdir()
        for size in sizes:
            with open(place / "pages" / str(size), "wb") as page:
                page.truncate(size)
        for path in (place, place / "pages"):  # nginx's worker may be another user
            path.chmod(0o755)
        config = place / "nginx.conf"
        config.write_text(_CONFIG.format(place=place, address=address, port=_PORT))
        log = place / "error.log"
        server = subprocess.Popen([*command, program("nginx"), "-e", log, "-p", place, "-c", config])
        try:
            _await(lambda: (place / "nginx.pid").exists() or server.poll() is not None)
            if server.poll() is not None:
                raise PathcastError("web-server", f"nginx ended: {log.read_text().strip() or server.returncode}")
            yield
        finally:
            server.terminate()
            server.wait()


@contextmanager
def _reader(namespace: str, about: Mapping[str, Any]) -> Iterator[subprocess.Popen]:
    """fetch.py in its namespace, after its first page."""
    command = [program("ip"), "netns", "exec", namespace, sys.executable, fetch.__file__]
    reader = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    try:
        reader.stdin.write(json.dumps(about) + "\n")
        if not _answer(reader)["ready"]:
            raise PathcastError("web-server", "the first page was not fetched")
        yield reader
    finally:
        reader.kill()
        reader.wait()
        reader.stdin.close()
        reader.stdout.close()


def _answer(reader: subprocess.Popen) -> dict[str, Any]:
    line = reader.stdout.readline()
    if not line:
        raise PathcastError("web-client", "the program that fetches pages ended early")
    return json.loads(line)


def _await(so: Any) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not so():
        if time.monotonic() > deadline:
            raise PathcastError("web-server", f"nginx does not stand after {_PATIENCE_S:g} s")
        time.sleep(0.01)


class _Meter(threading.Thread):
    """What the bottleneck has carried towards the readers, over time; use it in a `with`."""

    def __init__(self, net: Emu) -> None:
        super().__init__(daemon=True)
        self.net, self.over, self.at, self.carried = net, threading.Event(), [], []
        self.failed: Exception | None = None

    def run(self) -> None:
        try:
            while not self.over.wait(_EVERY_S):
                self._read()
            self._read()  # so that the last reading is after all that is asked for
        except Exception as error:  # raised where the `with` ends: a thread's own goes nowhere
            self.failed = error

    def _read(self) -> None:
        ledger = self.net.ledger()
        links = {link["name"]: link["counters"] for group in ledger["groups"] for link in group["links"]}
        self.at.append(time.monotonic())
        self.carried.append(links["bottleneck/ab"]["carried"]["bytes"])

    def by(self, times: Any) -> Any:
        """IP bytes by these times of the monotonic clock, between readings in proportion; both of shape (n,).

        Raises PathcastError `meter` for a time after the last reading.
        """
        import numpy as np

        if not self.at or self.at[-1] < times[-1]:
            last = f"{times[-1] - self.at[-1]:.1f} s before the end" if self.at else "never"
            raise PathcastError("meter", f"the bottleneck was last read {last}")
        return np.interp(times, self.at, np.array(self.carried, dtype=float))

    def __enter__(self) -> _Meter:
        self.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.over.set()
        self.join()
        if self.failed is not None and kind is None:
            raise self.failed


def run(about: Mapping[str, Any]) -> dict[str, Any]:
    """Columns. Raises PathcastError: `late`, `missing` (a program), `flow`, `page`, `meter`, the server's."""
    import numpy as np

    for name in _PROGRAMS:
        program(name)
    wanted = asked(about)
    scenario = Topology.parse(topology(about) + background(about))
    with Emu(scenario) as net:
        hosts = daemon.find("net", net.name).record.about["hosts"]
        address = net.path(PATH).local[0]
        sizes = {fetch.FIRST_BYTES, *(size for _, size in wanted)}
        task = {"address": address, "port": _PORT, "pages": wanted}
        with (
            web_server(hosts["client"], address, sizes, about["web"]["control"]),
            _reader(hosts["server"], task) as reader,
            _Meter(net) as meter,
        ):
            zero = time.monotonic() + _LEAD_S
            reader.stdin.write(json.dumps({"at_ns": round(zero * 1e9), "until_s": about["end_s"]}) + "\n")
            own, verdict = _background(net, about, zero)
            told = _answer(reader)
    verdict.check()
    if told["failed"]:
        raise PathcastError("page", f"a page was not fetched: {told['failed']}")
    at = np.arange(0, about["pages_s"] + 1)
    total = meter.by(zero + at)
    values = summary(about, [tuple(page) for page in told["pages"]], at, total, np.array([own.carried(t) for t in at]))
    return values | {"retransmits": own.retransmits}


@dataclass(frozen=True)
class _Background:
    """The background flow; none: it carries nothing. Its clock began `ahead_s` before the pages'."""

    flow: Flow | None
    ahead_s: float
    mss: int
    packet: int

    def carried(self, t_s: float) -> float:
        """IP bytes of what was acknowledged by that time of the pages' clock."""
        return 0.0 if self.flow is None else self.flow.acked(t_s + self.ahead_s) * self.packet / self.mss

    @property
    def retransmits(self) -> int:
        """Segments."""
        return 0 if self.flow is None else round(self.flow.bytes_retransmitted / self.mss)


def _background(net: Emu, about: Mapping[str, Any], zero: float) -> tuple[_Background, Verdict]:
    """The background flow, or as much time without one."""
    packet = (about["mss"], about["packet"])
    if about["control"] is None:
        with net.judged() as verdict:
            time.sleep(max(0.0, zero + about["end_s"] - time.monotonic()))
        return _Background(None, 0.0, *packet), verdict
    result = net.flows(until=about["end_s"] + _LEAD_S)
    ahead_s = result.ended_s - (time.monotonic() - zero)
    flow = result.flow("bg1")
    if flow.error:
        raise PathcastError("flow", f"the background flow: {flow.error}")
    return _Background(flow, ahead_s, *packet), result.verdict
