"""What was said of each kind of line, and how right it was; what it cost.

Errors and half-widths of rates are shares of the line's mean rate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from pathcast.lab.experiment import Results, Table

from .claims import DRAWN, absurd, found_depth, true_depth
from .judged import PROPERTIES, Row, available, by_class, error, half_width, holds, measured

# a capacity that is so many times off is absurd; bars of depths
_FACTOR, _OFF, _BUILT_S = 2.0, 0.2, 0.5


def kinds(results: Results) -> Table:
    """Of each property both classes."""
    rows = []
    for name, about in PROPERTIES.items():
        pairs = about.rows(results.rows)
        for word, which in zip(about.words, (True, False), strict=True):
            recall = [said for so, said in pairs if so is which]
            precision = [so for so, said in pairs if said is which]
            right = sum(said is which for said in recall)
            of = sum(so is which for so in precision)
            rows.append((name, word, *_of(right, recall), *_of(of, precision), str(sum(s is None for s in recall))))
    return ("property", "class", "said", "of", "recall", "right", "of those said", "precision", "nothing said"), rows


def _of(hits: int, every: Sequence[Any]) -> tuple[str, str, str]:
    return str(hits), str(len(every)), f"{hits / len(every):.1%}" if every else "-"


_HEADER = (
    "effort",
    "class",
    "runs",
    "no value",
    "available off, median",
    "p90",
    "bias",
    "inside",
    "half-width",
    "capacity off, median",
    "absurd",
    "s",
    "MB",
)


def lines(results: Results) -> Table:
    """A row a class, with and without being asked for thoroughness."""
    found = []
    for effort, grids in (("thorough", DRAWN), ("usual", ("usual-queues", "shipped"))):
        for name, some in by_class(measured(results.rows, grids)).items():
            found.append((effort, name, *_row(some)))
    return _HEADER, found


def _row(rows: Sequence[Row]) -> tuple[str, ...]:
    errors = [one for row in rows if (one := error(row)) is not None]
    sizes = sorted(abs(one) for one in errors)
    widths = [one for row in rows if (one := half_width(row)) is not None]
    known = [row for row in rows if row.get("capacity") is not None]
    inside = sum(holds(row, "available", available(row)) for row in rows)
    return (
        str(len(rows)),
        str(len(rows) - len(errors)),
        _share(sizes),
        f"{sizes[int(0.9 * len(sizes))] * 100:.1f} %" if sizes else "-",
        _share(errors, "+"),
        f"{inside / len(rows):.1%}",
        _share(widths),
        _share([abs(row["capacity"] / row["rate_mean_bps"] - 1) for row in known]),
        str(sum(absurd(row, _FACTOR) for row in known)),
        f"{median(row['seconds'] for row in rows):.1f}",
        _mean([row["bytes"] / 1e6 for row in rows if row.get("bytes") is not None]),
    )


def _share(values: Sequence[float], sign: str = "") -> str:
    return f"{median(values) * 100:{sign}.1f} %" if values else "-"


def _mean(values: Sequence[float]) -> str:
    return f"{median(values):.1f}" if values else "-"


def depths(results: Results) -> Table:
    """Of queues, by kind: the longest wait of drop-tail, the standing delay of the others."""
    header = (
        "queue",
        "lines",
        "said",
        "within 20 %, or bounded above 500 ms",
        "value over truth, median",
        "p10",
        "p90",
    )
    found = []
    for name, rows in _by(measured(results.rows, ("queues",)), "queue").items():
        ratios = sorted(
            row["depth"] / true_depth(row) for row in rows if row.get("depth") is not None and true_depth(row)
        )
        good = sum(found_depth(row, _OFF, _BUILT_S) for row in rows)
        spread = (_at(ratios, 0.5), _at(ratios, 0.1), _at(ratios, 0.9))
        found.append((name, str(len(rows)), str(len(ratios)), f"{good / len(rows):.1%}", *spread))
    return header, found


def losses(results: Results) -> Table:
    """Of lines by how they lose: random loss, and its interval."""
    header = ("shape", "lines", "said", "inside", "value over truth, median", "p10", "p90")
    found = []
    for name, rows in _by([row for row in measured(results.rows, DRAWN) if row.get("probes")], "shape").items():
        inside = sum(holds(row, "random_loss", row["loss_rate"]) for row in rows)
        said = [row for row in rows if row.get("random_loss") is not None]
        ratios = sorted(row["random_loss"] / row["loss_rate"] for row in said if row["loss_rate"])
        spread = (_at(ratios, 0.5), _at(ratios, 0.1), _at(ratios, 0.9))
        found.append((name, str(len(rows)), str(len(said)), f"{inside / len(rows):.1%}", *spread))
    return header, found


# what else is said, and its truth on the lines that have it
_OTHERS: dict[str, tuple[str, Callable[[Row], float | None]]] = {
    "policer's rate": ("policer_rate", lambda row: row.get("policed_bps")),
    "policer's burst": ("policer_burst", lambda row: row.get("burst_bytes")),
    "others' load now": ("load_now", lambda row: row["load_truth_bps"] if row["kind"] != "idle" else None),
    "others' load over the next minutes": ("load_next", lambda row: row.get("next_truth_bps")),
    "packets gather for": ("gathered", lambda row: row.get("gathered_s")),
    "a change of the rate lasts": ("variation_scale", lambda row: row.get("step_s")),
}


def others(results: Results) -> Table:
    """Whatever else the record has."""
    header = ("value", "lines", "said", "inside", "value over truth, median", "p10", "p90")
    found = []
    for name, (entry, truth) in _OTHERS.items():
        rows = [(row, true) for row in measured(results.rows, DRAWN) if (true := truth(row))]
        said = [(row, true) for row, true in rows if row.get(entry) is not None]
        inside = sum(holds(row, entry, true) for row, true in said)
        ratios = sorted(row[entry] / true for row, true in said)
        spread = (_at(ratios, 0.5), _at(ratios, 0.1), _at(ratios, 0.9))
        found.append((name, str(len(rows)), str(len(said)), f"{inside / max(1, len(said)):.1%}", *spread))
    return header, found


def _at(values: Sequence[float], share: float) -> str:
    return f"{values[int(share * (len(values) - 1))]:.2f}" if values else "-"


def _by(rows: Sequence[Row], key: str) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row[key], []).append(row)
    return dict(sorted(found.items()))


def coverage(results: Results) -> Any:
    """Of the available bandwidth's intervals by class, with exact 95 % intervals; the bar is at 85 %."""
    import matplotlib.pyplot as plt

    from pathcast.lab.interval import Interval

    groups = by_class(measured(results.rows, DRAWN))
    figure, axes = plt.subplots(figsize=(7, 0.3 * max(4, len(groups)) + 0.8))
    for k, rows in enumerate(groups.values()):
        share = Interval.share([holds(row, "available", available(row)) for row in rows])
        axes.plot([share.low * 100, share.high * 100], [k, k], color="C0")
        axes.plot(share.value * 100, k, "o", color="C0")
    axes.axvline(85, color="C1", linestyle="--")
    axes.set_yticks(range(len(groups)), list(groups))
    axes.invert_yaxis()
    axes.set_xlabel("intervals that hold the truth [%]")
    return figure


def depth_found(results: Results) -> Any:
    """Depths of drop-tail queues as found, over the true ones; the bar is 20 %."""
    import matplotlib.pyplot as plt

    rows = [row for row in measured(results.rows, ("queues",)) if row["queue"] == "drop-tail"]
    figure, axes = plt.subplots(figsize=(5, 4))
    said = [row for row in rows if row.get("depth") is not None]
    axes.plot([true_depth(row) * 1e3 for row in said], [row["depth"] * 1e3 for row in said], ".", label="value")
    bounded = [row for row in rows if row.get("depth") is None and row.get("depth_low") is not None]
    axes.plot(
        [true_depth(row) * 1e3 for row in bounded],
        [row["depth_low"] * 1e3 for row in bounded],
        "^",
        label="lower bound",
    )
    ends = (8, 2000)
    for factor in (0.8, 1.0, 1.2):
        axes.plot(ends, [factor * one for one in ends], color="C2", linewidth=0.7)
    axes.set(xscale="log", yscale="log", xlabel="depth [ms]", ylabel="found [ms]")
    axes.legend()
    return figure


TABLES: dict[str, Callable[[Results], Table]] = {
    "kinds": kinds,
    "lines": lines,
    "depths": depths,
    "losses": losses,
    "others": others,
}
FIGURES: dict[str, Callable[[Results], Any]] = {"coverage": coverage, "depths": depth_found}
