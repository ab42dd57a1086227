"""A signal ends every long-lived command, whatever it is doing and whichever thread the system gives the signal to."""

from __future__ import annotations

import ctypes
import json
import os
import random
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from conftest import COMMAND

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SLEEP = ("sleep", "80")
# a patience of pytest's own: a signal that is missed is one that never ends it
PATIENCE_S = 60

LONG = """
name = "long"
end = "100000s"
[[link]]
name = "l"
a = "client"
b = "server"
rate = "100Mbit"
delay = "1ms"
[[path]]
name = "path1"
links = ["l"]
[[flow]]
name = "f"
paths = ["path1"]
control = "reno"
start = "0s"
"""


def to_another_thread(pid: int, number: int) -> None:
    """To a thread that is not the main one, as the system may do; then no call of the main thread is interrupted."""

    def blocks(thread):
        status = Path(f"/proc/{pid}/task/{thread}/status").read_text()
        return int(status.partition("SigBlk:")[2].split()[0], 16) >> number - 1 & 1

    threads = [int(t) for t in os.listdir(f"/proc/{pid}/task") if int(t) != pid and not blocks(t)]
    assert threads, "it has none"
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.tgkill(pid, random.Random(number).choice(sorted(threads)), number) == 0, os.strerror(ctypes.get_errno())


@pytest.fixture
def long_lived(site, start, tmp_path, request):
    """Starts a long-lived command by its name: the process, and whether it stands."""

    def network():
        return request.getfixturevalue("net")

    def far_end():
        process = start("serve", "--port", "0", "--json")
        text = ""
        while not text.endswith("\n}\n"):
            text += process.stdout.readline()
        return json.loads(text)["listening"][0]

    def in_scenario():
        (tmp_path / "long.toml").write_text(LONG)
        return tmp_path / "long.toml"

    def asleep(pid):
        """Whether the program runs that this process has started."""
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return any(Path(f"/proc/{c}/cmdline").read_bytes().startswith(b"sleep\0") for c in children)

    def itself_asleep(pid):
        return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep\0")

    def said(_pid, out):
        return out.stat().st_size > 0

    commands = {
        "serve": lambda: (["serve", "--port", "0"], said),
        "sim": lambda: (["sim", in_scenario()], lambda pid, _: threads(pid) > 2),
        "measure": lambda: (["measure", far_end(), "--repeat", "2s", "--jsonl"], said),
        "run": lambda: (["run", "--", *SLEEP], lambda pid, _: asleep(pid)),
        "run --control": lambda: (["run", "--control", "imtcp_bg", "--", *SLEEP], lambda pid, _: asleep(pid)),
        "control load": lambda: (["control", "load", "imtcp_bg"], said),
        "net exec": lambda: (["net", "exec", network(), "client", "--", *SLEEP], lambda pid, _: itself_asleep(pid)),
    }

    def threads(pid):
        return len(os.listdir(f"/proc/{pid}/task"))

    def begin(name):
        arguments, stands = commands[name]()
        out = tmp_path / "stdout"

        def again():
            out.write_bytes(b"")
            # its output in a file, so that it can be looked at
            script = 'exec "$@" >"$0"'
            process = start(*arguments, command=("sh", "-c", script, str(out), str(COMMAND)))
            return process, lambda: process.poll() is not None or stands(process.pid, out)

        return again

    return begin


PLAIN = ("serve", "sim", "measure")
ROOTS = ("run", "run --control", "control load", "net exec")
EVERY = [*PLAIN, *(pytest.param(name, marks=pytest.mark.privileged) for name in ROOTS)]


# what CPython prints when a SIGINT meets the start of its main program; then it goes on, and the signal is lost
LOST = b"Failed checking if argv[0] is an import path entry"


def ended(process, number):
    """It has ended by the signal, with our status, or before we could have one."""
    lost = False
    try:
        _, err = process.communicate(timeout=PATIENCE_S / 10)
    except subprocess.TimeoutExpired as late:
        if lost := number == signal.SIGINT and LOST in (late.stderr or b""):
            process.send_signal(number)
        _, err = process.communicate(timeout=PATIENCE_S)
    if lost:
        assert process.returncode in (-number, 128 + number), (process.returncode, err)
    elif number == signal.SIGINT and "KeyboardInterrupt" in err:  # Python's own start; it was not ours yet
        assert process.returncode in (1, -number), err
        assert "runner.py" not in err
    else:
        assert process.returncode in (-number, 128 + number), (process.returncode, err)
        assert "Traceback" not in err


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("what", ["serve", pytest.param("run --control", marks=pytest.mark.privileged)])
def test_a_signal_that_another_thread_gets_ends_it(long_lived, wait_for, what, number):
    process, stands = long_lived(what)()
    assert wait_for(stands)
    to_another_thread(process.pid, number)
    ended(process, number)


@pytest.mark.parametrize("what", EVERY)
def test_a_signal_at_any_time_of_its_start_ends_it(long_lived, site, wait_for, what):
    again, draw = long_lived(what), random.Random(what)
    begun = time.monotonic()
    process, stands = again()
    assert wait_for(stands)
    took = time.monotonic() - begun
    process.send_signal(signal.SIGTERM)
    ended(process, signal.SIGTERM)
    for number in NUMBERS:
        for _ in range(3):
            delay = draw.uniform(0, 1.2 * took)
            process, _ = again()
            time.sleep(delay)
            process.send_signal(number)
            ended(process, number)
    assert wait_for(lambda: not [r for r in site.records() if not r.startswith("net-")])


@pytest.mark.privileged
@pytest.mark.parametrize("number", NUMBERS)
def test_a_part_ends_by_a_signal_that_another_of_its_threads_gets(net, site, wait_for, number):
    [pid] = site.processes()
    names = site.namespaces()
    to_another_thread(pid, number)
    assert wait_for(site.empty, PATIENCE_S)
    assert not [n for n in names if Path("/run/netns", n).exists()]


STEER = ("steer", "up", "--listen", "tcp:127.0.0.1:0")


@pytest.mark.parametrize("number", NUMBERS)
def test_a_controller_of_switches_ends_by_a_signal_and_leaves_its_port(pathcast, site, wait_for, number):
    listen = pathcast(*STEER, "--json").json["listen"].rpartition(":")[2]
    switch = socket.create_connection(("127.0.0.1", int(listen)))  # one that says nothing does not hold it
    [pid] = site.processes()
    to_another_thread(pid, number)
    assert wait_for(site.empty, PATIENCE_S)
    with switch, pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(listen)))


def test_a_controller_whose_start_is_broken_off_stands_or_is_gone(pathcast, start, site, wait_for):
    draw = random.Random("steer")
    for number in NUMBERS:
        process = start(*STEER)
        time.sleep(draw.uniform(0, 1.5))
        process.send_signal(number)
        out, _ = process.communicate(timeout=PATIENCE_S)
        # a signal between its last word and its end makes it end by the signal; what it has said holds
        stands = process.returncode == 0 or "listens at" in out
        assert stands or process.returncode in (-number, 128 + number, 1)
        assert wait_for(lambda there=stands: len(site.processes()) == there, PATIENCE_S)
        pathcast("undo", "--all")
        assert wait_for(site.empty, PATIENCE_S)
