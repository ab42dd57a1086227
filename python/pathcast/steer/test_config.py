"""The controller's file: what it says, and what is refused."""

from __future__ import annotations

import copy
import tomllib

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.steer import config
from pathcast.steer.config import Config
from pathcast.steer.rules import Port

EXAMPLE = tomllib.loads(
    """
listen = "tcp:127.0.0.1:6653"
[[switch]]
name = "s1"
id = 1
[[switch]]
name = "s2"
id = 2
[[host]]
address = "10.0.0.2"
at = "s1:1"
[[link]]
ends = ["s1:2", "s2:2"]
[[path]]
name = "cable"
via = ["s1:2"]
"""
)


def test_what_it_says():
    told = Config.of(EXAMPLE)
    assert told.hosts() == {"10.0.0.2": Port(1, 1)}
    assert told.links() == {Port(1, 2): Port(2, 2), Port(2, 2): Port(1, 2)}
    assert told.paths() == {"cable": (Port(1, 2),)}
    assert Config.of({}).listen == config.LISTEN


def test_the_example_of_its_documentation_is_one(tmp_path):
    text = config.__doc__.split("\n\n")[1]
    (tmp_path / "s.toml").write_text(text.replace("id = 1\n", 'id = 1\n[[switch]]\nname = "s2"\nid = 2\n'))
    assert list(Config.load(tmp_path / "s.toml").paths()) == ["cable"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda c: c.update(listn="x"), "`listn`; allowed: listen, switch"),
        (lambda c: c["switch"][0].update(dpid=1), r"`switch\.dpid`; allowed: name, id"),
        (lambda c: c.update(switch={"name": "s1"}), r"\[\[switch\]\]"),
        (lambda c: c.update(host=["10.0.0.1"]), "no table"),
        (lambda c: c["switch"][1].update(id=1), "twice"),
        (lambda c: c["switch"][1].update(id=0), "datapath id 0"),
        (lambda c: c["switch"][1].update(id="2"), "not int"),
        (lambda c: c["switch"][1].update(name="s 2"), "`s 2`"),
        (lambda c: c["host"][0].update(at="s9:1"), "no switch `s9`; allowed: s1, s2"),
        (lambda c: c["host"][0].update(at="s1:x"), "SWITCH:PORT"),
        (lambda c: c["host"][0].update(at="s1:0"), "SWITCH:PORT"),
        (lambda c: c["host"][0].update(address="10.0.0.300"), r"10\.0\.0\.300"),
        (lambda c: c["host"].append(c["host"][0]), "twice"),
        (lambda c: c["link"][0].update(ends=["s1:2"]), "two ports of two"),
        (lambda c: c["link"][0].update(ends=["s1:2", "s1:3"]), "two ports of two"),
        (lambda c: c["link"].append({"ends": ["s1:2", "s2:3"]}), "already"),
        (lambda c: c["path"].append(c["path"][0]), "twice"),
        (lambda c: c["path"][0].update(name=""), "a name is"),
        (lambda c: c.update(drain_s=61), "0 to 60"),
    ],
)
def test_what_is_wrong_is_named(change, told):
    bad = copy.deepcopy(EXAMPLE)
    change(bad)
    with pytest.raises(PathcastError, match=told) as caught:
        Config.of(bad)
    assert caught.value.exit == Exit.USAGE


def test_files_that_are_none_are_named(tmp_path):
    with pytest.raises(PathcastError, match=r"cannot read .*none\.toml"):
        Config.load(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("listen =")
    with pytest.raises(PathcastError, match=r"bad\.toml is not TOML"):
        Config.load(tmp_path / "bad.toml")
    (tmp_path / "bad.toml").write_text("a = 1")
    with pytest.raises(PathcastError, match=r"bad\.toml: there is no key `a`"):
        Config.load(tmp_path / "bad.toml")
