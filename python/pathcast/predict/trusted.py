"""The types that a model file may hold, and no others.

skops trusts every estimator of scikit-learn by default. A stored predictor needs ten types, so the file's
own list of types is held against this one before anything is built from it.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

TYPES = frozenset(
    {
        "builtins.dict",
        "builtins.list",
        "builtins.str",  # skops writes every plain JSON value under this name
        "builtins.tuple",
        "numpy.float64",  # as a dtype's name
        "numpy.ndarray",
        "sklearn.compose._target.TransformedTargetRegressor",
        "sklearn.pipeline.Pipeline",
        "sklearn.preprocessing._data.StandardScaler",
        "sklearn.svm._classes.SVR",
    }
)
LOADERS = frozenset({"DictNode", "JsonNode", "ListNode", "NdArrayNode", "ObjectNode", "TupleNode", "TypeNode"})
"""How skops may build them: the loader stands in the file beside the type, so it is checked as well."""


def foreign_types(model: bytes) -> list[str]:
    """What a skops file names beyond `TYPES` and `LOADERS`, sorted. Raises ValueError on another file."""
    try:
        with zipfile.ZipFile(io.BytesIO(model)) as archive:
            schema = json.loads(archive.read("schema.json"))
    except (zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        raise ValueError(f"not a skops file ({error})") from error
    return sorted(_types(schema) - TYPES - {f"loader {name}" for name in LOADERS})


def _types(node: Any) -> set[str]:
    """Every "module.class" and "loader name" in a skops schema, wherever it stands."""
    found: set[str] = set()
    waiting = [node]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            if "__class__" in item:
                found.add(f"{item.get('__module__')}.{item['__class__']}")
            if "__loader__" in item:
                found.add(f"loader {item['__loader__']}")
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
    return found
