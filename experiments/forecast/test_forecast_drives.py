"""The lines that `drives` draws, and what its table says of runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from experiments.forecast import drives

from pathcast.worlds.topology import Topology


@pytest.fixture(autouse=True)
def series(monkeypatch):
    rows = [(n, name, [10.0 + n + k % 7 for k in range(400)]) for n in range(4) for name in drives.OPERATORS]
    monkeypatch.setattr(drives, "series", lambda: rows)


def test_a_seed_is_a_piece_of_a_drive_of_its_half(tmp_path):
    for seed in range(1, 20):
        one = drives.case(seed, str(tmp_path), drives.PARITIES["odd"])
        assert drives.case(seed, str(tmp_path), drives.PARITIES["odd"]) == one
        [path] = Topology.parse(one.text, base=one.base).scenario["paths"]
        assert path["name"] == "path1"
        rows = Path(tmp_path, f"{seed}.csv").read_text().split()[1:]
        assert len(rows) == drives.PIECE_S
        assert min(float(row.split(",")[1]) for row in rows) in (11.0, 13.0)
        assert 1e6 <= one.size <= 20e6 / 8 * drives.MOST_S


def test_the_table_is_of_logarithms():
    def run(kind, value, low=50.0, high=200.0):
        return {"kinds": (kind,), "options": [{"truth": 100.0, "value": value, "low": low, "high": high}]}

    runs = [run("att", 100.0), run("att", 271.828, 150.0), {"kinds": ("att",), "refused": "x"}, run("verizon", 100.0)]
    rows = [row.split(",") for row in drives.table(runs)]
    assert [row[0] for row in rows] == ["of", "att", "verizon", "all"]
    assert rows[1][1:] == ["3", "1", "0.50", "1.00", "+0.50", "50%", "0.84"]
