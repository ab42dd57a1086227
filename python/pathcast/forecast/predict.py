"""Predictions out of a model: one probe a path, then the throughput and duration of every choice of paths."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from pathcast.errors import Exit, PathcastError, usage
from pathcast.forecast.learn import OpenWorld, of, of_control
from pathcast.forecast.model import MINIMUM_ROUNDS, NEWEST_ROUNDS, Model, present, written
from pathcast.forecast.rounds import probe
from pathcast.worlds.gone import gone

# a transfer of another size than learnt has another share of slow start: further away than this is a guess
LARGEST_FACTOR = 2


def predict(
    file: Path,
    world_name: str,
    target: str,
    open: Callable[[], AbstractContextManager[OpenWorld]],
    bytes: int,
    only: tuple[str, ...] | None = None,
    control: str | None = None,
) -> dict[str, Any]:
    """The document of one prediction; `only` names the paths to choose among.

    `chosen` is None when no choice can be trusted: every one has a probe outside of what was trained on, or the
    emulator was late. Raises PathcastError (exit 2) when the model is of something else, has too few rounds, or no
    size near `bytes`; exit 1 when nobody answers over any of these paths.
    """
    model = Model.load(file)
    of(model, file, world_name, target)
    of_control(model, file, control)
    size = learnt_size(model, bytes)
    choice = model.fit(size)

    with open() as open_world, open_world() as world:
        world.fresh(len(model.rounds))  # where draws are repeatable: not those that were learnt
        names, notes = present(model, world, only)
        # a probe over one that is silent would break, and the others' with it
        silent = gone(world, list(names.values()), None)
        notes += [f"{name} is down: {why}" for name, why in silent.items()]
        wanted = [p for p in model.paths if p.name in names and names[p.name] not in silent]
        probes, fault = probe(world, [names[p.name] for p in wanted], model.probe_bytes, model.control)
    found = {p.name: sent.throughput_bps for p, sent in zip(wanted, probes, strict=True)}
    ranges = {name: choice.range_bps(name) for name in found}
    if fault:
        notes.append(f"the probes are not to be trusted: {fault}")
    if size != bytes:
        notes.append(f"learnt with transfers of {written(size)}, asked for is {written(bytes)}: taken to be as fast")
    for name, (low, high) in ranges.items():
        if not low <= found[name] <= high:
            notes.append(
                f"the probe of {names[name]}, {found[name] / 1e6:.3g} Mbit/s, lies outside of what was trained on, "
                f"{low / 1e6:.3g} to {high / 1e6:.3g} Mbit/s"
            )
    options = [
        {
            "paths": [names[name] for name in option["paths"]],
            "predicted_bps": option["predicted_bps"],
            "duration_s": 8 * bytes / option["predicted_bps"],
            "rmse_bps": option["rmse_bps"],
            "within_training_range": option["within_training_range"],
        }
        for option in choice.predict(found)
    ]
    trusted = [o for o in options if o["within_training_range"] and not fault]
    if trusted and trusted[0] is not options[0]:
        notes.append(f"{'+'.join(options[0]['paths'])} is not chosen: its probes lie outside of what was trained on")
    rounds = len(model.counted(size))
    old = f"fitted on the newest {NEWEST_ROUNDS} of {rounds} rounds"
    return {
        "world": model.world,
        "target": target,
        "size_bytes": bytes,
        "paths": [{"name": names[p.name], "local": p.local, "remote": p.remote} for p in wanted],
        "probes_bps": list(found.values()),
        "options": options,
        "chosen": trusted[0]["paths"] if trusted else None,
        "probe_bytes": sum(sent.bytes for sent in probes),
        "model": {
            "file": str(file),
            "rounds": rounds,
            "size_bytes": size,
            "control": model.control,
            "training_range_bps": [list(ranges[p.name]) for p in wanted],
            "warnings": [old] if rounds > NEWEST_ROUNDS else [],
        },
        "notes": notes,
    }


def untrustworthy(document: dict[str, Any]) -> PathcastError | None:
    """The error (exit 3) that a prediction without any choice to trust ends with."""
    if document["chosen"] is not None:
        return None
    return PathcastError(
        "untrustworthy",
        f"no choice of paths can be predicted: {'; '.join(document['notes'])}",
        "add rounds under the conditions of now: `pathcast learn`; an emulator needs the machine for itself",
        Exit.UNTRUSTWORTHY,
    )


def learnt_size(model: Model, bytes: int) -> int:
    """The learnt size nearest to `bytes`, by ratio, within a factor of 2. Raises PathcastError (exit 2)."""
    sizes = model.sizes()
    ready = [size for size, rounds in sizes.items() if rounds >= MINIMUM_ROUNDS]
    if bytes < 1:
        raise usage("--size: a transfer has at least one byte")
    near = [s for s in ready if max(s, bytes) <= LARGEST_FACTOR * min(s, bytes)]
    if near:
        return min(near, key=lambda s: abs(math.log(s / bytes)))
    learnt = ", ".join(f"{written(s)} ({n} rounds)" for s, n in sizes.items()) or "none"
    begun = [s for s in sizes if max(s, bytes) <= LARGEST_FACTOR * min(s, bytes)]
    wanted = min(begun, key=lambda s: abs(math.log(s / bytes)), default=bytes)
    raise usage(
        f"too little is learnt of sizes within a factor of {LARGEST_FACTOR} of {written(bytes)}: "
        f"{MINIMUM_ROUNDS} rounds of one size are needed; the model has: {learnt}",
        f"measure more rounds: `pathcast learn` with --size {written(wanted)}",
    )
