"""`pathcast steer`: what it takes and refuses, and, over Open vSwitch, what it does, leaves, takes over, and undoes."""

from __future__ import annotations

import json
import os
import signal
import socket

import pytest

from pathcast.service import doctor
from pathcast.steer.client import Client
from pathcast.steer.kept import Kept, load, place, store
from pathcast.steer.testing import Bed


@pytest.fixture
def up(pathcast, site):
    """Starts a controller at a port of the system's choice."""
    yield lambda *words: pathcast("steer", "up", "--listen", "tcp:127.0.0.1:0", *words)
    pathcast("undo", "--all")


def test_it_stands_and_goes(pathcast, site, up):
    done = up("--json")
    assert done.returncode == 0, done.stderr
    listen = json.loads(done.stdout)["listen"]
    socket.create_connection(("127.0.0.1", int(listen.rpartition(":")[2]))).close()
    [one] = pathcast("steer", "status", "--json").json["controllers"]
    assert (one["name"], one["listen"], one["switches"], one["notes"]) == ("steer", listen, [], [])
    assert f"steer listens at {listen}" in pathcast("steer", "status").stdout
    second = up()
    assert second.returncode == 1
    assert "controller of switches `steer` is there already" in second.stderr
    other = pathcast("steer", "up", "--listen", listen, "--name", "other", "--json")
    assert (other.returncode, other.error["code"]) == (1, "in-use")
    assert pathcast("steer", "down").stdout == "steer is down\n"
    assert site.empty()
    assert "no controller runs" in pathcast("steer", "status").stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["up", "none.toml"], "cannot read none.toml"),
        (["up", "--listen", "here"], "no place to listen at"),
        (["up", "--name", "A b"], "is not a name"),
        (["set", "10.0.0.1:1", "10.0.0.2:1", "p"], "there is no controller of switches `steer`; running: none"),
        (["set", "10.0.0.1", "10.0.0.2:1", "p"], "not ADDRESS:PORT"),
        (["set", "10.0.0.1:1", "10.0.0.2:70000", "p"], "0 to 65535"),
        (["unset", "10.0.0.1:1", "[fd00::1]:1"], "two IP versions"),
        (["down"], "running: none"),
        (["down", "--nam"], "--help"),
    ],
)
def test_wrong_words_are_2(pathcast, site, words, told):
    done = pathcast("steer", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert site.empty()


def test_what_down_cannot_remove_is_told_and_left_to_undo(pathcast, site, tmp_path, up):
    listen = f"unix:{tmp_path}/of"
    file = place(site.path, "steer")
    file.parent.mkdir(mode=0o700, exist_ok=True)
    store(file, Kept(listen, 1 << 62, {"s7": 7}))  # of one that was killed
    assert pathcast("steer", "up", "--listen", listen).returncode == 0
    done = pathcast("steer", "down", "--json")
    assert done.returncode == 1
    [told] = json.loads(done.stdout)["not_removed"]
    assert told == (
        f"not removed: entries of steer steer in s7: not connected to {listen}; if they are no more, remove {file}"
    )
    assert told in done.stderr
    assert load(file).switches == {"s7": 7}
    file.unlink()
    assert site.empty()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it(pathcast, site, up, wait_for, number):
    up()
    [pid] = site.processes()
    os.kill(pid, number)
    assert wait_for(site.empty)


@pytest.fixture(scope="module")
def bed(tmp_path_factory):
    if lacking := doctor.missing("privilege", "iproute2", "namespaces", "openvswitch"):
        pytest.skip(", ".join(f"{c.name}: {c.detail}" for c in lacking))
    with Bed(tmp_path_factory.mktemp("b") / "b") as bed:
        yield bed


ONE, TWO = (("10.9.0.1:40001", "10.9.0.2:5001"), ("10.9.0.1:40002", "10.9.0.2:5001"))


@pytest.mark.privileged
def test_its_life_over_switches(pathcast, site, bed, tmp_path, wait_for):
    told = bed.told(links=True)
    lines = [f'listen = "{told["listen"]}"']
    for kind in ("switch", "host", "link", "path"):
        for one in told[kind]:
            lines += [f"[[{kind}]]", *(f"{key} = {json.dumps(value)}" for key, value in one.items())]
    (tmp_path / "s.toml").write_text("\n".join(lines))

    def status():
        return Client(site.path / "steer-steer.sock").state()

    def stands():
        assert pathcast("steer", "up", tmp_path / "s.toml").returncode == 0
        assert wait_for(lambda: [s["connected"] for s in status()["switches"]] == [True] * 3)
        assert wait_for(lambda: [link["stands"] for link in status()["links"]] == [True] * 4)

    try:
        bed.connect()
        stands()
        done = pathcast("steer", "set", *ONE, "path3")
        assert done.stdout == "10.9.0.1:40001 > 10.9.0.2:5001 goes over path3\n"
        done = pathcast("steer", "set", *ONE, "path9")
        assert done.returncode == 2
        assert "no path `path9`; allowed: path1, path2, path3" in done.stderr
        before = bed.entries()
        done = pathcast("steer", "set", *TWO, "path3", "--json")
        assert (done.returncode, done.error["code"]) == (1, "switch")
        for words in ("switch `s3`", "`tcp 10.9.0.1:40002 > 10.9.0.2:5001` from port 1 to port 2", "its table is full"):
            assert words in done.error["message"]
        assert bed.entries() == before
        shown = pathcast("steer", "status").stdout
        for words in (
            "s1 ",
            "path3 ",
            "s1:4 > s3:2",
            "10.9.0.1 at s1:1 (told)",
            "tcp 10.9.0.1:40001 > 10.9.0.2:5001: path3",
        ):
            assert words in shown

        [pid] = site.processes()
        os.kill(pid, signal.SIGKILL)
        assert wait_for(lambda: not site.processes())
        assert bed.entries() == before  # flows stay
        stands()
        assert [flow["path"] for flow in status()["flows"]] == ["path3"]
        assert bed.entries() == before

        assert pathcast("steer", "down", "--keep").stdout == "steer is down; its entries stay\n"
        assert bed.entries() == before
        done = pathcast("undo")
        assert "removed entries of steer steer in s1, s2, s3" in done.stdout
        assert bed.entries() == {"s1": [], "s2": [], "s3": []}
        assert site.empty()
    finally:
        pathcast("undo", "--all")
