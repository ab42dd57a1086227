"""Alerts that are posted and mailed, by the programs that the watch starts for them."""

from __future__ import annotations

import json
import subprocess
import threading
from email import message_from_bytes, policy
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from pathcast.errors import PathcastError
from pathcast.service import told

ALERT = {"schema": "pathcast.alert/1", "state": "firing", "text": "cable: down since 19:40; no answer für 3 s"}


def run(words, document=ALERT):
    return subprocess.run(words, input=json.dumps(document).encode(), capture_output=True, timeout=60, check=False)


def test_an_alert_is_posted_as_it_is_and_what_is_not_taken_is_said(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    taken = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            taken.append((self.path, self.headers["Content-Type"], json.loads(body)))
            self.send_response(204 if self.path == "/hook?a=1" else 404)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        assert run(told.post(f"{url}/hook?a=1")).returncode == 0
        assert taken == [("/hook?a=1", "application/json", ALERT)]
        done = run(told.post(f"{url}/other"))
        assert (done.returncode, done.stderr) == (1, b"127.0.0.1: it answers 404 Not Found\n")
        server.shutdown()
    done = run(told.post(url))
    assert (done.returncode, done.stderr) == (1, b"127.0.0.1: [Errno 111] Connection refused\n")


def test_an_alert_is_mailed_by_sendmail(tmp_path, monkeypatch):
    (tmp_path / "sendmail").write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/words; cat >{tmp_path}/mail; exit 75\n')
    (tmp_path / "sendmail").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert run(told.mail("ann+x@example.org"), {**ALERT, "text": "cable: down\nBcc: all"}).returncode == 75
    assert (tmp_path / "words").read_text() == "-i -- ann+x@example.org\n"
    letter = message_from_bytes((tmp_path / "mail").read_bytes(), policy=policy.default)
    assert (letter["To"], letter["Bcc"]) == ("ann+x@example.org", None)
    assert letter["Subject"] == "pathcast: cable: down Bcc: all"
    assert letter.get_content().startswith("cable: down\nBcc: all\n\n{")


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (told.post, "example.org/hook"),
        (told.post, "file:///etc/passwd"),
        (told.post, "http://:80/"),
        (told.post, "http://host:99999/"),
        (told.post, "https://ex ample.org/"),
        (told.mail, ""),
        (told.mail, "-oQ/tmp"),
        (told.mail, "ann@example.org,bob@example.org"),
        (told.mail, "ann@example.org\nBcc: x"),
    ],
)
def test_what_is_no_address_is_refused(make, wrong):
    with pytest.raises(PathcastError, match="is no address"):
        make(wrong)


def test_without_sendmail_that_is_said(monkeypatch):
    monkeypatch.setattr(told.shutil, "which", lambda name: None)
    with pytest.raises(PathcastError, match="there is no sendmail") as refused:
        told.mail("ann@example.org")
    assert refused.value.exit == 5
