"""Plots of one simulation: windows, round trip times, queues of the busiest links, throughput of every subflow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pathcast.results.style import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION
from pathcast.simulation.run import Traces
from pathcast.simulation.traces import INFINITE

# one a subflow, of which a flow has at most eight
_COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, "#000000", "#999999")
# more panels than this nobody can read; the traces have all flows
_FLOWS = 8
_LINKS = 4
# pieces of a line: more is not seen, and makes large files
_PIECES = 1000


def figures(document: Mapping[str, Any], traces: Traces) -> Iterator[tuple[str, Any]]:
    """Name and figure, those that have something to show; draw them one at a time, in our style."""
    if len(traces["windows"]["time_s"]):
        yield "windows", windows(document, traces)
        yield "rtt", rtt(document, traces)
        yield "throughput", throughput(document, traces)
    if len(traces["queues"]["time_s"]) and busiest(document):
        yield "queues", queues(document, traces)


def windows(document: Mapping[str, Any], traces: Traces) -> Any:
    """Window and slow start threshold of every subflow, one panel a flow."""
    figure, panels = _panels(document, traces)
    for ax, rows in panels:
        high = 0
        for number, own in _subflows(rows):
            colour = _COLOURS[number]
            ax.plot(*thin(own["time_s"], own["cwnd_packets"]), color=colour, lw=1, label=_label(document, rows, number))
            high = max(high, own["cwnd_packets"].max())
            threshold = own["ssthresh_packets"].astype(float)
            threshold[threshold >= INFINITE] = float("nan")
            ax.plot(*thin(own["time_s"], threshold), color=colour, lw=0.8, ls="--")
        # a threshold far above every window would flatten them
        ax.set_ylim(0, 1.15 * high)
        ax.set_ylabel("window [packets]\n(dashed: ssthresh)")
    return _finish(figure, panels, traces)


def rtt(document: Mapping[str, Any], traces: Traces) -> Any:
    """Smoothed round trip time of every subflow, one panel a flow."""
    figure, panels = _panels(document, traces)
    for ax, rows in panels:
        for number, own in _subflows(rows):
            label = _label(document, rows, number)
            ax.plot(*thin(own["time_s"], own["srtt_s"] * 1e3), color=_COLOURS[number], lw=1, label=label)
        ax.set_ylim(bottom=0)
        ax.set_ylabel("smoothed RTT [ms]")
    return _finish(figure, panels, traces)


def throughput(document: Mapping[str, Any], traces: Traces) -> Any:
    """Payload acknowledged in every subflow over time, one panel a flow."""
    import numpy as np

    end = horizon(traces)
    width = max(0.1, end / 200)
    edges = np.arange(0, end + width, width)
    figure, panels = _panels(document, traces)
    for ax, rows in panels:
        for number, own in _subflows(rows):
            bits = 8 * np.diff(_acked(own["time_s"], own["acked_bytes"], edges))
            label = _label(document, rows, number)
            ax.stairs(bits / width / 1e6, edges, color=_COLOURS[number], lw=1, label=label)
        ax.set_ylim(bottom=0)
        ax.set_ylabel(f"acknowledged [Mbit/s],\nbins of {width * 1e3:.0f} ms")
    return _finish(figure, panels, traces)


def queues(document: Mapping[str, Any], traces: Traces) -> Any:
    """Packets that wait at the busiest links, and the times of their drops."""
    import matplotlib.pyplot as plt
    import numpy as np

    found = busiest(document)
    figure, axes = plt.subplots(
        len(found), 1, figsize=(7.2, 1 + 1.7 * len(found)), sharex=True, squeeze=False, layout="constrained"
    )
    q, end = traces["queues"], horizon(traces)
    for ax, index in zip(axes[:, 0], found, strict=True):
        link, own = document["links"][index], (q["link"] == index) & (q["time_s"] <= 1.02 * end)
        time, packets, drops = q["time_s"][own], q["queue_packets"][own], q["drops"][own]
        ax.plot(*thin(time, packets), color=BLUE, lw=0.8)
        lost = time[1:][np.diff(drops) > 0]
        high = max(1, int(packets.max(initial=0)))
        ax.plot(lost, np.full(len(lost), 1.08 * high), "|", color=VERMILION, ms=5)
        ax.set(ylim=(0, 1.15 * high), ylabel="waiting [packets]")
        busy = min(1.0, link["utilisation"] * document["simulated_s"] / end)
        title = f"{link['name']} {link['direction']}, busy {100 * busy:.0f} % of the time shown"
        ax.set_title(title + ("; marks above: drops" if len(lost) else ""))
    axes[-1, 0].set(xlabel="time [s]", xlim=(0, 1.02 * end))
    return figure


def busiest(document: Mapping[str, Any]) -> list[int]:
    """The directions of links that carried something, the busiest first, by index."""
    links = document["links"]
    used = [i for i, link in enumerate(links) if link["packets"] and (link["queue_max_packets"] or link["drops"])]
    used = used or [i for i, link in enumerate(links) if link["packets"]]
    return sorted(used, key=lambda i: (-links[i]["utilisation"], -links[i]["queue_max_packets"], i))[:_LINKS]


def horizon(traces: Traces) -> float:
    """The time of the last acknowledgement or carried packet: after it there is nothing to see."""
    import numpy as np

    q = traces["queues"]
    last = [0.0, *traces["windows"]["time_s"][-1:]]
    for link in np.unique(q["link"]):
        own = q["link"] == link
        moves = np.flatnonzero(np.diff(q["carried_bytes"][own], prepend=0))
        last += [q["time_s"][own][i] for i in moves[-1:]]
    return float(max(last)) or 1.0


def _acked(time: Any, total: Any, edges: Any) -> Any:
    """Bytes acknowledged up to each edge: even between two rows, but for a pause, after which they come at once."""
    import numpy as np

    steps = np.diff(total, prepend=0)
    total = np.cumsum(np.where(steps < 0, total, steps))  # the next connection of a series starts anew
    width = edges[1] - edges[0]
    late = np.flatnonzero(np.diff(time, prepend=0) > width)
    before = np.where(late > 0, total[late - 1], 0)
    return np.interp(edges, np.insert(time, late, time[late] - width / 100), np.insert(total, late, before), left=0)


def thin(x: Any, y: Any) -> tuple[Any, Any]:
    """A long line with the first, least, largest and last point of each of its pieces only: it looks the same."""
    import numpy as np

    if len(x) <= 4 * _PIECES:
        return x, y
    keep = []
    for piece in np.array_split(np.arange(len(x)), _PIECES):
        values = np.nan_to_num(np.asarray(y[piece], float), nan=0.0)
        keep += sorted({piece[0], piece[values.argmin()], piece[values.argmax()], piece[-1]})
    return x[keep], y[keep]


def _panels(document: Mapping[str, Any], traces: Traces) -> tuple[Any, list[tuple[Any, dict[str, Any]]]]:
    """A figure with a panel for each flow that has rows, and those rows."""
    import matplotlib.pyplot as plt
    import numpy as np

    w = traces["windows"]
    seen = [int(i) for i in np.unique(w["flow"])]
    shown = seen[:_FLOWS]
    figure, axes = plt.subplots(
        len(shown), 1, figsize=(7.2, 1 + 2.0 * len(shown)), sharex=True, squeeze=False, layout="constrained"
    )
    panels = []
    for ax, index in zip(axes[:, 0], shown, strict=True):
        own = w["flow"] == index
        flow = document["flows"][index]
        ax.set_title(f"{flow['name']} ({flow['control']})")
        panels.append((ax, {name: values[own] for name, values in w.items()}))
    if len(seen) > len(shown):
        figure.suptitle(f"the first {len(shown)} of {len(seen)} flows")
    return figure, panels


def _subflows(rows: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    import numpy as np

    for number in np.unique(rows["subflow"]):
        own = rows["subflow"] == number
        yield int(number), {name: values[own] for name, values in rows.items()}


def _label(document: Mapping[str, Any], rows: Mapping[str, Any], number: int) -> str:
    subflows = document["flows"][int(rows["flow"][0])]["subflows"]
    path = subflows[number]["path"] if number < len(subflows) else "?"
    return f"subflow {number + 1}, {path}"


def _finish(figure: Any, panels: list[tuple[Any, Any]], traces: Traces) -> Any:
    for ax, rows in panels:
        if len(set(rows["subflow"].tolist())) > 1:
            ax.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize=7)
    panels[-1][0].set(xlabel="time [s]", xlim=(0, 1.02 * horizon(traces)))
    return figure
