"""The file of a model: its form, its damages, its place."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import zipfile
from dataclasses import replace

import pytest

from pathcast.errors import Exit
from pathcast.forecast.model import LARGEST_BYTES, Model, default_file, written
from pathcast.forecast.testing import SIZE, World, foretell, go, refused


def document(file):
    return json.loads(file.read_text())


def test_the_file_is_one_json_document_with_a_round_a_line(learnt):
    file, _, done = learnt
    found = document(file)
    assert list(found) == ["schema", "world", "target", "paths", "probe_bytes", "control", "choices", "rounds"]
    assert found["schema"] == "pathcast.learnt/2"
    assert found["rounds"] == [r.document() for r in done.rounds]
    assert len(file.read_text().splitlines()) == 24 + 2


def test_what_was_stored_is_what_was_measured(learnt, tmp_path):
    model = Model.load(learnt[0])
    assert model == learnt[2].model
    model.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == learnt[0].read_bytes()


def test_the_same_rounds_give_the_same_predictors(learnt):
    probes = [3e6, 5e6]
    expected = learnt[2].fitted[SIZE].predict(probes)
    assert Model.load(learnt[0]).fit(SIZE).predict(probes) == expected
    program = "import sys; from pathlib import Path; from pathcast.forecast.model import Model\n"
    program += f"print(Model.load(Path(sys.argv[1])).fit({SIZE}).predict({probes}))"
    done = subprocess.run([sys.executable, "-c", program, learnt[0]], capture_output=True, text=True, check=True)
    assert done.stdout == f"{expected}\n"


def test_of_many_rounds_the_newest_count(learnt, monkeypatch):
    model = Model.load(learnt[0])
    monkeypatch.setattr("pathcast.forecast.model.NEWEST_ROUNDS", 10)
    newest = replace(model, rounds=model.rounds[-10:])
    assert model.fit(SIZE).predict([3e6, 5e6]) == newest.fit(SIZE).predict([3e6, 5e6])


def no_model(data, tmp_path, words):
    """Refused by both commands with exit 2, the file's name and what to do; and left as it is."""
    file = tmp_path / "m.model"
    file.write_bytes(data)
    for call in (lambda: Model.load(file), lambda: go(file, World()), lambda: foretell(file, World())):
        error = refused(call, words)
        assert (error.code, error.exit) == ("model-file", Exit.USAGE)
        assert str(file) in error.message
        assert error.hint
    assert file.read_bytes() == data


def test_what_is_cut_off_is_refused(learnt, tmp_path):
    data = learnt[0].read_bytes()
    for length in (*range(0, len(data) - 3, 997), len(data) - 3):
        no_model(data[:length], tmp_path, "cut off")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a holiday", "is no pathcast model"),
        (b"\0" * 4096, "is no pathcast model"),
        (b"\xff\xfe", "is no pathcast model"),
        (pickle.dumps({"schema": "pathcast.learnt/2"}), "is no pathcast model"),
        (b"[]", "is no pathcast model"),
        (b"{}", "is no pathcast model"),
        (b'{"schema": NaN}', "is no pathcast model"),
        (b"[" * 100_000, "is no pathcast model"),
        (b'{"schema": "pathcast.learnt/3"}', "has schema 'pathcast.learnt/3', this version reads"),
        (b'{"schema": ["pathcast.learnt/2"]}', "has schema"),
        (b'{"schema": "pathcast.learnt/2"}', "Model.world is None"),
        (b"1" * (LARGEST_BYTES + 1), "is larger than"),
    ],
)
def test_what_is_no_model_is_refused(tmp_path, data, words):
    no_model(data, tmp_path, words)


def test_a_model_of_an_older_version_is_refused_with_what_to_do(tmp_path):
    with zipfile.ZipFile(tmp_path / "old", "w") as archive:
        archive.writestr("model.json", '{"schema": "pathcast.learnt/1"}')
        archive.comment = b"pathcast.learnt sha256=" + b"0" * 64
    no_model((tmp_path / "old").read_bytes(), tmp_path, "is of an older pathcast")
    assert "pathcast learn" in refused(lambda: Model.load(tmp_path / "old"), "older").hint


PATH = {"name": "path1", "local": "a", "remote": "b"}


@pytest.mark.parametrize(
    ("where", "value", "words"),
    [
        (("world",), 1, "Model.world is 1, not str"),
        (("target",), "\x1b[2J", "a name that cannot be printed"),
        (("control",), "a\nb", "a name that cannot be printed"),
        (("paths",), [], "no paths"),
        (("paths",), "path1", "Model.paths is 'path1'"),
        (("paths",), [PATH], "is not of the paths path1"),
        (("paths",), [PATH, PATH], "two of one name"),
        (("paths", 0, "name"), "\x9b", "a name that cannot be printed"),
        (("paths", 0, "local"), None, r"Model.paths\[0\].local is None"),
        (("probe_bytes",), 0, "below 1 B"),
        (("probe_bytes",), "64000", "Model.probe_bytes is '64000', not int"),
        (("choices",), [["path1", "path9"]], "a choice of paths other than path1, path2"),
        (("choices",), [1], r"Model.choices\[0\] is 1"),
        (("rounds",), {}, "Model.rounds is {}"),
        (("rounds", 3), 1, r"Model.rounds\[3\] is 1, not Round"),
        (("rounds", 3, "bytes"), -1, "below 1 B"),
        (("rounds", 3, "bytes"), 1e9, "Model.rounds.3..bytes is 1000000000.0, not int"),
        (("rounds", 3, "probes_bps"), None, "round 3 has no probes_bps"),
        (("rounds", 3, "probes_bps"), [1e6], "round 3: tcp_bps has 2 values for 1"),
        (("rounds", 3, "probes_bps"), [1e6, 0.0], r"round 3: probes_bps\[1\] is 0.0, not a positive"),
        (("rounds", 3, "probes_bps"), [1e6, "1"], r"probes_bps\[1\] is '1', not float"),
        (("rounds", 3, "actual_bps"), None, "round 3 has no transfer over all paths"),
        (("rounds", 3, "actual_bps"), -1.0, "round 3: actual_bps is -1.0"),
        (("rounds", 3, "actual_bps"), 10**400, "actual_bps is 1000"),
        (("rounds", 3, "tcp_bps"), None, "round 3 is not of the paths"),
        (("rounds", 3, "subset_bps"), [{"paths": ["path9"], "actual_bps": 1.0}], "a choice of other paths"),
        (("rounds", 3, "subset_bps"), [{"paths": ["path1"]}], "actual_bps is None"),
        (("rounds", 3, "set"), {"a": 1}, r"set\['a'\] is 1, not str"),
    ],
)
def test_parts_that_do_not_fit_are_refused_by_name(learnt, tmp_path, where, value, words):
    whole = document(learnt[0])
    inner = whole
    for key in where[:-1]:
        inner = inner[key]
    inner[where[-1]] = value
    no_model(json.dumps(whole).encode(), tmp_path, words)


def test_a_round_that_does_not_count_may_lack_what_it_did_not_come_to(learnt, tmp_path):
    whole = document(learnt[0])
    whole["rounds"][3] |= {"left_out": "it broke", "error": "broken", "probes_bps": None, "tomorrow": 1}
    file = tmp_path / "m"
    file.write_text(json.dumps(whole))
    assert Model.load(file).sizes() == {SIZE: 23}


def test_no_file(tmp_path):
    refused(lambda: Model.load(tmp_path / "absent"), "no such file")
    refused(lambda: Model.load(tmp_path), "cannot be read")


def test_writing_is_whole_or_not_at_all(learnt, tmp_path, monkeypatch):
    model, file = Model.load(learnt[0]), tmp_path / "m"
    model.save(file)
    before = file.read_bytes()

    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fails)
    model.rounds.pop()
    refused(lambda: model.save(file), "cannot write the model .*No space left", Exit.RUNTIME)
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_a_model_that_could_not_be_read_again_is_not_written(learnt, tmp_path, monkeypatch):
    monkeypatch.setattr("pathcast.forecast.model.LARGEST_BYTES", 1000)
    refused(lambda: learnt[2].model.save(tmp_path / "m"), "is full: 24 rounds", Exit.RUNTIME)
    assert list(tmp_path.iterdir()) == []


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
