"""JSON schemas of results that no class of Python makes: the forecast of `predict`, and the report of `run`."""

from __future__ import annotations

from typing import Any

TEXT: dict[str, Any] = {"type": "string"}
TEXTS: dict[str, Any] = {"type": "array", "items": TEXT}
FLAG: dict[str, Any] = {"type": "boolean"}
COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
NUMBER: dict[str, Any] = {"type": "number"}
SHARE: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": 1}


def objects(of: dict[str, Any]) -> dict[str, Any]:
    """An object with all of these members, and no others."""
    return {"type": "object", "required": list(of), "properties": of, "additionalProperties": False}


def lists(of: dict[str, Any], about: str) -> dict[str, Any]:
    """Of any length."""
    return {"type": "array", "items": of, "description": about}


def maps(of: dict[str, Any], about: str) -> dict[str, Any]:
    """By names that are not known before."""
    return {"type": "object", "additionalProperties": of, "description": about}


def told(of: dict[str, Any], about: str) -> dict[str, Any]:
    """With a description."""
    return {**of, "description": about}


def maybe(of: dict[str, Any], about: str) -> dict[str, Any]:
    """Or null."""
    return {"anyOf": [of, {"type": "null"}], "description": about}


def interval(about: str) -> dict[str, Any]:
    """The median and the 90 % interval."""
    none = "null: never"
    return told(objects({name: maybe(NUMBER, none) for name in ("value", "low", "high")}), about)


def option() -> dict[str, Any]:
    """One choice of a forecast."""
    return objects(
        {
            "paths": told(TEXTS, "over which"),
            "control": told(TEXT, "the congestion controller"),
            "throughput_bps": interval("the job's bytes over its duration: median, ends of the 90 % interval"),
            "duration_s": interval("from connect() to the receipt of the last byte"),
            "expected_s": maybe(NUMBER, "mean duration, by which options are sorted; null: it may never end"),
            "deadline_probability": maybe(
                SHARE, "done by the deadline; 0.5 / (draws + 1) at least while there is time; null without one"
            ),
            "bytes_by_path": lists(NUMBER, "of the job, in the order of `paths`, on average"),
            "resent_bytes": maybe(NUMBER, "on average"),
            "by": told(TEXT, "what the forecast is of: twin (simulation of the job), or what was learnt"),
            "ways_s": maps(NUMBER, "median duration by each way of forecasting"),
            "scale": told(NUMBER, "what the simulated durations were multiplied by, for what earlier forecasts missed"),
            "draws": told(COUNT, "simulated networks"),
            "simulated_bytes": told(COUNT, "of the job, in one simulation, at most"),
        }
    )


def predict(measured: dict[str, Any]) -> dict[str, Any]:
    """The members of `predict`; measured: the schema of what a measurement holds."""
    return {
        "world": told(TEXT, "host, emu or sim"),
        "target": told(TEXT, "what was named"),
        "size_bytes": told(COUNT, "the job"),
        "direction": told(TEXT, "out or in"),
        "deadline_s": maybe(NUMBER, "how long there is from the answer on; null without --by"),
        "options": lists(option(), "the fastest first"),
        "chosen": told(TEXTS, "the paths of the option to take"),
        "chosen_control": told(TEXT, "its controller"),
        "why": told(TEXT, "one sentence"),
        "down": told(TEXTS, "paths that do not answer, lines that are down"),
        "measured": told(measured, "as in pathcast.measure"),
        "measured_age_s": maybe(NUMBER, "where it is of the history; null: measured now"),
        "loads": maps(lists(SHARE, "share of its capacity that others used, look by look"), "by path"),
        "probe_bytes": told(COUNT, "IP bytes of all packets that were sent for it, both ways"),
        "elapsed_s": told(NUMBER, "on the clock of the world"),
        "wall_s": told(NUMBER, "on this machine's"),
        "notes": told(TEXTS, "what its reader should know, in sentences"),
        "by": maybe(TEXT, "the deadline, ISO 8601"),
    }


def run() -> dict[str, Any]:
    """The members of the report of `run`."""
    path = objects(
        {
            "local": told(TEXT, "address of this end"),
            "remote": told(TEXT, "address of the other end"),
            "control": told(TEXT, "the controller in force, as the kernel calls it"),
            "mptcp": told(FLAG, "over Multipath TCP"),
            "flows": told(COUNT, "connections of TCP, or subflows"),
            "bytes_sent": told(COUNT, "acknowledged by the other end"),
            "bytes_received": told(COUNT, "from the other end"),
            "bytes_retransmitted": told(COUNT, "sent again"),
            "timeouts": told(COUNT, "of retransmission (RFC 6298)"),
            "share": told(SHARE, "of all bytes sent; of all received where none were sent"),
            "available_bps": maybe(NUMBER, "available bandwidth as the controller measured it last"),
        }
    )
    bytes = {"bytes_acked": COUNT, "bytes_sent": COUNT, "bytes_received": COUNT}
    controller = objects({"parameters": maps(NUMBER, "by name"), "counts": maps(NUMBER, "what it counted"), **bytes})
    kept = objects({"path": TEXT, "subflows": COUNT, "failed": maybe(TEXT, "why the last one that failed did")})
    return {
        "command": told(TEXTS, "the program and its arguments"),
        "user": told(TEXT, "whom it ran as"),
        "control": maybe(TEXT, "the controller asked for"),
        "mptcp": told(FLAG, "whether Multipath TCP was asked for"),
        "status": told({"type": "integer"}, "its exit status, 128 + n after signal n"),
        "elapsed_s": told(NUMBER, "from its start to its end"),
        "acked_s": told(
            NUMBER, "until the last of bytes_sent was acknowledged, which the kernel may send after its end"
        ),
        "counted": told(FLAG, "whether connections were counted; if not, what follows is zero"),
        "connections": told(COUNT, "of TCP, that were established in either direction"),
        "mptcp_connections": told(COUNT, "of those over Multipath TCP"),
        "open": told(COUNT, "still open at the end"),
        "bytes_sent": told(COUNT, "acknowledged by the other ends; what was sent on two subflows counts twice"),
        "bytes_received": told(COUNT, "from the other ends"),
        "sent_bps": told(NUMBER, "bytes_sent over acked_s"),
        "received_bps": told(NUMBER, "bytes_received over elapsed_s"),
        "paths": lists(path, "by pair of addresses and controller, those that sent most first"),
        "uncontrolled": told(COUNT, "connections under another controller than asked for"),
        "uncounted": told(COUNT, "connections that are missing above"),
        "mptcp_sockets": told(COUNT, "given to the program"),
        "plain_sockets": told(COUNT, "of TCP, since none of Multipath TCP could be made"),
        "steered": maybe({"type": "array", "items": kept}, "subflows over the paths of switches; null elsewhere"),
        "notes": told(TEXTS, "what its reader should know, in sentences"),
        "kernel_name": maybe(TEXT, "the controller as the kernel calls it"),
        "controller": maybe(controller, "what the controller has counted; null of those of the kernel"),
        "auto": told(_auto(), "with --paths auto only"),
    }


def _auto() -> dict[str, Any]:
    step = objects(
        {
            "at_s": told(NUMBER, "since the start"),
            "lines": told(TEXTS, "in use from then on; none: the program was told to end"),
            "control": told(TEXT, "the controller"),
            "why": told(TEXTS, "in sentences"),
            "expected_end_s": maybe(NUMBER, "since the start; null: not known"),
        }
    )
    wait = objects(
        {
            "since_s": told(NUMBER, "since the start"),
            "until_s": maybe(NUMBER, "null: until the end"),
            "lines": told(TEXTS, "that did not answer"),
            "barred": maps(TEXT, "why others could not be used"),
        }
    )
    return objects(
        {
            "steps": lists(step, "what was decided when"),
            "waits": lists(wait, "when nothing got through"),
            "ended": told(FLAG, "whether the program was told to end, since no line might be used"),
            "final": told(FLAG, "whether it ended since --max and --budget leave nothing to any line"),
            "left": objects(
                {
                    "max_bytes": maps(COUNT, "of --max: what another start of the job may put on each line"),
                    "budget": maybe(NUMBER, "of --budget [money]; null without it"),
                }
            ),
            "done": maybe(SHARE, "of its size, at the end; null without one"),
            "sentence": told(TEXT, "for people"),
            "lines": maps(TEXTS, "addresses of each line"),
            "size_bytes": maybe(COUNT, "--size"),
            "deadline_s": maybe(NUMBER, "until --by, from the start on"),
            "max_rate_bps": maybe(NUMBER, "--max-rate"),
            "expected_s": maybe(NUMBER, "duration by the forecast; null without one"),
            "forecast": maybe({"type": "object"}, "of pathcast.predict; null without --to"),
        }
    )
