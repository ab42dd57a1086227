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
import io
import json
import os
import platform
import tempfile
import warnings
import zipfile
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
from pathcast.predict.trusted import foreign_types

SCHEMA = "pathcast.model/1"
LARGEST_BYTES = 64 * 1024 * 1024
LEARN_AGAIN = "make it again with `pathcast learn`"
_MARK = b"pathcast.model sha256="
_TAIL = len(_MARK) + 64


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

    meta: whatever JSON can hold. rounds: those that it was trained on, for their hash. Raises ValueError when
    `meta` is no JSON, sklearn's NotFittedError, RoundError, and OSError when the place cannot be written.
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
    _write(Path(path), _encode(text.encode(), model))


def load(path: str | os.PathLike[str]) -> StoredModel:
    """Read what `save` wrote; predictions are equal bit for bit. Raises ModelFileError only."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_BYTES + 1)
    except FileNotFoundError as error:
        raise ModelFileError(path, "there is no such file", "make one with `pathcast learn`") from error
    except OSError as error:
        raise ModelFileError(
            path, f"cannot be read ({error.strerror})", "check the path and its permissions"
        ) from error
    if len(data) > LARGEST_BYTES:
        raise ModelFileError(path, f"is larger than {LARGEST_BYTES} bytes, no model is", "check the path")

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
    """The archive; its comment is the mark and the digest of all bytes before the digest."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("meta.json"), text)
        archive.writestr(zipfile.ZipInfo("model.skops"), model)
        archive.comment = _MARK + b"0" * 64
    body = buffer.getvalue()[:-64]
    return body + hashlib.sha256(body).hexdigest().encode()


def _decode(path: Path, data: bytes) -> tuple[bytes, bytes]:
    """meta.json and model.skops of a file whose digest is right."""
    if data[-_TAIL:-64] != _MARK:
        raise ModelFileError(path, "is no pathcast model, or is cut off", f"check the path, or {LEARN_AGAIN}")
    if hashlib.sha256(data[:-64]).hexdigest().encode() != data[-64:]:
        raise ModelFileError(path, "is damaged: its SHA-256 does not match", f"copy it again, or {LEARN_AGAIN}")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = sorted((item.filename, item.compress_type) for item in archive.infolist())
            if members != [("meta.json", zipfile.ZIP_STORED), ("model.skops", zipfile.ZIP_STORED)]:
                raise ModelFileError(path, f"holds {[name for name, _ in members]}, not a stored model", LEARN_AGAIN)
            return archive.read("meta.json"), archive.read("model.skops")
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise ModelFileError(path, f"is no readable archive ({error})", LEARN_AGAIN) from error


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


def _write(path: Path, data: bytes) -> None:
    """Beside the target, then renamed over it: a reader sees the old file or the new one."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


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
