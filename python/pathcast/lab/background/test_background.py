"""The grid, its scenarios, what is stored, and the shares; with a runner whose answers are known, and the simulator."""

import json

import pytest

from pathcast.errors import PathcastError
from pathcast.lab.background import run as running
from pathcast.lab.background.__main__ import main
from pathcast.lab.background.cells import BACKGROUND, FOREGROUND, HALF, ROLES, Cell, cells, scenario, times
from pathcast.lab.background.run import finished, pair_lines
from pathcast.lab.background.runners import SimRunner
from pathcast.lab.background.table import markdown, rows
from pathcast.results.lines import stored

CELL = Cell("nice", 20, 100, 1.0, "reno")


class Known:
    """The foreground has 1000 B alone and 960 B beside; the background half of the path, or a quarter."""

    world = "sim"

    def __init__(self) -> None:
        self.runs = []

    def version(self) -> str:
        return "1"

    def run(self, text: str, from_s: float, to_s: float) -> dict[str, int]:
        self.runs.append(text)
        path = CELL.payload_bps * (to_s - from_s) / 8
        fore, back = f'"{FOREGROUND}"' in text, f'"{BACKGROUND}"' in text and "[[traffic]]" not in text
        got = {FOREGROUND: 960 if back else 1000} if fore else {}
        return got | ({BACKGROUND: int(path / (2 if back else 4))} if f'"{BACKGROUND}"' in text else {})


def test_the_grid_is_the_product():
    grid = cells()
    assert len(grid) == len(set(grid)) == 4 * 2 * 2 * 3 * 2
    one = cells(["ledbatpp/target_us=5000/gain_most=4"])[0]
    assert one.settings == (("target_us", 5000), ("gain_most", 4))
    assert one.label == "ledbatpp/target_us=5000/gain_most=4"


def test_scenarios_say_the_cell():
    text = scenario(CELL, (FOREGROUND, BACKGROUND, HALF), 3, "sim")
    path = ('rate = "20Mbit"', 'delay = "50000us"', 'queue = "167 packets"', 'rate = "10000kbit"')
    for part in (*path, "seed = 3", 'control = "reno"', 'control = "nice"'):
        assert part in text
    lower = cells(["ledbatpp/target_us=5000"])[0]
    assert "[control.ledbatpp]\ntarget_us = 5000\n" in scenario(lower, ROLES["unopposed"], 1, "sim")
    assert "[control" not in scenario(lower, ROLES["alone"], 1, "sim")


def test_times_are_drawn_from_seed_and_path_alone():
    orders = set()
    for seed in range(1, 21):
        at = times(CELL, seed, "emu")
        assert at == times(Cell("lp", 20, 100, 1.0, "cubic"), seed, "emu")
        assert max(at.foreground_s, at.background_s) < at.from_s < at.to_s == 40
        orders.add(at.foreground_s < at.background_s)
    assert orders == {True, False}


def rows_of(known, pairs):
    return rows(pair_lines(pairs, "sim", lambda run: {"bytes": known.run(run.text, run.from_s, run.to_s)}))


def test_equal_scenarios_run_once_and_shares_are_of_the_path(tmp_path, monkeypatch):
    known = Known()
    monkeypatch.setitem(running.RUNNERS, "sim", lambda: known)
    pairs = [(Cell("nice", 20, 100, 1.0, fore), seed) for seed in (1, 2) for fore in ("reno", "cubic")]
    found = rows(running.run(pairs, "sim", "sim", tmp_path / "runs.jsonl"))
    assert len(known.runs) == 2 * (2 + 2 + 1 + 1)  # the background alone and at the rest do not know the foreground
    for row in found:
        assert row.pairs == 2
        assert row.kept.median == pytest.approx(0.96)
        assert row.alone.median == pytest.approx(0.5, rel=1e-4)
        assert row.rest.median == pytest.approx(0.5, rel=1e-4)
        assert row.misses() == ["alone", "rest"]  # by a rounded byte
    assert "told only" in markdown(rows_of(known, [(Cell("nice", 20, 100, 0.25, "reno"), 1)]))


def test_what_is_stored_is_not_run_again(tmp_path, monkeypatch):
    known = Known()
    monkeypatch.setitem(running.RUNNERS, "sim", lambda: known)
    path = tmp_path / "runs.jsonl"
    pairs = [(CELL, 1), (CELL, 2)]
    first = running.run(pairs, "sim", "sim", path)
    runs = len(known.runs)
    path.write_text(path.read_text() + '{"schema": "broken off')
    assert running.run([*pairs, (CELL, 3)], "sim", "sim", path)[:2] == first
    assert len(known.runs) == runs + len(ROLES)
    assert len(stored(path, finished)) == 3 * len(ROLES)
    running.run(pairs, "sim", "emu", path)  # other durations are another run
    assert len(stored(path, finished)) == 5 * len(ROLES)


def test_a_pair_that_failed_is_left_out_and_run_again_by_the_next_command(tmp_path, monkeypatch):
    class Late(Known):
        def run(self, text, from_s, to_s):
            if "seed = 2" in text:
                raise PathcastError("late", "too late")
            return super().run(text, from_s, to_s)

    path, pairs = tmp_path / "runs.jsonl", [(CELL, 1), (CELL, 2)]
    monkeypatch.setitem(running.RUNNERS, "sim", Late)
    lines = running.run(pairs, "sim", "sim", path)
    assert [line.get("error") for line in lines] == [None, "too late"]
    assert [row.pairs for row in rows(lines)] == [1]
    monkeypatch.setitem(running.RUNNERS, "sim", Known)
    assert [row.pairs for row in rows(running.run(pairs, "sim", "sim", path))] == [2]


def test_the_simulator_counts_an_interval():
    cell = Cell("reno", 20, 20, 1.0, "reno")
    text = scenario(cell, ROLES["beside"], 1, "emu")
    runner = SimRunner()
    whole, early, late = (runner.run(text, *span) for span in ((4, 12), (4, 8), (8, 12)))
    assert set(whole) == {FOREGROUND, BACKGROUND}
    assert all(whole[name] == early[name] + late[name] > 0 for name in whole)
    assert sum(whole.values()) == pytest.approx(cell.payload_bps, rel=0.02)  # 8 s, in bytes


def test_the_command_writes_its_tables(tmp_path, capsys):
    arguments = ["--quick", "--controllers", "lp", "--buffers", "1", "--foregrounds", "reno", "--times", "emu"]
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    assert len(stored(tmp_path / "runs.jsonl", finished)) == 2 * len(ROLES)
    assert (tmp_path / "cells.csv").read_text().count("\n") == 2
    assert json.loads((tmp_path / "run.json").read_text())["pairs"] == 2
    assert "| lp | 20 | 20 | 1 | reno |" in capsys.readouterr().out
    assert main(["--controllers", "lpp", "--out", str(tmp_path)]) == 2
    assert "lpp" in capsys.readouterr().err
