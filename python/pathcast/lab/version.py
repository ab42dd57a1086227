"""What stands for the version of the code in a sample's key."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path


@functools.cache
def code() -> str:
    """The hash of the extension's file: the simulator, the emulator and every controller, native and eBPF."""
    from pathcast import _native

    return hashlib.sha256(Path(_native.__file__).read_bytes()).hexdigest()


@functools.cache
def worlds() -> str:
    """The hash of the Python in which the worlds' verbs are written."""
    from pathcast import worlds as package

    return files(path for path in Path(package.__file__).parent.glob("*.py") if not path.name.startswith("test_"))


def files(paths: Iterable[Path]) -> str:
    """The hash of files, their names included, in whatever order they are given."""
    whole = hashlib.sha256()
    for path in sorted(paths, key=lambda path: path.name):
        whole.update(f"{path.name}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()
