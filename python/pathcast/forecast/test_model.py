"""The file of a model: its form, its damages, its place."""

from __future__ import annotations

import pytest

from pathcast.errors import Exit
from pathcast.forecast.model import Learnt, default_file, written
from pathcast.forecast.testing import SIZE, World, go, refused
from pathcast.predict.errors import ModelFileError


def test_the_file_is_a_plain_archive(learnt):
    import json
    import zipfile

    with zipfile.ZipFile(learnt[0]) as archive:
        assert archive.namelist() == ["model.json", "rounds.jsonl", f"predictor-{SIZE}.model"]
        assert json.loads(archive.read("model.json"))["schema"] == "pathcast.learnt/1"
        assert len(archive.read("rounds.jsonl").splitlines()) == 24


def test_every_damage_is_found(learnt, tmp_path):
    data, file = learnt[0].read_bytes(), tmp_path / "damaged.model"
    for offset in range(0, len(data), 499):
        changed = bytearray(data)
        changed[offset] ^= 0x10
        file.write_bytes(changed)
        with pytest.raises(ModelFileError, match=r"damaged|no pathcast model"):
            Learnt.load(file)
    for length in (0, 100, len(data) - 1):
        file.write_bytes(data[:length])
        with pytest.raises(ModelFileError, match="cut off"):
            Learnt.load(file)
    assert refused(lambda: go(file, World()), "cut off").exit == Exit.USAGE


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({}, "no readable model.json"),
        ({"model.json": b"[]"}, "no readable model.json"),
        ({"model.json": b'{"schema": "pathcast.learnt/2"}'}, "has schema 'pathcast.learnt/2'"),
        ({"model.json": b'{"schema": "pathcast.learnt/1"}'}, "lacks a part"),
        ({"rounds.jsonl": b"{}\n"}, "lacks a part"),
        ({"rounds.jsonl": b"{\n"}, "lacks a part"),
        ({"holiday.txt": b"sun"}, "lacks a part"),
    ],
)
def test_members_that_do_not_fit_are_refused(learnt, tmp_path, members, words):
    from pathcast.predict.sealed import seal, unseal

    whole = unseal(learnt[0], learnt[0].read_bytes(), "learnt")
    file = tmp_path / "m"
    file.write_bytes(seal({**(whole if members else {}), **members}, "learnt"))
    with pytest.raises(ModelFileError, match=words):
        Learnt.load(file)


def test_a_predictor_of_other_rounds_is_fitted_again(learnt):
    model = Learnt.load(learnt[0])
    before = model.predictors[SIZE]
    model.fit(SIZE)
    assert model.predictors[SIZE] is before
    model.rounds.pop()
    model.fit(SIZE)
    assert model.predictors[SIZE] != before


def test_a_place_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "models").write_text("a file")
    refused(lambda: go(tmp_path / "models" / "m", World(), rounds=1), "cannot write the model", Exit.RUNTIME)


def test_where_models_are_by_default(monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert str(default_file("host", "example.org")) == "/data/pathcast/models/example.org.model"
    assert str(default_file("host", "example.org:99")) == "/data/pathcast/models/example.org_99.model"
    assert str(default_file("host", "::1")) == "/data/pathcast/models/__1.model"
    assert str(default_file("host", "../../x")) == "/data/pathcast/models/_.._x.model"
    assert str(default_file("emu", "two path")) == "/data/pathcast/models/emu-two_path.model"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/me")
    assert str(default_file("host", "h")) == "/home/me/.local/share/pathcast/models/h.model"


@pytest.mark.parametrize(
    ("bytes", "text"), [(64_000_000, "64MB"), (1_500_000, "1500KB"), (999, "999B"), (10**9, "1GB")]
)
def test_sizes_are_written_as_they_are_read(bytes, text):
    from pathcast import _native

    assert written(bytes) == text
    assert _native.parse_bytes(text) == bytes
