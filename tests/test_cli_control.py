"""`pathcast control`: controllers come into the kernel, are shown, changed and go; and everything that is refused."""

from __future__ import annotations

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from conftest import PATIENCE_S

from pathcast.control import kernel

privileged = pytest.mark.privileged


def registered():
    return Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()


@pytest.fixture
def loaded(start, pathcast, site, wait_for):
    """Starts `control load NAME …` and waits until it stands: the process, and what it is."""

    def load(*arguments):
        process = start("control", "load", *arguments, "--json")
        lines = [process.stdout.readline()]
        while lines[-1].rstrip() != "}":
            lines.append(process.stdout.readline())
            assert lines[-1], process.stderr.read()
        return process, json.loads("".join(lines))

    return load


def controllers(pathcast, name):
    [control] = pathcast("control", "list", name, "--json").json["controllers"]
    return control


@privileged
def test_a_held_one_lives_as_long_as_its_command(loaded, pathcast, site, wait_for):
    process, about = loaded("lp", "--set", "lp.delta=200")
    kernel_name = about["kernel_name"]
    assert kernel_name.startswith("pc_lp")
    assert about["parameters"]["delta"] == 200
    assert kernel_name in registered()
    listed = controllers(pathcast, "lp")
    assert (listed["loaded"], listed["pinned"], listed["version"]) == (True, None, about["version"])
    assert "held by process" in pathcast("control", "list").stdout
    [shown] = pathcast("control", "show", "--json").json["controllers"]
    assert (shown["kernel_name"], shown["flows"], shown["ended"]) == (kernel_name, [], [])
    changed = pathcast("control", "set", "lp", "delta=150", "--json").json
    assert changed["parameters"]["delta"] == 150
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == 130
    assert wait_for(lambda: kernel_name not in registered())
    assert wait_for(site.empty)
    assert controllers(pathcast, "lp")["loaded"] is False


@privileged
def test_a_killed_command_leaves_nothing(loaded, site, wait_for):
    process, about = loaded("nice")
    process.kill()
    process.wait()
    assert wait_for(lambda: about["kernel_name"] not in registered())
    assert wait_for(site.empty)


@privileged
def test_a_killed_holder_leaves_a_record_that_the_next_start_removes(loaded, pathcast, site, wait_for):
    _, about = loaded("nice")
    [record] = [json.loads(p.read_text()) for p in site.path.glob("control-*.json")]
    os.kill(record["pid"], signal.SIGKILL)
    assert wait_for(lambda: about["kernel_name"] not in registered())
    pathcast("undo")
    assert not list(site.path.glob("control-*.json"))


@privileged
def test_unloaded_by_another(loaded, pathcast, site, wait_for):
    process, about = loaded("ledbatpp")
    assert pathcast("control", "unload", "ledbatpp").stdout == f"{about['kernel_name']} is unloaded\n"
    assert process.wait(PATIENCE_S) == 1
    assert "unloaded by somebody else" in process.stderr.read()
    assert wait_for(site.empty)


@privileged
def test_many_at_once_have_names_of_their_own(site):
    with ThreadPoolExecutor(6) as pool, ExitStack() as stack:
        parts = [stack.enter_context(part) for part in pool.map(kernel.hold, ["nice"] * 6)]
        assert len({part.record.about["kernel_name"] for part in parts}) == 6
        assert len(kernel.instances()) == 6
    assert kernel.instances() == []


@privileged
def test_a_pinned_one_stays_until_it_is_unloaded(pathcast, site, wait_for):
    try:
        about = pathcast("control", "load", "gsam", "--set", "st_div=4", "--pin", "--json").json
        name, pin = about["kernel_name"], Path(about["pinned"])
        assert site.empty()
        assert name in registered()
        assert pin.is_dir()
        listed = controllers(pathcast, "gsam")
        assert (listed["loaded"], listed["pinned"], listed["version"]) == (True, str(pin), about["version"])
        assert pathcast("control", "set", name, "st_div=16", "--json").json["parameters"]["st_div"] == 16
        [shown] = pathcast("control", "show", "gsam", "--json").json["controllers"]
        assert shown["parameters"]["st_div"] == 16
        assert str(pin) in pathcast("doctor").stdout

        second = pathcast("control", "load", "gsam", "--pin", "--json").json
        assert second["kernel_name"] not in (name, "pc_gsam")
        both = pathcast("control", "unload", "gsam", "--json")
        assert both.error["message"].startswith("`gsam` is loaded 2 times; choose one: ")
        assert pathcast("control", "unload", name).returncode == 0
        assert wait_for(lambda: name not in registered())
        assert not pin.exists()
        undone = pathcast("undo", "--json").json["removed"]
        assert any(second["kernel_name"] in what for what in undone)
        assert wait_for(lambda: second["kernel_name"] not in registered())
    finally:
        pathcast("undo")


@privileged
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["load", "css"], "`css` is for the simulator only; allowed: reno, cubic, lia"),
        (["load", "vegas"], "there is no controller `vegas`; allowed: reno, cubic, lia"),
        (["load", "nice", "--set", "parts_most=0"], "`nice.parts_most` is 0; allowed: "),
        (["load", "nice", "--set", "nope=1"], "nope"),
        (["load", "nice", "--set", "lp.delta=1"], "--set `lp.delta=1` is of `lp`"),
        (["load", "nice", "--set", "fraction"], "--set `fraction` is not PARAMETER=VALUE"),
        (["load", "nice", "--set", "fraction=-1"], "`-1` is not a whole number"),
        (["unload", "nice"], "`nice` is not loaded by pathcast; loaded: none"),
        (["show", "reno"], "`reno` is not loaded by pathcast; loaded: none"),
        (["set", "nice", "fraction=1"], "`nice` is not loaded by pathcast; loaded: none"),
    ],
)
def test_refused_with_what_is_allowed(pathcast, site, arguments, words):
    done = pathcast("control", *arguments, "--json")
    assert done.returncode == 2
    assert words in done.error["message"]
    assert words in done.stderr
    assert site.empty()


def test_without_rights_what_is_missing_is_named(pathcast, nobody, open_site):
    if not nobody:
        pytest.skip("not root: cannot become a user without rights")
    for arguments in (["load", "nice"], ["load", "nice", "--pin"]):
        done = pathcast("control", *arguments, "--json", prefix=nobody)
        assert done.returncode == 5
        assert done.error["hint"]
    listed = pathcast("control", "list", "--json", prefix=nobody)
    assert listed.returncode == 0
    assert all(c["loaded"] is False for c in listed.json["controllers"])
