"""The command line itself: help, versions, wrong words, and what merely asking for help may cost."""

from __future__ import annotations

import subprocess
import sys

import pytest

_DATA = ("numpy", "sklearn", "scipy", "matplotlib", "pandas", "pyarrow", "sqlalchemy", "alembic")
HEAVY = (*_DATA, "pathcast._native", "asyncio")


def test_help_imports_nothing_heavy():
    program = (
        "import sys\nfrom pathcast.cli import main\n"
        "try:\n    status = main(['--help'])\nexcept SystemExit as end:\n    status = end.code\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules], status)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[] 0"


def test_a_fresh_answer_loads_no_database_of_others(pathcast, tmp_path):
    """SQLAlchemy would take longer to load than the answer may."""
    where = ("--world", "sim", "--topology", "topologies/dsl.toml", "--history", tmp_path / "h.db")
    words = ("predict", *where, "--size", "100kB", "--control", "cubic")
    assert pathcast(*words).returncode == 0
    program = (
        "import sys\nfrom pathcast.cli import main\nstatus = main(sys.argv[1:])\n"
        "print([m for m in ('sqlalchemy', 'alembic', 'numpy') if m in sys.modules], status)"
    )
    done = subprocess.run([sys.executable, "-c", program, *map(str, words)], capture_output=True, text=True, check=True)
    assert "by the history" in done.stderr
    assert done.stdout.splitlines()[-1] == "[] 0"


@pytest.mark.parametrize(
    "command",
    [
        "demo",
        "doctor",
        "paths",
        "serve",
        "sim",
        "undo",
        "control list",
        "lab",
        "lab run",
        "net",
        "net up",
        "net exec",
        "steer",
        "steer up",
    ],
)
def test_every_command_has_help(pathcast, command):
    done = pathcast(*command.split(), "--help")
    assert done.returncode == 0
    assert f"pathcast {command}" in done.stdout
    assert done.stderr == ""


def test_version(pathcast):
    from importlib.metadata import version

    done = pathcast("--version")
    assert (done.returncode, done.stdout) == (0, f"pathcast {version('pathcast')}\n")


@pytest.mark.parametrize("arguments", [[], ["net"]])
def test_no_command_is_2_and_shows_help(pathcast, arguments):
    done = pathcast(*arguments)
    assert done.returncode == 2
    assert "Commands" in done.stdout + done.stderr


@pytest.mark.parametrize("arguments", [["nosuch"], ["net", "nosuch"], ["paths"], ["net", "up"], ["doctor", "--bad"]])
def test_wrong_words_are_2_with_and_without_json(pathcast, arguments):
    plain = pathcast(*arguments)
    assert (plain.returncode, plain.stdout) == (2, "")
    assert "--help`" in plain.stderr
    done = pathcast(*arguments, "--json")
    assert done.returncode == 2
    assert done.error["code"] == "usage"


def test_closed_and_full_outputs_are_said_without_a_traceback():
    from conftest import COMMAND

    with open("/dev/full", "w") as full:
        done = subprocess.run([COMMAND, "undo", "--json"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "no space left" in done.stderr
    assert "Traceback" not in done.stderr
    done = subprocess.run(
        ["sh", "-c", f"{COMMAND} doctor --json | true; exit 0"], stderr=subprocess.PIPE, text=True, check=True
    )
    assert "Traceback" not in done.stderr
