"""The demo from plan to page over a made-up world: the document, the files, what is repeated and left out."""

from __future__ import annotations

import json
import math
import threading
from contextlib import contextmanager
from html.parser import HTMLParser

import pytest

from pathcast.errors import PathcastError
from pathcast.lab.paper.page import write
from pathcast.lab.paper.plan import PATHS, Plan
from pathcast.lab.paper.rounds import Lanes, measure
from pathcast.lab.paper.run import run
from pathcast.results.rundir import RunDir
from pathcast.worlds.late import again
from pathcast.worlds.results import Transfer, Verdict
from pathcast.worlds.test_results import report, subflow
from pathcast.worlds.verbs import Verbs

OPTIONS = [["path1"], ["path2"], ["path1", "path2"]]


class World(Verbs):
    """Transfers take their bytes over the rate, and ten round trips."""

    world = "made-up"

    def __init__(self):
        self.rtt, self.rate, self.order, self.cancelled = {}, {}, [], False
        self.late, self.starved, self.fallback, self.open = [], [], [], False

    def __enter__(self):
        self.open = True
        return self

    def __exit__(self, *_):
        self.open = False

    def cancel(self):
        self.cancelled = True

    def set(self, link, delay, rate):
        path = PATHS[int(link[-1]) - 1]
        self.rtt[path] = 2e-6 * float(delay.removesuffix("us"))
        self.rate[path] = float(rate.removesuffix("bit"))

    @contextmanager
    def judged(self):
        verdict = Verdict()
        yield verdict
        late = self.late.pop(0) if self.late else 0.0
        verdict.release_error = {"p50_s": 1e-5, "p99_s": late or 1e-4, "max_s": 1e-3}

    def again(self, work, good=lambda _: True):
        return again(work, good)

    def transfer(self, paths, bytes, control=None, progress=None, plain=False):
        self.order.append((tuple(paths), bytes))
        rate = sum(self.rate[p] for p in paths)
        elapsed = bytes * 8 / rate + 10 * max(self.rtt[p] for p in paths)
        starved = len(paths) > 1 and bytes > 1e6 and self.starved and self.starved.pop(0)
        shares = [1 if starved and p == "path1" else int(bytes * self.rate[p] / rate) for p in paths]
        about = report(
            *(subflow(p, n) for p, n in zip(paths, shares, strict=True)),
            bytes=bytes,
            elapsed_s=elapsed,
            throughput_bps=bytes * 8 / elapsed,
            fallback=bool(len(paths) > 1 and self.fallback and self.fallback.pop(0)),
        )
        return Transfer.read(list(paths), about)

    def tcp_probe(self, path, bytes, control=None, progress=None):
        return self.transfer([path], bytes, control)


class Quiet:
    def __init__(self):
        self.phases = []

    def phase(self, name, steps):
        self.phases.append([name, steps, 0])

    def step(self, done):
        self.phases[-1][2] += 1


def check_document(document, rounds, unseen):
    """The whole schema of the demo's document."""
    assert {"world", "paths", "plan", "rounds", "counted", "errors", "shares", "choice"} <= set(document)
    assert document["paths"] == ["path1", "path2"]
    assert [r["index"] for r in document["rounds"]] == list(range(rounds + unseen))
    for r in document["rounds"]:
        assert r["unseen"] is (r["index"] >= rounds)
        assert len(r["probes_bps"]) == len(r["subflow_bytes"]) == len(r["rtt_s"]) == len(r["rate_bps"]) == 2
        assert all(p > 0 for p in [*r["probes_bps"], r["mptcp_probe_bps"], r["actual_bps"]])
        assert 1 <= r["attempts"] <= 3
        if r["unseen"]:
            assert set(r["predicted_bps"]) == {"cdf", "single", "multi"}
            assert all(p > 0 and math.isfinite(p) for p in r["predicted_bps"].values())
            assert r["tcp_bps"] is None
        else:
            assert r["predicted_bps"] is None
            assert len(r["tcp_bps"]) == 2
    counted = document["counted"]
    kept = [sum(r["unseen"] is u and r["left_out"] is None for r in document["rounds"]) for u in (False, True)]
    assert counted["training"] in (kept[0], rounds)  # all, where too few remain to learn from
    assert counted["unseen"] in (kept[1], unseen)
    assert (document["untrustworthy"] is None) == (counted["left_out"] <= 0.1 * (rounds + unseen))
    assert counted["left_out"] == sum(r["left_out"] is not None for r in document["rounds"])
    assert counted["repeated"] == sum(r["attempts"] - 1 for r in document["rounds"])
    assert set(document["errors"]) == {"multi", "single", "cdf", "placebo"}
    for errors in document["errors"].values():
        assert errors["rmse_bps"] >= 0
        assert 0 <= errors["fraction_within_10pct"] <= 1
        assert errors["n"] == counted["unseen"]
    assert len(document["shares"]) == 15
    assert all(0 <= p["share"] <= 1 and p["throughput_bps"] > 0 for p in document["shares"])
    choice = document["choice"]
    assert sorted(o["paths"] for o in choice["options"]) == sorted(OPTIONS)
    assert all(o["predicted_bps"] > 0 and o["actual_bps"] > 0 for o in choice["options"])
    predicted = [o["predicted_bps"] for o in choice["options"]]
    assert predicted == sorted(predicted, reverse=True)
    assert choice["chosen"] == choice["options"][0]["paths"]
    best = max(o["actual_bps"] for o in choice["options"])
    assert choice["regret"] == pytest.approx(1 - choice["options"][0]["actual_bps"] / best)


def check_directory(path):
    """Every file of a run, and a page that needs nothing but itself."""
    assert {p.name for p in path.iterdir()} == {
        "run.json",
        "rounds.parquet",
        "shares.parquet",
        "errors.csv",
        "choice.csv",
        "index.html",
        *(f"{name}.{ending}" for name in ("predictions", "surface", "shares") for ending in ("svg", "png")),
    }
    about = json.loads((path / "run.json").read_text())
    assert about["schema"] == "pathcast.run/1"
    assert {"command", "versions", "host", "seed", "world", "result"} <= set(about)
    check_page((path / "index.html").read_text())


def check_page(text, images=3, tables=3):
    class Reader(HTMLParser):
        images, tables, open = 0, 0, ()

        def handle_starttag(self, tag, attributes):
            assert tag not in ("script", "link", "iframe", "object", "embed", "base", "form")
            self.images += tag == "img"
            self.tables += tag == "table"
            if tag not in ("meta", "img"):
                self.open += (tag,)
            for name, value in attributes:
                assert not name.startswith("on")
                if name in ("src", "href", "srcset", "data", "poster", "background"):
                    assert value.startswith("data:")

        def handle_endtag(self, tag):
            assert self.open[-1] == tag
            self.open = self.open[:-1]

    reader = Reader()
    reader.feed(text)
    assert reader.open == ()
    assert (reader.images, reader.tables) == (images, tables)
    assert "http://" not in text
    assert "https://" not in text
    assert "url(" not in text
    assert "@import" not in text


@pytest.fixture(scope="module", autouse=True)
def _own_run_directory(tmp_path_factory):
    """No waiting for the turns of real experiments."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATHCAST_RUN_DIR", str(tmp_path_factory.mktemp("run")))
        yield


@pytest.fixture(scope="module")
def outcome():
    worlds, listener = [], Quiet()

    def make():
        worlds.append(World())
        return worlds[-1]

    plan = Plan(seed=2, rounds=10)
    return plan, run(plan, make, 2, listener), worlds, listener


def test_the_document(outcome):
    _, document, _, _ = outcome
    check_document(document, 10, 8)
    assert document["world"] == "made-up"
    assert document["untrustworthy"] is None
    assert document["counted"] == {"training": 10, "unseen": 8, "left_out": 0, "repeated": 0}
    json.dumps(document, allow_nan=False)


def test_both_lanes_work_and_end(outcome):
    _, _, worlds, _ = outcome
    assert len(worlds) == 2
    assert all(w.order and not w.open and not w.cancelled for w in worlds)


def test_the_listener_hears_every_step(outcome):
    *_, listener = outcome
    assert all(steps == done for _, steps, done in listener.phases)
    assert sum(steps for _, steps, _ in listener.phases) == 1 + 10 + 1 + 8 + 15 + 1


def test_the_prediction_comes_before_the_transfer():
    world, plan = World(), Plan()
    seen = []

    def predict(probes):
        seen.append(list(world.order))
        assert all(probe > 0 for probe in (*probes.probes_bps, probes.mptcp_probe_bps))
        assert probes.actual_bps is None
        return {"multi": 1.0}

    assert measure(world, plan, 0, predict).predicted_bps == {"multi": 1.0}
    small = plan.probe_bytes
    assert sorted(seen[0]) == [(("path1",), small), (("path1", "path2"), 2 * small), (("path2",), small)]
    assert world.order[len(seen[0]) :] == [(PATHS, plan.transfer_bytes)]


def test_everything_that_a_run_owes_is_written(outcome, tmp_path):
    import pyarrow.parquet as pq

    _, document, _, _ = outcome
    page = write(document, RunDir(tmp_path))
    assert page == tmp_path / "index.html"
    check_directory(tmp_path)
    rows = pq.read_table(tmp_path / "rounds.parquet").to_pylist()
    assert [r["actual_bps"] for r in rows] == [r["actual_bps"] for r in document["rounds"]]
    text = page.read_text()
    assert "seed 2" in text
    assert f"Chosen: <b>{' + '.join(document['choice']['chosen'])}</b>" in text


def test_a_page_shows_hostile_names_as_text(outcome, tmp_path):
    _, document, _, _ = outcome
    document = {**document, "world": "<script>alert(1)</script>", "plan": {**document["plan"], "control": "<b>&x"}}
    text = write(document, RunDir(tmp_path)).read_text()
    assert "&lt;script&gt;" in text
    check_page(text)


def test_a_page_with_rounds_left_out(outcome, tmp_path):
    _, document, _, _ = outcome
    rounds = [{**r, "left_out": "late"} if r["unseen"] else r for r in document["rounds"]]
    write({**document, "rounds": rounds}, RunDir(tmp_path))
    check_directory(tmp_path)


@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_a_late_round_is_repeated_with_the_same_setting(attempts):
    world = World()
    world.late = [0.002] * (attempts - 1)
    round = measure(world, Plan(), 3, None)
    assert (round.measured.attempts, round.left_out) == (attempts, None)
    assert round.setting == Plan().drawn(3)


@pytest.mark.parametrize(
    ("what", "words"),
    [("late", "late: p99 2.00 ms"), ("starved", "less than 2 %"), ("fallback", "fell back to TCP")],
)
def test_after_three_attempts_a_round_is_left_out_with_its_reason(what, words):
    world = World()
    setattr(world, what, [0.002] * 6)
    round = measure(world, Plan(), 3, None)
    assert round.measured.attempts == 3
    assert words in round.left_out


def test_too_many_rounds_left_out_is_untrustworthy_and_still_shown(tmp_path):
    def make():
        world = World()
        world.late = [0.002] * 1000
        return world

    document = run(Plan(rounds=10), make, 2, Quiet())
    check_document(document, 10, 8)
    assert document["untrustworthy"].startswith("18 of 18 rounds had to be left out; the last because the emulator")
    assert document["counted"]["left_out"] == 18
    text = write(document, RunDir(tmp_path)).read_text()
    check_page(text)
    assert document["untrustworthy"] in text


def test_a_failing_job_ends_the_others_and_every_world():
    worlds = []

    def make():
        worlds.append(World())
        return worlds[-1]

    def fail(world):
        raise PathcastError("broken", "it broke")

    with pytest.raises(PathcastError, match="it broke"), Lanes(make, 2) as lanes:
        lanes.run([fail, *(lambda w: None for _ in range(10))])
    assert all(w.cancelled and not w.open for w in worlds)


def test_a_world_that_cannot_be_made_leaves_none_open():
    worlds, lock = [], threading.Lock()

    class Broken(World):
        def __enter__(self):
            raise PathcastError("missing", "no TUN", None, 5)

    def make():
        with lock:
            worlds.append(World() if len(worlds) < 2 else Broken())
            return worlds[-1]

    with pytest.raises(PathcastError, match="no TUN"), Lanes(make, 3):
        pass
    assert len(worlds) == 3
    assert not any(w.open for w in worlds)
