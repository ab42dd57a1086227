"""Whatever a command raises becomes one message, one JSON document and one exit status."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from typing import Annotated

import pytest
import typer

from pathcast.cli import app as app_module
from pathcast.cli import output
from pathcast.cli.output import Json, print_json
from pathcast.cli.runner import run
from pathcast.cli.signals import Signals
from pathcast.errors import Exit, PathcastError, missing, usage


@pytest.fixture
def command(monkeypatch):
    """Runs `pathcast do …`, whose body is given."""

    def with_body(body, *arguments):
        app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

        @app.command("do")
        def do(number: Annotated[int, typer.Option(min=1)] = 1, json: Json = False) -> None:
            body()

        @app.command("other")
        def other() -> None:
            pass

        monkeypatch.setattr(app_module, "app", app)
        with Signals() as signals:
            return run(list(arguments or ["do"]), signals)

    return with_body


def failing(error):
    def body():
        raise error

    return body


ERRORS = [
    (PathcastError("no-connection", "no connection to x", "is it running?"), 1),
    (usage("`9` is not a port"), 2),
    (PathcastError("untrustworthy", "too late", "wait", Exit.UNTRUSTWORTHY), 3),
    (PathcastError("refused", "no", None, Exit.REFUSED), 4),
    (missing("/dev/net/tun is missing", "modprobe tun"), 5),
    (PathcastError("interrupted", "interrupted", None, Exit.INTERRUPTED), 130),
]


@pytest.mark.parametrize(("error", "status"), ERRORS, ids=[e.code for e, _ in ERRORS])
def test_every_exit_status(command, capsys, error, status):
    assert command(failing(error)) == status
    caught = capsys.readouterr()
    assert caught.out == ""
    assert caught.err.startswith(f"pathcast: {error.message}\n")
    assert ("hint: " in caught.err) == (error.hint is not None)


@pytest.mark.parametrize(("error", "status"), ERRORS, ids=[e.code for e, _ in ERRORS])
def test_every_exit_status_as_json(command, capsys, error, status):
    assert command(failing(error), "do", "--json") == status
    caught = capsys.readouterr()
    told = {"code": error.code, "message": error.message, "hint": error.hint, "exit": status}
    assert json.loads(caught.out) == {"error": told}
    assert error.message in caught.err


def test_an_error_commands_no_terminal(command, capsys):
    """Words of a file, or of another host over ssh."""

    words = PathcastError("ssh", "no: \x1b]0;title\x07\x1b[31m\r\u202ered", "try\x9b2J\nagain")
    assert command(failing(words)) == 1
    err = capsys.readouterr().err
    assert err == "pathcast: no: \\x1b]0;title\\x07\\x1b[31m\\r\\u202ered\nhint: try\\x9b2J\nagain\n"


def test_success_is_0(command, capsys):
    assert command(lambda: print("data")) == 0
    assert capsys.readouterr().out == "data\n"


def test_typer_exit_keeps_its_status(command):
    assert command(failing(typer.Exit(3))) == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nosuch"], "nosuch"),
        (["do", "--nosuch"], "--nosuch"),
        (["do", "--number", "x"], "--number"),
        (["do", "--number", "0"], "--number"),
        (["do", "extra"], "extra"),
        ([""], "command"),
    ],
)
def test_a_wrong_command_line_is_2_and_says_where_to_look(command, capsys, arguments, words):
    assert command(lambda: None, *arguments) == 2
    caught = capsys.readouterr()
    assert words in caught.err
    assert "--help`" in caught.err
    assert caught.out == ""
    assert command(lambda: None, *arguments, "--json") == 2
    assert json.loads(capsys.readouterr().out)["error"]["exit"] == 2


def test_a_fault_of_ours_is_1_and_says_how_to_report_it(command, capsys, monkeypatch):
    monkeypatch.delenv("PATHCAST_DEBUG", raising=False)
    assert command(failing(KeyError("x")), "do", "--json") == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "internal"
    assert "KeyError" in error["message"]
    assert "PATHCAST_DEBUG=1" in error["hint"]
    monkeypatch.setenv("PATHCAST_DEBUG", "1")
    with pytest.raises(KeyError):
        command(failing(KeyError("x")))


def test_a_path_that_cannot_be_is_no_fault_of_ours(command, capsys):
    def body():
        open("/dev/null/x")  # noqa: SIM115

    assert command(body, "do") == Exit.RUNTIME
    assert capsys.readouterr().err == "pathcast: cannot use `/dev/null/x`: Not a directory\n"


def test_what_the_terminal_cannot_show_is_written_plainly(tmp_path):
    script = "import sys; from pathcast.cli import _plain; _plain(); print('4 ± 1 µs … 日 \\udcff')"
    run = [sys.executable, "-c", script]
    for encoding, shown in (
        ("ascii", "4 +/- 1 us ... ? ?"),
        ("latin-1", "4 ± 1 µs ... ? ?"),
        ("utf-8", "± 1 µs … 日 ?"),
    ):
        done = subprocess.run(run, capture_output=True, env={**os.environ, "PYTHONIOENCODING": encoding}, timeout=60)
        assert done.returncode == 0, done.stderr
        assert shown in done.stdout.decode(encoding)


def test_ctrl_c_is_130(command, capsys):
    assert command(failing(KeyboardInterrupt()), "do", "--json") == 130
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "interrupted"
    assert command(lambda: os.kill(os.getpid(), signal.SIGINT)) == 130
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_unwind_and_are_128_and_their_number(command, capsys, number):
    unwound = []

    def body():
        try:
            os.kill(os.getpid(), number)
            signal.pause()
        finally:
            unwound.append(True)

    assert command(body, "do", "--json") == 128 + number
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], error["exit"]) == ("terminated", 128 + number)
    assert unwound == [True]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_a_class_is_made_is_that_signal(command, capsys, number, status):
    """Python 3.11 makes a RuntimeError of what `__set_name__` raises."""

    class Slow:
        def __set_name__(self, *_):
            os.kill(os.getpid(), number)
            signal.pause()

    assert command(lambda: type("Of", (), {"slow": Slow()}), "do", "--json") == status
    assert json.loads(capsys.readouterr().out)["error"]["exit"] == status


def test_one_document_even_if_something_fails_after_it(command, capsys):
    def body():
        print_json("x", {})
        raise KeyboardInterrupt

    assert command(body, "do", "--json") == 130
    caught = capsys.readouterr()
    assert json.loads(caught.out) == {"schema": "pathcast.x/1"}
    assert "interrupted" in caught.err
    assert command(failing(usage("next time it is told again")), "do", "--json") == 2
    assert json.loads(capsys.readouterr().out)["error"]["exit"] == 2


def test_json_after_the_double_dash_is_somebody_elses(command, capsys):
    assert command(failing(usage("no")), "do", "--", "--json") == 2
    assert capsys.readouterr().out == ""


def test_a_reader_that_has_gone_is_no_fault_of_ours(command, capfd, monkeypatch):
    discarded = []
    monkeypatch.setattr("pathcast.cli.runner._discard_output", lambda: discarded.append(True))
    assert command(failing(BrokenPipeError())) == 1
    assert discarded == [True]
    assert "fault" not in capfd.readouterr().err
    assert not output.printed


def test_where_another_disc_is_full_standard_output_has_its_document(command, capfd):
    def body():
        print("said before")
        raise OSError(errno.ENOSPC, "full")

    assert command(body, "do", "--json") == 1
    out, err = capfd.readouterr()
    said, document = out.split("\n", 1)
    assert (said, json.loads(document)["error"]["code"]) == ("said before", "no-space")
    assert "no space left" in err


FULL = """
import errno, sys, typer
from pathcast.cli import app, output, runner

def do(json: bool = False) -> None:
    {}
    raise OSError(errno.ENOSPC, "full")

app.app = typer.Typer()
app.app.command()(do)
sys.exit(runner.run(["--json"]))
"""


@pytest.mark.parametrize("before", ["print('said before')", "output.print_json('x', {})", ""])
def test_standard_output_on_the_full_disc_is_said_once_and_without_a_traceback(before):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-c", FULL.format(before)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    said = "pathcast: no space left to write to\nhint: make room, or write elsewhere\n"
    assert (done.returncode, done.stderr) == (1, said)
