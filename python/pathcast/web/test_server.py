"""The page's server: what keeps its connections is closed."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from urllib.request import ProxyHandler, build_opener

import pytest

pytest.importorskip("uvicorn", reason="missing: uvicorn (no Python package)")

from pathcast.web import server
from pathcast.web.app import application
from pathcast.web.facts import Facts

PATIENCE_S = 20.0


@pytest.fixture
def port(monkeypatch):
    monkeypatch.setattr(server, "REQUEST_S", 0.5)
    made = server.server(application(Facts(None), {"127.0.0.1"}, ""))
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        thread = threading.Thread(target=made.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        made.should_exit = True
        thread.join()


def read(port):
    return build_opener(ProxyHandler({})).open(f"http://127.0.0.1:{port}/", timeout=PATIENCE_S).read().decode()


def test_silent_connections_do_not_close_the_page(port):
    assert "pathcast" in read(port)
    with contextlib.ExitStack() as stack:
        many = [stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE_S)) for _ in range(70)]
        for one in many[:9]:
            one.sendall(b"GET / HTTP/1.1\r\nHost: ")
        assert {one.recv(1) for one in many} == {b""}
        assert "pathcast" in read(port)


def test_nor_do_those_whose_second_request_never_ends(port):
    host = f"Host: 127.0.0.1:{port}\r\n".encode()
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as one:
        one.sendall(b"GET / HTTP/1.1\r\n" + host + b"\r\n")
        assert one.recv(99).startswith(b"HTTP/1.1 200")
        one.sendall(b"GET / HT")
        began = time.monotonic()
        while one.recv(1 << 16):
            pass
        assert time.monotonic() - began < PATIENCE_S / 2
