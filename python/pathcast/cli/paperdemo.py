"""`pathcast demo --paper`: the papers' experiment in small, shown while it runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from pathcast.cli.output import console
from pathcast.units import bits, size

if TYPE_CHECKING:
    from pathcast.lab.paper.plan import Plan
    from pathcast.results.rundir import RunDir


def carry_out(plan: Plan, world: str, lanes: int, directory: RunDir, json: bool) -> dict[str, Any]:
    """The document of the experiment, whose page is written."""
    from pathcast.lab.paper.page import write
    from pathcast.lab.paper.run import make_world, run

    with _listener(json) as listener:
        document = run(plan, make_world(plan, world), lanes, listener)
        listener.phase("writing results", 1)
        write(document, directory)
        listener.step(None)
    return document


def summary(document: dict[str, Any]) -> None:
    from rich.table import Table

    from pathcast.results.style import LABELS

    out = console()
    counted = document["counted"]
    table = Table(
        "predictor", "RMSE", "within 10 %", title=f"errors on {counted['unseen']} unseen rounds in {document['world']}"
    )
    for name in ("multi", "single", "cdf", "placebo"):
        if name in document["errors"]:
            e = document["errors"][name]
            table.add_row(LABELS[name], bits(e["rmse_bps"]), f"{100 * e['fraction_within_10pct']:.0f} %")
    out.print(table)

    sizes = sorted({p["bytes"] for p in document["shares"]})
    table = Table("RTT 1 / 2", *(size(b) for b in sizes), title="bytes on subflow 1, by transfer size")
    for pair in dict.fromkeys(tuple(p["rtt_s"]) for p in document["shares"]):
        row = {p["bytes"]: p["share"] for p in document["shares"] if tuple(p["rtt_s"]) == pair}
        name = " / ".join(f"{r * 1e3:.0f}" for r in pair) + " ms"
        table.add_row(name, *(f"{100 * row[b]:.0f} %" for b in sizes))
    out.print(table)

    choice = document["choice"]
    rtts = " and ".join(f"{r * 1e3:.0f} ms" for r in choice["rtt_s"])
    table = Table("paths", "predicted", "measured", title=f"which paths to take, at round trip times {rtts}")
    for o in choice["options"]:
        name = " + ".join(o["paths"])
        chosen = o["paths"] == choice["chosen"]
        table.add_row(f"[bold]{name}[/] (chosen)" if chosen else name, bits(o["predicted_bps"]), bits(o["actual_bps"]))
    out.print(table)
    out.print(
        f"regret of the choice: {100 * choice['regret']:.1f} % of the best; rounds left out: {counted['left_out']}, "
        f"repeated: {counted['repeated']}; {document['elapsed_s']:.0f} s"
    )


class _Silent:
    """Nobody watches."""

    def __enter__(self) -> _Silent:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def phase(self, name: str, steps: int) -> None:
        pass

    def step(self, done: Any) -> None:
        pass


class _Plain(_Silent):
    """One line a phase and a round, for logs."""

    def phase(self, name: str, steps: int) -> None:
        print(f"{name} ({steps})" if steps > 1 else name, file=sys.stderr, flush=True)

    def step(self, done: Any) -> None:
        from pathcast.lab.paper.rounds import Round

        if isinstance(done, Round):
            print("  " + ", ".join(c for c in _cells(done) if c), file=sys.stderr, flush=True)


def _cells(r: Any) -> tuple[str, ...]:
    predicted = (r.predicted_bps or {}).get("multi")
    return (
        str(r.index + 1),
        " / ".join(f"{x * 1e3:.0f}" for x in r.setting.rtt_s) + " ms",
        " / ".join(bits(p) for p in r.measured.probes_bps),
        bits(predicted) if predicted else "",
        bits(r.measured.actual_bps),
        f"{(predicted / r.measured.actual_bps - 1) * 100:+.0f} %" if predicted else "",
        r.left_out or "",
    )


class _Live:
    """A Rich table of the last rounds above a progress bar."""

    ROWS = 12

    def __init__(self) -> None:
        from rich.live import Live
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
        )
        self._task = self._progress.add_task("", total=1)
        self._rows: list[tuple[str, ...]] = []
        self._live = Live(console=console(stderr=True), get_renderable=self._render, refresh_per_second=8)

    def _render(self) -> Any:
        from rich.console import Group
        from rich.table import Table

        table = Table("round", "RTT 1 / 2", "probes", "predicted", "measured", "error", "")
        for row in self._rows[-self.ROWS :]:
            table.add_row(*row)
        return Group(*([table] if self._rows else []), self._progress)

    def __enter__(self) -> _Live:
        self._live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._live.__exit__(*error)

    def phase(self, name: str, steps: int) -> None:
        self._progress.remove_task(self._task)
        self._task = self._progress.add_task(name, total=steps)

    def step(self, done: Any) -> None:
        from pathcast.lab.paper.rounds import Round

        if isinstance(done, Round):
            self._rows.append(_cells(done))
        self._progress.advance(self._task)


def _listener(json: bool) -> Any:
    if sys.stderr.isatty():
        return _Live()
    return _Silent() if json else _Plain()
