"""What the tests of commands share."""

from __future__ import annotations

import json
import signal

import pytest

from pathcast.cli.runner import run
from pathcast.runtime.keys import OPEN_ID, OPEN_SECRET


@pytest.fixture
def own_directories(tmp_path_factory, monkeypatch):
    """Nothing of this user's or of other experiments; signal handlers are put back."""
    monkeypatch.setenv("PATHCAST_RUN_DIR", str(tmp_path_factory.mktemp("run")))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
    kept = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.fixture
def pathcast(capsys):
    """Runs a command; gives its status, the JSON document or the text, and standard error."""

    def call(*arguments):
        status = run([str(a) for a in arguments])
        out, err = capsys.readouterr()
        return status, json.loads(out) if "--json" in arguments else out, err

    return call


@pytest.fixture
def far_end():
    """HOST:PORT of a far end on loopback."""
    from pathcast import _native

    config = {"bind": ["127.0.0.1"], "port": 0, "keys": [{"id": OPEN_ID, "secret": OPEN_SECRET}], "addresses": []}
    server = _native.Server(None, json.dumps(config))
    yield json.loads(server.describe())["listening"][0]
    server.stop()
