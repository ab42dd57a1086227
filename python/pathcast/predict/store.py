"""Models in files: no pickle, no unknown type, no undetected damage.

One file is a zip archive of two members: `model.skops`, the fitted estimators, and `meta.json`, everything
that is no estimator. The archive's comment ends with the SHA-256 of every byte before it, so that any changed
byte is found. The digest finds accidents, not forgery; what a forged file may build is bounded by the list in
`trusted.py`.

meta.json, schema "pathcast.model/1":
    schema      "pathcast.model/1"
    predictor   class, parameters, and the learned values that are plain numbers
    training    sha256 of the canonical rounds, and how many
    versions    pathcast, python, numpy, scikit-learn, skops that fitted the model
    meta        what the caller gave: paths, bytes, world, ...
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import skops
import skops.io

from pathcast.predict.errors import ModelFileError
from pathcast.predict.features import Round, as_rounds
from pathcast.predict.packing import Packable, pack, unpack
from pathcast.predict.sealed import LEARN_AGAIN, read, seal, unseal, write
from pathcast.predict.trusted import foreign_types

SCHEMA = "pathcast.model/1"


@dataclass(frozen=True)
class StoredModel:
    """What `load` returns. warnings: sentences for the user, such as another version of scikit-learn."""

    predictor: Packable
    meta: dict[str, Any]
    training_sha256: str
    training_rounds: int
    versions: dict[str, str]
    warnings: list[str] = field(default_factory=list)


def training_hash(rounds: Iterable[Round | Mapping[str, Any]]) -> str:
    """SHA-256, in hex, of the checked rounds in order, as JSON with sorted keys. Raises RoundError."""
    return _hash_rounds(as_rounds(rounds))


def save(
    path: str | os.PathLike[str],
    predictor: Packable,
    meta: Mapping[str, Any] | None = None,
    *,
    rounds: Iterable[Round | Mapping[str, Any]],
) -> None:
    """Write a fitted predictor or PathChoice to `path`, whole or not at all.

    Raises what `dumps` raises, and OSError when the place cannot be written.
    """
    write(Path(path), dumps(predictor, meta, rounds=rounds))


def dumps(
    predictor: Packable, meta: Mapping[str, Any] | None = None, *, rounds: Iterable[Round | Mapping[str, Any]]
) -> bytes:
    """The bytes that `save` writes.

    meta: whatever JSON can hold. rounds: those that it was trained on, for their hash. Raises ValueError when
    `meta` is no JSON, sklearn's NotFittedError, and RoundError.
    """
    checked = as_rounds(rounds)
    spec, estimators = pack(predictor)
    model = skops.io.dumps(estimators)
    foreign = foreign_types(model)
    if foreign:
        raise ValueError(f"{type(predictor).__name__} holds types that would not be loaded again: {', '.join(foreign)}")
    document = {
        "schema": SCHEMA,
        "predictor": spec,
        "training": {"sha256": _hash_rounds(checked), "rounds": len(checked)},
        "versions": _versions(),
        "meta": dict(meta or {}),
    }
    try:
        text = json.dumps(document, indent=1, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"meta or parameters cannot be written as JSON: {error}") from error
    return _encode(text.encode(), model)


def load(path: str | os.PathLike[str]) -> StoredModel:
    """Read what `save` wrote; predictions are equal bit for bit. Raises ModelFileError only."""
    return loads(read(Path(path)), path)


def loads(data: bytes, path: str | os.PathLike[str]) -> StoredModel:
    """Read what `dumps` made; `path` names it in errors. Raises ModelFileError only."""
    path = Path(path)
    text, model = _decode(path, data)
    document = _document(path, text)
    try:
        foreign = foreign_types(model)
    except ValueError as error:
        raise ModelFileError(path, f"model.skops is {error}", LEARN_AGAIN) from error
    if foreign:
        raise ModelFileError(
            path, f"holds types that are not trusted: {', '.join(foreign)}", f"do not use it; {LEARN_AGAIN}"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sklearn.exceptions.InconsistentVersionWarning)
            estimators = skops.io.loads(model, trusted=[])
            predictor = unpack(document["predictor"], estimators)
    except Exception as error:  # whatever a foreign state makes of the libraries, the answer is the same
        raise ModelFileError(path, f"cannot be rebuilt ({type(error).__name__}: {error})", LEARN_AGAIN) from error
    return StoredModel(
        predictor=predictor,
        meta=document["meta"],
        training_sha256=document["training"]["sha256"],
        training_rounds=document["training"]["rounds"],
        versions=document["versions"],
        warnings=_version_warnings(document["versions"]),
    )


def _encode(text: bytes, model: bytes) -> bytes:
    return seal({"meta.json": text, "model.skops": model}, "model")


def _decode(path: Path, data: bytes) -> tuple[bytes, bytes]:
    """meta.json and model.skops of a file whose digest is right."""
    members = unseal(path, data, "model")
    if set(members) != {"meta.json", "model.skops"}:
        raise ModelFileError(path, f"holds {sorted(members)}, not a stored model", LEARN_AGAIN)
    return members["meta.json"], members["model.skops"]


def _document(path: Path, text: bytes) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ModelFileError(path, f"meta.json is no JSON ({error})", LEARN_AGAIN) from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        raise ModelFileError(
            path,
            f"has schema {schema!r}, this version reads {SCHEMA!r}",
            f"use the version that wrote it, or {LEARN_AGAIN}",
        )
    training = document.get("training")
    whole = (
        all(isinstance(document.get(key), dict) for key in ("predictor", "training", "versions", "meta"))
        and isinstance(training.get("sha256"), str)
        and isinstance(training.get("rounds"), int)
    )
    if not whole:
        raise ModelFileError(path, "meta.json lacks a part that the schema asks for", LEARN_AGAIN)
    return document


def _hash_rounds(rounds: list[Round]) -> str:
    canonical = [
        {
            "probes_bps": list(item.probes_bps),
            "actual_bps": item.actual_bps,
            "mptcp_probe_bps": item.mptcp_probe_bps,
            "tcp_bps": None if item.tcp_bps is None else list(item.tcp_bps),
            "subset_bps": [[list(paths), bps] for paths, bps in sorted(item.subset_bps.items())],
        }
        for item in rounds
    ]
    text = json.dumps(canonical, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _versions() -> dict[str, str]:
    try:
        own = version("pathcast")
    except PackageNotFoundError:  # run from a source tree
        own = "unknown"
    return {
        "pathcast": own,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "skops": skops.__version__,
    }


def _version_warnings(versions: Mapping[str, str]) -> list[str]:
    stored = versions.get("scikit-learn")
    if stored == sklearn.__version__:
        return []
    return [
        f"the model was fitted with scikit-learn {stored}, this is {sklearn.__version__}:"
        f" predictions may differ; to be sure, {LEARN_AGAIN}"
    ]
