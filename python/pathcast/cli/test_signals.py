"""No signal is missed, none is told twice, and none leaves a traceback."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack

import pytest

from pathcast.cli import signals as signals_module
from pathcast.cli.signals import NUMBERS, Signals, Terminated

ENDS = (KeyboardInterrupt, Terminated)


@pytest.fixture
def to_another_thread():
    """Sends a signal to a thread that is not the main one, after a while.

    It is as when it comes just before a call that blocks: Python has noted it, and nothing interrupts that call.
    """

    def send(number):
        def work():
            time.sleep(0.2)
            signal.pthread_kill(threading.get_ident(), number)
            time.sleep(1)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()

    return send


BLOCKING = {
    "pause": signal.pause,
    "read": lambda: os.read(os.pipe()[0], 1),
    "sleep": lambda: time.sleep(60),
    "a child": lambda: subprocess.run(["sleep", "60"]),
    "a lock": lambda: threading.Semaphore(0).acquire(),
}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("blocked", list(BLOCKING.values()), ids=list(BLOCKING))
def test_a_signal_that_no_call_was_interrupted_by_is_raised_all_the_same(to_another_thread, blocked, number):
    start = time.monotonic()
    with Signals() as signals:
        to_another_thread(number)
        with pytest.raises(ENDS) as end, signals.raising():
            blocked()
    assert time.monotonic() - start < 30
    assert number == (end.value.number if end.type is Terminated else signal.SIGINT)


class Last:
    """Gets a signal in its destructor."""

    def __init__(self, number):
        self.number = number

    def __del__(self):
        os.kill(os.getpid(), self.number)
        time.sleep(60)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_within_a_destructor_is_raised_behind_it(number, capfd):
    def command():
        last = Last(number)
        del last
        signal.pause()

    with Signals() as signals, pytest.raises(ENDS) as end, signals.raising():
        command()
    assert number == (end.value.number if end.type is Terminated else signal.SIGINT)
    assert capfd.readouterr().err == ""


class Key:
    """Gets a signal where it is compared, by C code that drops what is raised."""

    def __init__(self, number):
        self.number = number

    def __getattr__(self, name):
        os.kill(os.getpid(), self.number)
        time.sleep(60)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_that_c_code_has_dropped_is_raised_behind_it(number):
    def command():
        before = ctypes.pythonapi.PyObject_HasAttrString(ctypes.py_object(Key(number)), b"name")
        assert before == 0  # it is lost here
        signal.pause()

    with Signals() as signals, pytest.raises(ENDS) as end, signals.raising():
        command()
    assert number == (end.value.number if end.type is Terminated else signal.SIGINT)


def test_what_clears_up_for_long_is_not_taken_for_lost(monkeypatch):
    monkeypatch.setattr(signals_module, "_IMPATIENT_S", 0.2)
    cleared = []

    def command():
        with ExitStack() as stack:
            stack.callback(lambda: cleared.append(time.sleep(1)))
            try:
                os.kill(os.getpid(), signal.SIGTERM)
                signal.pause()
            finally:
                time.sleep(1)
                cleared.append("finally")

    with Signals() as signals, pytest.raises(Terminated), signals.raising():
        command()
    assert cleared == ["finally", None]


def test_another_exception_within_a_destructor_is_told_as_ever():
    told, before = [], sys.unraisablehook
    sys.unraisablehook = told.append
    try:
        with Signals() as signals, signals.raising():
            last = Last("no number")
            del last
    finally:
        sys.unraisablehook = before
    assert [one.exc_type for one in told] == [TypeError]


def test_one_before_the_command_is_raised_where_that_begins():
    with Signals() as signals:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.2)
        with pytest.raises(Terminated), signals.raising():
            raise AssertionError("it began")


def test_what_comes_right_after_the_first_does_not_disturb_the_clearing_up(monkeypatch):
    monkeypatch.setattr(signals_module, "_IMPATIENT_S", 60.0)
    steps = []

    def command():
        try:
            os.kill(os.getpid(), signal.SIGHUP)
            signal.pause()
        finally:
            for number in NUMBERS:
                os.kill(os.getpid(), number)
                steps.append(number)

    with Signals() as signals, pytest.raises(Terminated) as end, signals.raising():
        command()
    assert end.value.number == signal.SIGHUP
    assert steps == list(NUMBERS)


def test_handlers_are_as_before_and_what_was_ignored_stays_so():
    def kept():
        return {number: signal.getsignal(number) for number in NUMBERS}

    before, hup = kept(), signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Signals() as signals, signals.raising():
            os.kill(os.getpid(), signal.SIGHUP)
            time.sleep(0.2)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, hup)
    assert kept() == before


LATER = """
import os, signal, sys, time
from pathcast.cli.signals import Signals

with Signals() as signals:
    try:
        with signals.raising():
            {}
    finally:
        print("clearing up", flush=True)
        {}
        print("done", flush=True)
"""


@pytest.mark.parametrize(
    ("command", "after"),
    [
        (
            "os.kill(os.getpid(), signal.SIGINT); signal.pause()",
            "time.sleep(1.2); os.kill(os.getpid(), signal.SIGTERM)",
        ),
        ("pass", "os.kill(os.getpid(), signal.SIGTERM)"),
    ],
    ids=["a second one, a second later", "one after the command"],
)
def test_it_ends_the_process_at_once(command, after):
    done = subprocess.run([sys.executable, "-c", LATER.format(command, after)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGTERM, "clearing up\n", "")


EARLY = """
import os, signal, sys
class Hook:
    def find_spec(self, name, *rest):
        if name == "pathcast.cli.signals":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Hook())
from pathcast.cli import main
sys.exit(main())
"""


def test_an_interrupt_before_anything_is_loaded_leaves_no_traceback(tmp_path):
    script = tmp_path / "pathcast"
    script.write_text(EARLY)
    run = [sys.executable, script, "doctor"]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr, done.stdout) == (130, "pathcast: interrupted\n", "")
    # where it is ignored, it stays so
    ignore = lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)  # noqa: E731
    done = subprocess.run([*run[:2], "--version"], capture_output=True, text=True, timeout=60, preexec_fn=ignore)
    assert done.returncode == 0, done.stderr


def test_nothing_is_loaded_before_it_can_be_interrupted():
    script = "import sys; before = set(sys.modules); import pathcast; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert set(done.stdout.split()) <= {"__future__", "pathcast"}
