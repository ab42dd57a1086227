"""The choices that a forecast tries."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations

from pathcast.forecast.controls import Controls
from pathcast.forecast.twin import Choice

# all subsets of so many paths are tried
MOST_PATHS = 4


def field_of(names: Sequence[str], controls: Controls, shared: Collection[frozenset[str]] = ()) -> list[Choice]:
    """Every subset of up to four paths by every controller, of each the first path the first in `names` (which are the
    best first); of more paths the others alone, and one after the other added to all that are better.

    shared: pairs of paths that probably have one bottleneck.
    """
    few, others = names[:MOST_PATHS], names[MOST_PATHS:]
    subsets = [subset for n in range(1, len(few) + 1) for subset in combinations(few, n)]
    subsets += [(name,) for name in others]
    subsets += [tuple(names[: MOST_PATHS + n]) for n in range(1, len(others) + 1)]
    return [Choice(subset, control) for subset in subsets for control in controls.of(subset, shared)]
