"""One sample of an experiment, in whatever process and on whatever machine."""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from pathcast.errors import PathcastError
from pathcast.lab.experiment import Experiment
from pathcast.limits import limited
from pathcast.worlds.late import again


@functools.cache
def _experiment(directory: str) -> Experiment:
    return Experiment(Path(directory))


def code(directory: str) -> str:
    """The version of the code that samples are computed with here: as it was when this process imported it."""
    return _experiment(directory).code


def compute(
    directory: str, version: str, world: str, key: str, scenario: Any, events: int | None = None
) -> tuple[str, dict[str, Any]]:
    """The sample's key and outcome: `values`, or the `error` in their place; whatever fails is an outcome too.

    events: limit of the simulator's; None: its own.
    """
    try:
        experiment = _experiment(directory)
        if experiment.code != version:
            raise PathcastError("code", "this worker has another version of pathcast or of the experiment")
        samples = experiment.module("samples")
        sample = functools.partial(samples.sample, scenario, world)
        turns = world == "emu" and not getattr(samples, "OWN_TURNS", False)
        with limited(events):
            values, tries = again(sample) if turns else (sample(), 1)
        values = json.loads(json.dumps(values, allow_nan=False))  # as whoever reads it later sees it
    except Exception as failure:
        if not isinstance(failure, PathcastError):
            failure = PathcastError("internal", f"{type(failure).__name__}: {failure}")
        elif failure.code == "interrupted":
            raise
        return key, {"error": failure.document()["error"], "values": None}
    return key, {"error": None, "values": values, **({"tries": tries} if tries > 1 else {})}


def main() -> None:
    """A lane (`parallel.lanes`): arguments of `compute` on stdin, what it returns on stdout, each a line of JSON."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)  # what samples print, and programs that they start, is no answer
        try:
            for line in sys.stdin:
                print(json.dumps(compute(*json.loads(line))), file=answers, flush=True)
        except KeyboardInterrupt:
            sys.exit(130)


if __name__ == "__main__":
    main()
