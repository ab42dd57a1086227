"""Which congestion controllers a forecast tries."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pathcast.control.kernel import register
from pathcast.errors import missing, usage

AUTO = "auto"
# those that give way to all others
BACKGROUND = ("nice", "lp", "ledbatpp", "imtcp_bg", "gleaner")
# over one path; over several, those that are together no more aggressive than one TCP, where they share a bottleneck
_SINGLE, _COUPLED = ("cubic", "reno"), ("lia", "olia", "balia")
# they do not yield to losses as cubic does
_AGGRESSIVE = ("bbr3",)
_UNCOUPLED = (*_SINGLE, *_AGGRESSIVE)


@dataclass(frozen=True)
class Controls:
    """Those for one path, and those for several.

    careful: over paths that may share their bottleneck none that takes a share there for each of them.
    """

    single: tuple[str, ...]
    several: tuple[str, ...]
    careful: bool = False

    def of(self, paths: Collection[str], shared: Collection[frozenset[str]] = ()) -> tuple[str, ...]:
        """Those to try over these paths; `shared`: pairs of paths of which it is probable."""
        if len(paths) == 1:
            return self.single
        coupled = tuple(name for name in self.several if name not in _UNCOUPLED)
        return coupled if self.careful and coupled and any(pair <= set(paths) for pair in shared) else self.several


def controls(
    named: Sequence[str], here: Collection[str], background: bool = False, aggressive: bool = False
) -> Controls:
    """What was named, or, of `auto`, what is here and not more aggressive toward others than cubic.

    Over one path a coupled controller is Reno, and is not tried. Raises exit 2 for one that cannot be simulated or does
    not go with the others, 5 where nothing of the kind is here.
    """
    known = [one["name"] for one in register()]
    for name in named:
        if name not in (*known, AUTO):
            raise usage(f"--control `{name}`: allowed are {AUTO}, {', '.join(known)}")
    if len(set(named)) < len(named) or (AUTO in named and len(named) > 1):
        raise usage(f"--control {','.join(named)}: name each once, or {AUTO} alone")
    automatic = AUTO in named
    if background and not automatic:
        raise usage(f"--background chooses the controllers; --control {','.join(named)} does not go with it")
    if aggressive and (background or not automatic):
        raise usage("--aggressive goes with --control auto, which else leaves out what is more aggressive than cubic")
    if not automatic:
        return Controls(tuple(named), tuple(named))
    if background:
        quiet = _present(BACKGROUND, here)
        return Controls(quiet, quiet)
    more = tuple(name for name in _AGGRESSIVE if aggressive and name in here)
    single = _present(_SINGLE, here)[:1]
    several = single + tuple(name for name in _COUPLED if name in here) + more
    return Controls(single + more, several, careful=not aggressive)


def _present(wanted: Sequence[str], here: Collection[str]) -> tuple[str, ...]:
    found = tuple(name for name in wanted if name in here)
    if not found:
        raise missing(f"none of {', '.join(wanted)} is in this kernel, nor can it be loaded", "see `pathcast doctor`")
    return found
