"""`pathcast-far` is `pathcast serve` without Python: the same options, refusals, documents, log and signals."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from conftest import COMMAND, PATIENCE_S, ROOT

from pathcast.cli.app import app
from pathcast.cli.runner import run

SECRET = "5e" * 32


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "keys"
    path.write_text(f"site {SECRET}\n")
    path.chmod(0o600)
    return path


def document(process):
    """The first JSON document that it prints."""
    text = ""
    for line in process.stdout:
        text += line
        with contextlib.suppress(ValueError):
            return json.loads(text)
    raise AssertionError(f"no document; {process.stderr.read()}")


# what is wrong, and whether both say it with the same words: of the options themselves their parsers do not
REFUSALS = [
    (["--open", "--key-file", "KEYS"], True),
    (["--bind", "192.0.2.1"], True),
    (["--bind", "::"], True),
    (["--key-file", "KEYS", "--bind", "nonsense"], True),
    (["--bind", "localhost"], True),
    (["--announce", "300.1.1.1", "--open"], True),
    (["--limit", "rate"], True),
    (["--limit", "rate=1Mbit", "--limit", "rate=2Mbit"], True),
    (["--limit", "speed=1Mbit"], True),
    (["--limit", "rate=fast"], True),
    (["--limit", "sessions=-1"], True),
    (["--limit", "sessions=99999999999999999999"], True),
    (["--bind", "::1%lo"], True),
    (["--bind", "fe80::1", "--open"], True),
    (["--announce", "224.0.0.1"], True),
    (["--announce", "::"], True),
    (["--key-file", "/dev/null"], True),
    (["--limit", "time=soon"], True),
    (["--limit", "measuring=0"], True),
    (["--limit", "idle=0s"], True),
    (["--limit", "bytes=10kB"], True),
    (["--limit", "memory=0"], True),
    (["--limit", "rate=fast", "--bind", "::"], True),
    (["--stamp-open"], True),
    (["--key-file", "NONE"], True),
    (["--key-file", "READABLE"], True),
    (["--key-file", "EMPTY"], True),
    (["--key-file", "WRONG"], True),
    (["--key-file", "TWICE"], True),
    (["--key-file", "."], True),
    (["--new-key", "KEYS"], True),
    (["--new-key", "NONE/keys"], True),
    (["--bind", "127.0.0.1", "--port", "TAKEN"], True),
    (["--port", "65536"], False),
    (["--port", "-1"], False),
    (["--port", "x"], False),
    (["--port"], True),
    (["--stamp-port", "70000"], False),
    (["--open=1"], True),
    (["--opn"], True),
    (["-x"], True),
    (["superfluous"], False),
]


@pytest.fixture
def words(key_file, tmp_path):
    """Makes what the names in `REFUSALS` stand for, and puts it in their place."""
    texts = {
        "EMPTY": "",
        "WRONG": f"k {SECRET[:-1]}\n",
        "TWICE": f"k {SECRET}\nk {SECRET}\n",
        "READABLE": f"k {SECRET}\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o644 if name == "READABLE" else 0o600)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        names = {name: str(tmp_path / name) for name in texts} | {
            "NONE": str(tmp_path / "none"),
            "NONE/keys": str(tmp_path / "none" / "keys"),
            "KEYS": str(key_file),
            "TAKEN": str(taken.getsockname()[1]),
        }
        yield lambda arguments: [names.get(word, word) for word in arguments]


def test_both_refuse_the_same_with_the_same_words(far, words, capsys):
    for arguments, same in REFUSALS:
        spelled = [*words(arguments), "--json"] if arguments != ["--port"] else ["--json", "--port"]
        done = subprocess.run([far, *spelled], capture_output=True, text=True, timeout=PATIENCE_S)
        status = run(["serve", *spelled])
        theirs = json.loads(capsys.readouterr().out)["error"]
        ours = json.loads(done.stdout)["error"]
        assert done.returncode == status == ours["exit"], (arguments, done)
        assert ours["code"] == theirs["code"], arguments
        if same:
            assert ours["message"] == theirs["message"], arguments
        else:
            word = arguments[0]
            assert word in ours["message"], arguments
            assert word in theirs["message"], arguments
        if arguments[0] not in ("--port", "--stamp-port", "--open=1", "--opn", "-x", "superfluous", "--limit"):
            assert ours["hint"] == theirs["hint"], arguments
        assert done.stderr.startswith(f"pathcast-far: {ours['message']}\n")
        assert SECRET not in done.stdout + done.stderr


@pytest.mark.parametrize("option", ["--key-file", "--new-key"])
def test_both_refuse_an_empty_name_and_name_their_own_help(far, capsys, option):
    done = subprocess.run([far, option, "", "--json"], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == run(["serve", option, "", "--json"]) == 2
    ours, theirs = json.loads(done.stdout)["error"], json.loads(capsys.readouterr().out)["error"]
    assert ours["message"] == theirs["message"] == f"Invalid value for '{option}': `` is no file"
    assert (ours["hint"], theirs["hint"]) == ("try `pathcast-far --help`", "try `pathcast serve --help`")


def test_both_have_the_same_options(far):
    help = subprocess.run([far, "--help"], capture_output=True, text=True, check=True).stdout
    told = set(re.findall(r"--[a-z-]+", help))
    serve = typer.main.get_command(app).commands["serve"]
    assert told - {"--version", "--help"} == {option for one in serve.params for option in one.opts}
    version = subprocess.run([far, "--version"], capture_output=True, text=True, check=True).stdout
    ours = subprocess.run([COMMAND, "--version"], capture_output=True, text=True, check=True).stdout
    assert version == ours.replace("pathcast", "pathcast-far")


def test_it_makes_a_private_key_file(far, tmp_path):
    file = tmp_path / "new"
    done = subprocess.run([far, "--new-key", file, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"schema": "pathcast.key/1", "file": str(file), "id": "key1"}
    assert file.stat().st_mode & 0o777 == 0o600
    assert re.fullmatch(r"key1 [0-9a-f]{64}\n", file.read_text())


def said(process):
    """What it says until it is ended by SIGTERM, without its notes; ports are left out."""
    lines = [process.stdout.readline()]
    while not lines[-1].startswith("serving "):
        lines.append(process.stderr.readline())
        assert lines[-1], "it ended"
    process.terminate()
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 143
    lines += (out + err.replace("pathcast-far:", "pathcast:")).splitlines(keepends=True)
    return [re.sub(r":\d+\b", ":PORT", line) for line in lines if not line.startswith("note: ")]


@pytest.mark.parametrize(
    "options",
    [[], ["--limit", "sessions=0"], ["--key-file", "KEYS", "--bind", "127.0.0.1", "--stamp-port", "0", "--log"]],
)
def test_both_say_the_same(far, start, key_file, options):
    options = [str(key_file) if word == "KEYS" else word for word in options]
    ours = document(start("--json", "--port", 0, *options, command=(far,)))
    theirs = document(start("serve", "--json", "--port", 0, *options))
    assert next(iter(ours)) == next(iter(theirs)) == "schema"
    for one in (ours, theirs):
        one["listening"] = [re.sub(r"\d+$", "PORT", where) for where in one["listening"]]
        if one["stamp"]:
            one["stamp"]["listening"] = len(one["stamp"]["listening"])
    assert ours == theirs
    assert said(start("--port", 0, *options, command=(far,))) == said(start("serve", "--port", 0, *options))


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_it(far, start, number, status):
    process = start("--port", 0, "--json", command=(far,))
    assert "listening" in document(process)
    process.send_signal(number)
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (status, "")


def test_an_ignored_signal_stays_so(far, start):
    process = start("-c", 'trap "" HUP; exec "$@"', "sh", far, "--port", 0, "--json", command=("sh",))
    document(process)
    process.send_signal(signal.SIGHUP)
    process.terminate()
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 143


def test_before_it_has_begun_a_signal_has_a_document(far):
    with subprocess.Popen(
        [far, "--key-file", "-", "--json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        # the thread that takes the signals is there
        while len(os.listdir(f"/proc/{process.pid}/task")) < 2:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert json.load(process.stdout)["error"]["code"] == "interrupted"
        assert process.wait(PATIENCE_S) == 130


def test_a_signal_after_an_error_has_no_second_document(far):
    """Nobody reads its standard error, so that it still is about to end when the signal comes."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writing, bytes(4096))
    os.set_blocking(writing, True)
    with subprocess.Popen([far, "--limit", "rate=fast", "--json"], stdout=subprocess.PIPE, stderr=writing) as process:
        os.close(writing)
        text = process.stdout.readline()
        while not text.endswith(b"\n}\n"):
            text += process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        while process.poll() is None and not _is_asleep(process.pid):
            pass
        os.close(reading)
        text += process.stdout.read()
        process.wait(PATIENCE_S)
    assert json.loads(text)["error"]["code"] == "usage"


def _is_asleep(pid):
    """Whether all of its threads wait, and none has a signal to take yet."""
    texts = [Path(f"/proc/{pid}/task/{task}/status").read_text() for task in os.listdir(f"/proc/{pid}/task")]
    states = [re.search(r"State:\t(\w)", text)[1] for text in texts]
    return set(states) == {"S"} and int(re.search(r"ShdPnd:\t(\w+)", texts[0])[1], 16) == 0


@pytest.fixture
def piped(far, tmp_path):
    """A far end with a key from its input; for root where there is no file but the program's own."""
    command = [far]
    if os.geteuid() == 0:
        root = tmp_path / "root"
        libraries = re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", far], capture_output=True, text=True).stdout)
        for file in (far, *libraries):
            at = root / file.lstrip("/")
            at.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(file).resolve(), at)
        command = ["chroot", str(root), far]
    options = ["serve", "--key-file", "-", "--port", "0", "--log", "--json"]
    with subprocess.Popen(
        [*command, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdin.write(f"site {SECRET}\n")
        process.stdin.flush()
        yield process, document(process)["listening"][0].rpartition(":")[2]
        process.kill()


def test_it_answers_a_measurement_and_transfers_and_ends_with_its_input(pathcast, piped, key_file):
    from pathcast.worlds.host import Host

    process, port = piped
    done = pathcast("measure", f"127.0.0.1:{port}", "--key-file", key_file, "--time", "1s", "--json")
    assert done.returncode in (0, 3), done.stderr  # loopback may be too fast to say how fast
    for direction in done.json["paths"][0]["directions"].values():
        assert direction["loss"]["packets"] > direction["loss"]["lost"]
    with Host(f"127.0.0.1:{port}", key_file) as world:
        world.tcp_probe(world.paths[0].name, 64_000)
    process.stdin.close()
    assert process.wait(PATIENCE_S) == 0
    log = process.stderr.read()
    when = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+ "
    assert re.search(when + r"session of `site` from 127\.0\.0\.1 opened$", log, re.MULTILINE), log
    assert re.search(when + r"transfer 1 of `site` from 127\.0\.0\.1 done: 64000 B in ", log, re.MULTILINE), log


def test_32_sessions_that_transfer_and_measure_at_once_take_32_megabytes_at_most(far):
    """The short form; the whole one is run by hand, of a release."""
    script = Path(__file__).parents[1] / "scripts" / "far_memory.py"
    done = subprocess.run([sys.executable, script, far, "--short"], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "with 32 sessions at once, 0 of them failed" in done.stdout


# another processor's, as `scripts/far` builds it
FOREIGN = ROOT / "out" / "far" / "pathcast-far-aarch64"
QEMU = shutil.which("qemu-aarch64-static")


@pytest.mark.privileged
@pytest.mark.skipif(not FOREIGN.exists(), reason=f"missing: {FOREIGN.name} (scripts/cross out/cross; scripts/far)")
@pytest.mark.skipif(QEMU is None, reason="missing: qemu-user-static (no program `qemu-aarch64-static`)")
def test_another_processors_answers_in_an_empty_root(pathcast, start, tmp_path, key_file):
    root = tmp_path / "root"
    root.mkdir()
    shutil.copy(FOREIGN, root / "far")
    shutil.copy(QEMU, root / "qemu")
    shutil.copy(key_file, root / "keys")
    words = ("--key-file", "/keys", "--port", "0", "--bind", "127.0.0.1", "--json")
    far = start(*words, command=("chroot", str(root), "/qemu", "/far"))
    [where] = document(far)["listening"]
    done = pathcast("measure", where, "--key-file", key_file, "--light", "--json")
    assert done.returncode in (0, 3), done.stderr
    [path] = done.json["paths"]
    assert path["down"] is None
    assert all(of["loss"]["packets"] > 0 for of in path["directions"].values())
    far.send_signal(signal.SIGTERM)
    assert far.wait(PATIENCE_S) == 128 + signal.SIGTERM
