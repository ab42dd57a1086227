"""Rounds to matrices: shapes, and every refusal."""

import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pathcast.predict
from pathcast.predict.errors import RoundError
from pathcast.predict.features import Round, as_round, as_rounds, multi, single, target

GOOD = {"probes_bps": [1e6, 2e6], "mptcp_probe_bps": 1.5e6, "actual_bps": 9e7, "tcp_bps": [4e7, 5e7]}


def test_matrices():
    rounds = [GOOD, Round((3e6, 4e6), 8e7, 2.5e6)]
    assert multi(rounds).tolist() == [[1e6, 2e6], [3e6, 4e6]]
    assert single(rounds).tolist() == [[1.5e6], [2.5e6]]
    assert target(rounds).tolist() == [9e7, 8e7]


def test_integers_and_numpy_are_numbers():
    item = as_round({"probes_bps": np.array([1, 2]), "actual_bps": np.float32(3)})
    assert item.probes_bps == (1.0, 2.0)
    assert item.actual_bps == 3.0


def test_subsets_from_json():
    item = as_round(GOOD | {"subset_bps": [{"paths": ["a", "b"], "actual_bps": 7e7}]})
    assert item.subset_bps == {("a", "b"): 7e7}
    assert as_round(item) == item


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, "fast", True, None, [1e6]])
def test_bad_throughputs_are_refused_by_name(value):
    with pytest.raises(RoundError, match=r"round 1: probes_bps\[1\] is"):
        as_rounds([GOOD, GOOD | {"probes_bps": [1e6, value]}])


@pytest.mark.parametrize("name", ["actual_bps", "mptcp_probe_bps"])
@pytest.mark.parametrize("value", [0, math.nan, "fast"])
def test_bad_scalars_are_refused_by_name(name, value):
    with pytest.raises(RoundError, match=f"round 0: {name} is"):
        as_rounds([GOOD | {name: value}])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"probes_bps": [1e6]}, "round 1"),
        ({"probes_bps": []}, "probes_bps is empty"),
        ({"probes_bps": 1e6}, "give a list"),
        ({"probes_bps": None}, "has no probes_bps"),
        ({"tcp_bps": [1e6]}, "tcp_bps has 1 values for 2"),
        ({"probe": 1}, "unknown keys probe"),
        ({"subset_bps": [{"paths": ["a"]}]}, "subset_bps"),
        ({"subset_bps": {"ab": 1.0}}, "give a list of path names"),
        ({"subset_bps": [{"paths": ["a"], "actual_bps": 1.0}] * 2}, "twice"),
        ({"subset_bps": {("a",): -1.0}}, "positive"),
    ],
)
def test_malformed_rounds_are_refused(change, words):
    with pytest.raises(RoundError) as caught:
        as_rounds([GOOD | {"tcp_bps": None}, GOOD | {"tcp_bps": None} | change])
    assert words in f"{caught.value.message}; {caught.value.hint}"
    assert isinstance(caught.value, ValueError)


def test_ragged_names_both_rounds():
    with pytest.raises(RoundError, match="round 1: probes_bps has 3 paths, round 0 has 2"):
        multi([{"probes_bps": [1, 2]}, {"probes_bps": [1, 2, 3]}])


def test_nothing_and_nonsense_are_refused():
    with pytest.raises(RoundError, match="no round"):
        multi([])
    with pytest.raises(RoundError, match="round 0 is a int"):
        multi([3])
    with pytest.raises(RoundError, match="round 1 has no mptcp_probe_bps"):
        single([GOOD, {"probes_bps": [1, 2]}])
    with pytest.raises(RoundError, match="round 0 has no actual_bps"):
        target([{"probes_bps": [1, 2]}])


def test_the_package_is_cheap_to_import_and_complete():
    text = Path(pathcast.predict.__file__).read_text()
    for_types = re.findall(r"^    from pathcast\.predict\.(\w+) import (\w+) as \2$", text, re.MULTILINE)
    assert {name: module for module, name in for_types} == pathcast.predict._MODULE
    code = (
        "import sys, pathcast.predict as p\n"
        "assert not {'numpy', 'sklearn'} & set(sys.modules)\n"
        "assert p.best([{'paths': ['a'], 'predicted_bps': 1.0}])\n"
        "assert not {'numpy', 'sklearn'} & set(sys.modules)\n"
        "assert all(getattr(p, name).__name__ == name for name in p._MODULE)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pathcast.predict.nothing
