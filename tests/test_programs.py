"""Unchanged programs in the background over an emulated path: what they send arrives, and is accounted for."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import subprocess
import sys

import pytest
from conftest import COMMAND, eventually

pytestmark = pytest.mark.privileged

BYTES = 6_000_000
ADDRESS = "10.77.1.1"

PUT = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_PUT(self):
        with open(sys.argv[1] + self.path, "wb") as file:
            left = int(self.headers["Content-Length"])
            while left:
                data = self.rfile.read(min(left, 1 << 16))
                file.write(data)
                left -= len(data)
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_):
        pass
http.server.HTTPServer(("", int(sys.argv[2])), Handler).serve_forever()
"""


def rsync(directory, port):
    config = directory / "rsyncd.conf"
    config.write_text(f"use chroot = no\nuid = root\ngid = root\n[up]\npath = {directory / 'up'}\nread only = no\n")
    serve = ["rsync", "--daemon", "--no-detach", f"--config={config}", f"--port={port}"]
    return serve, ["rsync", directory / "file", f"rsync://{ADDRESS}:{port}/up/"]


def curl(directory, port):
    serve = [sys.executable, "-c", PUT, directory / "up", port]
    return serve, ["curl", "--silent", "--fail", "-T", directory / "file", f"http://{ADDRESS}:{port}/"]


def rclone(directory, port):
    serve = ["rclone", "serve", "webdav", directory / "up", "--addr", f":{port}", "--config", "/dev/null"]
    remote = f":webdav,url='http://{ADDRESS}:{port}',vendor=other:"
    return serve, ["rclone", "--config", "/dev/null", "copy", directory / "file", remote]


def iperf3(directory, port):
    serve = ["iperf3", "--server", "--port", port]
    return serve, ["iperf3", "--client", ADDRESS, "--port", port, "--bytes", BYTES, "--json"]


@pytest.mark.parametrize("program", [rsync, curl, rclone, iperf3], ids=lambda p: p.__name__)
def test_in_the_background(program, net, start, tmp_path):
    name = program.__name__
    if shutil.which(name) is None:
        pytest.skip(f"missing: the program {name} (apt-get install {name})")
    client, server = (("ip", "netns", "exec", f"pc-{net}-{host}") for host in ("client", "server"))
    (tmp_path / "up").mkdir()
    data = random.Random(1).randbytes(BYTES)
    (tmp_path / "file").write_bytes(data)
    port, report = 5400, tmp_path / "report.json"
    serve, send = program(tmp_path, port)
    start(*serve, command=server)
    listening = [*server, "ss", "-ltnH", f"sport = :{port}"]
    assert eventually(lambda: subprocess.run(listening, capture_output=True, text=True).stdout)
    command = [*client, COMMAND, "run", "--background", "--report", report, "--", *send]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=80)
    assert done.returncode == 0, done.stderr
    if program is iperf3:  # it ends before its last bytes have arrived
        arrived = json.loads(done.stdout)["end"]["sum_received"]["bytes"]
    else:
        arrived = (tmp_path / "up" / "file").read_bytes()
        assert hashlib.sha256(arrived).digest() == hashlib.sha256(data).digest()
        arrived = BYTES
    document = json.loads(report.read_text())
    assert document["bytes_sent"] >= arrived > BYTES / 2
    assert document["uncontrolled"] == 0
    counted = document["controller"]
    assert counted["bytes_acked"] >= 0.99 * document["bytes_sent"]
    assert counted["counts"]["unstored"] == 0
    print(
        f"{name}: {document['sent_bps'] / 1e6:.1f} Mbit/s, {counted['bytes_acked']} of {document['bytes_sent']} bytes"
    )
