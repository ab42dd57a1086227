"""`watch` as a command: where its words and alerts cannot be written."""

from __future__ import annotations

import errno
import os
import sys
from types import SimpleNamespace

import pytest

from pathcast.cli import watch
from pathcast.cli.watch import _Clock, _End
from pathcast.runtime import state


def refusing(number):
    """A standard output that takes nothing."""

    def write(text):
        raise OSError(number, os.strerror(number))

    return SimpleNamespace(write=write, flush=lambda: None)


@pytest.mark.parametrize("jsonl", [False, True])
def test_an_alert_on_a_full_disc_ends_no_watch_and_a_reader_that_has_gone_does(monkeypatch, capsys, jsonl):
    end = _End(SimpleNamespace(name="far"), None, frozenset(), jsonl)
    monkeypatch.setattr(sys, "stdout", refusing(errno.ENOSPC))
    end.keep({"text": "cable is down"})
    assert "cannot be printed (No space left on device): cable is down\n" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdout", refusing(errno.EPIPE))
    with pytest.raises(BrokenPipeError):
        end.keep({"text": "cable is down"})


def test_what_a_killed_run_has_left_for_good_is_said_once(monkeypatch, capsys):
    monkeypatch.setattr(watch, "_TIDY_S", 0.0)
    monkeypatch.setattr(state, "clean", lambda: [f"{state.KEPT}: run 7: Operation not permitted"])
    clock = _Clock([])
    for _ in range(3):
        clock.wait(0.0)
    assert capsys.readouterr().err.count("run 7") == 1
