"""In words what a job waits for over whose lines nothing gets through, what would change that, and how long it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pathcast.plan.terms import LineTerms
from pathcast.units import span

# without a deadline it is waited so long: about as long as the kernel's TCP does (tcp_retries2, RFC 1122 4.2.3.5) [s]
GIVE_UP_S = 900.0


@dataclass(frozen=True)
class Wait:
    """since_s: when the last byte came through; end_s: when the program has to end; since the start. dead: lines that
    do not answer. barred: why others may not be used."""

    since_s: float
    end_s: float
    dead: tuple[str, ...]
    barred: Mapping[str, str]

    def sentence(self, now_s: float, lines: Mapping[str, LineTerms], unheard: Sequence[str] = ()) -> str:
        """`nothing gets through for 5 s: dsl does not answer, cable may not be used (its cap is reached); …`. unheard:
        where nobody has answered yet it may be them, and not the lines."""
        who = f" to {_and(unheard)}" if unheard else ""
        why = f"{_and(self.dead)} {'does' if len(self.dead) == 1 else 'do'} not answer"
        if unheard:
            why = f"no answer over {_and(self.dead)}"
        for name, of in self.barred.items():
            why += f", {name} may not be used ({of})"
        until = [f"{' or '.join(self.dead)} answers"]
        until += [f"{name} may be used in {span(at_s)}" for name in self.barred if (at_s := opens(lines[name], now_s))]
        told = (
            f"nothing gets through{who} for {span(now_s - self.since_s)}: {why}; it waits until {', or '.join(until)}"
        )
        if any(not of.startswith("its hours") for of in self.barred.values()):
            told += ", or is started again with more of a cap, --max or --budget"
        return f"{told}; it ends in {span(max(1.0, self.end_s - now_s))}"


def end_of(now_s: float, deadline_s: float | None) -> float:
    """When a job that waits from now on has to end."""
    return deadline_s if deadline_s is not None and deadline_s > now_s else now_s + GIVE_UP_S


def opens(line: LineTerms, now_s: float) -> float | None:
    """How long until hours or a period of its cap begin [s]; None where none does."""
    begins = [begin_s for begin_s, _ in line.hours or ()] + [period.begin_s for period in line.allowances]
    return min((begin_s - now_s for begin_s in begins if begin_s > now_s), default=None)


def _and(names: Sequence[str]) -> str:
    return " and ".join(names)
