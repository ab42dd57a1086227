"""Whose experiments are run: they are code, and those that somebody else may have put there are refused."""

from __future__ import annotations

import os

import pytest

from pathcast.errors import PathcastError
from pathcast.lab.experiment import experiments, find


def test_experiments_are_found_in_the_checkout_or_where_it_is_said(toy, tmp_path, monkeypatch):
    assert experiments(toy.parent) == {"toy-one": toy}
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    assert find("toy-one").name == "toy-one"
    with pytest.raises(PathcastError, match=r"`nosuch`; known: toy-one"):
        find("nosuch")
    with pytest.raises(PathcastError, match="no experiments") as error:
        experiments(inside)
    assert error.value.exit == 2


@pytest.mark.parametrize("which", ["folder", "experiment"])
def test_experiments_of_the_current_directory_that_anybody_may_have_put_there_are_refused(toy, monkeypatch, which):
    """As root in /tmp, say: they are code."""
    monkeypatch.chdir(toy)
    assert find("toy-one").name == "toy-one"
    (toy.parent if which == "folder" else toy).chmod(0o777)
    with pytest.raises(PathcastError, match="may be another user's") as error:
        find("toy-one")
    assert (error.value.exit, error.value.hint) == (4, f"if you trust them: --experiments {toy.parent}")
    assert find("toy-one", toy.parent).name == "toy-one"


@pytest.mark.skipif(os.geteuid() != 0, reason="missing: privilege (root, to give files away)")
def test_nor_those_of_another_user_but_of_who_called_sudo(toy, monkeypatch):
    monkeypatch.chdir(toy)
    os.chown(toy, 4711, 4711)
    with pytest.raises(PathcastError, match="may be another user's"):
        find("toy-one")
    monkeypatch.setenv("SUDO_UID", "4711")
    assert find("toy-one").name == "toy-one"


@pytest.mark.skipif(os.geteuid() != 0, reason="missing: privilege (root, to give files away)")
@pytest.mark.parametrize("what", ["folder", "file"])
def test_nor_those_that_a_group_may_change_but_of_ones_own(toy, monkeypatch, what):
    monkeypatch.chdir(toy)
    changed = toy if what == "folder" else toy / "samples.py"
    changed.chmod(0o775)
    assert find("toy-one").name == "toy-one"  # root's own group
    os.chown(changed, 0, 4711)
    with pytest.raises(PathcastError, match="may be another user's"):
        find("toy-one")
    changed.chmod(0o755)
    assert find("toy-one").name == "toy-one"
    os.chown(toy / "plan.toml", 4711, 0)
    with pytest.raises(PathcastError, match="may be another user's"):
        find("toy-one")
