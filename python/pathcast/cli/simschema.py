"""The JSON schema of what a simulation gives: crates/sim/src/report.rs, member for member."""

from __future__ import annotations

from typing import Any

from pathcast.cli.resultschemas import COUNT, FLAG, NUMBER, SHARE, TEXT, lists, maybe, objects, told

# members that are left out where they tell of nothing
_SOMETIMES = ("pages", "trace", "managed")


def _some(of: dict[str, Any]) -> dict[str, Any]:
    made = objects(of)
    return {**made, "required": [name for name in made["required"] if name not in _SOMETIMES]}


def _pages(of: str) -> dict[str, Any]:
    times = {name: maybe(NUMBER, "from asking to the last byte") for name in ("mean_s", "median_s", "p95_s")}
    return told(objects({"pages": told(COUNT, "that arrived"), "bytes": COUNT, **times}), of)


def _subflow() -> dict[str, Any]:
    return objects(
        {
            "path": TEXT,
            "bytes": told(COUNT, "payload acknowledged"),
            "drops": told(COUNT, "its segments that links dropped"),
            "sent": told(COUNT, "segments, again ones included"),
            "retransmits": told(COUNT, "segments sent again"),
            "retransmitted_bytes": COUNT,
            "timeouts": COUNT,
            "srtt_s": maybe(NUMBER, "smoothed, at the end"),
            "min_rtt_s": maybe(NUMBER, "the least"),
            "cwnd_packets": told(COUNT, "the window at the end"),
            "joined_s": maybe(NUMBER, "from the flow's connecting until it could carry data; null: never"),
            "alive": told(FLAG, "whether it could at the end"),
        }
    )


def _flow() -> dict[str, Any]:
    return _some(
        {
            "name": TEXT,
            "control": TEXT,
            "bytes": told(COUNT, "of the application, that arrived in order"),
            "start_s": told(NUMBER, "when it connected"),
            "completion_s": maybe(NUMBER, "from connecting until the sender knew that everything had arrived"),
            "delivered_s": maybe(NUMBER, "from connecting until the last byte arrived"),
            "goodput_bps": told(NUMBER, "over the completion time; without one, over the time that it ran"),
            "retransmits": told(COUNT, "segments sent again, of all subflows"),
            "timeouts": COUNT,
            "recoveries": told(COUNT, "losses repaired without a timeout"),
            "undos": told(COUNT, "reductions undone as spurious"),
            "duplicates": told(COUNT, "segments that came twice over different subflows"),
            "reordered_most": told(COUNT, "most segments that waited for one before them"),
            "failed": told(FLAG, "no path answered, and it was given up"),
            "subflows": lists(_subflow(), "in the order of its paths"),
            "pages": _pages("of a flow that is a series of pages"),
        }
    )


def _traffic() -> dict[str, Any]:
    counts = dict.fromkeys(("retransmits", "timeouts"), COUNT)
    about = {"name": TEXT, "control": TEXT, "connections": COUNT, "bytes": COUNT, "goodput_bps": NUMBER}
    return _some({**about, **counts, "pages": _pages("of web clients")})


def _link() -> dict[str, Any]:
    managed = objects({"drops": COUNT, "marks": COUNT, "sojourn_s": maybe(NUMBER, "mean waiting time")})
    return _some(
        {
            "name": TEXT,
            "direction": told(TEXT, "ab or ba"),
            "packets": told(COUNT, "that reached its far end"),
            "bytes": told(COUNT, "their IP bytes"),
            "drops": told(COUNT, "packets that did not"),
            "first_drop_s": maybe(NUMBER, "when"),
            "utilisation": told(SHARE, "of the time, cross traffic included"),
            "queue_max_packets": told(COUNT, "cross traffic included"),
            "cross_packets": told(COUNT, "virtual ones"),
            "cross_drops": told(COUNT, "of these"),
            "trace": {"type": "object", "description": "the file that its rate follows at the end"},
            "managed": told(managed, "of active queue management"),
        }
    )


def members() -> dict[str, Any]:
    """What a report has behind its `schema`."""
    packets = dict.fromkeys(("sent", "delivered", "dropped", "in_flight"), COUNT)
    return {
        "name": told(TEXT, "the scenario's"),
        "seed": COUNT,
        "flows": lists(_flow(), "the scenario's, in their order"),
        "traffic": lists(_traffic(), "real connections beside them"),
        "links": lists(_link(), "both directions of each"),
        "packets": told(objects(packets), "sent = delivered + dropped + in flight"),
        "simulated_s": NUMBER,
        "packets_forwarded": told(COUNT, "over one link each"),
        "events": told(COUNT, "of the engine"),
        "stopped": maybe(TEXT, "what ended it before its end: event-limit, time-limit or interrupted"),
        "cpu_s": NUMBER,
        "wall_s": NUMBER,
    }
