"""The list of what routes were set: what cannot be read is said, kept, and never taken for nothing. A line is written
only with the routes that were asked for."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace

import pytest

from pathcast.cli.runner import run
from pathcast.errors import Exit, PathcastError
from pathcast.lines import config, edit, here, routes
from pathcast.lines.config import Line

SET = [{"line": "cable", "namespace": "net:[1]", "command": ["-4", "rule", "add"]}]
WHOLE = json.dumps(SET)


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("PATHCAST_RUN_DIR", str(tmp_path))
    monkeypatch.setattr(routes, "_ip", lambda words: pytest.fail(f"ip {words}"))
    monkeypatch.setattr(routes.os, "geteuid", lambda: 0)
    return tmp_path / "routes.list"


@pytest.mark.parametrize(
    "text",
    [
        *("", WHOLE[:-1], WHOLE[:20], "{}", "null", "[1]", '[{"line": "cable"}]', "\x00\x00"),
        *(WHOLE.replace('["-4", "rule", "add"]', of) for of in ("[]", '"rule"', '["-4", 7]', '["-4"]')),
    ],
)
def test_a_broken_list_is_told_and_kept(file, text):
    file.write_text(text)
    line = Line(name="cable", id="x", dev="lo")
    for act in (
        routes.recorded,
        routes.remove,
        lambda: routes.remove("cable"),
        lambda: routes.set_up(line, [["-4", "rule", "add", "from", "192.0.2.1", "lookup", "7700"]]),
    ):
        with pytest.raises(PathcastError, match="cannot read") as told:
            act()
        assert str(file) in told.value.message
        assert "7700 to 8699" in told.value.hint
    assert file.read_text() == text


def test_one_that_may_not_be_read_or_is_none(file):
    assert (routes.recorded(), routes.remove()) == ([], [])
    file.mkdir()
    with pytest.raises(PathcastError, match="cannot read"):
        routes.recorded()


def test_undo_goes_on_and_says_it(file, capsys):
    file.write_text(WHOLE[:-1])
    assert run(["undo"]) == Exit.RUNTIME
    assert f"not removed: cannot read `{file}`" in capsys.readouterr().out
    assert file.exists()


def test_what_another_namespace_has_set_stays(file):
    file.write_text(WHOLE)
    assert routes.remove() == []
    assert json.loads(file.read_text()) == SET


ADD = ["line", "add", "third", "--from", "10.77.3.2", "--routes"]
SET_THIRD = ["line", "set", "third", "--prefer", "2", "--routes"]
GATEWAY = ["--gateway", "10.77.3.1"]


@pytest.fixture
def host(file, tmp_path, monkeypatch):
    """A host with a second address whose packets leave by another device; the rules and routes that it was given."""
    monkeypatch.setenv("PATHCAST_CONFIG", str(tmp_path / "pathcast.toml"))
    monkeypatch.setenv("PATHCAST_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(here, "addresses", lambda: [here.Address("eth2", "10.77.3.2", 24)])
    monkeypatch.setattr(here, "ip", lambda *words: [{"dev": "eth0"}] if words[:2] == ("route", "get") else [])
    made = []

    def ip(words):
        if words[2] != "del":
            made.append(words)
            return
        of = [*words[:2], "add" if words[1] == "rule" else "replace", *words[3:]]
        if of not in made:
            raise PathcastError("ip", "no such rule or route")
        made.remove(of)

    monkeypatch.setattr(routes, "_ip", ip)
    return made


def refused(error):
    def refuse(*_):
        raise error

    return refuse


def test_a_line_is_written_with_its_routes_or_not_at_all(host, file, monkeypatch, capsys):
    assert run(ADD) == Exit.USAGE
    assert "--gateway ADDRESS" in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr(routes, "os", SimpleNamespace(**{**vars(os), "geteuid": lambda: 1000}))
        assert run([*ADD, *GATEWAY]) == Exit.MISSING
    with monkeypatch.context() as patch:
        ip, no = routes._ip, refused(PathcastError("ip", "no"))
        patch.setattr(routes, "_ip", lambda words: no() if words[1:3] == ["rule", "add"] else ip(words))
        assert run([*ADD, *GATEWAY]) == Exit.RUNTIME
    with monkeypatch.context() as patch:
        patch.setattr(edit, "_write", refused(PathcastError("config", "the disc is full")))
        assert run([*ADD, *GATEWAY]) == Exit.RUNTIME
    assert (host, config.file().exists(), file.exists()) == ([], False, False)
    assert run([*ADD, *GATEWAY]) == Exit.OK
    assert ([words[1] for words in host], len(routes.recorded())) == (["route", "route", "rule"], 3)
    assert list(config.load()) == ["third"]


def test_a_line_whose_routes_are_refused_stays_as_it_was(host):
    assert run([*ADD, *GATEWAY]) == Exit.OK
    before, made = config.file().read_text(), list(host)
    assert run(SET_THIRD) == Exit.USAGE
    assert (config.file().read_text(), host) == (before, made)
    assert run([*SET_THIRD, *GATEWAY]) == Exit.OK
    assert config.load()["third"].prefer == 2


def test_every_address_has_a_table_that_nobody_uses(file, monkeypatch):
    rules = [{"table": "7701", "priority": 7701}, {"table": "main", "priority": 7703}]
    monkeypatch.setattr(here, "ip", lambda *words: rules if words[1:] == ("rule", "show") else [])
    own = [here.Address("eth1", f"10.0.0.{number}", 24) for number in (1, 2, 3)]
    monkeypatch.setattr(here, "addresses", lambda: own)
    monkeypatch.setattr(routes, "_leaves", lambda one: False)
    made = routes.lacking(Line("cable", dev="eth1"), {4: "10.0.0.254"})
    assert [words[-1] for words in made if words[1] == "rule"] == ["7700", "7702", "7704"]


BOTH = ["line", "add", "cable", "--from", "192.0.2.2", "--from", "2001:db8::2", "--routes"]
VIA4, VIA6 = ["--gateway", "192.0.2.1"], ["--gateway", "fe80::1"]


@pytest.fixture
def both(host, monkeypatch):
    """The host's line has an address of each family."""
    of = [here.Address("eth2", "192.0.2.2", 24), here.Address("eth2", "2001:db8::2", 64)]
    monkeypatch.setattr(here, "addresses", lambda: of)
    return host


def defaults(made):
    return [(words[0], words[words.index("via") + 1]) for words in made if "default" in words]


def test_a_gateway_is_for_the_addresses_of_its_family(both, capsys):
    assert run([*BOTH, *VIA4]) == Exit.USAGE
    told = capsys.readouterr().err
    assert "the IPv6 gateway of line `cable` is not known" in told
    assert (both, config.file().exists()) == ([], False)
    assert run([*BOTH, *VIA6, *VIA4]) == Exit.OK
    assert defaults(both) == [("-4", "192.0.2.1"), ("-6", "fe80::1")]


def test_the_gateway_of_one_family_may_be_known(both, monkeypatch):
    def ip(*words):
        if words[:2] == ("-6", "route"):
            return [{"dst": "default", "gateway": "fe80::7"}]
        return [{"dev": "eth0"}] if words[:2] == ("route", "get") else []

    monkeypatch.setattr(here, "ip", ip)
    assert run([*BOTH, *VIA4]) == Exit.OK
    assert defaults(both) == [("-4", "192.0.2.1"), ("-6", "fe80::7")]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--gateway", "router"], "--gateway router: "),
        ([*VIA4, "--gateway", "192.0.2.9"], "--gateway 192.0.2.9: "),
    ],
)
def test_a_gateway_that_is_none_or_one_too_many_is_refused(both, capsys, words, told):
    for routed in (BOTH, BOTH[:-1]):
        assert run([*routed, *words]) == Exit.USAGE
        assert told in capsys.readouterr().err
    assert (both, config.file().exists()) == ([], False)
