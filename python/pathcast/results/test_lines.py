"""Lines of results: what is found again, what is not, and one writer at a time."""

import fcntl

import pytest

from pathcast.errors import PathcastError
from pathcast.results.lines import Lines, stored


def good(line):
    return line.get("good", False)


def test_results_are_found_again_by_key(tmp_path):
    path = tmp_path / "runs.jsonl"
    with Lines(path, good) as lines:
        assert lines.stored == {}
        for n in (1, 2):
            lines.add({"key": "a", "good": True, "n": n})
        lines.add({"key": "b", "good": False})
        assert set(lines.stored) == {"a", "b"}
    with path.open("a") as file:
        file.write('[1]\n{"good": true}\n{"key": "c", "go')
    with Lines(path, good) as lines:
        assert lines.stored == {"a": {"key": "a", "good": True, "n": 2}}
        lines.add({"key": "d", "good": True})
    assert set(stored(path.read_bytes(), good)) == {"a", "d"}


def test_a_file_without_results_is_removed(tmp_path):
    path = tmp_path / "runs.jsonl"
    with Lines(path, good):
        assert path.exists()
    assert not path.exists()


def test_a_file_that_was_removed_before_it_was_locked_is_opened_again(tmp_path, monkeypatch):
    path, flock = tmp_path / "runs.jsonl", fcntl.flock

    def removed_first(file, how):
        monkeypatch.setattr(fcntl, "flock", flock)
        path.unlink()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", removed_first)
    with Lines(path, good) as lines:
        lines.add({"key": "a", "good": True})
    assert set(stored(path.read_bytes(), good)) == {"a"}


def test_a_second_writer_is_refused(tmp_path):
    path = tmp_path / "runs.jsonl"
    with Lines(path, good), pytest.raises(PathcastError, match="another run writes to") as error, Lines(path, good):
        pass
    assert error.value.code == "busy"
    with Lines(path, good):
        pass
