"""`pathcast web`: what it refuses, and that it serves until it is ended."""

from __future__ import annotations

import signal
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

import pytest
from conftest import PATIENCE_S, ROOT
from test_cli_watch import settings


@pytest.mark.parametrize(
    ("options", "status", "named"),
    [
        (["--listen", "0.0.0.0:9276"], 4, "reverse proxy"),
        (["--listen", "[::]:9276"], 4, "on the loopback only"),
        (["--listen", "192.0.2.1:80"], 4, "reverse proxy"),
        (["--listen", "localhost"], 2, "allowed are ADDRESS:PORT and PORT"),
        (["--listen", "65536"], 2, "allowed are ADDRESS:PORT and PORT"),
        (["--prefix", "pathcast"], 2, "allowed is a path"),
        (["--prefix", "/a/../b"], 2, "allowed is a path"),
        (["--name", "far:80"], 2, "without a port"),
        (["--history", "ftp://there"], 2, "allowed are a FILE"),
        (["--history", "/no/such.db"], 2, "there is no history `/no/such.db`"),
        (["--history", "sqlite:////no/such.db"], 2, "there is no history `/no/such.db`"),
    ],
)
def test_wrong_words_are_refused_with_what_is_allowed(options, status, named, capsys):
    from pathcast.cli import runner

    assert runner.run(["web", *options]) == status
    said = capsys.readouterr()
    assert named in said.err
    assert said.out == ""


@pytest.mark.parametrize(("number", "listen"), [(signal.SIGTERM, "0"), (signal.SIGINT, "127.0.0.2:0")])
def test_it_serves_and_ends_cleanly(start, tmp_path, monkeypatch, number, listen):
    pytest.importorskip("uvicorn", reason="missing: uvicorn (no Python package)")
    history = tmp_path / "history.db"
    monkeypatch.setenv("PATHCAST_HISTORY", str(history))  # one's own, where nothing is yet
    process = start("web", "--listen", listen, "--prefix", "/p")
    url = process.stdout.readline().strip()
    assert url.endswith("/p/")
    opener = build_opener(ProxyHandler({}))
    assert "there is no history" in opener.open(url, timeout=PATIENCE_S).read().decode()
    with pytest.raises(HTTPError) as refused:
        opener.open(url, data=b"", timeout=PATIENCE_S)
    assert refused.value.code == 405
    refused.value.close()
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + number, err
    assert "Traceback" not in err
    assert not history.exists()


def test_its_unit_has_the_walls_of_the_watch():
    watch, web = settings("pathcast-watch.service"), settings("pathcast-web.service")
    own = {"Description", "Documentation", "After", "Wants", "LoadCredential", "EnvironmentFile", "Environment"}
    own |= {"RuntimeDirectory", "ExecStart", "TasksMax"}
    assert {name: value for name, value in watch.items() if name not in own}.items() <= web.items()
    assert "pathcast-web.service" in (ROOT / "packaging/debian/prerm").read_text()
