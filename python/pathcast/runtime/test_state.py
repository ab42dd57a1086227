"""Records of long-lived parts: who may have a name, what is stale, what is removed."""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.runtime import state
from pathcast.runtime.state import Record, check_id, clean, records, run_dir, start_time


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
    return Record.of_this_process("net", id, made, {"scenario": "x.toml", "hosts": {}})


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
    record = own(namespaces=["pc-n1", "pc-n2"])
    record.claim()
    assert records() == [record]
    assert records("serve") == []
    assert record.alive
    assert record.path == home / "net-a.json"
    assert record.socket == home / "net-a.sock"
    assert [p.name for p in home.iterdir() if p.name.startswith(".claim")] == []


def test_a_living_processs_name_is_refused(home):
    own().claim()
    with pytest.raises(PathcastError, match="network `a` is there already") as error:
        own().claim()
    assert error.value.code == "exists"
    assert error.value.hint == "choose another --name, or remove it with `pathcast net down a`"
    own("b").claim()  # another name is free
    assert [r.id for r in records()] == ["a", "b"]
    # a controller of switches is named by an option
    switches = replace(own(), kind="steer")
    switches.claim()
    with pytest.raises(PathcastError) as error:
        switches.claim()
    assert "`pathcast steer down --name a`" in error.value.hint


def test_who_has_the_name_of_a_controller_is_told_how_to_end_it(home):
    Record.of_this_process("steer", "a", {}, {}).claim()
    with pytest.raises(PathcastError, match="controller of switches `a` is there already") as error:
        Record.of_this_process("steer", "a", {}, {}).claim()
    assert "`pathcast steer down --name a`" in error.value.hint


def test_a_reused_pid_is_not_alive(home):
    assert not dead().alive
    assert not Record("net", "a", 2**22 + 1, 5).alive


def test_a_dead_processs_name_is_free_again(home):
    lay(dead(namespaces=["pc-n1"]))
    (home / "netns" / "pc-n1").touch()
    own("a").claim()
    assert records() == [own("a")]
    assert not (home / "netns" / "pc-n1").exists()


def test_clean_removes_the_dead_and_leaves_the_living(home):
    lay(dead("gone", namespaces=["pc-n1", "pc-never-made"]))
    lay(own("here", namespaces=["pc-n2"]))
    for name in ("pc-n1", "pc-n2"):
        (home / "netns" / name).touch()
    removed = clean()
    assert removed == ["namespace pc-n1", str(home / "net-gone.sock"), str(home / "net-gone.json")]
    assert [r.id for r in records()] == ["here"]
    assert [p.name for p in (home / "netns").iterdir()] == ["pc-n2"]
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
    lay(dead("a", namespaces=["pc-n1"]))
    (home / "netns" / "pc-n1").touch()
    lay(dead("b"))
    removed = clean()
    assert removed[0] == "not removed: net a: cannot remove the namespace pc-n1: not permitted"
    assert str(home / "net-b.json") in removed
    assert [r.id for r in records()] == ["a"]  # still known, for somebody who may


# what would be taken for a record, but for the one thing that is wrong with it
FORGED = {"kind": "net", "id": "x", "pid": 2**22, "started": 1, "made": {}, "about": {"hosts": {}}}


def test_the_forged_record_would_be_one(home):
    (home / "net-x.json").write_text(json.dumps(FORGED))
    assert [r.id for r in records()] == ["x"]
    assert clean() == [str(home / "net-x.json")]


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
        '{"kind": "net", "id": "x", "pid": 1, "started": 1, "made": ["pc-n1"]}',
        '{"kind": "net", "id": "x", "pid": 1, "started": 1, "more": 1}',
        *(
            json.dumps({**FORGED, key: value})
            for key, value in [
                ("id", "../x"),
                ("pid", 0),
                ("pid", -1),
                ("pid", True),
                ("pid", 10**400),
                ("pid", (1 << 22) + 1),
                ("started", 0),
                ("made", {"namespaces": 5}),
                ("made", {"namespaces": "pc-n1"}),
                ("made", {"namespaces": [["pc-n1"]]}),
                ("made", {"namespaces": ["pc-n1", "../../etc/passwd"]}),
                ("made", {"namespaces": ["/etc/passwd"]}),
                ("made", {"namespaces": ["pc-../../../etc/passwd"]}),
                ("made", {"namespaces": ["vpn"]}),
                ("made", {"cgroups": ["/../pathcast-1"]}),
                ("made", {"cgroups": ["/system.slice/sshd.service"]}),
                ("made", {"endpoints": ["not an address"]}),
                ("made", {"endpoints": [3]}),
                ("made", {"controllers": ["cubic; rm"]}),
                ("made", {"files": ["/etc/passwd"]}),
                ("about", []),
                ("about", {"hosts": "client"}),
                ("about", {}),
            ]
        ),
        "[" * 100_000,
        " " * (2 << 20) + json.dumps(FORGED),
        '{"kind": "../net", "id": "x", "pid": 1, "started": 1}',
        "\xff",
    ],
)
def test_files_that_are_no_records_are_left_alone(home, junk):
    (home / "net-x.json").write_text(junk, encoding="latin-1")
    assert records() == []
    assert clean() == []
    assert (home / "net-x.json").exists()


def test_what_blocks_a_name_and_is_no_record_is_said(home):
    (home / "net-a.json").write_text("")
    with pytest.raises(PathcastError, match=f"{home}/net-a.json is there, and is no record of pathcast") as error:
        own().claim()
    assert (error.value.code, error.value.hint) == ("exists", "remove it")


@pytest.mark.parametrize("what", ["directory", "link", "pipe", "another user's"])
def test_only_plain_files_of_our_own_are_records(home, what):
    path = home / "net-x.json"
    if what == "directory":
        path.mkdir()
    elif what == "link":
        (home / "x").write_text(json.dumps(FORGED))
        path.symlink_to(home / "x")
    elif what == "pipe":
        os.mkfifo(path)  # whoever opens it waits
    else:
        path.write_text(json.dumps(FORGED))
        as_root()
        os.chown(path, 65534, 65534)
    assert records() == []
    assert clean() == []


def as_root():
    if os.geteuid() != 0:
        pytest.skip("missing: privilege (not root)")


FULL = """
import resource, signal, sys
from pathcast.errors import PathcastError
from pathcast.runtime.state import Record
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
try:
    Record.of_this_process("net", "a", {}, {"hosts": {}}).claim()
except PathcastError as error:
    print(error)
"""


def test_what_cannot_be_written_leaves_nothing(home):
    done = subprocess.run([sys.executable, "-c", FULL], capture_output=True, text=True)
    assert done.stdout == f"cannot write to the run directory `{home}`: File too large\n", done.stderr
    assert [p.name for p in home.iterdir() if p.name not in ("netns", "records.lock")] == []


def test_nor_does_one_that_was_killed_as_it_wrote(home):
    (home / ".claim-x1y2").write_text("{")
    assert clean() == []
    assert not (home / ".claim-x1y2").exists()


def test_a_run_directory_of_another_user_is_refused(home, monkeypatch):
    as_root()
    theirs = home / "theirs"
    theirs.mkdir()
    os.chown(theirs, 65534, 65534)
    monkeypatch.setenv("PATHCAST_RUN_DIR", str(theirs))
    with pytest.raises(PathcastError, match=r"belongs to another user \(65534\)") as error:
        run_dir()
    assert error.value.exit == Exit.REFUSED


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770, 0o720, 0o702])
def test_nor_one_that_others_may_write_to(home, monkeypatch, mode):
    monkeypatch.setenv("PATHCAST_RUN_DIR", str(home / "open"))
    (home / "open").mkdir()
    (home / "open").chmod(mode)
    with pytest.raises(PathcastError, match="can be written to by others") as error:
        clean()
    assert error.value.exit == Exit.REFUSED


def test_nor_a_link(home, monkeypatch):
    (home / "real").mkdir()
    (home / "link").symlink_to(home / "real")
    (home / "nowhere").symlink_to(home / "none")
    for name in ("link", "nowhere"):
        monkeypatch.setenv("PATHCAST_RUN_DIR", str(home / name))
        with pytest.raises(PathcastError, match="is a link") as error:
            run_dir()
        assert error.value.exit == Exit.REFUSED


HOLD = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(fd, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.readline()
"""


def test_a_lock_that_does_not_come_free_is_said_with_its_holder(home, monkeypatch):
    clean()
    monkeypatch.setattr(state, "LOCK_PATIENCE_S", 0.2)
    command = [sys.executable, "-c", HOLD, home / "records.lock"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(PathcastError, match=f"locked by process {holder.pid} \\(python") as error:
            clean()
        assert error.value.code == "busy"
        monkeypatch.setattr(state, "LOCK_PATIENCE_S", 60)
        threading.Timer(0.2, holder.stdin.close).start()
        assert clean() == []  # one that does is waited for


def test_who_can_read_the_directory_can_stop_nobody(home, monkeypatch):
    monkeypatch.setattr(state, "LOCK_PATIENCE_S", 0.2)
    home.chmod(0o755)
    (home / "records.lock").touch(mode=0o644)
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, home], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        assert clean() == []
        holder.stdin.close()
    assert (home / "records.lock").stat().st_mode & 0o777 == 0o600


def test_a_namespace_of_somebody_else_is_neither_taken_nor_removed(home):
    (home / "netns" / "pc-n1").touch()
    with pytest.raises(PathcastError, match="pc-n1 is there already") as error:
        own(namespaces=["pc-n1"]).claim()
    assert error.value.code == "exists"
    assert records() == []
    assert (home / "netns" / "pc-n1").exists()


CLEAN = "from pathcast.runtime.state import clean; print(*clean(), sep='\\n')"
ENDPOINT = ["ip", "mptcp", "endpoint"]


@pytest.fixture
def elsewhere():
    """A process in a network namespace without a name: how it is entered, and the namespace's number."""
    as_root()
    process = subprocess.Popen(["unshare", "-n", "sleep", "600"])
    try:
        own = state.network_namespace()
        for _ in range(1000):
            if (number := os.stat(f"/proc/{process.pid}/ns/net").st_ino) != own:
                break
            time.sleep(0.01)
        enter = ["nsenter", "-t", str(process.pid), "-n"]
        if subprocess.run([*enter, *ENDPOINT, "add", "192.0.2.1", "subflow"], capture_output=True).returncode:
            pytest.skip("missing: endpoints of MPTCP in a network namespace")
        yield process, enter, number
    finally:
        process.kill()
        process.wait()


def killed_run(home, number):
    """The record of a run there that was killed, and the mark of its endpoint."""
    run = Record.of_this_process("run", "7", {"endpoints": ["192.0.2.1"]}, {"namespace": number})
    run.started -= 1
    lay(run)
    mark = home / f"endpoint-192.0.2.1-{number}"
    mark.write_text("made by pathcast\n")
    return mark


def test_endpoints_of_a_namespace_without_a_name_are_found_from_another_one(home, elsewhere):
    _, enter, number = elsewhere
    mark = killed_run(home, number)
    command = ["unshare", "-n", sys.executable, "-c", CLEAN]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "endpoint 192.0.2.1" in done.stdout.splitlines()
    assert subprocess.run([*enter, *ENDPOINT], capture_output=True, text=True).stdout == ""
    assert (records(), mark.exists()) == ([], False)


def test_where_they_cannot_be_removed_they_stay_known(home, elsewhere, monkeypatch):
    from pathcast import _native

    def refuse(address, directory, namespace):
        raise PathcastError("undo", "cannot enter the namespace")

    _, _, number = elsewhere
    mark = killed_run(home, number)
    monkeypatch.setattr(_native, "remove_endpoint", refuse)
    assert clean() == ["not removed: run 7: cannot enter the namespace"]
    assert ([one.id for one in records()], mark.exists()) == (["7"], True)
    # nor does it go where it cannot be opened
    opened = os.open

    def denied(path, *args, **kwargs):
        if str(path).endswith("/ns/net"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", denied)
    assert "not removed: run 7: [Errno 13] Permission denied" in clean()[0]
    assert [one.id for one in records()] == ["7"]


def test_endpoints_are_gone_with_their_namespace_and_so_are_their_marks(home, elsewhere):
    process, _, number = elsewhere
    mark = killed_run(home, number)
    process.kill()
    process.wait()
    assert clean() == [str(home / "run-7.sock"), str(home / "run-7.json")]
    assert not mark.exists()


def test_forget_leaves_what_is_named(home):
    record = lay(own(namespaces=["pc-n1"]))
    (home / "netns" / "pc-n1").touch()
    assert record.forget() == [str(record.socket), str(record.path)]
    assert (home / "netns" / "pc-n1").exists()


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
from pathcast.runtime.state import Record
print("ready", flush=True)
sys.stdin.readline()
won = []
for i in range(40):
    try:
        Record.of_this_process("net", f"n{i}", {}, {"hosts": {}}).claim()
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
