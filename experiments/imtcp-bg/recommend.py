"""The open problem of the slides: how to choose delta and gamma. The rule, over the sweep's runs."""

from __future__ import annotations

import pandas as pd

from pathcast.lab.experiment import Results, Undecided

from .cells import NONE, link_bps

NETWORKS = ("10", "100")
# delta, gamma [1/1000]
Setting = tuple[int, int]


def sweep(results: Results) -> pd.DataFrame:
    """By network and setting, means over loads and seeds: `growth` of the mean page time, and `apart`, the distance
    from the available bandwidth over the link's rate. Raises Undecided where the sweep's runs are not there."""
    return results.once(_sweep)


def _sweep(results: Results) -> pd.DataFrame:
    frame = results.frame
    if "delta" not in frame or frame["delta"].isna().all():
        raise Undecided("no run of the sweep has a result")
    keys = ["network", "load", "seed"]
    swept = frame[frame["delta"].notna()]
    without = frame[(frame["control"] == NONE) & (frame["connections"] == 1)].set_index(keys)[["page_s", "fg_bps"]]
    both = swept.join(without.add_suffix("_none"), on=keys).dropna(subset=["fg_bps_none", "page_s_none"])
    link = both["network"].map({name: link_bps(results, name) for name in both["network"].unique()})
    both = both.assign(
        growth=both["page_s"] / both["page_s_none"] - 1,
        apart=(both["bg_bps"] - (link - both["fg_bps_none"])).abs() / link,
        delta=both["delta"].astype(int),
        gamma=both["gamma"].astype(int),
    )
    return both.groupby(["network", "delta", "gamma"])[["growth", "apart"]].mean()


def chosen(results: Results, most: float, networks: tuple[str, ...] = NETWORKS) -> tuple[Setting, pd.DataFrame]:
    """The rule: of the settings whose growth is at most `most` in each network the least distance, mean over networks;
    and all settings with both. Raises Undecided where a network was not swept, or no setting is that quiet."""
    table = sweep(results)
    lacking = [name for name in networks if name not in table.index.get_level_values("network")]
    if lacking:
        raise Undecided(f"network {', '.join(lacking)} was not swept")
    table = table[table.index.get_level_values("network").isin(networks)]
    both = pd.DataFrame(
        {
            "growth": table["growth"].unstack("network").max(axis=1),
            "apart": table["apart"].unstack("network").mean(axis=1),
        }
    )
    quiet = both[both["growth"] <= most]
    if quiet.empty:
        raise Undecided(f"no setting has page times grow by {100 * most:g} % at most")
    return quiet["apart"].idxmin(), both
