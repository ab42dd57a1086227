"""The file of the lines: what it takes, what it refuses and how, and what a change leaves as it was."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.lines import config, edit
from pathcast.lines.config import Cap, Line

WHOLE = """# the office's lines
[line.cable]   # until 2028
from  = "10.77.2.2"
dev = "eth1"
cap = "1TB/month"
reset = 15
price = "0.5/GB"
use = ["22:00-06:00", "12:00 - 13:00"]
prefer = 2

[line.dsl]
dev = "ppp0"
"""


def test_a_line_is_read_whole():
    found = config.parse(WHOLE, "f")
    cap = Cap(10**12, "month", 15)
    hours = ((1320, 360), (720, 780))
    assert found["cable"] == Line("cable", ("10.77.2.2",), "eth1", cap, 0.5e-9, hours, 2)
    assert found["dsl"] == Line("dsl", (), "ppp0")
    assert found["cable"].has("10.77.2.2", None)
    assert not found["cable"].has("10.77.2.3", "eth1")  # an address is more than a device
    assert found["dsl"].has("10.0.0.9", "ppp0")


@pytest.mark.parametrize(
    ("old", "new", "where", "told"),
    [
        ('cap = "1TB/month"', 'cap = "1TB/year"', ":5", 'cap = "1TB/year"'),
        ('cap = "1TB/month"', 'cap = "lots/month"', ":5", "lots"),
        ("reset = 15", "reset = 31", ":6", "reset = 31"),
        ('price = "0.5/GB"', 'price = "cheap"', ":7", "cheap"),
        ('price = "0.5/GB"', "price = true", ":7", "True"),
        ('price = "0.5/GB"', 'price = "1/0GB"', ":7", "1/0GB"),
        ('cap = "1TB/month"', 'cap = "0.4B/month"', ":5", "0.4B"),
        ('"10.77.2.2"', '"0.0.0.0"', ":3", "0.0.0.0"),
        ('"10.77.2.2"', '["10.77.2.2", "ff02::1"]', ":3", "ff02::1"),
        ('"22:00-06:00"', '"22-6"', ":8", "22-6"),
        ("prefer = 2", "prefer = 0", ":9", "prefer = 0"),
        ("prefer = 2", "prefers = 2", ":9", "`prefers` is not known"),
        ('"10.77.2.2"', '"10.77.2.300"', ":3", "10.77.2.300"),
        ("[line.dsl]", "[line.path2]", ":11", "`path2` cannot name a line"),
        ("[line.dsl]", "[line.DSL]", ":11", "`DSL` cannot name a line"),
        ("[line.dsl]", "[lines.dsl]", ":11", "`lines` is not known"),
        ('dev = "ppp0"', 'from = "10.77.2.2"', ":12", "is line `cable` already"),
        ('dev = "ppp0"', "prefer = 1", ":11", "neither `from` nor `dev`"),
        ('dev = "ppp0"', 'dev = "ppp0"\nid = "cable"', ":13", "`cable` is line `cable` already"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(old, new, where, told):
    assert old in WHOLE
    with pytest.raises(PathcastError) as error:
        config.parse(WHOLE.replace(old, new), "f.toml")
    assert error.value.exit == Exit.USAGE
    assert error.value.message.startswith(f"f.toml{where}: ")
    assert told in error.value.message
    assert error.value.hint


@pytest.mark.parametrize(
    ("told", "price"),
    [("1/GB", 1e-9), ("1/2GB", 0.5e-9), ("1/.5GB", 2e-9), ("1 / 0.5 GB", 2e-9), (".5/KB", 0.5e-3)],
)
def test_a_price_is_for_as_much_as_is_written(told, price):
    assert config.parse(f'[line.a]\ndev = "x"\nprice = "{told}"', "f")["a"].price == price


def test_no_toml_is_named_with_its_place():
    with pytest.raises(PathcastError, match=r"f: .*line 2"):
        config.parse("[line.cable]\nfrom 10.0.0.1\n", "f")


def test_comments_and_order_outlive_changes(tmp_path):
    file = tmp_path / "pathcast.toml"
    file.write_text(WHOLE)
    edit.change(file, "cable", {"cap": "2TB/month"}, without=("price",))
    edit.add(file, "lte", {"dev": "wwan0", "prefer": 3})
    edit.remove(file, "dsl")
    text = file.read_text()
    assert text.startswith("# the office's lines\n[line.cable]   # until 2028\n")
    assert 'cap = "2TB/month"' in text
    assert "price" not in text
    assert list(config.read(file)) == ["cable", "lte"]


def test_a_change_that_would_be_wrong_leaves_the_file(tmp_path):
    file = tmp_path / "new" / "pathcast.toml"
    edit.add(file, "cable", {"from": "10.0.0.1", "cap": "1GB/day"})
    before = file.read_text()
    for name, values in (
        ("cable", {"from": "10.0.0.2"}),
        ("dsl", {"from": "10.0.0.1"}),
        ("dsl", {}),
        ("all", {"dev": "x"}),
    ):
        with pytest.raises(PathcastError):
            edit.add(file, name, values)
    with pytest.raises(PathcastError, match="there is no line `dsl`; there are: cable"):
        edit.remove(file, "dsl")
    assert file.read_text() == before


def test_a_line_that_is_added_has_an_id_of_its_own(tmp_path, monkeypatch):
    """One that moved to another device keeps its id, by which its bytes are booked."""
    monkeypatch.setenv("PATHCAST_RUN_DIR", str(tmp_path / "run"))
    file = tmp_path / "pathcast.toml"
    assert edit.add(file, "a", {"dev": "eth0", "id": "eth0"}).id == "eth0"
    edit.change(file, "a", {"dev": "eth1"})
    assert edit.add(file, "b", {"dev": "eth0", "id": "eth0"}).id == "b"
    # a name that is another's id
    assert edit.add(file, "eth0", {"dev": "eth2"}).id == "eth0-2"
    assert edit.add(file, "c", {"dev": "eth3"}).id is None
    assert [line.known_by for line in config.read(file).values()] == ["eth0", "b", "eth0-2", "c"]


def test_what_is_no_text_is_said_by_changes_as_by_reading(tmp_path):
    file = tmp_path / "lines.toml"
    file.write_bytes(b'[line.dsl]\ndev = "\xff"\n')
    for call in (lambda: config.read(file), lambda: edit.change(file, "dsl", {"dev": "ppp0"})):
        with pytest.raises(PathcastError, match="it is not UTF-8 text") as caught:
            call()
        assert (caught.value.exit, "codec" in caught.value.message) == (Exit.USAGE, False)


def test_the_file_is_the_one_that_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATHCAST_CONFIG", str(tmp_path / "c.toml"))
    assert config.file() == tmp_path / "c.toml"
    assert config.load() == {}


def test_a_file_that_may_not_be_looked_at_is_none_and_that_is_said_once(tmp_path, monkeypatch, capsys):
    (tmp_path / "etc").mkdir()
    file = tmp_path / "etc/pathcast.toml"
    file.write_text(WHOLE)
    monkeypatch.delenv("PATHCAST_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    monkeypatch.setattr(config, "SYSTEM", file)
    assert list(config.load()) == ["cable", "dsl"]
    assert capsys.readouterr().err == ""
    stat = Path.stat

    def denied(path, **options):  # root may look everywhere
        if path == file:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", denied)
    assert config.load() == config.load() == {}
    told = f"pathcast: cannot look at `{file}` (Permission denied): its lines and caps, if any, are not known\n"
    assert capsys.readouterr().err == told
    assert not (tmp_path / "own").exists()


def test_two_who_change_the_file_at_once_lose_nothing(tmp_path):
    file = tmp_path / "pathcast.toml"
    names = [f"line{number}" for number in range(40)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda name: edit.add(file, name, {"dev": name}), names))
    assert sorted(config.read(file)) == sorted(names)
    assert [path.name for path in tmp_path.iterdir()] == ["pathcast.toml"]
