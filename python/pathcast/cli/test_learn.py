"""`learn` and `predict --model` as commands: options, both outputs, exit codes; loopback, emulated links."""

from __future__ import annotations

import pytest

from pathcast.errors import Exit
from pathcast.service import doctor
from pathcast.worlds.testing import two_paths

SMALL = 'name = "small"\n' + two_paths("20Mbit", ("10ms", "20ms"), "100 packets")


pytestmark = pytest.mark.usefixtures("own_directories")


@pytest.fixture
def topology(tmp_path):
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    return str(file)


def check_prediction(status, document, size):
    """The schema, and what it promises; a noisy machine may lie outside of its own training range."""
    assert document["schema"] == "pathcast.predict/1"
    assert document["size_bytes"] == size
    assert len(document["probes_bps"]) == len(document["paths"]) == len(document["model"]["training_range_bps"])
    options = document["options"]
    predicted = [o["predicted_bps"] for o in options]
    assert predicted == sorted(predicted, reverse=True)
    for option in options:
        assert set(option) == {"paths", "predicted_bps", "duration_s", "rmse_bps", "within_training_range"}
        assert option["duration_s"] == pytest.approx(8 * size / option["predicted_bps"])
        assert option["rmse_bps"] >= 0
    trusted = [o["paths"] for o in options if o["within_training_range"]]
    assert document["chosen"] == (trusted[0] if trusted else None)
    assert status == (Exit.OK if trusted else Exit.UNTRUSTWORTHY)
    assert {"file", "rounds", "warnings"} <= set(document["model"])


# --- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["learn", "predict"])
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["far"], "size"),
        (["far", "--size", "64"], "the unit is missing"),
        (["--size", "1MB"], "no HOST was given"),
        (["far", "--size", "1MB", "--topology", "x.toml"], "go with --world emu"),
        (["far", "--size", "1MB", "--set", "a=b"], "go with --world emu"),
        (["--size", "1MB", "--world", "emu"], "--world emu needs --topology FILE"),
        (["--size", "1MB", "--world", "sim"], "--world sim needs --topology FILE"),
        (["--size", "1MB", "--world", "moon"], "allowed are host, emu, sim"),
        (["--size", "1MB", "--world", "emu", "--topology", "/absent.toml"], "cannot read the scenario"),
        (["far", "--size", "1MB", "--paths", "a,,b"], "give names with commas between"),
        (["far:x", "--size", "1MB"], "`x` is not a port"),
    ],
)
def test_options_that_do_not_fit(pathcast, verb, arguments, words):
    status, document, err = pathcast(verb, *arguments, "--json")
    assert status == document["error"]["exit"] == Exit.USAGE
    assert words in document["error"]["message"] or words in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--rounds", "0"], "--rounds 0: allowed are 1 to 10000"),
        (["--pause", "5"], "`5` is not a duration"),
        (["--probe", "0B"], "at least one byte"),
        (["--choice", ""], "give names"),
    ],
)
def test_learn_refuses(pathcast, arguments, words):
    status, document, _ = pathcast("learn", "far", "--size", "1MB", *arguments, "--json")
    assert status == Exit.USAGE
    assert words in document["error"]["message"]


@pytest.mark.parametrize(("world", "kind"), [("emu", "emulated"), ("sim", "simulated")])
def test_both_ends_are_in_a_network_from_a_file(pathcast, topology, world, kind):
    status, _, err = pathcast("learn", "far", "--size", "1MB", "--world", world, "--topology", topology)
    assert status == Exit.USAGE
    assert f"do not go with --world {world}: both ends are in the {kind} network" in err


def test_without_that_model_predict_names_the_command_that_learns_it(pathcast, topology, tmp_path):
    absent = tmp_path / "m"
    asked = ["far:99", "--size", "256MB", "--key-file", tmp_path / "key", "--model", absent, "--json"]
    status, document, err = pathcast("predict", *asked)
    assert status == Exit.USAGE
    assert document["error"]["code"] == "no-model"
    learn = f"pathcast learn far:99 --key-file {tmp_path / 'key'} --size 256MB --model {absent}"
    assert document["error"]["hint"].endswith(learn)
    emu = ["--world", "emu", "--topology", topology, "--set", "link.wan1.rate=5Mbit"]
    _, _, err = pathcast("predict", "--size", "1MB", "--model", absent, *emu)
    assert f"pathcast learn {' '.join(emu)} --size 1MB --model {absent}" in err


@pytest.mark.parametrize("option", ["--light", "--in", "--background", "--by=8h"])
def test_a_model_knows_nothing_of_what_it_was_not_taught(pathcast, tmp_path, option):
    status, document, _ = pathcast("predict", "far", "--size", "1MB", "--model", tmp_path / "m", option, "--json")
    assert status == Exit.USAGE
    assert f"{option.partition('=')[0]} does not go with --model" in document["error"]["message"]


def test_what_is_no_model_is_refused(pathcast, tmp_path):
    (tmp_path / "m").write_text("a holiday")
    for verb in ("predict", "learn"):
        arguments = [verb, "127.0.0.1:1", "--size", "1MB", "--model", tmp_path / "m", "--json"]
        status, document, _ = pathcast(*arguments)
        assert (status, document["error"]["code"]) == (Exit.USAGE, "model-file")


def test_no_far_end(pathcast):
    status, document, _ = pathcast("learn", "127.0.0.1:1", "--size", "1MB", "--json")
    assert status == Exit.RUNTIME
    assert "127.0.0.1" in document["error"]["message"]


# --- over loopback -----------------------------------------------------------------------------------------------


def test_over_loopback(pathcast, far_end, tmp_path):
    model = tmp_path / "m.model"
    common = [far_end, "--size", "400KB", "--model", model, "--paths", "path1"]
    status, document, _ = pathcast("learn", *common, "--rounds", "5", "--json")
    assert (status, document["schema"]) == (Exit.OK, "pathcast.learn/1")
    assert document["model"]["sizes"] == [{"bytes": 400_000, "rounds": 5, "needed": 3, "choices": []}]
    assert document["model"]["paths"] == [{"name": "path1", "local": "127.0.0.1", "remote": "127.0.0.1"}]
    assert document["sent_bytes"] == 5 * 464_000

    status, _, err = pathcast("predict", *common)
    assert status == Exit.USAGE
    assert "8 rounds of one size are needed; the model has: 400KB (5 rounds)" in err

    status, out, err = pathcast("learn", *common, "--rounds", "3", "--pause", "1ms")
    assert status == Exit.OK
    assert "3 rounds measured, 0 left out" in out
    assert f"try: pathcast predict {far_end} --size 400KB --model {model}" in out
    assert "round 3 of 3: probes" in err

    status, document, _ = pathcast("predict", *common, "--json")
    check_prediction(status, document, 400_000)
    assert [o["paths"] for o in document["options"]] == [["path1"]]
    assert document["probe_bytes"] == 64_000
    assert document["model"]["rounds"] == 8

    status, out, _ = pathcast("predict", *common)
    assert status in (Exit.OK, Exit.UNTRUSTWORTHY)
    assert "a transfer of 400 KB" in out
    assert "learnt from 8 rounds of 400 KB" in out


# --- over an emulated network ------------------------------------------------------------------------------------


@pytest.mark.privileged
def test_over_an_emulated_network(pathcast, topology, monkeypatch):
    from pathcast.worlds.results import Verdict

    lacking = doctor.missing("privilege", "iproute2", "namespaces", "tun", "mptcp", "path manager")
    if lacking:
        pytest.skip(f"doctor: missing {', '.join(check.name for check in lacking)}")
    # that rounds are judged has its own test; here a busy machine may be late
    monkeypatch.setattr(Verdict, "LIMIT_S", 1.0)
    emu = ["--world", "emu", "--topology", topology, "--size", "500KB"]

    status, document, _ = pathcast("learn", *emu, "--rounds", "8", "--control", "cubic", "--json")
    assert status == Exit.OK
    assert document["counted"]["measured"] == 8
    assert document["model"]["file"].endswith("/pathcast/models/emu-small.model")
    [size] = document["model"]["sizes"]
    assert [c["paths"] for c in size["choices"]] == [["path1"], ["path2"], ["path1", "path2"]]
    for round in document["rounds"]:
        assert round["set"] == {}
        assert round["control"] == "cubic"
        assert sum(round["subflow_bytes"]) >= 500_000
        assert all(1e6 < bps < 20e6 for bps in round["tcp_bps"])
        assert round["emulator"]["p99_s"] >= 0

    emu += ["--model", document["model"]["file"]]
    status, document, _ = pathcast("predict", *emu, "--json")
    check_prediction(status, document, 500_000)
    assert document["probe_bytes"] == 128_000
    assert all(1e6 < o["predicted_bps"] < 40e6 for o in document["options"])

    far = ["--set", "link.wan1.delay=200ms", "--set", "link.wan2.delay=200ms"]
    status, document, err = pathcast("predict", *emu, *far, "--json")
    assert (status, document["chosen"]) == (Exit.UNTRUSTWORTHY, None)
    assert "no choice of paths can be predicted" in err

    status, _, err = pathcast("predict", *emu, "--control", "reno")
    assert status == Exit.USAGE
    assert "learnt with --control cubic" in err
    status, _, err = pathcast("predict", *emu, "--size", "2MB")
    assert status == Exit.USAGE
    assert "the model has: 500KB (8 rounds)" in err


# --- over a simulated network ------------------------------------------------------------------------------------


def test_over_a_simulated_network(pathcast, topology, tmp_path):
    sim = ["--world", "sim", "--topology", topology, "--size", "500KB"]
    status, document, _ = pathcast("learn", *sim, "--rounds", "2", "--json")
    assert (status, document["world"]) == (Exit.OK, "sim")
    file = document["model"]["file"]
    assert file.endswith("/pathcast/models/sim-small.model")
    assert all(r["emulator"] is None and r["set"] == {} for r in document["rounds"])

    # nothing is drawn in this network, so that what varies is set
    for delay in ("15ms", "20ms", "30ms", "45ms", "60ms", "80ms"):
        status, out, _ = pathcast("learn", *sim, "--rounds", "1", "--set", f"link.wan1.delay={delay}")
        assert status == Exit.OK
    assert (
        f"try: pathcast predict --world sim --topology {topology} --set link.wan1.delay=80ms --size 500KB --model"
        in out
    )

    model = ["--model", file]
    status, document, _ = pathcast("predict", *sim, *model, "--set", "link.wan1.delay=25ms", "--json")
    check_prediction(status, document, 500_000)
    assert document["chosen"] is not None
    assert document["probe_bytes"] == 128_000
    again = pathcast("predict", *sim, *model, "--set", "link.wan1.delay=25ms", "--json")
    assert again[1] == document

    status, document, _ = pathcast("predict", "--world", "emu", *sim[2:], *model, "--json")
    assert status == Exit.USAGE  # what was learnt in one world says nothing of another


def test_a_path_that_loses_everything_leaves_rounds_out_and_ends_with_1(pathcast, topology):
    sim = ["--world", "sim", "--topology", topology, "--size", "500KB", "--set", "link.wan2.loss=1"]
    status, document, _ = pathcast("learn", *sim, "--json")
    assert status == document["error"]["exit"] == Exit.RUNTIME
    assert document["error"]["code"] == "given-up"
    assert "3 of 3 rounds failed" in document["error"]["message"]
    assert "the transfer over path2 was given up after" in document["error"]["message"]
