"""What was chosen on the model of `pathcast.predict.synthetic`: the scale, the search; and the choice of paths there.

`python experiments/mptcp-prediction/synthetic.py` renews the tables of docs/prediction.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pathcast.predict import (
    CdfMatching,
    MultiProbeSVR,
    PathChoice,
    SingleProbeSVR,
    fraction_within,
    multi,
    rmse,
    single,
    target,
)
from pathcast.predict.synthetic import rounds

DOC = Path(__file__).parents[2] / "docs" / "prediction.md"
NARROW = {"transfer_bytes": 256e6, "rate_bps": 1e9, "rtt_s": (0.12, 0.18), "window_bytes": 4e6}
# name, training rounds, training sets, what differs from the model's defaults
CASES: tuple[tuple[str, int, int, dict[str, Any]], ...] = (
    ("16 MB", 24, 12, {}),
    ("16 MB", 128, 4, {}),
    ("16 MB, window of 1 MB", 24, 12, {"window_bytes": 1e6}),
    ("16 MB, RTT jitter 8 %, load up to 30 %", 24, 12, {"jitter": 0.08, "load": 0.3}),
    ("2 MB", 24, 12, {"transfer_bytes": 2e6}),
    ("256 MB, 1 Gbit/s, RTT 120..180 ms, window of 4 MB", 24, 12, NARROW),
)
PREDICTORS = {
    "multi, log": (MultiProbeSVR(), multi),
    "multi, linear": (MultiProbeSVR(scale="linear"), multi),
    "single, log": (SingleProbeSVR(), single),
    "single, linear": (SingleProbeSVR(scale="linear"), single),
    "CDF": (CdfMatching(), single),
}
TRANSFERS = {"100 KB": 100e3, "500 KB": 500e3, "2 MB": 2e6, "16 MB": 16e6}
UNSEEN = 200
PATHS = ("a", "b")


def errors(n: int, sets: int, about: dict[str, Any], unseen: int = UNSEEN) -> dict[str, tuple[float, float]]:
    """By predictor: RMSE [bit/s] and share within 10 % on unseen rounds, means over training sets of n rounds.

    Seeds: 1000 and up to train on, 9000 and up to test on.
    """
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in PREDICTORS}
    for k in range(sets):
        training, test = rounds(n, 1000 + k, **about), rounds(unseen, 9000 + k, **about)
        for name, (predictor, columns) in PREDICTORS.items():
            guess = predictor.fit(columns(training), target(training)).predict(columns(test))
            found[name].append((rmse(guess, target(test)), fraction_within(guess, target(test))))
    return {name: tuple(np.mean(of, axis=0)) for name, of in found.items()}


def table(cases: Sequence[tuple[str, int, int, dict[str, Any]]] = CASES) -> list[str]:
    """A line of Markdown a case: RMSE [Mbit/s], share within 10 %."""
    lines = [f"| case | rounds | {' | '.join(PREDICTORS)} |", "|---" * (2 + len(PREDICTORS)) + "|"]
    for name, n, sets, about in cases:
        told = (f"{error / 1e6:.2f}, {100 * share:.1f} %" for error, share in errors(n, sets, about).values())
        lines.append(f"| {name} | {n} | {' | '.join(told)} |")
    return lines


def chosen(size: float, sets: int = 12, unseen: int = 150) -> tuple[float, float, float]:
    """Share of unseen rounds in which the best choice of paths is taken, regret, and that of always taking all.

    Means over training sets of 24 rounds; seeds as in `errors`.
    """
    found = []
    for k in range(sets):
        model = PathChoice(PATHS).fit(rounds(24, 1000 + k, transfer_bytes=size))
        of = model.evaluate(rounds(unseen, 9000 + k, transfer_bytes=size))
        found.append((of.fraction_best, of.mean_regret, of.all_paths_mean_regret))
    return tuple(np.mean(found, axis=0))


def choices() -> list[str]:
    """A line of Markdown a size of transfer."""
    lines = ["| transfer | best choice taken | regret | regret of always taking all paths |", "|---|---|---|---|"]
    for name, size in TRANSFERS.items():
        taken, lost, everything = (100 * share for share in chosen(size))
        lines.append(f"| {name} | {taken:.0f} % | {lost:.2f} % | {everything:.1f} % |")
    return lines


def renewed(text: str, name: str, lines: Sequence[str]) -> str:
    """The document with the block of that name renewed."""
    block = f"<!-- synthetic {name} -->\n" + "\n".join(lines) + "\n<!-- end -->"
    return re.sub(f"<!-- synthetic {name} -->.*?<!-- end -->", block.replace("\\", "\\\\"), text, flags=re.DOTALL)


def main() -> None:
    """Renews both tables."""
    text = renewed(DOC.read_text(), "errors", table())
    DOC.write_text(renewed(text, "choices", choices()))


if __name__ == "__main__":
    main()
