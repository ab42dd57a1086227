"""Records of long-lived parts: who may have a name, what is stale, what is removed."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pathcast import state
from pathcast.errors import Exit, PathcastError
from pathcast.state import Record, check_id, clean, records, run_dir, start_time


@pytest.fixture
def home(monkeypatch):
    """A run directory with a path short enough for sockets, and namespaces that are plain files."""
    path = Path(tempfile.mkdtemp(prefix="pc-state-"))
    monkeypatch.setenv("PATHCAST_RUN_DIR", str(path))
    (path / "netns").mkdir()
    monkeypatch.setattr(state, "_namespace", lambda name: path / "netns" / name)
    yield path
    shutil.rmtree(path)


def own(id="a", **made):
    return Record.of_this_process("net", id, made, {"scenario": "x.toml"})


def dead(id="a", **made):
    """A record whose pid now belongs to somebody who started later."""
    record = own(id, **made)
    record.started -= 1
    return record


def lay(record):
    record.path.write_text(json.dumps(vars(record)))
    record.socket.touch()
    return record


@pytest.mark.parametrize("good", ["a", "0", "a-b", "two-path", "x" * 24, "a--", "9-9"])
def test_ids_that_can_stand_in_names(good):
    assert check_id(good) == good


@pytest.mark.parametrize("bad", ["", "-a", "A", "a_b", "x" * 25, "a/b", "../x", "a\n", "a b", "ä", "a."])
def test_other_ids_are_refused(bad):
    with pytest.raises(PathcastError, match="is not a name") as error:
        check_id(bad)
    assert error.value.exit == Exit.USAGE


def test_the_run_directory_is_made(home, monkeypatch):
    monkeypatch.setenv("PATHCAST_RUN_DIR", str(home / "deep" / "er"))
    assert run_dir() == home / "deep" / "er"
    assert run_dir().is_dir()


def test_a_run_directory_that_cannot_be_made_is_said(home, monkeypatch):
    (home / "file").touch()
    monkeypatch.setenv("PATHCAST_RUN_DIR", str(home / "file" / "below"))
    with pytest.raises(PathcastError, match="cannot make the run directory") as error:
        run_dir()
    assert error.value.exit == Exit.MISSING
    assert "PATHCAST_RUN_DIR" in error.value.hint


def test_start_time_of_processes():
    assert start_time(os.getpid()) == start_time(os.getpid()) > 0
    assert start_time(2**22 + 1) is None  # above the kernel's largest pid


def test_start_time_of_a_zombie_is_none():
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # ended, not reaped
    assert start_time(child.pid) is None
    child.wait()


def test_start_time_with_spaces_and_parentheses_in_the_name(tmp_path):
    program = tmp_path / "a) Z (b"
    shutil.copy(shutil.which("sleep"), program)
    child = subprocess.Popen([program, "60"])
    try:
        assert start_time(child.pid) >= start_time(os.getpid())
    finally:
        child.kill()
        child.wait()


def test_a_record_comes_back_as_it_was_written(home):
    record = own(namespaces=["n1", "n2"])
    record.claim()
    assert records() == [record]
    assert records("serve") == []
    assert record.alive
    assert record.path == home / "net-a.json"
    assert record.socket == home / "net-a.sock"
    assert [p.name for p in home.iterdir() if p.name.startswith(".claim")] == []


def test_a_living_processs_name_is_refused(home):
    own().claim()
    with pytest.raises(PathcastError, match="net `a` is there already") as error:
        own().claim()
    assert error.value.code == "exists"
    assert "--name" in error.value.hint
    own("b").claim()  # another name is free
    assert [r.id for r in records()] == ["a", "b"]


def test_a_reused_pid_is_not_alive(home):
    assert not dead().alive
    assert not Record("net", "a", 2**22 + 1, 5).alive


def test_a_dead_processs_name_is_free_again(home):
    lay(dead(namespaces=["n1"]))
    (home / "netns" / "n1").touch()
    own("a").claim()
    assert records() == [own("a")]
    assert not (home / "netns" / "n1").exists()


def test_clean_removes_the_dead_and_leaves_the_living(home):
    lay(dead("gone", namespaces=["n1", "never-made"]))
    lay(own("here", namespaces=["n2"]))
    for name in ("n1", "n2"):
        (home / "netns" / name).touch()
    removed = clean()
    assert removed == ["namespace n1", str(home / "net-gone.sock"), str(home / "net-gone.json")]
    assert [r.id for r in records()] == ["here"]
    assert [p.name for p in (home / "netns").iterdir()] == ["n2"]
    assert clean() == []


@pytest.fixture(autouse=True)
def _namespaces_are_files(monkeypatch):
    from pathcast import _native

    monkeypatch.setattr(_native, "remove_namespace", lambda name: state._namespace(name).unlink())


def test_what_cannot_be_removed_is_said_and_does_not_stop_the_rest(home, monkeypatch):
    from pathcast import _native

    def refuse(name):
        raise PathcastError("undo", f"cannot remove the namespace {name}: not permitted")

    monkeypatch.setattr(_native, "remove_namespace", refuse)
    lay(dead("a", namespaces=["n1"]))
    (home / "netns" / "n1").touch()
    lay(dead("b"))
    removed = clean()
    assert removed[0] == "not removed: net a: cannot remove the namespace n1: not permitted"
    assert str(home / "net-b.json") in removed
    assert [r.id for r in records()] == ["a"]  # still known, for somebody who may


@pytest.mark.parametrize(
    "junk",
    [
        "",
        "{",
        "[]",
        "3",
        "{}",
        '{"kind": "net", "id": "x", "pid": 1}',
        '{"kind": "net", "id": "y", "pid": 1, "started": 1}',  # another name than the file's
        '{"kind": "net", "id": "x", "pid": "1", "started": 1}',
        '{"kind": "net", "id": "x", "pid": 1, "started": 1, "made": ["n1"]}',
        '{"kind": "net", "id": "x", "pid": 1, "started": 1, "more": 1}',
        '{"kind": "../net", "id": "x", "pid": 1, "started": 1}',
        "\xff",
    ],
)
def test_files_that_are_no_records_are_left_alone(home, junk):
    (home / "net-x.json").write_text(junk, encoding="latin-1")
    assert records() == []
    assert clean() == []
    assert (home / "net-x.json").exists()


def test_a_namespace_of_somebody_else_is_neither_taken_nor_removed(home):
    (home / "netns" / "n1").touch()
    with pytest.raises(PathcastError, match="n1 is there already") as error:
        own(namespaces=["n1"]).claim()
    assert error.value.code == "exists"
    assert records() == []
    assert (home / "netns" / "n1").exists()


def test_forget_leaves_what_is_named(home):
    record = lay(own(namespaces=["n1"]))
    (home / "netns" / "n1").touch()
    assert record.forget() == [str(record.socket), str(record.path)]
    assert (home / "netns" / "n1").exists()


def test_a_socket_path_beyond_the_kernels_limit_is_said(home, monkeypatch):
    monkeypatch.setenv("PATHCAST_RUN_DIR", str(home / ("d" * 100)))
    with pytest.raises(PathcastError, match="longer than 107 bytes") as error:
        own().claim()
    assert error.value.exit == Exit.USAGE
    longest = 107 - len(str(home)) - len("//net-a.sock")
    monkeypatch.setenv("PATHCAST_RUN_DIR", str(home / ("d" * longest)))
    own().claim()
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(own().socket))  # it does fit


CLAIMER = """
import sys
from pathcast.errors import PathcastError
from pathcast.state import Record
print("ready", flush=True)
sys.stdin.readline()
won = []
for i in range(40):
    try:
        Record.of_this_process("net", f"n{i}", {}, {}).claim()
    except PathcastError as error:
        assert error.code == "exists", error
    else:
        won.append(i)
print(*won, flush=True)
sys.stdin.readline()  # alive until all have tried
"""


def test_of_several_processes_only_one_wins_a_name(home):
    """Stale records lie at every name, so that claiming and cleaning get in each other's way."""
    for i in range(40):
        lay(dead(f"n{i}"))
    processes = [
        subprocess.Popen([sys.executable, "-c", CLAIMER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    try:
        for p in processes:
            assert p.stdout.readline() == "ready\n"
        for p in processes:
            p.stdin.write("go\n")
            p.stdin.flush()
        won = {p.pid: [int(x) for x in p.stdout.readline().split()] for p in processes}
        holders = {r.id: r.pid for r in records()}
        assert sorted(i for names in won.values() for i in names) == list(range(40))
        assert holders == {f"n{i}": pid for pid, names in won.items() for i in names}
    finally:
        for p in processes:
            p.communicate("end\n")
