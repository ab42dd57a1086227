"""A run in the simulator: the scenario's text, and what its traces say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pathcast.scenario import Scenario
from pathcast.simulation.run import simulate

from .web import count, pages

# a row of the traces so often: the error of an interval's ends
_EVERY_NS = 100_000_000
# drops so long before and after a join are counted [s]
_AROUND_S = 5.0
PATH = "path1"


def topology(about: Mapping[str, Any]) -> str:
    """One bottleneck between `client` and `server`, its buffers in packets; the hosts' buffers bound no window."""
    return f"""\
name = "imtcp-bg"
seed = {about["draws"]}
end = "{about["end_s"]}s"
[[link]]
name = "bottleneck"
a = "client"
b = "server"
rate = "{about["rate_mbit"]}Mbit"
delay = "{about["rtt_ms"] * 500}us"
queue = "{about["queue_packets"]} packets"
[[path]]
name = "{PATH}"
links = ["bottleneck"]
[host.client]
send_segments = 1
"""


def background(about: Mapping[str, Any]) -> str:
    """Its flows `bg1`, …, and the controller's parameters."""
    control, text = about["control"], ""
    if control is None:
        return text
    for n, join in enumerate(about["joins_s"]):
        text += f'[[flow]]\nname = "bg{n + 1}"\npaths = ["{PATH}"]\ncontrol = "{control}"\nstart = "{join}s"\n'
        text += f'stop = "{about["leaves_s"][n]}s"\n' if about["leaves_s"] else ""
    values = "".join(f"{key} = {value}\n" for key, value in about["parameters"].items())
    return text + (f"[control.{control}]\n{values}" if values else "")


def asked(about: Mapping[str, Any]) -> list[tuple[float, int]]:
    """The run's pages: times [s] and sizes [byte]."""
    web = about["web"]
    n = count(about["nodes"], web["think_s"], about["pages_s"])
    return pages(n, about["pages_s"], web["page_bytes"], web["shape"], f"pages {about['draws']}")


def _text(about: Mapping[str, Any], wanted: list[tuple[float, int]]) -> str:
    values = "".join(f"{key} = {json.dumps(value)}\n" for key, value in about["tcp"].items())
    text = topology(about) + f'[tcp]\n{values}receive_buffer = "64MiB"\nsend_buffer = "64MiB"\n' + background(about)
    rest = f'paths = ["{PATH}"]\ncontrol = "{about["web"]["control"]}"\n'
    for n, (at, size) in enumerate(wanted):
        text += f'[[flow]]\nname = "page{n + 1}"\n{rest}start = "{at * 1e6:.0f}us"\nbytes = "{size}B"\n'
    return text


def run(about: Mapping[str, Any]) -> dict[str, Any]:
    """The sample's columns."""
    import numpy as np

    wanted = asked(about)
    report, traces = simulate(Scenario(_text(about, wanted)), trace_ns=_EVERY_NS)
    flows = [flow for flow in report["flows"] if flow["name"].startswith("bg")]
    times = [
        (at, about["end_s"] - at, False) if page["completion_s"] is None else (at, page["completion_s"], True)
        for (at, _), page in zip(wanted, report["flows"][len(flows) :], strict=True)
    ]
    seconds = np.arange(0, about["pages_s"] + 1)
    queues = traces["queues"]
    ab = queues["link"] == 0
    at, carried = queues["time_s"][ab], queues["carried_bytes"][ab].astype(float)
    total = np.interp(seconds, np.append(0, at), np.append(0, carried))
    own = [_acked(traces["windows"], n, seconds) * about["packet"] / about["mss"] for n in range(len(flows))]
    values = summary(about, times, seconds, total, np.sum(own, axis=0) if own else np.zeros(len(seconds)))
    values["retransmits"] = sum(flow["retransmits"] for flow in flows)
    if about["leaves_s"]:
        values |= {
            "carried_kbps": _by_second(total),
            "bg_kbps": [_by_second(one) for one in own],
            **_around(traces["drops"], len(flows), about["joins_s"][1:]),
        }
    return values


def summary(about: Mapping[str, Any], times: list[tuple[float, float, bool]], at: Any, total: Any, own: Any) -> dict:
    """times: of each page when it was asked for, how long it took, whether it arrived. total, own: bytes carried, and
    those of the background, by the times `at`; what is not the background is the foreground."""
    import numpy as np

    begin, end = about["from_s"], about["pages_s"]
    counted = [(took, arrived) for asked_at, took, arrived in times if begin <= asked_at <= end]
    took = np.array([one for one, _ in counted])
    sent, back = (float(np.diff(np.interp((begin, end), at, of))[0] * 8 / (end - begin)) for of in (total, own))
    page_s, median_s, p95_s = (
        (float(took.mean()), float(np.median(took)), float(np.percentile(took, 95))) if len(took) else (None,) * 3
    )
    return {
        "bg_bps": back,
        "fg_bps": sent - back,
        "pages": len(counted),
        "page_s": page_s,
        "page_median_s": median_s,
        "page_p95_s": p95_s,
        "unfinished": sum(not arrived for _, arrived in counted),
    }


def _acked(windows: Mapping[str, Any], flow: int, at: Any) -> Any:
    """Payload bytes acknowledged by the times `at`, by the last ACK before each."""
    import numpy as np

    own = windows["flow"] == flow
    acked = np.append(0, windows["acked_bytes"][own]).astype(float)
    return acked[np.searchsorted(windows["time_s"][own], at, side="right")]


def _by_second(total: Any) -> list[int]:
    import numpy as np

    return [round(one * 8 / 1e3) for one in np.diff(total)]


def _around(drops: Mapping[str, Any], flows: int, joins: list[float]) -> dict[str, list[int]]:
    own = drops["time_s"][(drops["flow"] < flows) & (drops["link"] == 0)]
    count = lambda a, b: int(((own >= a) & (own < b)).sum())  # noqa: E731
    return {
        "drops_before": [count(join - _AROUND_S, join) for join in joins],
        "drops_after": [count(join, join + _AROUND_S) for join in joins],
    }
