"""The directory that a run writes: run.json, samples as Parquet, tables as CSV, plots as SVG and PNG, one HTML page."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from pathcast.errors import usage
from pathcast.machine import machine, versions


class RunDir:
    """One run's directory. Files are written whole, or not at all.

    In a `with`, what it made of the path is removed at the end if nothing was put there.
    """

    def __init__(self, path: Path, option: str = "--out") -> None:
        """`option`: what names the directory on the command line, for errors."""
        self.path = path
        self._made = [one for one in (path, *path.parents) if not os.path.exists(one)]
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise usage(f"{option} `{path}`: cannot make the directory: {error.strerror}") from None
        if not os.access(path, os.W_OK):
            raise usage(f"{option} `{path}`: it cannot be written to")
        self._started = time.time()

    def __enter__(self) -> RunDir:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # there is something in it
            for one in self._made:
                one.rmdir()

    def text(self, name: str, text: str) -> Path:
        """Writes a text file."""
        with self._whole(name) as file:
            file.write(text.encode())
        return self.path / name

    @contextmanager
    def _whole(self, name: str) -> Iterator[BinaryIO]:
        """A file that has its name when it is written; what somebody else has put in its place is not followed."""
        target, temporary = self.path / name, self.path / f".{name}.part"
        temporary.unlink(missing_ok=True)
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), "wb") as file:
            yield file
        temporary.replace(target)

    def run(self, about: Mapping[str, Any]) -> Path:
        """Writes `run.json`: the command, versions, machine, and what the caller adds."""
        document = {
            "schema": "pathcast.run/1",
            "command": sys.argv,
            "started_unix_s": round(self._started, 3),
            "wall_s": round(time.time() - self._started, 3),
            "versions": versions(),
            "host": machine(),
            **about,
        }
        return self.text("run.json", json.dumps(document, indent=1, allow_nan=False) + "\n")

    def table(self, name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
        """Writes a CSV table."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
        return self.text(f"{name}.csv", text.getvalue())

    def samples(self, name: str, rows: Sequence[Mapping[str, Any]]) -> Path:
        """Writes samples as Parquet, a column a key; lists and mappings inside stay nested."""
        import pyarrow as pa

        return self.columns(name, pa.Table.from_pylist([dict(r) for r in rows]))

    def columns(self, name: str, table: Any) -> Path:
        """Writes an Arrow table as Parquet."""
        import pyarrow.parquet as pq

        with self._whole(f"{name}.parquet") as file:
            pq.write_table(table, file, compression="zstd")
        return self.path / f"{name}.parquet"

    def figure(self, name: str, figure: Any) -> list[Path]:
        """Writes a matplotlib figure as SVG and PNG."""
        import matplotlib.pyplot as plt

        written = []
        for ending in ("svg", "png"):
            with self._whole(f"{name}.{ending}") as file:
                figure.savefig(file, format=ending, dpi=144, metadata={"Date": None} if ending == "svg" else None)
            written.append(self.path / f"{name}.{ending}")
        plt.close(figure)
        return written
