"""`pathcast schema`: the JSON schemas of files and results, with units.

Those of results are made from the classes that are printed: what stands there cannot differ.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Annotated, Any

import typer

from pathcast.errors import usage

DRAFT = "https://json-schema.org/draft/2020-12/schema"
# what the ends of names say
UNITS = {
    "_bps": "bit/s",
    "_bytes": "byte",
    "_s": "s",
    "_ns": "ns",
    "_ppm": "1e-6",
    "_packets": "packet",
    "bytes": "byte",
}
# what a number's own value is in, under a name that tells it
_BARE = {"value", "low", "high"}


def _scenario() -> dict[str, Any]:
    from pathcast import _native

    found: dict[str, Any] = json.loads(_native.scenario_schema())
    return found


def _config() -> dict[str, Any]:
    from pathcast.lines.config import SCHEMA

    return SCHEMA


def _measure() -> dict[str, Any]:
    from pathcast.cli.measure import VERSION
    from pathcast.worlds.measurement import Measurement

    made = _result("measure", VERSION, Measurement, {"target": "what was named", "world": "host, emu or sim"})
    about = {name: made.pop(name) for name in ("type", "required", "properties", "description")}
    time = {"type": "number", "description": "with --jsonl: when it was printed, since 1970", "unit": "s"}
    about["properties"]["time_s"] = time
    head = {name: about["properties"][name] for name in ("schema", "target")}
    gap = {
        "type": "object",
        "description": "with --repeat --jsonl: a round that could not be",
        "required": ["time_s", *head, "error"],
        "properties": {"time_s": time, **head, "error": _error()["properties"]["error"]},
    }
    return {**made, "anyOf": [about, gap]}


def _plan() -> dict[str, Any]:
    from pathcast.plan.plan import Plan

    texts = {"target": "what was named", "world": "host, emu or sim", "direction": "out or in"}
    times = {"from": "when it was made, ISO 8601", "by": "the deadline, or null", "sentence": "for people"}
    made = _result("plan", 1, Plan, texts | times)
    made["properties"]["by"]["type"] = ["string", "null"]
    listed = {"type": "array", "items": {"type": "string"}}
    made["properties"] |= {"down": listed, "notes": listed}
    made["properties"]["forecast"] = {"type": "object", "description": "of pathcast.predict, without measurements"}
    made["required"] = list(made["properties"])
    return made


def _predict() -> dict[str, Any]:
    from pathcast.cli import resultschemas
    from pathcast.cli.predict import VERSION
    from pathcast.worlds.measurement import Measurement

    definitions: dict[str, Any] = {}
    measured = _kind(Measurement, definitions)
    return _written("predict", VERSION, resultschemas.predict(measured)) | {"$defs": definitions}


def _run() -> dict[str, Any]:
    from pathcast.cli import resultschemas

    made = _written("run", 1, resultschemas.run())
    made["required"].remove("auto")
    return made


def _written(verb: str, version: int, members: dict[str, Any]) -> dict[str, Any]:
    """Of a result whose members are written down: with the units that their names tell."""
    title = f"pathcast.{verb}/{version}"
    of = _with_units({"schema": {"const": title}, **members})
    return {
        **{"$schema": DRAFT, "title": title, "type": "object"},
        **{"required": list(of), "properties": of, "additionalProperties": False},
    }


def _with_units(members: dict[str, Any]) -> dict[str, Any]:
    made = {}
    for name, of in members.items():
        unit = _unit(name)
        made[name] = _inner(of) if unit is None else {**_inner(of), "unit": unit}
    return made


def _inner(of: dict[str, Any]) -> dict[str, Any]:
    if "properties" in of:
        return {**of, "properties": _with_units(of["properties"])}
    if "items" in of:
        return {**of, "items": _inner(of["items"])}
    if "anyOf" in of:
        return {**of, "anyOf": [_inner(one) for one in of["anyOf"]]}
    return of


def _between() -> dict[str, Any]:
    from pathcast.service.findings import Between

    return _result("between", 1, Between, {})


def _transfer() -> dict[str, Any]:
    from pathcast.worlds.results import Transfer

    return _result("transfer", 1, Transfer, {})


def _flows() -> dict[str, Any]:
    from pathcast.worlds.flows import FlowsResult

    made = _result("flows", 1, FlowsResult, {})
    verdict = made["$defs"]["Verdict"]
    verdict["properties"]["valid"] = {"type": "boolean", "description": "whether the emulator kept its time"}
    verdict["required"].append("valid")
    # the document says it once, for all flows
    flow = made["$defs"]["Flow"]
    del flow["properties"]["run_ended_s"]
    flow["required"].remove("run_ended_s")
    return made


def _sim() -> dict[str, Any]:
    from pathcast.cli import simschema

    return _written("sim", 1, simschema.members())


def _error() -> dict[str, Any]:
    text, status = {"type": "string"}, {"type": "integer", "description": "the exit status"}
    hint = {"type": ["string", "null"], "description": "what to do"}
    members = {"code": {**text, "description": "a stable word"}, "message": text, "hint": hint, "exit": status}
    error = {"type": "object", "required": list(members), "properties": members}
    about = {"title": "any command that fails, with --json", "type": "object", "required": ["error"]}
    return {"$schema": DRAFT, **about, "properties": {"error": error}}


SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "between": _between,
    "config": _config,
    "error": _error,
    "flows": _flows,
    "measure": _measure,
    "plan": _plan,
    "predict": _predict,
    "run": _run,
    "scenario": _scenario,
    "sim": _sim,
    "transfer": _transfer,
}


def schema(
    name: Annotated[str | None, typer.Argument(help="One of those that this shows without it.")] = None,
) -> None:
    """Print the JSON schema of a file or of a result of --json, units included."""
    if name is None:
        print("\n".join(SCHEMAS))
        return
    if name not in SCHEMAS:
        raise usage(f"schema `{name}`: allowed are {', '.join(SCHEMAS)}")
    print(json.dumps(SCHEMAS[name](), indent=1))


def _result(verb: str, version: int, of: type, more: dict[str, str]) -> dict[str, Any]:
    definitions: dict[str, Any] = {}
    about = _class(of, definitions)
    head = {"schema": {"const": f"pathcast.{verb}/{version}"}}
    head |= {name: {"type": "string", "description": text} for name, text in more.items()}
    properties = {**head, **about["properties"]}
    title = {"$schema": DRAFT, "title": f"pathcast.{verb}/{version}", "description": about["description"]}
    return {**title, "type": "object", "required": list(properties), "properties": properties, "$defs": definitions}


def _class(of: type, definitions: dict[str, Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(of)
    members = {one.name: _member(one.name, hints[one.name], definitions) for one in fields(of)}
    about = " ".join((of.__doc__ or "").split())
    return {"type": "object", "description": about, "required": list(members), "properties": members}


def _member(name: str, kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    made = _kind(kind, definitions)
    unit = _unit(name)
    return made if unit is None else {**made, "unit": unit}


def _unit(name: str) -> str | None:
    if name in _BARE:
        return None
    if name.startswith("bytes_"):
        return UNITS["bytes"]
    return next((unit for end, unit in UNITS.items() if name.endswith(end)), None)


def _kind(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    plain = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
    if kind in plain:
        return {"type": plain[kind]}
    if is_dataclass(kind):
        assert isinstance(kind, type)
        if kind.__name__ not in definitions:
            definitions[kind.__name__] = {}  # its own members may be of it
            definitions[kind.__name__] = _class(kind, definitions)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    origin, of = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_kind(one, definitions) for one in of]}
    if origin is tuple or origin is list:
        return {"type": "array", "items": _kind(of[0], definitions)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _kind(of[1], definitions)}
    return {}
