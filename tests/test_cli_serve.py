"""`pathcast serve` and `pathcast paths` on loopback: keys, addresses, refusals."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import socket
import stat
import threading

import pytest
from conftest import COMMAND, NOBODY, PATIENCE_S, ROOT

SECRET = "5e" * 32


@pytest.fixture
def port():
    """A port at which nobody listens yet, and which the system gives to nobody else meanwhile: it stays bound."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # so that `serve` may listen beside it
        s.bind(("127.0.0.1", 0))
        yield s.getsockname()[1]


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "keys"
    path.write_text(f"site {SECRET}\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def far_end(start):
    """Starts `serve --json` with these options and reads its document."""

    def far_end(*arguments, command=(str(COMMAND),)):
        process = start("serve", "--json", *arguments, command=command)
        text = ""
        for line in process.stdout:
            text += line
            with contextlib.suppress(ValueError):
                return process, json.loads(text)
        raise AssertionError(f"no document; {process.stderr.read()}")

    return far_end


def test_a_new_key_is_private_and_never_overwritten(pathcast, tmp_path):
    file = tmp_path / "new"
    done = pathcast("serve", "--new-key", file, "--json")
    assert done.json == {"schema": "pathcast.key/1", "file": str(file), "id": "key1"}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text()
    assert text.split()[1] not in done.stdout + done.stderr
    again = pathcast("serve", "--new-key", file, "--json")
    assert again.returncode == 2
    assert "never overwritten" in again.error["message"]
    assert file.read_text() == text
    assert "key1" in pathcast("serve", "--new-key", tmp_path / "second").stdout


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_key_file_that_others_may_read_is_refused(pathcast, key_file, port, mode):
    key_file.chmod(mode)
    for command in (["serve", "--port", port], ["paths", f"127.0.0.1:{port}"]):
        done = pathcast(*command, "--key-file", key_file, "--json")
        assert done.returncode == 4
        assert done.error["code"] == "key-file"
        assert done.error["hint"] == f"chmod 600 {key_file}"


@pytest.mark.parametrize(
    ("text", "words"), [("", "holds no key"), ("a b\n", "line 1"), (f"k {SECRET}\nk {SECRET}\n", "an id twice")]
)
def test_malformed_key_files_are_2(pathcast, key_file, text, words):
    key_file.write_text(text)
    done = pathcast("serve", "--key-file", key_file, "--json")
    assert done.returncode == 2
    assert words in done.error["message"]


def test_a_directory_of_keys_is_2_and_its_mode_is_left_alone(pathcast, tmp_path):
    tmp_path.chmod(0o755)
    for command in (["serve"], ["paths", "127.0.0.1:9"]):
        done = pathcast(*command, "--key-file", tmp_path, "--json")
        assert (done.returncode, done.error["code"]) == (2, "usage")
        assert "it is a directory" in done.error["message"]
        assert "chmod" not in done.error["hint"]


def test_a_device_or_an_empty_name_is_no_key_file(pathcast):
    for command in (["serve"], ["paths", "127.0.0.1:9"]):
        device = pathcast(*command, "--key-file", "/dev/null", "--json")
        assert (device.returncode, "it is a device" in device.error["message"]) == (2, True)
        assert "chmod" not in device.error["hint"]
        empty = pathcast(*command, "--key-file", "", "--json")
        assert (empty.returncode, "'--key-file': `` is no file" in empty.error["message"]) == (2, True)
    assert "'--new-key': `` is no file" in pathcast("serve", "--new-key", "", "--json").error["message"]


def test_a_missing_key_file_is_2_and_says_how_to_make_one(pathcast, tmp_path):
    done = pathcast("serve", "--key-file", tmp_path / "none")
    assert done.returncode == 2
    assert "--new-key" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--open", "--key-file"], "exclude each other"),
        (["--bind", "192.0.2.1"], "on loopback only"),
        (["--bind", "0.0.0.0"], "on loopback only"),
        (["--bind", "::"], "on loopback only"),
        (["--key-file", "--bind", "nonsense"], "--bind `nonsense` is not an IP address"),
        (["--bind", "localhost"], "--bind `localhost` is not an IP address"),
        (["--key-file", "--announce", "300.1.1.1"], "--announce `300.1.1.1` is not an IP address"),
        (["--port", "-1"], "--port"),
        (["--limit", "rate"], "NAME=VALUE"),
        (["--limit", "speed=1Mbit"], "sessions, sessions-per-key"),
        (["--limit", "rate=fast"], "rate=fast"),
        (["--limit", "sessions=99999999999999999999"], "whole numbers from 0 to 4294967295"),
        (["--limit", "bytes=1kB"], "12500B and more"),
        (["--bind", "::1%lo"], "--bind `::1%lo`: write it without a zone"),
        (["--open", "--bind", "fe80::1"], "--bind `fe80::1`: a link-local address"),
        (["--announce", "224.0.0.1"], "--announce `224.0.0.1`: no single host has it"),
        (["--announce", "0.0.0.0"], "--announce `0.0.0.0`: no single host has it"),
        (["--announce", "::"], "--announce `::`: no single host has it"),
        (["--stamp-port", "70000"], "--stamp-port"),
        (["--stamp-open"], "--stamp-port"),
        (["--port", "65536"], "--port"),
        (["--port", "x"], "--port"),
    ],
)
def test_options_that_cannot_be_meant_are_2_and_show_no_secret(pathcast, key_file, arguments, words):
    spelled = [w for a in arguments for w in ([a, key_file] if a == "--key-file" else [a])]
    done = pathcast("serve", *spelled, "--json")
    assert done.returncode == 2
    assert words in done.error["message"]
    assert SECRET not in done.stdout + done.stderr


def test_a_port_in_use_is_1(pathcast, port):
    with socket.create_server(("127.0.0.1", port)):
        done = pathcast("serve", "--bind", "127.0.0.1", "--port", port, "--json")
    assert done.returncode == 1
    assert done.error["code"] == "cannot-listen"
    assert str(port) in done.error["message"]


def test_paths_to_a_far_end_with_a_key(pathcast, far_end, key_file, port):
    _, about = far_end("--key-file", key_file, "--bind", "127.0.0.1", "--port", port)
    assert about["schema"] == "pathcast.serve/1"
    assert about["listening"] == [f"127.0.0.1:{port}"]
    done = pathcast("paths", f"127.0.0.1:{port}", "--key-file", key_file, "--json")
    assert done.returncode == 0
    assert list(done.json) == ["schema", "host", "paths", "unusable", "idle"]
    assert done.json["schema"] == "pathcast.paths/1"
    table = pathcast("paths", f"127.0.0.1:{port}", "--key-file", key_file)
    assert table.returncode == 0
    assert "remote" in table.stdout


def test_a_wrong_key_is_4(pathcast, far_end, key_file, port, tmp_path):
    far_end("--key-file", key_file, "--bind", "127.0.0.1", "--port", port)
    other = tmp_path / "other"
    for text in (f"site {'00' * 32}\n", f"stranger {SECRET}\n"):
        other.write_text(text)
        other.chmod(0o600)
        done = pathcast("paths", f"127.0.0.1:{port}", "--key-file", other, "--json")
        assert done.returncode == 4
        assert done.error["code"] == "refused"
        assert "same key" in done.error["hint"]
    assert pathcast("paths", f"127.0.0.1:{port}").returncode == 4  # the open key opens nothing here


def test_without_a_key_only_loopback_is_served(pathcast, far_end, port):
    _, about = far_end("--port", port)
    assert set(about["listening"]) <= {f"127.0.0.1:{port}", f"[::1]:{port}"}
    assert pathcast("paths", f"localhost:{port}", "--json").returncode == 0


def test_nobody_there_is_1(pathcast, port):
    done = pathcast("paths", f"127.0.0.1:{port}", "--json")
    assert done.returncode == 1
    assert done.error["code"] == "no-connection"
    assert "pathcast serve" in done.error["hint"]
    plain = pathcast("paths", f"127.0.0.1:{port}")
    assert (plain.returncode, plain.stdout) == (1, "")


def test_somebody_else_there_is_1(pathcast, start, port):
    program = (
        "import socket, sys\ns = socket.create_server(('127.0.0.1', int(sys.argv[1])))\nprint('up', flush=True)\n"
        "while True:\n    c, _ = s.accept()\n    c.sendall(b'SSH-2.0-something else entirely' * 9)\n    c.close()\n"
    )
    import sys

    other = start("-c", program, port, command=(sys.executable,))
    assert other.stdout.readline() == "up\n"
    done = pathcast("paths", f"127.0.0.1:{port}", "--json")
    assert done.returncode == 1
    assert done.error["code"] in ("protocol", "control-lost")


@pytest.mark.parametrize("host", ["[::1", "h:0", "h:x", ":80", ""])
def test_what_is_no_host_is_2(pathcast, host):
    done = pathcast("paths", host, "--json")
    assert done.returncode == 2
    assert done.error["code"] == "usage"


def test_a_host_that_nobody_knows_is_1(pathcast):
    done = pathcast("paths", "nowhere.invalid", "--json")
    assert done.returncode == 1
    assert "nowhere.invalid" in done.error["message"]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_it_with_one_document_in_all(far_end, port, number, status):
    process, _ = far_end("--bind", "127.0.0.1", "--port", port)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == status
    assert out == ""  # the document was read before
    assert "Traceback" not in err
    with socket.socket() as s:  # and the port is free again
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", port))


def test_the_systemd_unit_takes_being_stopped_for_a_success(far_end, port):
    lines = (ROOT / "packaging" / "pathcast-serve.service").read_text().splitlines()
    unit = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    assert "KillSignal" not in unit  # so it is SIGTERM
    process, _ = far_end("--bind", "127.0.0.1", "--port", port)
    process.terminate()
    process.communicate(timeout=60)
    assert str(process.returncode) in unit["SuccessExitStatus"].split()


def test_sessions_of_transfers_have_the_same_limits(pathcast, far_end, key_file, port):
    far_end("--key-file", key_file, "--bind", "127.0.0.1", "--port", port, "--limit", "sessions=0")
    done = pathcast("paths", f"127.0.0.1:{port}", "--key-file", key_file, "--json")
    assert done.returncode == 4
    assert done.error["code"] == "sessions"


def test_it_says_what_it_warns_of_while_it_runs(far_end, port):
    process, _ = far_end("--bind", "127.0.0.1", "--port", port)
    few = len(os.listdir(f"/proc/{process.pid}/fd")) + 3
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (few, few))
    with contextlib.ExitStack() as connections:
        for _ in range(10):
            connections.enter_context(socket.create_connection(("127.0.0.1", port)))
        silent = threading.Timer(60, process.kill)
        connections.callback(silent.cancel)
        silent.start()
        while not process.stderr.readline().startswith("note: a connection could not be accepted"):
            assert process.poll() is None, "it ended, or said nothing for a minute"


def test_limits_under_which_nobody_can_measure_are_said(start, port):
    process = start("serve", "--port", port, "--limit", "sessions=0")
    said = [process.stderr.readline() for _ in range(3)]
    assert "serving nobody, until this command ends (Ctrl-C)\n" in said
    assert any("limit sessions=0: nobody is served" in line for line in [*said, process.stderr.readline()])


def test_measurements_and_who_is_refused_are_logged_on_request(pathcast, far_end, key_file, port):
    server, _ = far_end("--key-file", key_file, "--port", port, "--log", "--limit", "paths=1")
    here = (f"127.0.0.1:{port}", "--key-file", key_file)
    assert pathcast("measure", *here, "--light", "--paths", "path1", "--json").returncode in (0, 3)
    assert pathcast("measure", *here, "--light", "--json").returncode == 4
    server.terminate()
    said = server.communicate(timeout=PATIENCE_S)[1]
    assert "measurement of `site` from 127.0.0.1 begun" in said
    assert re.search(r"measurement of `site` from 127.0.0.1 done: \d{5,} B in \d+\.\d{3} s", said)
    assert "measurement of `site` from 127.0.0.1 denied: paths=1" in said


def test_who_is_refused_after_the_key_file_has_changed_is_logged_with_that(pathcast, far_end, key_file, tmp_path, port):
    """Its keys were read when it started."""
    server, _ = far_end("--key-file", key_file, "--port", port, "--log")
    other = tmp_path / "other"
    assert pathcast("serve", "--new-key", other).returncode == 0

    def refused(times):
        for _ in range(times):
            assert pathcast("paths", f"127.0.0.1:{port}", "--key-file", other).returncode != 0
        lines = []
        while sum("wrong key" in line for line in lines) < times:
            lines.append(server.stderr.readline())
            assert lines[-1], lines
        return "".join(lines)

    assert "has changed" not in refused(1)
    key_file.write_text(key_file.read_text() + "new" + other.read_text())
    said = refused(2)
    server.terminate()
    said += server.stderr.read()
    assert said.count(f"{key_file} has changed since the start") == 1


def test_clients_are_logged_on_request(far_end, key_file, port):
    from pathcast.worlds.host import Host

    server, _ = far_end("--key-file", key_file, "--port", port, "--log")
    with Host(f"127.0.0.1:{port}", key_file) as world:
        world.tcp_probe(world.paths[0].name, 64_000)
    server.terminate()
    said = server.communicate(timeout=PATIENCE_S)[1]
    id = key_file.read_text().split()[0]
    assert f"session of `{id}` from 127.0.0.1 opened" in said
    assert f"transfer 1 of `{id}` begun: 64000 B under " in said
    assert f"transfer 1 of `{id}` from 127.0.0.1 done: 64000 B in " in said
    assert f"session of `{id}` closed" in said


def test_it_can_be_asked_while_it_stops():
    from pathcast import _native

    server = _native.Server(
        None, json.dumps({"bind": ["127.0.0.1"], "port": 0, "keys": [], "addresses": [], "limits": []})
    )
    failures, begun, over = [], threading.Event(), threading.Event()

    def ask() -> None:
        while not over.is_set():
            try:
                server.warnings()
            except Exception as failure:
                failures.append(failure)
            begun.set()

    thread = threading.Thread(target=ask)
    thread.start()
    assert begun.wait(PATIENCE_S)
    server.stop()
    over.set()
    thread.join()
    assert failures == []


@pytest.mark.privileged
def test_a_user_without_rights_can_serve_and_ask(pathcast, far_end, open_site, nobody, port):
    home = open_site.path
    file = home / "keys"
    assert pathcast("serve", "--new-key", file, prefix=nobody).returncode == 0
    if os.geteuid() == 0:
        assert file.stat().st_uid == NOBODY
    far_end("--key-file", file, "--bind", "127.0.0.1", "--port", port, command=(*nobody, str(COMMAND)))
    done = pathcast("paths", f"127.0.0.1:{port}", "--key-file", file, "--json", prefix=nobody)
    assert done.returncode == 0


@pytest.mark.privileged
@pytest.mark.parametrize(("options", "address"), [([], "127.0.0.1"), (["--open"], "0.0.0.0")])
def test_without_ipv6_it_listens_on_ipv4(far_end, options, address):
    script = 'echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 && ip link set lo up && exec "$@"'
    inside = ("unshare", "--net", "sh", "-c", script, "sh", str(COMMAND))
    about = far_end("--port", "5290", *options, command=inside)[1]
    assert f"{address}:5290" in about["listening"]
    assert "[::1]:5290" not in about["listening"]


@pytest.mark.privileged
def test_an_ipv6_address_that_was_asked_for_is_not_left_out(pathcast):
    script = 'echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 && ip link set lo up && exec "$@"'
    inside = ("unshare", "--net", "sh", "-c", script, "sh")
    done = pathcast("serve", "--bind", "127.0.0.1", "--bind", "::1", "--json", prefix=inside)
    assert done.returncode == 1
    assert done.error["code"] == "cannot-listen"


@pytest.mark.privileged
def test_a_port_below_1024_needs_rights(pathcast, open_site, nobody):
    done = pathcast("serve", "--bind", "127.0.0.1", "--port", "77", "--json", prefix=nobody)
    with open("/proc/sys/net/ipv4/ip_unprivileged_port_start") as file:
        if int(file.read()) > 77:
            assert done.returncode == 5
            assert done.error["hint"] == "choose a port above 1023"
