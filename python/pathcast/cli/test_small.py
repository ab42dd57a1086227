"""What was meant by a misspelt word, tables without empty columns, completion, manual pages, schemas."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from rich.table import Table

from pathcast.cli import output, progress, runner
from pathcast.cli.closest import meant
from pathcast.cli.schema import SCHEMAS
from pathcast.cli.testing import wrong
from pathcast.errors import PathcastError, need
from pathcast.units import seconds, size
from pathcast.worlds.measurement import Measurement

COMMAND = Path(sys.executable).with_name("pathcast")


@pytest.fixture
def pathcast(capsys):
    def pathcast(*arguments):
        status = runner.run([str(one) for one in arguments])
        return status, *capsys.readouterr()

    return pathcast


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["measure", "h", "--lihgt"], "did you mean `--light`?"),
        (["mesure", "h"], "Did you mean 'measure'?"),
        (["run", "--backgroud", "--", "ls"], "did you mean `--background`?"),
        (["run", "--backgroud=yes", "ls"], "did you mean `--background`?"),
        (["run", "-b", "--", "ls"], "there is no option `-b`"),
        (["job", "add", "nightly", "--at", "22:00", "--ize", "3GB", "--", "true"], "did you mean `--size`?"),
        (["control", "list", "cubix"], "did you mean `cubic`?"),
        (["predict", "h", "--size", "1GB", "--control", "ballia"], "did you mean `balia`?"),
        (["sim", "two-path", "--set", "control=olai"], "did you mean `olia`?"),
        (["sim", "two-pth"], "did you mean `two-path`?"),
        (["completion", "bsh"], "did you mean `bash`?"),
        (["schema", "mesure"], "did you mean `measure`?"),
    ],
)
def test_what_was_meant_is_asked(pathcast, arguments, told):
    status, _, err = pathcast(*arguments)
    assert status == 2
    assert told in err


def test_what_was_written_is_not_what_was_meant(pathcast, tmp_path, monkeypatch):
    (tmp_path / "two-path").mkdir()
    monkeypatch.chdir(tmp_path)
    status, _, err = pathcast("sim", "two-path")
    assert (status, "Is a directory" in err, "did you mean" in err) == (2, True, False)


def test_what_tells_a_form_asks_nothing(pathcast):
    _, _, err = pathcast("job", "add", "x", "--at", "22:00", "--budget", "nan", "--", "true")
    assert "--budget `nan`: allowed is an amount of money" in err
    assert "did you mean" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        *(("paths", "x" * 300), ("doctor", "--host", "x" * 300), ("doctor", "--host", "a..b")),
        ("measure", "stamp://" + "y" * 80),
    ],
)
def test_what_is_no_name_of_a_host_is_no_fault_of_pathcast(pathcast, arguments):
    status, _, err = pathcast(*arguments)
    assert status == 1
    assert "cannot find the host" in err
    assert "fault" not in err


def test_what_is_wrong_beside_a_line_leaves_the_file(pathcast, tmp_path, monkeypatch):
    monkeypatch.setenv("PATHCAST_CONFIG", str(tmp_path / "pathcast.toml"))
    monkeypatch.setenv("PATHCAST_STATE_DIR", str(tmp_path))
    status, _, err = pathcast("line", "add", "dsl", "--dev", "ppp0", "--used", "-1")
    assert (status, not (tmp_path / "pathcast.toml").exists()) == (2, True)
    assert "--used: `-1`" in err


@pytest.mark.privileged
def test_a_controller_that_neither_kernel_nor_pathcast_has(pathcast):
    status, _, err = pathcast("run", "--control", "lai", "--", "true")
    assert status == 2
    assert "did you mean `lia`?" in err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["sim", "two-path", "--limit-events", "0"], "--limit-events `0`: it must be greater than or equal to 1"),
        (["demo", "--seed", "x"], "--seed `x`: it must be a valid integer"),
        (["serve", "--port", "70000"], "--port `70000`: it must be less than or equal to 65535"),
        (["predict", "h", "--size", "1GB", "--control", ""], "commas between, for example cubic,lia"),
        (["man", "/proc/no/such"], "cannot write to `/proc/no"),
        (["plan", "--size", "5q"], "--size `5q` is not a size"),
        (["plan", "--size", "1MB", "--by", "5q"], "--by `5q` is not a duration"),
        (["run", "--paths", "auto", "--size", "5q", "--", "true"], "--size `5q` is not a size"),
        (["job", "add", "x", "--at", "22:00", "--size", "5q", "--", "true"], "--size `5q` is not a size"),
        (["learn", "h", "--size", "5q"], "--size `5q` is not a size"),
        (["learn", "h", "--size", "1MB", "--probe", "5q"], "--probe `5q` is not a size"),
        (["learn", "h", "--size", "1MB", "--pause", "5q"], "--pause `5q` is not a duration"),
        (["watch", "h", "--every", "5q"], "--every `5q` is not a duration"),
        (["history", "list", "--since", "5q"], "--since `5q` is not a duration"),
        (["history", "plot", "--since", "5q"], "--since `5q` is not a duration"),
        (["history", "prune", "--older", "5q"], "--older `5q` is not a duration"),
        (["history", "prune", "--older", "5q", "--world", "sim"], "--older `5q` is not a duration"),
        (["history", "prune", "--older", "1h"], "--older `1h`: a history holds one day at least"),
        (["history", "prune", "--larger", "5q"], "--larger `5q` is not a size"),
        (["history", "prune", "--larger", "5B"], "--larger `5B`: a history may have 1 MB at least"),
        (["doctor", "--host", "h", "--patience", "5q"], "--patience `5q` is not a duration"),
    ],
)
def test_refusals_name_the_value(pathcast, arguments, told):
    status, _, err = pathcast(*arguments)
    assert status == 2
    assert told in err


def test_help_shows_every_word(pathcast):
    """Rich takes a word in brackets for a style, and leaves it out."""
    from typer.main import get_command

    from pathcast.cli.app import app
    from pathcast.cli.man import _commands

    for names, command in _commands(get_command(app), ("pathcast",)):
        for param in command.params:
            assert not re.search(r"\[[a-z]", getattr(param, "help", None) or ""), (names, param.name)


def test_nothing_is_asked_where_nothing_is_near():
    assert meant("there is no controller `xyzzy`; allowed: cubic, reno") is None
    assert meant("`1` is not a rate") is None
    assert meant("--by `25:00` is no time; allowed: a time of day (06:00), or from now on (8h)") is None
    assert meant("there is no path `pathl`; allowed: path1, cable") == "path1"


def test_columns_in_which_nothing_stands_are_left_out(capsys):
    table = Table("path", "line", "loss", "delay")
    table.add_row("path1", "", "-", "3 ms")
    table.add_row("path2", "", "-", "-")
    output.show(table)
    head = capsys.readouterr().out.splitlines()[1]
    assert [word for word in head.split() if word.isalpha()] == ["path", "delay"]
    empty = Table("path", "line")
    output.show(empty)
    assert "line" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0932, "93.2 ms"), (99.4, "99.4 s"), (180.0, "3 min"), (4440.0, "74 min"), (7440.0, "2 h 4 min")],
)
def test_times_are_written_as_people_write_them(value, text):
    assert seconds(value) == text


def test_a_large_size_has_its_own_unit():
    assert size(1.5e12) == "1.5 TB"


def test_a_package_is_called_as_the_index_calls_it(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(PathcastError) as error:
        need("numpy", "sklearn")
    assert error.value.hint == "pip install numpy scikit-learn"


@pytest.mark.parametrize(("shell", "word"), [("bash", "complete "), ("zsh", "#compdef"), ("fish", "complete ")])
def test_the_shells_scripts(pathcast, shell, word):
    status, out, _ = pathcast("completion", shell)
    assert status == 0
    assert word in out
    assert "_PATHCAST_COMPLETE" in out


def test_a_shell_is_answered():
    asked = {"COMP_WORDS": "pathcast measure --thor", "COMP_CWORD": "2", runner.COMPLETE: "complete_bash"}
    done = subprocess.run([COMMAND], capture_output=True, text=True, env={**os.environ, **asked})
    assert done.stdout.split() == ["--thorough"]


def test_zsh_finds_the_script_and_completes_by_it(pathcast, tmp_path):
    script = pathcast("completion", "zsh")[1]
    assert script.startswith("#compdef pathcast\n")  # zsh looks nowhere else
    if not shutil.which("zsh"):
        return
    (tmp_path / "_pathcast").write_text(script)
    typed = rf"""
    zmodload zsh/zpty
    zpty z zsh -f -i
    zpty -w z 'PS1=; unsetopt zle_bracketed_paste; fpath=({tmp_path} $fpath)'
    zpty -w z 'autoload -Uz compinit; compinit -u -d {tmp_path}/dump'
    zpty -w z 'pathcast line remo'$'\t''; print -r "read: $_"; exit'
    while zpty -r z line; do print -r -- "$line"; done
    """
    path = f"{COMMAND.parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["zsh", "-f", "-c", typed], capture_output=True, text=True, timeout=60, env={**os.environ, "PATH": path}
    )
    assert "read: remove" in done.stdout, done.stdout + done.stderr


def test_every_command_has_a_page(pathcast, tmp_path):
    assert pathcast("man", tmp_path)[0] == 0
    pages = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert {"pathcast.1", "pathcast-measure.1", "pathcast-net-up.1", "pathcast-line-add.1"} <= set(pages)
    assert "\\fB\\-\\-thorough\\fR" in pages["pathcast-measure.1"]
    assert "EXIT STATUS" in pages["pathcast.1"]
    for text in pages.values():
        assert text.isascii()
        assert text.index(".SH NAME") < text.index(".SH SYNOPSIS")
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", *tmp_path.iterdir()], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


def test_the_pages_tell_every_exit_status(pathcast, tmp_path):
    from pathcast.cli.man import EXITS
    from pathcast.errors import Exit

    assert pathcast("man", tmp_path)[0] == 0
    status = lambda page: (tmp_path / page).read_text().partition("\n.SH EXIT STATUS\n")[2]  # noqa: E731
    told = [of for of, _ in EXITS]
    assert {str(int(of)) for of in Exit} <= {*told}
    assert r"\fB128 + n\fR" in status("pathcast.1")
    assert "SIGTERM" in status("pathcast.1")
    for page in ("pathcast-run.1", "pathcast-net-exec.1", "pathcast-job-run.1"):
        assert all(of in status(page) for of in ("126", "127", "128 + n", "the program's own")), page
    assert status("pathcast-measure.1") == ""


def test_schemas_have_units_and_are_those_of_what_is_printed(pathcast):
    assert pathcast("schema")[1].split() == sorted(SCHEMAS)
    status, out, _ = pathcast("schema", "measure")
    assert status == 0
    found = json.loads(out)
    printed = {"schema", "target", "world", *Measurement((), 0, 0.0, "ride").document()}
    whole, gap = found["anyOf"]
    assert (set(whole["required"]), set(whole["properties"])) == (printed, printed | {"time_s"})
    assert set(gap["required"]) == {"time_s", "schema", "target", "error"}
    direction = found["$defs"]["Direction"]["properties"]
    assert direction["available_bps"] == {"$ref": "#/$defs/Value", "unit": "bit/s"}
    assert direction["bytes"]["unit"] == "byte"
    found = json.loads(pathcast("schema", "predict")[1])["properties"]
    option = found["options"]["items"]["properties"]
    units = {name: of.get("unit") for name, of in {**found, **option}.items() if "unit" in of}
    assert units["size_bytes"] == units["bytes_by_path"] == units["probe_bytes"] == "byte"
    assert (units["throughput_bps"], units["duration_s"], units["deadline_s"]) == ("bit/s", "s", "s")
    path = json.loads(pathcast("schema", "run")[1])["properties"]["paths"]["items"]["properties"]
    assert (path["bytes_retransmitted"]["unit"], path["available_bps"]["unit"]) == ("byte", "bit/s")
    for name in SCHEMAS:
        assert json.loads(pathcast("schema", name)[1])["$schema"]


def test_a_run_of_flows_is_as_its_schema_says():
    from pathcast.worlds.sim import Sim
    from pathcast.worlds.testing import two_paths
    from pathcast.worlds.topology import Topology

    text = two_paths("20Mbit", ("10ms", "25ms"), "100 packets") + '[[flow]]\nname = "a"\npaths = ["path1", "path2"]\n'
    with Sim(Topology.parse(f'name = "two"\nend = "9s"\n{text}')) as world:
        document = json.loads(json.dumps(world.flows(until=1.0).document()))
    schema = SCHEMAS["flows"]()
    assert wrong(document, schema) == []
    assert set(document) == set(schema["properties"])
    del document["verdict"]["valid"]
    assert wrong(document, schema) == ["$.verdict.valid: missing"]


def test_what_is_not_as_the_schema_says_is_found():
    schema = SCHEMAS["run"]()
    report = dict.fromkeys(schema["required"], 0) | {"schema": "pathcast.run/1", "more": 1}
    told = wrong(report, schema)
    assert "$.more: not known" in told
    assert "$.command: 0 is no array" in told
    assert "$.counted: 0 is no boolean" in told
    assert wrong({"schema": "x"}, schema)[0] == "$.command: missing"


def test_what_takes_longer_is_shown_on_a_terminal_and_nowhere_else(monkeypatch):
    def until(reader, word):
        text = ""
        while word not in text:
            assert select.select([reader], [], [], 60)[0], text
            text += os.read(reader, 1 << 16).decode()
        return text

    def shown(terminal, quiet, soon_s, wanted):
        monkeypatch.setattr(progress, "_SOON_S", soon_s)
        reader, writer = pty.openpty() if terminal else os.pipe()
        with open(writer, "w") as file:
            monkeypatch.setattr(sys, "stderr", file)
            text = ""
            with progress.busy("reading", quiet):
                if wanted:
                    text = until(reader, "reading …")
                else:
                    for thread in threading.enumerate():
                        # one that should not be there would show it now
                        if isinstance(thread, threading.Timer) and not soon_s:
                            thread.join(60)
            file.write("|")
            file.flush()
            text += until(reader, "|")
        os.close(reader)
        return text

    assert "reading …" in shown(True, False, 0.0, True)
    short, quiet, none = (True, False, 60.0), (True, True, 0.0), (False, False, 0.0)
    assert [shown(*of, False) for of in (none, quiet, short)] == ["|"] * 3
