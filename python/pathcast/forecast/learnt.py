"""A choice's draws after its lesson, and what people are told of it."""

from __future__ import annotations

from dataclasses import replace

from pathcast.forecast.lessons import Lesson
from pathcast.forecast.race import Runner
from pathcast.units import span


def learn(runner: Runner, lesson: Lesson) -> None:
    """Changes the durations of a choice's draws as its lesson has it."""
    durations, runner.compared, runner.told = lesson.told(runner.durations_s())
    runner.error = lesson.error
    runner.outcomes = [
        one if one is None else replace(one, duration_s=duration)
        for one, duration in zip(runner.outcomes, durations, strict=True)
    ]


def taught(runner: Runner, lesson: Lesson) -> list[str]:
    """What is to be said of the history's part."""
    told, called = [], f"{' and '.join(runner.choice.paths)} with {runner.choice.control}"
    way = runner.told.get("by")
    if way == "past":
        number = f"{lesson.transfers} equal transfers" if lesson.transfers > 1 else "an equal transfer"
        ago = (
            ""
            if lesson.newest_s is None
            else f", {'the last ' if lesson.transfers > 1 else ''}{span(lesson.newest_s)} ago"
        )
        told.append(f"{called} is taken to be as fast as {number}{ago}")
    elif way == "corrected" and abs(lesson.factor - 1) >= 0.01:
        more = f"{lesson.factor - 1:.0%} longer" if lesson.factor > 1 else f"{1 - lesson.factor:.0%} shorter"
        told.append(f"{called} is taken to last {more} than the lines alone would say, as earlier transfers did")
    scale = runner.told.get("scale", 1.0)
    if abs(scale - 1) >= 0.05:
        ends = f"{scale:.2g} times as wide, since earlier forecasts here were too sure"
        if scale < 1:
            ends = f"{1 - scale:.0%} narrower, since earlier forecasts here were surer than they said"
        told.append(f"the interval is {ends}")
    return told
