"""What another user of this host may try against commands that run as root. SECURITY.md has the table of it."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import COMMAND, NOBODY, PATIENCE_S

pytestmark = pytest.mark.privileged

PLANTED = "import os\nopen({mark!r}, 'a').write(f'{{os.geteuid()}}\\n')\n"


@pytest.fixture
def planted(tmp_path):
    """A directory of another user's with modules in it that say who has run them; and what they said."""
    place, mark = tmp_path / "theirs", tmp_path / "mark"
    for name in ("selectors.py", "pathcast/__init__.py", "json/__init__.py", "encodings/__init__.py"):
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(PLANTED.format(mark=str(mark)))
    for path in (place, *place.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    return place, lambda: mark.read_text() if mark.exists() else ""


@pytest.mark.parametrize("what", ["net up", "control load --pin", "run --background", "doctor"])
def test_no_code_of_the_current_directory_runs(pathcast, site, small, name, planted, what):
    place, said = planted
    arguments = {
        "net up": ["net", "up", small, "--name", name],
        "control load --pin": ["control", "load", "reno", "--pin"],
        "run --background": ["run", "--background", "--", "true"],
        "doctor": ["doctor"],
    }[what]
    done = pathcast(*arguments, cwd=place)
    pathcast("undo", "--all")
    assert said() == ""
    assert done.returncode == 0, done.stderr


def test_nor_under_a_controller_that_is_held(start, site, planted, wait_for, monkeypatch):
    place, said = planted
    monkeypatch.chdir(place)
    process = start("control", "load", "reno")
    assert "until this command ends" in process.stdout.readline(), process.stderr.read()
    process.terminate()
    process.wait(PATIENCE_S)
    assert said() == ""
    assert wait_for(site.empty)


@pytest.fixture
def shared(tmp_path):
    """A directory as /tmp is, in which the user without rights has no run directory yet; and the environment for it."""
    place = Path("/tmp", f"pc-shared-{os.getpid()}-{time.monotonic_ns()}")
    place.mkdir()
    place.chmod(0o1777)
    environment = {"TMPDIR": str(place), "XDG_RUNTIME_DIR": "", "PATHCAST_RUN_DIR": "", "HOME": "/"}
    yield place, environment
    subprocess.run(["rm", "-rf", place], check=True)


def test_a_users_own_run_directory_is_for_nobody_else(pathcast, nobody, shared):
    place, environment = shared
    done = pathcast("undo", prefix=(*nobody, "sh", "-c", 'umask 0; exec "$@"', "sh"), env=environment)
    assert done.returncode == 0, done.stderr
    made = (place / f"pathcast-{NOBODY}").stat()
    assert (made.st_uid, stat.S_IMODE(made.st_mode)) == (NOBODY, 0o700)


@pytest.mark.parametrize("how", ["theirs", "closed", "link", "open"])
def test_a_planted_run_directory_is_refused_and_nothing_in_it_followed(
    pathcast, nobody, shared, tmp_path, wait_for, how
):
    """The victim is the user without rights, whose default directory somebody else made first."""
    place, environment = shared
    planted = place / f"pathcast-{NOBODY}"
    real = place / "real"
    real.mkdir()
    real.chmod(0o700 if how == "closed" else 0o777)
    owner = NOBODY if how == "open" else 4711
    os.chown(real, owner, owner)
    if how == "link":
        planted.symlink_to(real)
    else:
        real.rename(planted)
    victim = subprocess.Popen(["sleep", "600"], user=NOBODY, group=NOBODY, extra_groups=[])
    try:
        started = int(Path(f"/proc/{victim.pid}/stat").read_text().rpartition(")")[2].split()[19])
        record = {"kind": "run", "id": "x", "pid": victim.pid, "started": started, "made": {}, "about": {}}
        forged = planted / "run-x.json"
        forged.write_text(json.dumps(record))
        forged.chmod(0o644)
        os.chown(forged, NOBODY, NOBODY)
        (planted / "control.lock").symlink_to(place / "victims")  # opening it made or emptied the file
        done = pathcast("undo", "--all", "--json", prefix=nobody, env=environment)
        assert done.returncode == 4
        assert done.error["code"] == "run-directory"
        assert str(planted) in done.error["message"]
        held = pathcast("control", "load", "reno", prefix=nobody, env=environment)
        assert held.returncode == 4, held.stderr
        assert not (place / "victims").exists()
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()


def test_a_record_that_was_forged_is_not_followed(pathcast, site, tmp_path):
    """Whatever brought it there: `undo` unmounted and removed any file that `namespaces` named."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    for number, name in enumerate([str(precious), f"../..{precious}"]):
        dead = {"kind": "net", "id": f"x{number}", "pid": 2**22, "started": 1, "about": {"hosts": {}}}
        record = {**dead, "made": {"namespaces": [name]}}
        (site.path / f"net-x{number}.json").write_text(json.dumps(record))
    assert pathcast("undo", "--all").returncode == 0
    assert precious.read_text() == "mine"


def test_no_malformed_record_stops_a_start(pathcast, net, site):
    for number, part in enumerate(
        [
            {"made": {"namespaces": 5}},
            {"made": {"endpoints": ["x"]}},
            {"kind": "control", "about": {"kernel_name": 3}},
            {"kind": "control", "about": {}},
            {"pid": 10**40},
        ]
    ):
        record = {"kind": "run", "id": f"x{number}", "pid": os.getpid(), "started": 1, "made": {}, "about": {}, **part}
        record["id"] = f"x{number}"
        (site.path / f"{record['kind']}-x{number}.json").write_text(json.dumps(record))
    (site.path / "net-deep.json").write_text("[" * 100_000)
    for arguments in (
        ["net", "list"],
        ["control", "list"],
        ["undo"],
        ["doctor"],
        ["run", "--background", "--", "true"],
    ):
        done = pathcast(*arguments)
        assert done.returncode == 0, (arguments, done.stderr)


@pytest.fixture
def holder(nobody):
    """Another user who locks whatever he can open of these paths, for as long as the test lasts."""
    held = []

    def hold(*paths):
        script = (
            "import fcntl, os, sys\n"
            "for path in sys.argv[1:]:\n"
            "    try:\n"
            "        fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX)\n"
            "    except OSError:\n"
            "        pass\n"
            "print('ready', flush=True)\n"
            "sys.stdin.read()\n"
        )
        command = [*nobody, sys.executable, "-c", script, *map(str, paths)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        held.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield hold
    for process in held:
        process.kill()
        process.communicate()


def test_who_may_read_the_run_directory_stops_no_command(pathcast, site, small, name, holder):
    """As it was: 0755, and its lock the directory itself."""
    site.path.chmod(0o755)
    assert pathcast("undo").returncode == 0  # makes the locks
    assert pathcast("control", "load", "reno", "--pin").returncode == 0
    assert pathcast("undo").returncode == 0
    locks = sorted(path.name for path in site.path.glob("*.lock"))
    assert locks == ["control.lock", "records.lock"]
    holder(site.path, *site.path.iterdir())
    began = time.monotonic()
    assert pathcast("undo").returncode == 0
    assert pathcast("net", "up", small, "--name", name).returncode == 0
    assert pathcast("control", "load", "reno", "--pin").returncode == 0
    assert pathcast("undo", "--all").returncode == 0
    assert time.monotonic() - began < 60
    assert all(stat.S_IMODE((site.path / name).stat().st_mode) == 0o600 for name in locks)


def test_nor_who_may_read_the_place_of_the_pins(pathcast, site, holder):
    try:
        path = Path(pathcast("control", "load", "reno", "--pin", "--json").json["pinned"])
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        holder(path.parent, path)
        assert pathcast("control", "unload", path.name).returncode == 0
    finally:
        pathcast("undo")


SLOW = """#!/bin/sh
# the first time that a device is made, it takes for ever
if [ ! -e "$MARK" ] && [ "$1 $2" = "netns add" ]; then
    {real} "$@"
    touch "$MARK"
    exec sleep 600
fi
exec {real} "$@"
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_network_whose_building_is_interrupted_goes(site, small, name, tmp_path, wait_for, monkeypatch, number):
    """It hung for minutes, and left the network: the part was detached before it stood."""
    real = subprocess.run(["which", "ip"], capture_output=True, text=True, check=True).stdout.strip()
    tool, mark = tmp_path / "bin" / "ip", tmp_path / "mark"
    tool.parent.mkdir()
    tool.write_text(SLOW.format(real=real))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("MARK", str(mark))
    process = subprocess.Popen(
        [COMMAND, "net", "up", small, "--name", name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert wait_for(mark.exists)
        assert site.namespaces() == [f"pc-{name}-client"]
        began = time.monotonic()
        process.send_signal(number)
        if number == signal.SIGKILL:
            process.wait()
            for pid in site.processes():  # stuck in `ip`, which it cannot be told; what it left is known
                os.kill(pid, signal.SIGKILL)
            assert wait_for(lambda: not site.processes())
            subprocess.run([COMMAND, "undo"], check=True, capture_output=True)
        else:
            process.communicate(timeout=60)
            assert process.returncode == {signal.SIGINT: 130}.get(number, 128 + number)
        assert time.monotonic() - began < 30
        assert site.empty()
        assert not Path("/run/netns", f"pc-{name}-client").exists()
    finally:
        process.kill()
        process.communicate()


def test_a_network_whose_builder_is_killed_goes_with_it(site, small, name, start, wait_for, tmp_path, monkeypatch):
    """Not stuck: the part sees by itself that nobody waits for it any more."""
    real = subprocess.run(["which", "ip"], capture_output=True, text=True, check=True).stdout.strip()
    tool, mark = tmp_path / "bin" / "ip", tmp_path / "mark"
    tool.parent.mkdir()
    tool.write_text(SLOW.format(real=real).replace("sleep 600", "sleep 2"))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("MARK", str(mark))
    process = start("net", "up", small, "--name", name)
    assert wait_for(mark.exists)
    process.kill()
    process.wait()
    assert wait_for(site.empty)
    assert not Path("/run/netns", f"pc-{name}-client").exists()


SECRET = "not for others\n"


@pytest.fixture
def ground(tmp_path):
    """A directory in which the user without rights may do as he likes, and a file of root's that he may not touch."""
    place, secret = Path(f"/tmp/pc-ground-{os.getpid()}-{time.monotonic_ns()}"), tmp_path / "secret"
    place.mkdir()
    os.chown(place, NOBODY, NOBODY)
    secret.write_text(SECRET)
    secret.chmod(0o600)
    yield place, secret
    subprocess.run(["rm", "-rf", place], check=True)


def test_a_report_goes_where_it_was_opened_whatever_the_program_puts_there(pathcast, site, ground):
    place, secret = ground
    report = place / "report.json"
    swap = f"ln -f {report} {place}/first; ln -sf {secret} {report}; exit 3"
    done = pathcast("run", "--user", "nobody", "--report", report, "--", "sh", "-c", swap)
    assert (done.returncode, secret.read_text()) == (3, SECRET), done.stderr
    assert report.is_symlink()
    first = place / "first"
    assert json.loads(first.read_text())["status"] == 3
    assert first.stat().st_uid == NOBODY


@pytest.mark.parametrize("how", ["link", "dangling", "second name", "pipe", "directory"])
def test_a_report_that_leads_elsewhere_is_refused_before_anything_runs(pathcast, site, ground, how):
    """Also where the program runs as root: in a directory of another user's, who was there before."""
    place, secret = ground
    report = place / "report.json"
    if how == "link":
        report.symlink_to(secret)
    elif how == "dangling":
        report.symlink_to(place / "new")
    elif how == "second name":
        (place / "secret").write_text(SECRET)
        secret = place / "secret"
        os.link(secret, report)
    elif how == "pipe":
        os.mkfifo(report)
    else:
        report.mkdir()
    for user in ("root", "nobody"):
        done = pathcast("run", "--user", user, "--report", report, "--", "touch", place / "ran")
        assert done.returncode == 2
        assert f"cannot write the report to `{report}`" in done.stderr
        assert not (place / "ran").exists()
        assert not (place / "new").exists()
        assert secret.read_text() == SECRET


def test_a_report_is_written_with_the_rights_of_the_programs_user(pathcast, site, ground, tmp_path):
    place, secret = ground
    for report in (secret, tmp_path / "new"):
        done = pathcast("run", "--user", "nobody", "--report", report, "--", "touch", place / "ran")
        assert done.returncode == 2
        assert f"cannot write the report to `{report}` as the user `nobody`: Permission denied" in done.stderr
        assert "--report /dev/fd/" in done.stderr
        assert not (place / "ran").exists()
    assert secret.read_text() == SECRET
    assert not (tmp_path / "new").exists()


def test_root_has_a_report_of_its_own_by_a_descriptor_that_the_program_does_not_get(pathcast, site, ground):
    _, secret = ground
    shell = ("sh", "-c", f'exec "$@" 3>>{secret}', "sh")
    look = "for n in $(seq 0 40); do [ ! -e /proc/$$/fd/$n ] || printf '%s ' $n; done"  # opens nothing itself meanwhile
    done = pathcast("run", "--user", "nobody", "--report", "/dev/fd/3", "--", "sh", "-c", look, prefix=shell)
    assert (done.returncode, done.stdout) == (0, "0 1 2 "), done.stderr
    first, _, rest = secret.read_text().partition("\n")
    assert (f"{first}\n", json.loads(rest)["status"]) == (SECRET, 0)
    done = pathcast("run", "--report", "/dev/stdout", "--", "true")
    assert json.loads(done.stdout)["status"] == 0
    done = pathcast("run", "--report", "/dev/fd/77", "--", "true")
    assert done.returncode == 2
    assert "cannot write the report to `/dev/fd/77`: Bad file descriptor" in done.stderr


@pytest.mark.parametrize("user", ["nobody", "root"])
def test_a_program_of_another_user_gets_no_descriptors_but_its_streams(pathcast, site, ground, user):
    """As sudo has it; of one's own user it is as any program, and may be given what the shell opens."""
    _, secret = ground
    shell = ("bash", "-c", f'exec "$@" 3<{secret} 7>>{secret}', "bash")
    done = pathcast("run", "--user", user, "--", "sh", "-c", "cat <&3; echo more >&7", prefix=shell)
    if user == "nobody":
        assert (done.stdout, secret.read_text()) == ("", SECRET), done.stderr
        assert "Bad file descriptor" in done.stderr
    else:
        assert (done.stdout, secret.read_text()) == (SECRET, f"{SECRET}more\n"), done.stderr


def test_a_report_into_a_pipe_whose_reader_has_stopped_keeps_nobody(pathcast, site, ground):
    place, _ = ground
    report = place / "report.json"
    os.mkfifo(report, 0o600)
    reader = os.open(report, os.O_RDWR | os.O_NONBLOCK)
    try:
        while True:
            os.write(reader, bytes(4096))
    except BlockingIOError:
        pass
    done = pathcast("run", "--report", report, "--", "sh", "-c", "exit 3")
    os.close(reader)
    assert done.returncode == 3
    assert f"cannot write the report to `{report}`" in done.stderr


@pytest.mark.parametrize("where", ["/dev/full", "closed pipe"])
def test_a_report_that_cannot_be_written_leaves_the_programs_status(pathcast, site, where):
    shell, report = (), where
    if where == "closed pipe":
        shell, report = ("bash", "-c", 'exec "$@" 3> >(exec true)', "bash"), "/dev/fd/3"
    done = pathcast("run", "--report", report, "--", "sh", "-c", "sleep 0.5; exit 3", prefix=shell)
    assert done.returncode == 3
    reason = "No space left on device" if where == "/dev/full" else "Broken pipe"
    assert f"pathcast: cannot write the report to `{report}`: {reason}" in done.stderr


def test_nor_does_a_standard_error_that_is_closed_change_it(pathcast, site):
    for closed in ("2>&-", "2>/dev/full"):
        shell = ("sh", "-c", f'exec "$@" {closed}', "sh")
        done = pathcast("run", "--background", "--", "sh", "-c", "exit 3", prefix=shell)
        assert (done.returncode, done.stdout) == (3, "")
