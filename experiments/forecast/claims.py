"""How right, how sure and how well chosen forecasts are, a source of paths counting once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from pathcast.lab.experiment import Finding, Results, Undecided
from pathcast.lab.interval import Interval
from pathcast.lab.plan import Claim
from pathcast.lab.verdict import Verdict

FORECASTERS = ("twin", "sum", "constant", "floor")


def forecasts(results: Results) -> pd.DataFrame:
    """A row for every run, choice and forecaster: `off` (|value / truth - 1|, infinite without a value), `inside`,
    `width` (of the interval, over the truth), `sources` of its paths."""
    return results.once(_forecasts)


def _forecasts(results: Results) -> pd.DataFrame:
    rows = []
    for run in results.rows:
        if run.get("error") is not None:
            continue
        sources = {f"p{n}": path["source"] for n, path in enumerate(run["paths"], 1)}
        for choice in run["choices"]:
            truth = choice["truth_bps"]
            about = {key: run[key] for key in ("grid", "effort", "told", "pair")}
            about |= {"paths": len(choice["paths"]), "choice": "+".join(choice["paths"]), "truth_bps": truth}
            about["picked"] = choice["paths"] == run["chosen"]
            about["sources"] = tuple(sources[name] for name in choice["paths"])
            for forecaster in ("twin", "sum", "floor"):
                of = choice[forecaster] or {}
                rows.append({**about, "forecaster": forecaster, **_judged(of, truth)})
    frame = pd.DataFrame(rows)
    if frame.empty:
        raise Undecided("none of its runs is there")
    return pd.concat([frame, _constant(frame)], ignore_index=True)


def _judged(of: dict[str, float | None], truth: float) -> dict[str, object]:
    value, low, high = (of.get(key) for key in ("value", "low", "high"))
    known = low is not None and high is not None
    return {
        "value_bps": value,
        "off": abs(value / truth - 1) if value is not None and truth else np.inf,
        "inside": known and low <= truth <= high if truth else False,
        "width": (high - low) / truth if known and truth else np.nan,
    }


def _constant(frame: pd.DataFrame) -> pd.DataFrame:
    """The median of the tuning half's truths, for every number of paths."""
    tuning = frame[(frame["grid"] == "tuning") & (frame["forecaster"] == "twin")]
    medians = tuning.groupby("paths")["truth_bps"].median()
    of = frame[(frame["forecaster"] == "twin") & frame["paths"].isin(medians.index)].copy()
    of["forecaster"], of["value_bps"] = "constant", of["paths"].map(medians)
    of["off"] = [abs(v / t - 1) if t else np.inf for v, t in zip(of["value_bps"], of["truth_bps"], strict=True)]
    return of.assign(inside=False, width=np.nan)


def chosen(frame: pd.DataFrame, forecaster: str) -> pd.DataFrame:
    """A row for every run: the regret of a forecaster's choice, 1 - what it got / what the best got. `all`: always all
    paths. Of the twin it is the product's own choice (`picked`), not that of its largest value."""
    runs: dict[tuple[str, ...], list[dict[str, object]]] = {}
    for row in frame.to_dict("records"):
        runs.setdefault((row["effort"], row["told"], row["pair"]), []).append(row)
    rows = []
    for (effort, told, pair), of in runs.items():
        twins = [row for row in of if row["forecaster"] == "twin"]
        every = max(twins, key=lambda row: row["paths"])
        if forecaster == "all":
            taken = every
        elif forecaster == "twin":
            taken = next((row for row in twins if row["picked"]), None)
        else:
            told_of = [row for row in of if row["forecaster"] == forecaster and pd.notna(row["value_bps"])]
            taken = max(told_of, key=lambda row: row["value_bps"], default=None)
        best = max(row["truth_bps"] for row in twins)
        # where no choice ended none was better
        regret = (1 - taken["truth_bps"] / best if taken else 1.0) if best else 0.0
        rows.append({"effort": effort, "told": told, "pair": pair, "sources": every["sources"], "regret": regret})
    return pd.DataFrame(rows)


def by_source(frame: pd.DataFrame, column: str, of: Callable[[pd.Series], float]) -> pd.Series:
    """Of every source's runs; a pair is one of both of its sources."""
    return frame.explode("sources").groupby("sources")[column].agg(of)


# of values and whole weights, both of shape (draws, n): by draw; NaN where nothing has a weight
Weighted = Callable[[np.ndarray, np.ndarray], np.ndarray]


def mean(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """See Weighted."""
    with np.errstate(invalid="ignore"):
        return np.where(weights > 0, values * weights, 0.0).sum(axis=1) / weights.sum(axis=1)


def median(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Of each value as often as it weighs."""
    order = np.argsort(values, axis=1)
    upto = np.take_along_axis(weights, order, 1).cumsum(axis=1)
    every = upto[:, -1:]
    ends = [(upto > middle).argmax(axis=1)[:, None] for middle in ((every - 1) // 2, every // 2)]
    low, high = (np.take_along_axis(values, np.take_along_axis(order, end, 1), 1)[:, 0] for end in ends)
    return np.where(every[:, 0] > 0, (low + high) / 2, np.nan)


def over_sources(frame: pd.DataFrame, column: str, of: Weighted, draws: int = 2000) -> Interval:
    """What `by_source` has of a source's runs, in the mean or median over sources.

    Sources are drawn with replacement, and a pair counts as often as both of its sources were drawn together: the
    product (the bootstrap for dyadic data of Davezies et al., Annals of Statistics 2021). Sources as such are not
    independent rows, since each pair is in two of them. Raises Undecided for fewer than two sources.
    """
    rows = list(zip(frame["sources"], frame[column].astype(float), strict=True))
    names = {name: n for n, name in enumerate(sorted({name for sources, _ in rows for name in sources}))}
    if len(names) < 2:
        raise Undecided("fewer than two sources have results")
    drawn = np.random.default_rng(1).multinomial(len(names), np.full(len(names), 1 / len(names)), draws)
    # the first is what was found
    drawn = np.vstack([np.ones_like(drawn[:1]), drawn])
    each, weights = np.empty(drawn.shape), drawn.copy()
    for name, n in names.items():
        own = [(value, [names[one] for one in sources if one != name]) for sources, value in rows if name in sources]
        beside = np.stack([drawn[:, others].prod(axis=1) for _, others in own], axis=1)
        each[:, n] = of(np.tile([value for value, _ in own], (len(drawn), 1)), beside)
        weights[:, n] *= beside.any(axis=1)
    found = of(each, weights)
    return Interval.of_draws(float(found[0]), found[1:][~np.isnan(found[1:])], len(names))


def median_off(frame: pd.DataFrame) -> Interval:
    """Errors without a value are infinite, and sort last."""
    return over_sources(frame, "off", median)


def share(frame: pd.DataFrame, so: pd.Series) -> Interval:
    """In the mean over sources."""
    return over_sources(frame.assign(so=so.astype(float)), "so", mean)


def _here(results: Results, claim: Claim, forecaster: str = "twin") -> pd.DataFrame:
    frame, bar = forecasts(results), claim.threshold
    frame = frame[(frame["forecaster"] == forecaster) & (frame["effort"] == bar["effort"])]
    frame = frame[(frame["grid"] == "judged") & (frame["told"] == "nothing")]
    if "paths" in bar:
        frame = frame[frame["paths"] == bar["paths"]]
    if frame.empty:
        raise Undecided("none of its runs is there")
    return frame


def _finding(found: Interval, met: bool | None, words: str, frame: pd.DataFrame, floor: str = "") -> Finding:
    verdict = Verdict()
    verdict.needs(met, words)
    sources = frame.explode("sources")["sources"].nunique()
    verdict.details.append(f"{words}; {frame['pair'].nunique()} pairs of {sources} sources{floor}")
    return verdict.finding(words)


def error(results: Results, claim: Claim) -> Finding:
    """Beside the floor's."""
    frame = _here(results, claim)
    found = median_off(frame)
    floor = f"; the floor: {median_off(_here(results, claim, 'floor')).percent(sign=False)}"
    return _finding(found, found.at_most(claim.threshold["most"]), found.percent(sign=False), frame, floor)


def within(results: Results, claim: Claim) -> Finding:
    """Beside the floor's."""
    off = claim.threshold["off"]
    frame, under = _here(results, claim), _here(results, claim, "floor")
    found = share(frame, frame["off"] <= off)
    floor = f"; the floor: {share(under, under['off'] <= off).percent(sign=False)}"
    return _finding(found, found.at_least(claim.threshold["least"]), found.percent(sign=False), frame, floor)


def inside(results: Results, claim: Claim) -> Finding:
    """A forecast without an interval is not inside."""
    frame = _here(results, claim)
    found = share(frame, frame["inside"])
    met = found.within(claim.threshold["least"], claim.threshold["most"])
    width = f"; median width {frame['width'].median() * 100:.0f} % of the truth"
    return _finding(found, met, found.percent(sign=False), frame, width)


def width(results: Results, claim: Claim) -> Finding:
    """Over the floor's spread of the same run and choice."""
    keys = ["pair", "choice"]
    floor = _here(results, claim, "floor").set_index(keys)["width"]
    frame = _here(results, claim).set_index(keys)
    frame = frame.assign(ratio=frame["width"] / floor).reset_index().dropna(subset=["ratio"])
    found = over_sources(frame, "ratio", median)
    return _finding(found, found.at_most(claim.threshold["most"]), found.told(form=".2f"), frame)


def _regrets(results: Results, claim: Claim, forecaster: str) -> pd.DataFrame:
    frame, bar = forecasts(results), claim.threshold
    frame = frame[(frame["grid"] == "judged") & (frame["told"] == "nothing") & (frame["effort"] == bar["effort"])]
    if frame.empty:
        raise Undecided("none of its runs is there")
    return chosen(frame, forecaster)


def regret(results: Results, claim: Claim) -> Finding:
    """Of the product's own choice."""
    frame = _regrets(results, claim, "twin")
    found = over_sources(frame, "regret", mean)
    return _finding(found, found.at_most(claim.threshold["most"]), found.percent(sign=False), frame)


def regret_both(results: Results, claim: Claim) -> Finding:
    """Pair by pair."""
    own, every = (_regrets(results, claim, of) for of in ("twin", "all"))
    frame = own.assign(regret=own["regret"] - every["regret"])
    found = over_sources(frame, "regret", mean)
    return _finding(found, found.at_most(claim.threshold["most"]), found.percent(), frame)


def light(results: Results, claim: Claim) -> Finding:
    """Every run decides."""
    runs = [run for run in results.rows if run.get("error") is None and run["effort"] == claim.threshold["effort"]]
    if not runs:
        raise Undecided("none of its runs is there")
    most = max(run["probe_bytes"] for run in runs)
    paths = max(len(run["paths"]) for run in runs)
    verdict = Verdict()
    words = f"at most {most / paths / 1e3:.1f} kB a path, {len(runs)} runs"
    verdict.needs(most <= max(paths * claim.threshold["most"], claim.threshold["job"]), words)
    return verdict.finding(words)


CLAIMS: dict[str, Callable[[Results, Claim], Finding]] = {
    **{f"error-{of}": error for of in ("thorough", "usual", "single")},
    **{f"within-{of}": within for of in ("thorough", "usual", "single")},
    **{f"inside-{of}": inside for of in ("thorough", "usual", "single")},
    "width": width,
    "regret": regret,
    "regret-both": regret_both,
    "light": light,
}
