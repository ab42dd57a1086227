"""`pathcast doctor` and `pathcast undo`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from conftest import eventually

from pathcast.history import place
from pathcast.history.spool import Spool

CHECKS = {"kernel", "privilege", "iproute2", "namespaces", "tun", "mptcp", "path manager", "controllers"}


def check(document, name):
    return next(c for c in document["checks"] if c["name"] == name)


def test_doctor_as_json(pathcast, site):
    done = pathcast("doctor", "--json")
    assert done.returncode == 0
    assert done.json["schema"] == "pathcast.doctor/1"
    assert {c["name"] for c in done.json["checks"]} >= CHECKS
    for c in done.json["checks"]:
        assert c["status"] in ("ok", "degraded", "missing")
        assert c["detail"]
        assert c["needed_for"]
        assert c["status"] == "ok" or c["mend"]
    assert done.json["changed"] == []


def test_doctor_for_people(pathcast, site):
    done = pathcast("doctor")
    assert done.returncode == 0
    assert "mptcp" in done.stdout
    assert "pathcast has changed nothing on this host" in done.stdout


def test_doctor_tries_the_history(pathcast, site, tmp_path):
    def told(where):
        return check(pathcast("doctor", "--json", env={"PATHCAST_HISTORY": str(where)}).json, "history")

    assert told("off")["detail"] == "PATHCAST_HISTORY=off"
    assert told(tmp_path / "none.db")["detail"] == f"{tmp_path}/none.db, nothing yet"
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "diary").write_text("dear diary\n" * 100)
    assert told(tmp_path / "diary")["status"] == "degraded"
    wrong = told("postgresql://me:s3cret@127.0.0.1:9/weeks")
    assert (wrong["status"], "s3cret" in str(wrong), "cannot be reached" in wrong["detail"]) == (
        "degraded",
        False,
        True,
    )


@pytest.mark.parametrize(("number", "words"), [(1, "; 1 act waits in "), (2, "; 2 acts wait in ")])
def test_doctor_tells_what_waits_for_the_history(pathcast, site, tmp_path, number, words):
    where = place.parse(str(tmp_path / "h.db"))
    for n in range(number):
        Spool(where.spool).put(f"a{n}", {})
    done = pathcast("doctor", "--json", env={"PATHCAST_HISTORY": str(tmp_path / "h.db")})
    assert words in check(done.json, "history")["detail"]


def test_doctor_leaves_nothing(pathcast, site):
    def tried():
        place = Path("/run/netns")
        return {n for n in os.listdir(place) if n.startswith("pc-doctor-")} if place.exists() else set()

    before = tried()
    pathcast("doctor")
    new = tried() - before
    assert eventually(lambda: not new & tried()), new  # another test's doctor may just be trying
    assert site.empty()


def test_a_reflectors_address_is_no_far_end(pathcast, site):
    done = pathcast("doctor", "--host", "stamp://192.0.2.1", "--json")
    assert done.returncode == 2
    assert "HOST or HOST:PORT of a `pathcast serve`" in done.json["error"]["message"]
    assert "pathcast measure stamp://192.0.2.1" in done.json["error"]["hint"]


@pytest.mark.privileged
def test_a_user_without_rights_is_told_what_is_missing_and_its_mend(pathcast, open_site, nobody):
    done = pathcast("doctor", "--json", prefix=nobody)
    assert done.returncode == 0
    for name in ("privilege", "namespaces"):
        assert check(done.json, name)["status"] == "missing"
        assert "root" in check(done.json, name)["mend"]
    assert check(done.json, "mptcp")["status"] == "ok"


@pytest.mark.privileged
def test_a_namespace_without_mptcp(pathcast, site):
    script = 'echo 0 > /proc/sys/net/mptcp/enabled && exec "$@"'
    done = pathcast("doctor", "--json", prefix=("unshare", "--net", "sh", "-c", script, "sh"))
    assert done.returncode == 0
    assert check(done.json, "mptcp")["status"] == "missing"
    assert "net.mptcp.enabled=1" in check(done.json, "mptcp")["mend"]


@pytest.mark.privileged
def test_a_path_manager_left_at_user_space_is_said(pathcast, site):
    script = (
        '[ -e /proc/sys/net/mptcp/path_manager ] || exit 9; echo userspace > /proc/sys/net/mptcp/path_manager; "$@"'
    )
    done = pathcast("doctor", "--json", prefix=("unshare", "--net", "sh", "-c", script, "sh"))
    if done.returncode == 9:  # before Linux 6.15 there is no such name
        return
    assert check(done.json, "path manager")["status"] == "degraded"
    assert "path_manager=kernel" in check(done.json, "path manager")["mend"]


@pytest.mark.privileged
def test_a_machine_without_tun(pathcast, site):
    done = pathcast(
        "doctor", "--json", prefix=("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /dev/net; exec "$@"', "sh")
    )
    assert check(done.json, "tun")["status"] == "missing"
    assert "modprobe tun" in check(done.json, "tun")["mend"]


@pytest.mark.privileged
def test_doctor_lists_a_network_that_is_up(pathcast, net):
    [part] = pathcast("doctor", "--json").json["changed"]
    assert (part["kind"], part["id"], part["alive"]) == ("net", net, True)
    assert part["made"] == {"namespaces": [f"pc-{net}-client", f"pc-{net}-server"]}
    assert f"net {net} (process {part['pid']}): pc-{net}-client" in pathcast("doctor").stdout


def stale(site, id="gone"):
    made, about = {"namespaces": [f"pc-{id}-client"]}, {"hosts": {"client": f"pc-{id}-client"}}
    record = {"kind": "net", "id": id, "pid": 1, "started": 1, "made": made, "about": about}
    (site.path / f"net-{id}.json").write_text(json.dumps(record))


def test_doctor_shows_what_was_left_behind_and_undo_removes_it(pathcast, site):
    stale(site)
    assert "net gone (left behind; `pathcast undo` removes it)" in pathcast("doctor").stdout
    done = pathcast("undo", "--json")
    assert done.returncode == 0
    assert done.json == {
        "schema": "pathcast.undo/1",
        "removed": [str(site.path / "net-gone.json")],
        "not_removed": [],
        "running": [],
    }
    assert site.empty()
    assert pathcast("undo").stdout == "nothing was left behind\n"


@pytest.mark.privileged
def test_undo_leaves_the_living_unless_told(pathcast, net, site):
    stale(site)
    done = pathcast("undo")
    assert f"removed {site.path}/net-gone.json" in done.stdout
    assert f"running, left alone: net {net}" in done.stdout
    assert len(site.namespaces()) == 2
    done = pathcast("undo", "--all", "--json")
    assert done.json["removed"] == [f"net {net}"]
    assert done.json["running"] == []
    assert site.empty()
    assert not Path("/run/netns", f"pc-{net}-client").exists()
