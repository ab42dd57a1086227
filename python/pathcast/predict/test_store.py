"""Stored models: equal bit for bit after loading; every kind of damage refused."""

import json
import pickle
import zipfile

import numpy as np
import pytest
import skops.io
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from pathcast.predict import store, synthetic
from pathcast.predict.cdf_matching import CdfMatching
from pathcast.predict.errors import ModelFileError
from pathcast.predict.features import multi, target
from pathcast.predict.path_choice import PathChoice
from pathcast.predict.probe_svr import MultiProbeSVR, SingleProbeSVR

ROUNDS = synthetic.rounds(24, seed=1)
TEST = multi(synthetic.rounds(100, seed=2))
META = {"paths": ["wan1", "wan2"], "probe_bytes": 64000, "transfer_bytes": 16000000}


@pytest.fixture(scope="module")
def fitted():
    return MultiProbeSVR().fit(multi(ROUNDS), target(ROUNDS))


@pytest.fixture
def file(tmp_path, fitted):
    store.save(tmp_path / "model.pcm", fitted, META, rounds=ROUNDS)
    return tmp_path / "model.pcm"


@pytest.mark.parametrize(
    "predictor",
    [
        CdfMatching(column=1),
        SingleProbeSVR(column=1),
        SingleProbeSVR(scale="linear", grid={"C": (1, np.float64(10))}),
        MultiProbeSVR(n_iter=4, random_state=np.int64(5)),
        MultiProbeSVR(scale="linear"),
    ],
)
def test_equal_bit_for_bit(tmp_path, predictor):
    predictor.fit(multi(ROUNDS), target(ROUNDS))
    store.save(tmp_path / "m", predictor, rounds=ROUNDS)
    loaded = store.load(tmp_path / "m").predictor
    assert type(loaded) is type(predictor)
    assert np.array_equal(loaded.predict(TEST), predictor.predict(TEST))
    learned = {name for name in vars(predictor) if name.endswith("_")}
    assert learned == {name for name in vars(loaded) if name.endswith("_")}


def test_a_path_choice_too(tmp_path):
    choice = PathChoice(["wan1", "wan2"], n_iter=4).fit(ROUNDS)
    store.save(tmp_path / "m", choice, rounds=ROUNDS)
    loaded = store.load(tmp_path / "m").predictor
    for row in TEST[:20]:
        assert loaded.predict(row) == choice.predict(row)
    assert loaded.left_out_ == choice.left_out_


def test_what_is_known_of_the_model(file):
    found = store.load(file)
    assert found.meta == META
    assert found.training_rounds == 24
    assert found.training_sha256 == store.training_hash(ROUNDS)
    assert set(found.versions) == {"pathcast", "python", "numpy", "scikit-learn", "skops"}
    assert found.warnings == []
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        assert json.loads(archive.read("meta.json"))["schema"] == "pathcast.model/1"


def test_the_hash_is_of_the_values_and_their_order():
    as_json = [
        {"actual_bps": r.actual_bps, "probes_bps": list(r.probes_bps), "tcp_bps": list(r.tcp_bps)}
        | {"mptcp_probe_bps": r.mptcp_probe_bps}
        for r in ROUNDS
    ]
    assert store.training_hash(as_json) == store.training_hash(ROUNDS)
    assert store.training_hash(ROUNDS[::-1]) != store.training_hash(ROUNDS)
    as_json[3]["actual_bps"] = np.nextafter(as_json[3]["actual_bps"], 0)
    assert store.training_hash(as_json) != store.training_hash(ROUNDS)


def refused(path, words):
    with pytest.raises(ModelFileError, match=words) as caught:
        store.load(path)
    assert str(path) in str(caught.value)
    assert caught.value.hint


def test_every_flipped_byte_is_found(file):
    data = file.read_bytes()
    offsets = {*range(64), *range(0, len(data), 97), *range(len(data) - 300, len(data))}
    for offset in sorted(offsets):
        changed = bytearray(data)
        changed[offset] ^= 0x20
        file.write_bytes(changed)
        refused(file, "is damaged|is no pathcast model")


def test_truncated_and_lengthened(file):
    data = file.read_bytes()
    for length in [0, 1, 63, 64, 100, len(data) // 2, len(data) - 64, len(data) - 1]:
        file.write_bytes(data[:length])
        refused(file, "cut off")
    for more in (b"\0", b"x" * 86, data):
        file.write_bytes(data + more)
        if more != data:
            refused(file, "cut off")
        else:
            refused(file, "damaged")


def test_foreign_files(tmp_path, fitted):
    path = tmp_path / "m"
    for data in (pickle.dumps(fitted), b"\0" * 4096, b"{}", skops.io.dumps(fitted.model_)):
        path.write_bytes(data)
        refused(path, "is no pathcast model")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("holiday.txt", "sun")
    refused(path, "is no pathcast model")


def test_no_file(tmp_path):
    refused(tmp_path / "absent", "no such file")
    refused(tmp_path, "cannot be read")


def parts(file):
    with zipfile.ZipFile(file) as archive:
        return json.loads(archive.read("meta.json")), archive.read("model.skops")


def test_another_schema(file):
    document, model = parts(file)
    for schema in ("pathcast.model/2", None, 1):
        file.write_bytes(store._encode(json.dumps(document | {"schema": schema}).encode(), model))
        refused(file, "has schema")


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b'{"schema": "pathcast.model/1"}', b"\xff"])
def test_meta_that_is_none(file, text):
    file.write_bytes(store._encode(text, parts(file)[1]))
    refused(file, "meta.json|schema")


class Boom:
    def __reduce__(self):
        return print, ("boom",)


@pytest.mark.parametrize(
    "inside",
    [[LinearRegression()], [Boom()], [print], [np.random.default_rng(0)], [np.sqrt], [SingleProbeSVR()]],
)
def test_untrusted_types_are_refused_unbuilt(file, inside, capsys):
    document, _ = parts(file)
    file.write_bytes(store._encode(json.dumps(document).encode(), skops.io.dumps(inside)))
    refused(file, "not trusted")
    assert "boom" not in capsys.readouterr().out


def test_a_trusted_type_by_an_untrusted_loader_is_refused(file):
    document, model = parts(file)
    other = file.with_name("inner.skops")
    other.write_bytes(model)
    with zipfile.ZipFile(other) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["schema.json"] = members["schema.json"].replace(b'"TupleNode"', b'"MethodNode"')
    with zipfile.ZipFile(other, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    file.write_bytes(store._encode(json.dumps(document).encode(), other.read_bytes()))
    refused(file, "not trusted: loader MethodNode")


def test_parts_that_do_not_fit_are_refused(file, fitted):
    document, model = parts(file)
    text = json.dumps(document).encode()
    for inside in ([], {}, [fitted.model_] * 2, [{"x": 1}], [fitted.model_.regressor_], fitted.model_):
        file.write_bytes(store._encode(text, skops.io.dumps(inside)))
        refused(file, "cannot be rebuilt")
    file.write_bytes(store._encode(text, b"no archive"))
    refused(file, "not a skops file")
    document["predictor"]["class"] = "Oracle"
    file.write_bytes(store._encode(json.dumps(document).encode(), model))
    refused(file, "unknown predictor")


def test_another_scikit_learn_is_a_warning(file):
    document, model = parts(file)
    document["versions"]["scikit-learn"] = "1.2.3"
    file.write_bytes(store._encode(json.dumps(document).encode(), model))
    (sentence,) = store.load(file).warnings
    assert "1.2.3" in sentence


def test_writing_is_whole_or_not_at_all(file, fitted, monkeypatch):
    before = file.read_bytes()

    def fails(*_):
        raise OSError("disk full")

    monkeypatch.setattr(store.os, "replace", fails)
    with pytest.raises(OSError, match="disk full"):
        store.save(file, fitted, rounds=ROUNDS)
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def test_save_refusals(tmp_path, fitted):
    path = tmp_path / "m"
    with pytest.raises(NotFittedError):
        store.save(path, MultiProbeSVR(), rounds=ROUNDS)
    with pytest.raises(ValueError, match="not fitted"):
        store.save(path, PathChoice(["a"]), rounds=ROUNDS)
    with pytest.raises(TypeError, match="no predictor"):
        store.save(path, LinearRegression(), rounds=ROUNDS)
    with pytest.raises(ValueError, match="JSON"):
        store.save(path, fitted, {"when": object()}, rounds=ROUNDS)
    assert list(tmp_path.iterdir()) == []
