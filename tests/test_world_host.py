"""World `host`: `serve` in one namespace, everything else from another, as between two machines."""

from __future__ import annotations

import contextlib
import json
import sys

import pytest
from conftest import COMMAND

pytestmark = pytest.mark.privileged

TRANSFER = """
import json, sys
from pathlib import Path
from pathcast.errors import PathcastError
from pathcast.worlds.host import Host
try:
    with Host(sys.argv[1], Path(sys.argv[2])) as world:
        names = [p.name for p in world.paths]
        probe = world.tcp_probe(names[-1], 64_000)
        transfer = world.transfer(names, 16_000_000, plain=True)  # so that each carries some
        print(json.dumps({"names": names, "probe": probe.document(), "transfer": transfer.document(),
                          "by_path": transfer.bytes_by_path(names)}))
except PathcastError as error:
    print(json.dumps(error.document()))
"""


@pytest.fixture
def key_file(pathcast, tmp_path):
    assert pathcast("serve", "--new-key", tmp_path / "key").returncode == 0
    return tmp_path / "key"


@pytest.fixture
def far_end(start, net, key_file):
    """`serve` on the server of a network; `before` is run there first."""

    def far_end(*arguments, before="true"):
        inside = ("net", "exec", net, "server", "--", "sh", "-c", f'{before}; exec "$@"', "sh")
        process = start(*inside, COMMAND, "serve", "--key-file", key_file, "--json", *arguments)
        text = ""
        for line in process.stdout:
            text += line
            with contextlib.suppress(ValueError):
                return json.loads(text)
        raise AssertionError(process.stderr.read())

    return far_end


@pytest.fixture
def client(pathcast, net, key_file):
    """Transfers from the client of that network."""

    def client(before="true"):
        inside = ("net", "exec", net, "client", "--", "sh", "-c", f'{before}; exec "$@"', "sh")
        done = pathcast(*inside, sys.executable, "-c", TRANSFER, "10.77.1.1", key_file)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return client


def test_paths_are_found_and_carry(pathcast, far_end, client, net, key_file):
    about = far_end()
    assert about["mptcp"] is True
    inside = ("net", "exec", net, "client", "--", COMMAND, "paths", "10.77.1.1", "--key-file", key_file)
    done = pathcast(*inside, "--json")
    assert done.returncode == 0
    pairs = [(p["local"], p["remote"]) for p in done.json["paths"]]
    assert pairs == [("10.77.1.2", "10.77.1.1"), ("10.77.2.2", "10.77.2.1")]
    assert {p["interface"] for p in done.json["paths"]} == {"p1", "p2"}
    assert all(u["reason"] for u in done.json["unusable"])
    assert "10.77.2.1" in pathcast(*inside).stdout

    result = client()
    assert result["names"] == ["path1", "path2"]
    assert [s["path"] for s in result["probe"]["subflows"]] == ["path2"]
    assert result["transfer"]["fallback"] is None
    assert min(result["by_path"]) > 0
    assert sum(result["by_path"]) >= 16_000_000


def test_from_a_user_shell_a_wrong_key_is_4_and_a_closed_port_1(pathcast, far_end, net, tmp_path):
    far_end()
    other = tmp_path / "other"
    pathcast("serve", "--new-key", other)
    inside = ("net", "exec", net, "client", "--", COMMAND, "paths")
    assert pathcast(*inside, "10.77.1.1", "--key-file", other).returncode == 4
    assert pathcast(*inside, "10.77.1.1:5999", "--key-file", other).returncode == 1


def test_a_client_without_mptcp_is_told(far_end, client):
    far_end()
    error = client("echo 0 > /proc/sys/net/mptcp/enabled")["error"]
    assert (error["code"], error["exit"]) == ("no-mptcp", 5)
    assert "net.mptcp.enabled=1" in error["hint"]


def test_a_far_end_without_mptcp_falls_back_and_says_so(far_end, client):
    about = far_end(before="echo 0 > /proc/sys/net/mptcp/enabled")
    assert about["mptcp"] is False
    result = client()
    assert result["transfer"]["fallback"] == "the far end has no MPTCP"
    assert result["transfer"]["bytes"] == 16_000_000
