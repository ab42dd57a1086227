"""A far end over ssh: what the other host says need not be a far end's document."""

from __future__ import annotations

import json
import os
import sys
import time
from types import SimpleNamespace

import pytest

from pathcast.errors import PathcastError
from pathcast.worlds import remote

# what stands for ssh: it says something, and stays until its input ends
SAYS = "import sys; sys.stdout.write({text!r} * {times}); sys.stdout.flush(); sys.stdin.read()"


def said(tmp_path, text, times=1):
    """The address of the far end, from a host that says this."""
    script = tmp_path / "ssh.py"
    script.write_text(SAYS.format(text=text, times=times))
    with remote.far_end("ssh://there", f"{sys.executable} {script}") as (where, _):
        return where


def test_a_document_tells_the_port(tmp_path):
    assert said(tmp_path, '{"schema": "pathcast.serve/1", "listening": ["0.0.0.0:4711", "[::]:4711"]}') == "there:4711"


LISTENING = ["7", "[]", "[7]", '["x:y"]', '["x:99999"]', '["x:-1"]', '{"0": "x:1"}']


@pytest.mark.parametrize("document", ["[]", "7", "[" * 9000, *(f'{{"listening": {one}}}' for one in LISTENING)])
def test_what_is_no_far_ends_document_is_not_believed(tmp_path, monkeypatch, document):
    came, read = bytearray(), os.read

    def noted(descriptor, most):
        came.extend(more := read(descriptor, most))
        return more

    monkeypatch.setattr(os, "read", noted)
    # the patience ends when all of it was read, however long its start takes
    monkeypatch.setattr(remote, "time", SimpleNamespace(monotonic=lambda: 1e3 * came.endswith(document.encode())))
    with pytest.raises(PathcastError, match="no far end on `ssh://there` after 60 s"):
        said(tmp_path, document)
    assert came.endswith(document.encode())


def test_one_that_says_nothing_is_waited_for_and_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(remote, "PATIENCE_S", 0.6)
    began = time.monotonic()
    with pytest.raises(PathcastError, match="no far end on `ssh://there` after 1 s"):
        said(tmp_path, "")
    assert time.monotonic() - began >= 0.6


def test_nor_is_what_has_no_end(tmp_path):
    with pytest.raises(PathcastError, match="it says more than any"):
        said(tmp_path, "x" * 4096, 1000)


# what stands for ssh to a host that has these programs only
THERE = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift 2
PATH={programs} exec /bin/sh -c "$*"
"""
PROGRAM = """#!/bin/sh
echo '{{"listening": ["0.0.0.0:{port}"]}}'
echo "$@" >{log}
read -r key
read -r end
"""


@pytest.mark.parametrize(
    ("programs", "port"), [(["pathcast", "pathcast-far"], 1), (["pathcast-far"], 2), (["pathcast"], 1)]
)
def test_where_there_is_no_pathcast_the_far_end_without_python_serves(tmp_path, programs, port):
    ssh, log, path = tmp_path / "ssh", tmp_path / "log", tmp_path / "bin"
    path.mkdir()
    (path / "sh").symlink_to("/bin/sh")
    ports = {"pathcast": 1, "pathcast-far": 2}
    for file, text in ((ssh, THERE.format(programs=path)), *((path / name, "") for name in programs)):
        file.write_text(text or PROGRAM.format(port=ports[file.name], log=log))
        file.chmod(0o755)
    with remote.far_end("ssh://there", str(ssh)) as (where, _):
        assert where == f"there:{port}"
    assert log.read_text() == "serve --key-file - --port 0 --json\n"


def test_where_there_is_neither_that_is_told(tmp_path):
    ssh = tmp_path / "ssh"
    ssh.write_text(THERE.format(programs=tmp_path))
    ssh.chmod(0o755)
    (tmp_path / "sh").symlink_to("/bin/sh")
    with pytest.raises(PathcastError, match="ended with status 127") as error:
        remote.far_end("ssh://there", str(ssh)).__enter__()
    assert "pathcast-far" in error.value.hint


# what stands for ssh: it notes its words, and is a far end at once
NOTES = """import json, sys
json.dump(sys.argv[1:-1], open({file!r}, "w"))
print('{{"listening": ["0.0.0.0:4711"]}}', flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("url", "words", "host"),
    [
        ("ssh://NAS", ["--", "NAS"], "NAS"),
        ("ssh://me@Nas.Example:2222", ["-p", "2222", "--", "me@Nas.Example"], "Nas.Example"),
        ("ssh://me%40home@NAS", ["--", "me@home@NAS"], "NAS"),
        ("ssh://me@[2001:DB8::1]:22", ["-p", "22", "--", "me@2001:DB8::1"], "2001:DB8::1"),
        ("ssh://[2001:db8::1]", ["--", "2001:db8::1"], "2001:db8::1"),
    ],
)
def test_ssh_is_told_the_host_and_the_user_as_they_were_meant(tmp_path, url, words, host):
    script, file = tmp_path / "ssh.py", tmp_path / "words"
    script.write_text(NOTES.format(file=str(file)))
    with remote.far_end(url, f"{sys.executable} {script}") as (where, _):
        assert where == (f"[{host}]:4711" if ":" in host else f"{host}:4711")
    assert json.loads(file.read_text()) == words


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"ssh": 'ssh -i "my key'}, '--ssh `ssh -i "my key`: no closing quotation'),
        ({"ssh": "ssh \\"}, "--ssh `ssh \\`: no escaped character"),
        ({"ssh": " "}, "--ssh is empty"),
        ({"command": 'sudo "x'}, '--remote-command `sudo "x`: no closing quotation'),
        ({"command": " "}, "--remote-command is empty"),
    ],
)
def test_commands_that_are_no_words_are_refused(more, told):
    with pytest.raises(PathcastError) as error:
        remote.far_end("ssh://there", **{"ssh": "false", **more}).__enter__()
    assert (error.value.exit, str(error.value)) == (2, told)


@pytest.mark.parametrize(
    "url",
    ["ssh://", "ssh://-x", "ssh://a%00b@there", "ssh://me:secret@there", "ssh://there:x", "ssh://there/x", "ssh://@"],
)
def test_what_is_no_host_is_refused(url):
    with pytest.raises(PathcastError, match=f"`{url}` is not ssh://HOST") as error:
        remote.far_end(url, "false").__enter__()
    assert error.value.exit == 2
