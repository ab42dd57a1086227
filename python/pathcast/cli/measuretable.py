"""The table of a measurement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pathcast.cli.output import show as show_table
from pathcast.units import bits, seconds
from pathcast.units import size as written

if TYPE_CHECKING:
    from pathcast.worlds.measurement import Direction, Loss, Measurement, Value

# what would be shown as none
_LEAST_CV = 0.005


def show(name: str, found: Measurement, at: str | None = None) -> None:
    """Prints it. at: when it began, of one of several."""
    from rich.table import Table

    table = Table("path", "", "capacity", "available", "90 % interval", "delay (min / median)", "error", "loss", "line")
    table.title = f"to {name}" if at is None else f"to {name}, {at}"
    for path in found.paths:
        if path.down:
            table.add_row(path.name, "", f"down: {path.down.said}")
            continue
        for direction, of in path.directions.items():
            delay = of.delay_s
            table.add_row(
                path.name if direction == next(iter(path.directions)) else "",
                direction,
                rate(of.capacity_bps),
                rate(of.available_bps) + (" (fair share)" if of.queue.discipline == "fair" else ""),
                interval(of.available_bps),
                "-"
                if delay.minimum.value is None or delay.median.value is None
                else f"{signed(delay.minimum.value)} / {signed(delay.median.value)}",
                "unknown" if delay.error is None else f"± {seconds(delay.error)}",
                lost(of.loss),
                ", ".join(line(of)),
            )
    show_table(table)
    for path in found.paths:
        for shared in path.shared_with:
            if shared.probability.value is not None and shared.probability.value > 0.5:
                sure = f"{shared.probability.value:.0%}"
                print(f"{path.name} shares its bottleneck {shared.direction} with {shared.path} ({sure} sure)")
    for path in found.paths:
        if path.switches:
            told = ", ".join(f"{one.switch} {one.out_packets} out and {one.in_packets} in" for one in path.switches)
            print(f"packets of {path.name} in the switches: {told}")
    answered = [of for path in found.paths if path.down is None for of in path.directions.values()]
    if any(not of.delay_s.clock.synchronised for of in answered):
        print(
            "The hosts' clocks are not synchronised: delays are relative to an offset found by exchanging stamps, "
            "which takes both directions for equally long; the error is what that may be off."
        )
    print(f"{written(found.probe_bytes)} of probes in {took(found)}, method {found.method}")


def took(found: Measurement) -> str:
    """How long it measured, and how long it waited before that."""
    waited = f" after {seconds(found.queued_s)} in the far end's queue" if found.queued_s else ""
    return seconds(found.elapsed_s - found.queued_s) + waited


def rate(of: Value) -> str:
    """A rate, marked where it is not to be trusted; the reason where there is none."""
    if of.value is None:
        return of.why or "-"
    return bits(of.value) if of.why is None else f"{bits(of.value)} ({of.why})"


def lost(of: Loss) -> str:
    """What the line loses by itself, where that was looked for: probes that fill a queue lose more. Else theirs."""
    share = of.share if of.random.value is None else of.random.value
    return "-" if share is None else f"{share * 100:.2g} %"


def found(of: Value) -> bool:
    """Whether there is any of it: not where its interval begins with none."""
    return bool(of.value) and of.low != 0


def interval(of: Value) -> str:
    """Its bounds, as far as they are known."""
    if of.low is None and of.high is None:
        return "-"
    if of.low is None or of.high is None:
        return f"from {bits(of.low)}" if of.high is None else f"up to {bits(of.high)}"
    return f"{bits(of.low)} to {bits(of.high)}"


def line(of: Direction) -> list[str]:
    """What kind of line it is, in words: what was looked for and found."""
    queue, policer, cross, said = of.queue, of.policer, of.cross, []

    def likely(probability: Value) -> bool:
        return probability.value is not None and probability.value > 0.5

    if likely(queue.fair):
        said.append("a queue a flow")
    if likely(queue.managed):
        said.append("managed queue")
    if queue.depth_s.value is not None:
        said.append(f"queue {seconds(queue.depth_s.value)}")
    elif queue.depth_s.why == "beyond-limit" and queue.depth_s.low is not None:
        said.append(f"queue above {seconds(queue.depth_s.low)}")
    if likely(policer.probability):
        said.append(f"policed {bits(policer.rate_bps.value)}")
    if of.loss.random.value:
        said.append(f"random loss {of.loss.random.value * 100:.2g} %")
    if found(cross.load_bps):
        said.append(f"others {bits(cross.load_bps.value)}")
    if likely(cross.elastic):
        said.append("mostly TCP")
    if cross.tcp_bps.value is not None:
        said.append(f"TCP would get {bits(cross.tcp_bps.value)}")
    if found(of.rate_variation.cv) and (of.rate_variation.cv.value or 0) >= _LEAST_CV:
        said.append(f"rate varies by {of.rate_variation.cv.value:.0%}")
    if of.aggregation_s.value:
        said.append(f"gathers for {seconds(of.aggregation_s.value)}")
    return said


def signed(value: float) -> str:
    """A delay, which an offset's error can make negative."""
    return f"-{seconds(-value)}" if value < 0 else seconds(value)
