"""What is packaged: units that let the program do what it says, scripts of the Debian packages, the making of them."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from conftest import PATIENCE_S, ROOT

PACKAGING = ROOT / "packaging"
UNITS = ("serve", "watch", "web")


def unit(name):
    return (PACKAGING / f"pathcast-{name}.service").read_text()


@pytest.mark.parametrize("name", UNITS)
def test_a_service_may_read_the_clocks_state_and_not_set_it(name):
    lines = unit(name).splitlines()
    [calls] = [line.partition("=")[2].split() for line in lines if line.startswith("SystemCallFilter=")]
    assert {"@system-service", "adjtimex", "clock_adjtime", "clock_adjtime64"} == set(calls)
    assert "CapabilityBoundingSet=" in lines
    assert "AmbientCapabilities=" in lines
    assert not any(line.startswith("ProtectClock=") for line in lines)  # it filters these calls, too


def test_the_first_lines_of_the_units_make_what_they_need_and_close_nothing():
    # the lines, which all may read, may be there already
    assert "install -d -m 0755 /etc/pathcast" in unit("serve")
    assert "install -D -m 0600 far.key /etc/pathcast/far.key" in unit("watch")


def scripts(tmp_path, name, *arguments):
    """A script of the packages on a host with systemd and a job: what it calls, and what it says."""
    system = tmp_path / "run/systemd/system"
    units = tmp_path / "etc/systemd/system"
    bin = tmp_path / "bin"
    for folder in (system, units, bin):
        folder.mkdir(parents=True, exist_ok=True)
    (units / "pathcast-job-nightly.timer").touch()
    for tool in ("systemctl", "adduser", "python3", "find"):
        (bin / tool).write_text(f'#!/bin/sh\necho "{tool} $*"\n')
        (bin / tool).chmod(0o755)
    text = (PACKAGING / "debian" / name).read_text()
    text = text.replace("/run/systemd/system", str(system)).replace("/etc/systemd/system", str(units))
    command = ["sh", "-c", text, name, *arguments]
    env = {**os.environ, "PATH": f"{bin}:{os.environ['PATH']}"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
    return [line for line in done.stdout.splitlines() if line.startswith("systemctl ")], done.stderr


@pytest.mark.parametrize(
    ("end", "services"), [("", [f"pathcast-{name}.service" for name in UNITS]), ("-far", ["pathcast-far.service"])]
)
def test_an_upgrade_starts_what_runs_again(tmp_path, end, services):
    again = f"systemctl --system try-restart {' '.join(services)}"
    reload = "systemctl --system daemon-reload"
    assert scripts(tmp_path, f"postinst{end}", "configure", "0.9")[0] == [reload, again]
    assert scripts(tmp_path, f"postinst{end}", "configure", "")[0] == [reload]
    assert scripts(tmp_path, f"postinst{end}", "configure")[0] == [reload]
    assert scripts(tmp_path, f"prerm{end}", "remove")[0] == [f"systemctl disable --now --quiet {' '.join(services)}"]
    assert scripts(tmp_path, f"prerm{end}", "upgrade", "1.0") == ([], "")


def test_a_removed_package_says_that_the_timers_of_jobs_stay(tmp_path):
    _, said = scripts(tmp_path, "prerm", "remove")
    timer = tmp_path / "etc/systemd/system/pathcast-job-nightly.timer"
    assert said == f"{timer} stays; to stop it: systemctl disable --now pathcast-job-nightly.timer\n"
    timer.unlink()


@pytest.mark.parametrize("name", ["far", "watch"])
def test_the_first_lines_of_the_container_files_fit_together(name):
    text = (PACKAGING / "container" / f"{name}.Containerfile").read_text()
    told = " ".join(line.strip("# \\") for line in text.splitlines() if line.startswith("#"))
    [tag] = re.findall(r"podman build -t (\S+)", told)
    [command] = re.findall(r"podman run (.*)", told)
    words = re.sub(r"(--network|-v) \S+", "", command).split()
    assert words[0] == tag
    [user] = re.findall(r"^USER (\d+):", text, re.M)
    [key] = re.findall(rf"install -m 600 -o {user} \S+ (\S+)", told)
    # what has no slash would be a volume, not a file
    assert f'-v "$PWD/{key}":/' in command


# what `scripts/release` does as it builds, with what it has of its functions in place of the rest
BUILD = """
here=$PWD into=$PWD/into work=$PWD/work bin=$PWD/bin commit=$(git rev-parse HEAD)
mkdir -p "$into" "$work"
near() { cat packaging/told >>"$work/seen"; mkdir -p "$2"; }
small() { cat packaging/told >>"$work/seen"; mkdir -p "$2"; }
package() { cat packaging/told >>"$work/seen"; }
eval "$(sed -n '/^build() {/,/^}/p' "$RELEASE")"
build 1 || exit
[ ! -e "$into/.made" ] || exit 9
echo "$version"
"""


def test_the_debian_packages_are_made_from_the_commit(tmp_path, monkeypatch):
    bin = tmp_path / "bin"
    for path in (bin, tmp_path / "packaging", tmp_path / "scripts"):
        path.mkdir()
    maturin = (
        '#!/bin/sh\nwhile [ "$1" != --out ]; do shift; done\n: >"$2/pathcast-1.2.tar.gz"; : >"$2/pathcast-1.2.whl"\n'
    )
    for path, text in ((bin / "maturin", maturin), (tmp_path / "scripts/far", "#!/bin/sh\n")):
        path.write_text(text)
        path.chmod(0o755)
    told = tmp_path / "packaging/told"
    told.write_text("committed\n")
    # whoever runs this may have all commits signed
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.invalid"]
    for words in (["init", "--quiet"], ["add", "packaging", "scripts"], ["commit", "--quiet", "-m", "a"]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    told.write_text("not committed\n")
    env = {**os.environ, "RELEASE": str(ROOT / "scripts/release")}
    done = subprocess.run(["bash", "-uc", BUILD], cwd=tmp_path, capture_output=True, text=True, env=env)
    assert (done.returncode, done.stdout) == (0, "1.2\n"), done.stderr
    assert (tmp_path / "work/seen").read_text() == "committed\n" * 4


# in a mount namespace of its own, whose /dev is an empty one: the script's trap, and its way into a root
ROOTED = """
mount -t tmpfs tmpfs /dev && mknod -m 666 /dev/null c 1 3 && touch /dev/marker || exit 9
mkdir -p "$WORK/root/dev" "$WORK/root/proc" "$WORK/into"
bash -uc '
  work=$WORK into=$WORK/into far=
  eval "$(sed -n "/^trap /p; /^rooted() {/,/^}/p" "$RELEASE")"
  rooted "$work/root" sleep 60
' & script=$!
for _ in $(seq 600); do [ -e "$WORK.ready" ] && break; sleep 0.1; done
kill -TERM $script
wait $script
kill "$(cat "$WORK.ready")"
[ -e /dev/marker ] && [ -c /dev/null ] && [ ! -e "$WORK" ] && echo survived
"""


@pytest.mark.privileged
def test_a_release_that_is_broken_off_leaves_the_hosts_devices(tmp_path):
    """The directory that it deletes has no mount of the host's in it."""
    work, bin = tmp_path / "work", tmp_path / "bin"
    bin.mkdir()
    work.mkdir()
    # in place of the program in that root: sees the devices there
    (bin / "chroot").write_text('#!/bin/sh\n[ -e "$1/dev/marker" ] && echo $$ >"$WORK.ready"\nexec sleep 60\n')
    (bin / "chroot").chmod(0o755)
    env = {"PATH": f"{bin}:{os.environ['PATH']}", "WORK": str(work), "RELEASE": str(ROOT / "scripts/release")}
    command = ["unshare", "--mount", "--propagation", "private", "bash", "-uc", ROOTED]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=PATIENCE_S)
    assert done.stdout.endswith("survived\n"), done.stderr
