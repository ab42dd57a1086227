"""The demo from its plan to its document: train, predict before sending, compare, choose."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from pathcast.errors import Exit, PathcastError
from pathcast.lab.demo.plan import PATHS, Plan
from pathcast.lab.demo.rounds import Lanes, Round, measure, shares, truth
from pathcast.lab.turns import turn

# more than one round in so many left out: the machine was too busy for any result to be trusted
LEFT_OUT_LIMIT = 0.1


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
        self._single = {
            "cdf": CdfMatching().fit(single(rounds), y),
            "single": SingleProbeSVR(random_state=seed).fit(single(rounds), y),
        }
        self.multi = MultiProbeSVR(random_state=seed).fit(multi(rounds), y)
        self.choice = PathChoice(PATHS, random_state=seed).fit(rounds)

    def __call__(self, probes: dict[str, Any]) -> dict[str, float]:
        predicted = {n: float(p.predict([[probes["mptcp_probe_bps"]]])[0]) for n, p in self._single.items()}
        return {**predicted, "multi": self.placebo(probes["probes_bps"])}

    def placebo(self, probes_bps: Sequence[float]) -> float:
        """The multi-probe predictor's word on any probes."""
        return float(self.multi.predict([list(probes_bps)])[0])


def usable(round: Round) -> dict[str, Any]:
    """What predictors take of a round."""
    keys = ("probes_bps", "mptcp_probe_bps", "actual_bps", "tcp_bps")
    return {k: getattr(round, k) for k in keys}


def errors(rounds: Sequence[Round], predictors: Predictors, seed: int) -> dict[str, dict[str, Any]]:
    """The errors of each predictor on unseen rounds, and of the multi-probe one fed with another round's probes."""
    from pathcast.predict import summarise

    actual = [r.actual_bps for r in rounds]
    result = {n: dict(summarise([r.predicted_bps[n] for r in rounds], actual)) for n in ("multi", "single", "cdf")}
    if len(rounds) >= 2:
        shift = random.Random(seed).randrange(1, len(rounds))
        others = [rounds[(i + shift) % len(rounds)] for i in range(len(rounds))]
        result["placebo"] = dict(summarise([predictors.placebo(r.probes_bps) for r in others], actual))
    return result


def choose(predictors: Predictors, plan: Plan, world: Any) -> dict[str, Any]:
    """The last round: the choice among path 1, path 2 and both, by the probes, and its regret by the truth."""
    from pathcast.predict import regret

    with turn(alone=True, cancelled=lambda: world.cancelled):
        probes, (ranked, actual) = truth(world, plan, predictors.choice.predict)
    options = [{**o, "actual_bps": actual[tuple(o["paths"])]} for o in ranked]
    return {
        "rtt_s": list(plan.choice_rtts_s),
        "probes_bps": list(probes),
        "options": options,
        "chosen": options[0]["paths"],
        "regret": regret(options[0]["paths"], options),
    }


def run(plan: Plan, make_world: Callable[[], Any], lanes: int, listener: Listener) -> dict[str, Any]:
    """The document of a whole demo. Raises PathcastError (exit 3) if too many rounds had to be left out."""
    started = time.monotonic()
    threading.Thread(target=_import_early, daemon=True).start()
    listener.phase("building the networks", 1)
    with Lanes(make_world, lanes) as worlds:
        world_name = worlds.world
        listener.step(None)
        listener.phase("training rounds", plan.rounds)
        jobs = [lambda w, i=i: measure(w, plan, i, None) for i in range(plan.rounds)]
        training = worlds.run(jobs, listener.step)
        counted = [r for r in training if r.left_out is None]
        _check_left_out(training)

        listener.phase("learning", 1)
        predictors = Predictors([usable(r) for r in counted], plan.seed)
        listener.step(None)

        listener.phase("unseen rounds: predict, then send", plan.unseen)
        indices = range(plan.rounds, plan.rounds + plan.unseen)
        jobs = [lambda w, i=i: measure(w, plan, i, predictors) for i in indices]
        unseen = worlds.run(jobs, listener.step)
        _check_left_out([*training, *unseen])
        judged = [r for r in unseen if r.left_out is None]

        listener.phase("where the bytes go, by size", len(plan.share_rtts_s) * len(plan.share_bytes))
        points = shares(worlds, plan, listener.step)

        listener.phase("which paths to take", 1)
        [choice] = worlds.run([lambda w: choose(predictors, plan, w)], listener.step)

    rounds = [*training, *unseen]
    return {
        "world": world_name,
        "paths": list(PATHS),
        "plan": vars(plan),
        "rounds": [r.document() for r in rounds],
        "counted": {
            "training": len(counted),
            "unseen": len(judged),
            "left_out": len(rounds) - len(counted) - len(judged),
            "repeated": sum(r.attempts - 1 for r in rounds),
        },
        "errors": errors(judged, predictors, plan.seed),
        "shares": points,
        "choice": choice,
        "elapsed_s": time.monotonic() - started,
    }


def _import_early() -> None:
    """scikit-learn takes seconds to import: meanwhile the first rounds run."""
    import pathcast.predict.path_choice
    import pathcast.predict.probe_svr  # noqa: F401


def _check_left_out(rounds: Sequence[Round]) -> None:
    out = [r for r in rounds if r.left_out is not None]
    if len(out) > LEFT_OUT_LIMIT * len(rounds):
        raise PathcastError(
            "untrustworthy",
            f"{len(out)} of {len(rounds)} rounds had to be left out; the last because {out[-1].left_out}",
            "leave the machine alone while it measures, or use fewer --lanes",
            Exit.UNTRUSTWORTHY,
        )
