"""Where a history lies, what is no place, and that no password is shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.history import place
from pathcast.history.store import Store


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("/x/h.db", "/x/h.db"),
        ("sqlite:////x/h.db", "/x/h.db"),
        ("sqlite:///h.db", "{here}/h.db"),
        ("h.db", "{here}/h.db"),
    ],
)
def test_files(text, file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = place.parse(text)
    assert str(found.file) == file.format(here=tmp_path)
    assert found.url == f"sqlite:///{found.file}"
    assert str(found.spool) == f"{found.file}.spool"


@pytest.mark.parametrize("form", ["{}", "sqlite:///{}"])
def test_what_is_there_and_no_file_is_refused_and_nothing_is_made(form, tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    for there, kind in (("/dev/null", "a device"), (tmp_path / "pipe", "a pipe"), (tmp_path, "a directory")):
        with pytest.raises(PathcastError, match=kind) as caught:
            place.find(form.format(there))
        assert caught.value.exit == Exit.USAGE
    monkeypatch.setenv(place.ENVIRONMENT, "/dev/null")
    with pytest.raises(PathcastError, match="a device"):
        place.find()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "mysql://x/y",
        "sqlite://",
        "sqlite:///",
        "sqlite:///x?mode=ro",
        "postgresql://h",
        "postgresql://h:99999/x",
        "http://x/y",
    ],
)
def test_what_is_no_place_is_refused_with_the_forms(text):
    with pytest.raises(PathcastError) as refused:
        place.parse(text)
    assert refused.value.exit == Exit.USAGE
    assert "postgresql://[USER@]HOST" in refused.value.message


def test_no_password_is_shown(monkeypatch):
    found = place.parse("postgresql://me:s3cret@db.example.org:5433/net?sslmode=require&password=s3cret")
    assert found.url.startswith("postgresql+psycopg://me:s3cret@")
    assert "s3cret" not in found.shown
    assert "s3cret" not in str(found.spool)
    assert found.shown == "postgresql://me:***@db.example.org:5433/net?sslmode=require"
    with pytest.raises(PathcastError) as refused:
        place.parse("mysql://me:s3cret@db/net")
    assert "s3cret" not in refused.value.message
    nowhere = place.parse("postgresql://me:s3cret@127.0.0.1:9/net")
    with pytest.raises(PathcastError) as away:
        Store(nowhere).add({})
    assert "s3cret" not in away.value.message + (away.value.hint or "")


def test_the_option_comes_before_the_environment_and_that_before_the_default(monkeypatch):
    monkeypatch.setenv(place.ENVIRONMENT, "/env.db")
    assert place.find("/given.db").file == Path("/given.db")
    assert place.find("/given.db").given
    assert place.find().file == Path("/env.db")
    assert not place.find().given
    monkeypatch.setenv(place.ENVIRONMENT, "off")
    assert place.find() is None
    assert place.find("/given.db") is not None
    monkeypatch.delenv(place.ENVIRONMENT)
    assert place.find().file == place.state_directory() / "history.db"


def test_the_state_directory_is_its_users(monkeypatch):
    assert place.state_directory() == Path(os.environ[place.STATE])
    monkeypatch.delenv(place.STATE)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert place.state_directory() == Path("/var/lib/pathcast")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_STATE_HOME", "/s")
    assert place.state_directory() == Path("/s/pathcast")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert place.state_directory() == Path("/home/me/.local/state/pathcast")
