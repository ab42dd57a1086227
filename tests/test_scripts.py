"""`scripts/test` hides nothing: every step runs, failures stand at the end. `scripts/soak` forgets nothing.
`scripts/audit` fails for findings only, and says what it could not look for."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

CARGO = """
case "$* $CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER" in
  *--no-run*) ;;
  test*) [ -z "$SILENT" ] || exit 0 ;;
esac
case "$* $CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER" in
  *--no-run*) ;;
  test*" kernel" | test*" wait") echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out' ;;
  test*" compute")
        echo 'test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out'
        echo 'SKIPPED: a thing: this kernel has none'
        echo "seed $PROPTEST_RNG_SEED"
        [ -z "$FAIL_CARGO" ] && exit
        printf 'failures:\\n\\n---- odd stdout ----\\nwrong by 3\\n\\nfailures:\\n    odd\\n\\n'
        echo 'test result: FAILED. 7 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out'
        exit 101 ;;
esac
"""
RUFF = '[ "$1" = check ] && [ -n "$FAIL_RUFF" ] && { echo "x.py:1: it is odd"; exit 1; }; exit 0'
PYTHON = """
[ -z "$SILENT" ] || exit 0
case "$*" in
  *"not privileged"*) [ -z "$KILL_SHELL" ] || kill -9 $PPID ;;
esac
case "$*" in
  *"not privileged"*) [ -n "$FAIL_PYTEST" ] || { echo '10 passed, 2 skipped in 3.10s'; exit; }
                      echo 'FAILED tests/test_x.py::test_y - assert 1 == 2'
                      echo '1 failed, 9 passed, 2 skipped, 1 error in 3.10s'; exit 1 ;;
  *) [ -n "$FAIL_IMPORT" ] && exit 4
     echo 'SKIPPED [1] tests/conftest.py:60: missing: tun'; echo '3 passed in 61.20s (0:01:01)' ;;
esac
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A script with tools that only say that they did, or fail where they are told to: status and output."""
    monkeypatch.delenv("PROPTEST_RNG_SEED", raising=False)  # of the run that these tests are part of
    bin = tmp_path / "bin"
    bin.mkdir()
    for tool, text in (("cargo", CARGO), ("ruff", RUFF), ("mypy", "exit 0"), ("python", PYTHON)):
        (bin / tool).write_text(f"#!/bin/sh\n{text}")
        (bin / tool).chmod(0o755)

    def run(*arguments, script="test", before=(), **fail):
        env = {**os.environ, "PATH": f"{bin}:{os.environ['PATH']}", **fail}
        command = [*before, ROOT / "scripts" / script, bin, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=env)
        return done.returncode, done.stdout, done.stderr

    return run


def test_what_passed_and_what_was_skipped(run):
    status, out, _ = run()
    assert status == 0
    end = out.partition("the end\n")[2].splitlines()
    assert end == [
        "SKIPPED [1] tests/conftest.py:60: missing: tun",
        "SKIPPED: a thing: this kernel has none",
        "20 passed, 0 failed, 3 skipped for what is missing here",
    ]


def test_every_failure_stands_at_the_end(run):
    status, out, _ = run(FAIL_RUFF="1", FAIL_CARGO="1", FAIL_PYTEST="1", FAIL_IMPORT="1")
    assert status == 1
    end = out.partition("the end\n")[2]
    for told in ("x.py:1: it is odd", "wrong by 3", "FAILED tests/test_x.py::test_y"):
        assert told in end
    assert "23 passed, 3 failed, 3 skipped" in end
    failed = end.splitlines()[-1].removeprefix("FAILED: ").split("; ")
    assert sorted(failed) == [  # two steps run at once, so that either may be the first
        "cargo test: compute",
        "pytest -m 'not privileged'",
        "pytest -m 'privileged'",
        "ruff check python tests benches experiments examples",
    ]


def test_property_tests_draw_the_same_each_time_and_in_a_soak_by_its_runs(run, tmp_path):
    assert [run("rust")[1].count("\nseed 1\n"), run("rust", PROPTEST_RNG_SEED="7")[1].count("\nseed 7\n")] == [1, 1]
    options = ("--steps", "rust", "--log", tmp_path / "soak.csv", "--out", tmp_path)
    assert run("--runs", "2", *options, script="soak")[0] == 0
    logs = sorted(tmp_path.glob("*-[12].log"))
    assert [f"\nseed {n}\n" in log.read_text() for n, log in enumerate(logs, 1)] == [True, True]


def test_tools_that_tell_of_no_test_are_not_green(run):
    status, out, _ = run(SILENT="1")
    assert status == 1
    failed = out.splitlines()[-1].removeprefix("FAILED: ").split("; ")
    tests = [f"cargo test: {kind}" for kind in ("compute", "kernel", "wait")]
    assert sorted(failed) == [*tests, "pytest -m 'not privileged'", "pytest -m 'privileged'"]
    assert "0 passed, 0 failed, 0 skipped" in out


def test_a_step_that_is_killed_is_not_green(run):
    status, out, _ = run("python", "lint", KILL_SHELL="1")
    assert status == 1
    failed = out.splitlines()[-1].removeprefix("FAILED: ").split("; ")
    steps = ("what computes: status 137", "python not privileged logical", "lint")
    assert failed == [f"not run to its end: {step}" for step in steps]


# in a mount namespace of its own
FULL = """
mount -t tmpfs -o size=64k tmpfs "$TMPDIR" && cd "$TMPDIR" || exit 9
[ -z "$FULL" ] || dd if=/dev/zero of=fill bs=4k 2>/dev/null
exec "$@"
"""


@pytest.mark.privileged
@pytest.mark.parametrize(("full", "status"), [("1", 1), ("", 0)])
def test_a_full_disc_is_not_green(run, tmp_path, full, status):
    (tmp_path / "full").mkdir()
    wrapped = ("unshare", "--mount", "--propagation", "private", "sh", "-c", FULL, "full")
    given = {"TMPDIR": str(tmp_path / "full"), "FULL": full, "FAIL_PYTEST": full}
    assert run("python", before=wrapped, **given)[0] == status


def named(program):
    return program[0].name, program[1]


def test_each_crates_tests_run_once(tmp_path):
    """`scripts/runner` sorts the test programs in three; what it names is there."""
    runner = ROOT / "scripts" / "runner"
    programs = [
        (path.parent, name)
        for path in ROOT.glob("crates/*/Cargo.toml")
        for name in ("unit", *(test.stem for test in path.parent.glob("tests/*.rs")))
    ]

    def ran(kind):
        for crate, name in programs:
            program = tmp_path / f"{name}-1a2b3c4d"
            if not program.exists():
                program.symlink_to(shutil.which("echo"))
            command = [runner, kind, program, "ran"]
            if subprocess.run(command, cwd=crate, capture_output=True, text=True).stdout == "ran\n":
                yield crate.name, name

    kinds = {kind: set(ran(kind)) for kind in ("kernel", "wait", "compute")}
    assert sum(map(len, kinds.values())) == len(programs)
    apart = {("kernel", "bit_equality")}
    assert kinds["kernel"] == {one for one in map(named, programs) if one[0] == "kernel"} - apart
    assert kinds["wait"] == {one for one in map(named, programs) if one[0] in ("emu", "launch", "net")}
    assert kinds["compute"] > apart


def test_one_failing_check_of_the_steps_asked_for_is_enough(run):
    assert run("lint", FAIL_RUFF="1")[0] == 1
    assert run("privileged", FAIL_RUFF="1")[0] == 0


def test_a_step_that_is_none_is_2(run):
    status, _, err = run("all")
    assert status == 2
    assert "allowed: lint, rust, python, privileged" in err


def test_a_soak_continues_where_it_was_and_keeps_every_failure(run, tmp_path):
    log = tmp_path / "soak.csv"
    options = ("--privileged", "1", "--steps", "python,privileged", "--log", log, "--out", tmp_path)

    def lines():
        with log.open(newline="") as file:
            return [(r["run"], r["load"], r["steps"], r["passed"], r["failures"]) for r in csv.DictReader(file)]

    failed = "pytest -m 'not privileged'; tests/test_x.py::test_y"
    status, out, _ = run("--runs", "1", *options, script="soak", FAIL_PYTEST="1")
    assert status == 1
    assert lines() == [("1", "quiet", "python+privileged", "12", failed)]
    status, out, _ = run("--runs", "2", *options, script="soak")
    assert status == 1
    assert lines() == [("1", "quiet", "python+privileged", "12", failed), ("2", "busy", "python", "10", "")]
    assert out.splitlines()[-1].startswith("NOT GREEN")
    log.unlink()
    status, out, _ = run("--runs", "1", *options, script="soak")
    assert status == 0
    assert lines() == [("1", "quiet", "python+privileged", "13", "")]


DENY = """
case "$*" in
  *"fetch db"*) [ -z "$NO_DATABASE" ] || { echo 'no such host'; exit 1; } ;;
  *advisories*) [ -z "$VULNERABLE" ] || { echo 'RUSTSEC-1'; exit 1; } ;;
  *licenses*) [ -z "$ODD_LICENCE" ] || { echo 'GPL-3.0'; exit 1; } ;;
  *) exit 2 ;;
esac
"""
PIP_AUDIT = """
[ -n "$REFUSES" ] && { echo 'no such option'; exit 2; }
[ -n "$NO_SERVICE" ] && { echo 'no connection'; exit 1; }
while [ "$1" != --output ]; do shift; done
echo "$FOUND" >"$2"
"""
CLEAN = '{"dependencies": [{"name": "a", "version": "1", "vulns": []}]}'
KNOWN = '{"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2"]}]}]}'
UNKNOWN = '{"dependencies": [{"name": "a", "skip_reason": "not found"}]}'


@pytest.fixture
def audit(tmp_path):
    """`scripts/audit` with the tools that are named, and nothing else of this machine's that is one."""
    bin = tmp_path / "bin"
    bin.mkdir()
    for tool in ("bash", "sh", "cat", "dirname", "mktemp", "realpath", "rm", "tail"):
        (bin / tool).symlink_to(shutil.which(tool))
    (bin / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (bin / "python").chmod(0o755)

    def audit(*tools, **environment):
        for name, text in (("cargo-deny", DENY), ("pip-audit", PIP_AUDIT)):
            if name in tools:
                (bin / name).write_text(f"#!/bin/sh\n{text}")
                (bin / name).chmod(0o755)
        env = {"PATH": str(bin), "FOUND": CLEAN, **environment}
        done = subprocess.run([ROOT / "scripts" / "audit", bin], capture_output=True, text=True, env=env)
        skipped = [line for line in done.stdout.splitlines() if line.startswith("SKIPPED")]
        return done.returncode, skipped, done.stdout + done.stderr

    return audit


@pytest.fixture
def make(tmp_path):
    """`make build` in a checkout of nothing, with a maturin that only says that it ran: how often it did so far."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for path in ("requirements.lock", "scripts/setup", "pyproject.toml", ".venv/.installed", ".venv/bin/maturin"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    (tmp_path / ".venv/.installed").touch()
    (tmp_path / ".venv/bin/maturin").write_text('#!/bin/sh\necho "$PATHCAST_CONTROLLERS" >>built; exit $FAIL\n')
    (tmp_path / ".venv/bin/maturin").chmod(0o755)

    def make(own="", fail="0"):
        env = {**os.environ, "PATHCAST_CONTROLLERS": own, "FAIL": fail}
        done = subprocess.run(["make", "build"], cwd=tmp_path, capture_output=True, text=True, env=env)
        assert (done.returncode == 0) == (fail == "0"), done.stderr
        return (tmp_path / "built").read_text().splitlines()

    return make


def test_another_controller_of_ones_own_is_built_and_the_same_one_is_not_built_twice(make, tmp_path):
    own = tmp_path / "with blank" / "own.h"
    own.parent.mkdir()
    own.write_text("1")
    one, two = str(own), f"{own}:examples/other.h"
    assert make() == make() == [""]
    assert make(one) == make(one) == ["", one]
    own.write_text("2")
    assert make(one) == make(one) == ["", one, one]
    (own.parent / "part.h").write_text("1")  # which it may include
    assert make(one) == make(one) == ["", one, one, one]
    assert make(two) == make(two) == ["", one, one, one, two]
    assert make() == make() == ["", one, one, one, two, ""]
    # what failed is tried again
    assert len(make(one, fail="1")) == 7
    assert len(make(one)) == len(make(one)) == 8


def test_an_audit_without_tools_says_so_and_does_not_fail(audit):
    assert audit()[:2] == (
        0,
        [
            "SKIPPED: Rust: licences, sources, bans, vulnerabilities: no cargo-deny; "
            "`cargo install cargo-deny --locked`",
            "SKIPPED: Python: vulnerabilities: no pip-audit; `pip install pip-audit`",
        ],
    )


def test_an_audit_without_databases_says_so_and_does_not_fail(audit):
    status, skipped, _ = audit("cargo-deny", "pip-audit", NO_DATABASE="1", NO_SERVICE="1")
    assert (status, skipped) == (
        0,
        [
            "SKIPPED: Rust: vulnerabilities: the database cannot be fetched: no such host",
            "SKIPPED: Python: vulnerabilities: the service cannot be reached: no connection",
        ],
    )
    # which pip-audit itself calls no known vulnerabilities
    status, skipped, _ = audit("cargo-deny", "pip-audit", FOUND=UNKNOWN)
    assert (status, skipped) == (
        0,
        ["SKIPPED: Python: vulnerabilities: 1 of 1 packages are unknown to its service, as a"],
    )


def test_an_audit_that_finds_nothing_skips_nothing(audit):
    status, skipped, out = audit("cargo-deny", "pip-audit")
    assert (status, skipped) == (0, [])
    assert "1 packages were asked about" in out


@pytest.mark.parametrize(
    ("finding", "words"),
    [
        ({"ODD_LICENCE": "1"}, "failed: Rust: licences, sources, bans"),
        ({"VULNERABLE": "1"}, "failed: Rust: vulnerabilities"),
        ({"FOUND": KNOWN}, "a 1: PYSEC-1, mended in: 2"),
        ({"FOUND": "cut off"}, "failed: Python: vulnerabilities"),
        ({"FOUND": '{"dependencies": []}'}, "failed: Python: vulnerabilities"),
        ({"REFUSES": "1"}, "no such option"),
    ],
)
def test_a_finding_of_an_audit_fails(audit, finding, words):
    status, _, out = audit("cargo-deny", "pip-audit", **finding)
    assert status == 1
    assert words in out
