"""Key files: who may read them, what they may hold, that they are never overwritten."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.runtime.keys import OPEN_ID, OPEN_SECRET, Key, read_key, read_keys, write_key

A, B = "a1" * 32, "b2" * 32
root = pytest.mark.skipif(os.geteuid() != 0, reason="missing: privilege (root, to give files away)")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "keys"

    def write(text, mode=0o600):
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)
        return path

    return write


def test_a_fresh_key_is_private_random_and_readable(tmp_path):
    old = os.umask(0)
    try:
        keys = [write_key(tmp_path / f"k{i}") for i in range(2)]
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "k0").stat().st_mode) == 0o600
    assert keys[0].secret != keys[1].secret
    assert read_keys(tmp_path / "k0") == [keys[0]] == [Key("key1", keys[0].secret)]
    assert len(keys[0].secret) == 64


def test_a_key_file_is_never_overwritten(file):
    path = file(f"mine {A}\n")
    with pytest.raises(PathcastError, match="never overwritten") as error:
        write_key(path)
    assert error.value.exit == Exit.USAGE
    assert path.read_text() == f"mine {A}\n"


def test_nor_what_a_link_points_to(file, tmp_path):
    path = file("precious")
    (tmp_path / "link").symlink_to(path)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("link", "dangling"):
        with pytest.raises(PathcastError, match="never overwritten"):
            write_key(tmp_path / name)
    assert path.read_text() == "precious"
    assert not (tmp_path / "nowhere").exists()


def test_a_place_that_cannot_be_written_is_said(tmp_path):
    with pytest.raises(PathcastError, match=r"cannot write the key file .*: No such file or directory"):
        write_key(tmp_path / "no" / "keys")


FULL = """
import resource, sys
from pathlib import Path
from pathcast.errors import PathcastError
from pathcast.runtime.keys import write_key
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    write_key(Path(sys.argv[1]))
except PathcastError as error:
    print(error, int(error.exit))
"""


@pytest.mark.parametrize("room", [0, 20])
def test_where_there_is_no_room_no_part_of_a_key_stays(tmp_path, room):
    path = tmp_path / "keys"
    done = subprocess.run([sys.executable, "-c", FULL, path, str(room)], capture_output=True, text=True)
    assert done.stdout == f"cannot write the key file `{path}`: File too large 2\n", done.stderr
    assert list(tmp_path.iterdir()) == []
    assert write_key(path) == read_key(path)


def test_lines_comments_and_order(file):
    path = file(f"# two sites\n\n  first\t{A}\n   # more\nse.co-n_d {B.upper()}  \n")
    assert read_keys(path) == [Key("first", A), Key("se.co-n_d", B)]
    assert read_key(path) == Key("first", A)


def test_without_a_file_the_open_key():
    assert read_key(None) == Key(OPEN_ID, OPEN_SECRET)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o601, 0o610, 0o777])
def test_a_file_that_others_may_use_is_refused_by_policy(file, mode):
    path = file(f"k {A}\n", mode)
    with pytest.raises(PathcastError, match="can be read or changed by others") as error:
        read_keys(path)
    assert error.value.exit == Exit.REFUSED
    assert error.value.hint == f"chmod 600 {path}"


@root
@pytest.mark.parametrize("caller", [None, "4711", "4712", "root"])
def test_a_file_of_another_user_is_refused_but_for_who_called_sudo(file, monkeypatch, caller):
    path = file(f"k {A}\n")
    os.chown(path, 4711, 4711)
    if caller:
        monkeypatch.setenv("SUDO_UID", caller)
    if caller == "4711":
        assert read_keys(path) == [Key("k", A)]
        return
    with pytest.raises(PathcastError, match=r"belongs to another user \(4711\)") as error:
        read_keys(path)
    assert error.value.exit == Exit.REFUSED
    assert f"install -m 600 {path}" in error.value.hint


@root
@pytest.mark.parametrize("owner", [0, 4711])
@pytest.mark.parametrize("where", ["file", "directory", "up", "twice"])
def test_a_file_that_another_users_link_leads_to_is_refused(file, tmp_path, owner, where):
    """The file is ours, but whoever owns the link says which one of ours it is."""
    real, link = file(f"k {A}\n"), tmp_path / "link"
    link.symlink_to({"file": real, "directory": tmp_path, "up": f"../{tmp_path.name}", "twice": tmp_path}[where])
    os.lchown(link, owner, owner)
    path = link if where == "file" else link / real.name
    if where == "twice":
        (tmp_path / "ours").symlink_to("link/keys")
        path = tmp_path / "ours"
    if owner == 0:
        assert read_keys(path) == [Key("k", A)]
        return
    with pytest.raises(PathcastError, match=f"by a link of another user's, `{link}`") as error:
        read_keys(path)
    assert error.value.exit == Exit.REFUSED


def test_links_that_go_round_are_said(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(PathcastError, match="Too many levels of symbolic links"):
        read_keys(tmp_path / "a")


def test_a_pipe_is_taken_by_descriptor_and_not_waited_for_by_name(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path, 0o600)
    with pytest.raises(PathcastError, match="it is a pipe"):
        read_keys(path)
    read, write = os.pipe()
    later = subprocess.Popen(["sh", "-c", f"sleep 0.5; echo k {A}"], stdout=write)
    os.close(write)
    assert read_keys(Path(f"/dev/fd/{read}")) == [Key("k", A)]
    os.close(read)
    later.wait()


@root
def test_a_credential_of_systemd_has_an_access_list(file, monkeypatch):
    path = file(f"k {A}\n", 0o440)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(path.parent / "other"))
    with pytest.raises(PathcastError, match="can be read or changed by others"):
        read_keys(path)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(path.parent))
    assert read_keys(path) == [Key("k", A)]
    path.chmod(0o444)
    with pytest.raises(PathcastError, match="can be read or changed by others"):
        read_keys(path)


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_private_file_is_taken(file, mode):
    assert read_keys(file(f"k {A}\n", mode)) == [Key("k", A)]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (1, "k\n"),
        (1, f"{A}\n"),
        (1, f"k {A[:-1]}\n"),
        (1, f"k {A}0\n"),
        (1, f"k {'g' * 64}\n"),
        (1, f"k {A} more\n"),
        (1, f"{'x' * 33} {A}\n"),
        (1, f"k/e {A}\n"),
        (1, f"k={A}\n"),
        (3, f"# fine\nk {A}\nl {A} # not a place for words\n"),
    ],
)
def test_a_malformed_line_is_named_by_its_number_and_not_shown(file, line, text):
    with pytest.raises(PathcastError, match=rf"line {line} of the key file") as error:
        read_keys(file(text))
    assert error.value.exit == Exit.USAGE
    assert A[:16] not in str(error.value)


def test_an_id_twice_is_refused(file):
    with pytest.raises(PathcastError, match="names an id twice"):
        read_keys(file(f"k {A}\nk {B}\n"))


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n"])
def test_a_file_without_a_key_is_refused(file, text):
    with pytest.raises(PathcastError, match="holds no key"):
        read_keys(file(text))


def test_what_cannot_be_read_is_said_with_how_to_make_one(tmp_path, file):
    with pytest.raises(PathcastError, match="No such file") as error:
        read_keys(tmp_path / "none")
    assert "--new-key" in error.value.hint
    with pytest.raises(PathcastError, match="it is a directory"):
        read_keys(tmp_path)
    with pytest.raises(PathcastError, match="it is not text"):
        read_keys(file(b"k \xff\xfe\n"))
