"""A Dask cluster for the samples of an experiment; `distributed` is an extra of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pathcast.errors import PathcastError, need, usage
from pathcast.lab import worker
from pathcast.lab.experiment import Experiment

_ADDRESS = re.compile(r"(tcp|tls)://\S+:\d+")
# to the scheduler, and for the first worker
PATIENCE_S = 20


def check(address: str) -> None:
    """Refuses what is no address of a scheduler (exit 2), and a Python without `distributed` (exit 5)."""
    if not _ADDRESS.fullmatch(address):
        raise usage(f"--cluster `{address}`: write tcp://scheduler:8786")
    need("distributed")


@contextmanager
def connected(address: str, experiment: Experiment) -> Iterator[None]:
    """The cluster as joblib's, if all its workers have this experiment in the same folder and version.

    Raises PathcastError (`cluster`).
    """
    from distributed import Client

    try:
        client = Client(address, timeout=PATIENCE_S, set_as_default=True)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise PathcastError("cluster", f"no Dask scheduler answers at {address}: {error}") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=PATIENCE_S)
        except TimeoutError:
            raise PathcastError("cluster", f"the scheduler at {address} has no worker") from None
        found = client.run(worker.code, str(experiment.directory), on_error="return")
        for name, version in found.items():
            if version != experiment.code:
                what = "another version of the code" if isinstance(version, str) else f"no {experiment.directory}"
                hint = (
                    "install the same pathcast there, put the same experiments in the same place, restart the workers"
                )
                raise PathcastError("cluster", f"the worker at {name} has {what}", hint)
        yield
