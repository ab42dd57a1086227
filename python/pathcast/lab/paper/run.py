"""The demo from its plan to its document: train, predict before sending, compare, choose."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from pathcast.forecast import rounds as forecast
from pathcast.lab.paper.plan import PATHS, Plan
from pathcast.lab.paper.rounds import Lanes, Round, measure, shares, truth

MINIMUM_TRAINING, MINIMUM_UNSEEN = 8, 2
WORLDS = ("emu", "sim")


class Listener(Protocol):
    """Who is told how far the demo is."""

    def phase(self, name: str, steps: int) -> None: ...
    def step(self, done: Any) -> None: ...


class Predictors:
    """The paper's three predictors, fitted on the same training rounds with the same search."""

    def __init__(self, rounds: Sequence[dict[str, Any]], seed: int) -> None:
        from pathcast.predict import CdfMatching, MultiProbeSVR, PathChoice, SingleProbeSVR, multi, single, target

        seed %= 2**32  # what scikit-learn takes
        y = target(rounds)
        self._single: dict[str, Any] = {
            "cdf": CdfMatching().fit(single(rounds), y),
            "single": SingleProbeSVR(random_state=seed).fit(single(rounds), y),
        }
        self._multi = MultiProbeSVR(random_state=seed).fit(multi(rounds), y)
        self.choice = PathChoice(PATHS, random_state=seed).fit(rounds)

    def __call__(self, round: forecast.Round) -> dict[str, float]:
        predicted = {n: float(p.predict([[round.mptcp_probe_bps]])[0]) for n, p in self._single.items()}
        return {**predicted, "multi": self.multi_bps(round.probes_bps or ())}

    def multi_bps(self, probes_bps: Sequence[float]) -> float:
        """The multi-probe predictor's word on any probes."""
        return float(self._multi.predict([list(probes_bps)])[0])


def feed_wrong_probes(rounds: Sequence[Round], predictors: Predictors, seed: int) -> None:
    """Lets the multi-probe predictor predict every round from another one's probes."""
    if len(rounds) < 2:
        return
    shift = random.Random(seed).randrange(1, len(rounds))
    for i, round in enumerate(rounds):
        round.placebo_bps = predictors.multi_bps(rounds[(i + shift) % len(rounds)].measured.probes_bps or ())


def errors(rounds: Sequence[Round]) -> dict[str, dict[str, Any]]:
    """The errors of each predictor on unseen rounds, and of the multi-probe one fed with another round's probes."""
    from pathcast.predict import summarise

    actual = [r.measured.actual_bps for r in rounds]
    result = {
        n: dict(summarise([(r.predicted_bps or {})[n] for r in rounds], actual)) for n in ("multi", "single", "cdf")
    }
    if all(r.placebo_bps for r in rounds):
        result["placebo"] = dict(summarise([r.placebo_bps for r in rounds], actual))
    return result


def choose(predictors: Predictors, plan: Plan, world: Any) -> dict[str, Any]:
    """The last round: the choice among path 1, path 2 and both, by the probes, and its regret by the truth."""
    from pathcast.predict import regret

    with world.turn(alone=True):
        probes, (ranked, actual) = truth(world, plan, predictors.choice.predict)
    options = [{**o, "actual_bps": actual[tuple(o["paths"])]} for o in ranked]
    return {
        "rtt_s": list(plan.choice_rtts_s),
        "probes_bps": list(probes),
        "options": options,
        "chosen": options[0]["paths"],
        "regret": regret(options[0]["paths"], options),
    }


class Tally:
    """Counts the rounds that had to be left out: more than one in ten, and the result is not to be trusted."""

    def __init__(self, plan: Plan, listener: Listener) -> None:
        self._rounds = plan.rounds + plan.unseen
        self._listener = listener
        self.left_out: list[Round] = []

    def __call__(self, done: Round) -> None:
        if done.left_out is not None:
            self.left_out.append(done)
        self._listener.step(done)

    def trustworthy(self) -> bool:
        """Whether few enough were left out so far. Once it is False no repetition can mend it."""
        return not forecast.too_many(len(self.left_out), self._rounds)


def counted(rounds: Sequence[Round], at_least: int) -> list[Round]:
    """The rounds that were not left out; all of them where too few remain to say anything (the result says so)."""
    kept = [r for r in rounds if r.left_out is None]
    return kept if len(kept) >= at_least else list(rounds)


def run(plan: Plan, make_world: Callable[[], Any], lanes: int, listener: Listener) -> dict[str, Any]:
    """The document of a whole demo; `untrustworthy` in it says why, or is None."""
    started = time.monotonic()
    threading.Thread(target=_import_early, daemon=True).start()
    tally = Tally(plan, listener)
    listener.phase("building the networks", 1)
    with Lanes(make_world, lanes) as worlds:
        world_name = worlds.world
        listener.step(None)
        listener.phase("training rounds", plan.rounds)
        jobs = [lambda w, i=i: measure(w, plan, i, None, tally.trustworthy) for i in range(plan.rounds)]
        training = worlds.run(jobs, tally)

        listener.phase("learning", 1)
        learnt = counted(training, MINIMUM_TRAINING)
        predictors = Predictors([r.measured.features() for r in learnt], plan.seed)
        listener.step(None)

        listener.phase("unseen rounds: predict, then send", plan.unseen)
        indices = range(plan.rounds, plan.rounds + plan.unseen)
        jobs = [lambda w, i=i: measure(w, plan, i, predictors, tally.trustworthy) for i in indices]
        unseen = worlds.run(jobs, tally)
        judged = counted(unseen, MINIMUM_UNSEEN)
        feed_wrong_probes(judged, predictors, plan.seed)

        listener.phase("where the bytes go, by size", len(plan.share_rtts_s) * len(plan.share_bytes))
        points = shares(worlds, plan, listener.step)

        listener.phase("which paths to take", 1)
        [choice] = worlds.run([lambda w: choose(predictors, plan, w)], listener.step)

    rounds = [*training, *unseen]
    return {
        "world": world_name,
        "paths": list(PATHS),
        "plan": vars(plan),
        "untrustworthy": _reason(tally, len(rounds)),
        "rounds": [r.document() for r in rounds],
        "counted": {
            "training": len(learnt),
            "unseen": len(judged),
            "left_out": len(tally.left_out),
            "repeated": sum(r.measured.attempts - 1 for r in rounds),
        },
        "errors": errors(judged),
        "shares": points,
        "choice": choice,
        "elapsed_s": time.monotonic() - started,
    }


def _reason(tally: Tally, rounds: int) -> str | None:
    if tally.trustworthy():
        return None
    out = sorted(tally.left_out, key=lambda r: r.index)  # not by which lane was done first
    return f"{len(out)} of {rounds} rounds had to be left out; the last because {out[-1].left_out}"


def _import_early() -> None:
    """scikit-learn takes seconds to import: meanwhile the first rounds run."""
    import pathcast.predict.path_choice
    import pathcast.predict.probe_svr  # noqa: F401


def make_world(plan: Plan, world: str) -> Callable[[], Any]:
    """What makes worlds of that name with the plan's network."""
    from pathcast.worlds.topology import Topology

    topology = Topology.parse(plan.topology(), source="the demo's topology")
    if world == "sim":
        from pathcast.worlds.sim import Sim

        return lambda: Sim(topology)
    from pathcast.worlds.emu import Emu

    return lambda: Emu(topology)
