"""The traces of a simulation as tables with names in place of indices, ready for Parquet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pathcast.simulation.run import Traces

# most subflows of a flow
_SUBFLOWS = 8
# a threshold that was never set
INFINITE = 0x7FFFFFFF


def tables(document: Mapping[str, Any], traces: Traces) -> dict[str, Any]:
    """Arrow tables by name: `windows`, `queues`, `drops`.

    The traces count flows, subflows and directions of links from 0 in the order of the report; here flows, paths and
    links have their names, subflows are counted from 1, and a threshold that was never set is null.
    """
    import pyarrow as pa

    flows = [flow["name"] for flow in document["flows"]]
    links = [link["name"] for link in document["links"]]
    directions = [link["direction"] for link in document["links"]]
    paths = list(dict.fromkeys(sub["path"] for flow in document["flows"] for sub in flow["subflows"]))
    found = {}
    for name, columns in traces.items():
        made: dict[str, Any] = {}
        for column, values in columns.items():
            if column == "flow":
                made["flow"] = _named(values, flows)
            elif column == "link":
                made["link"] = _named(values, links)
                made["direction"] = _named(values, directions)
            elif column == "subflow":
                made["subflow"] = pa.array(values + 1)
                made["path"] = _named(_paths(document, columns["flow"], values, paths), paths)
            elif column == "ssthresh_packets":
                made[column] = pa.array(values, mask=values >= INFINITE)
            else:
                made[column] = pa.array(values)
        found[name] = pa.table(made)
    return found


def _named(indices: Any, names: Sequence[str]) -> Any:
    """A column of names, each stored once; one name may stand for several indices."""
    import numpy as np
    import pyarrow as pa

    once = list(dict.fromkeys(names))
    lookup = np.array([once.index(name) for name in names] or [0], "i4")
    return pa.DictionaryArray.from_arrays(pa.array(lookup[indices]), pa.array(once, pa.string()))


def _paths(document: Mapping[str, Any], flow: Any, subflow: Any, paths: Sequence[str]) -> Any:
    """The path of each row by its index in `paths`."""
    import numpy as np

    of = np.zeros((max(1, len(document["flows"])), _SUBFLOWS), "i8")
    for i, one in enumerate(document["flows"]):
        for j, sub in enumerate(one["subflows"]):
            of[i, j] = paths.index(sub["path"])
    return of[flow, subflow]
