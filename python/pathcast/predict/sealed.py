"""Files that find their own damage: a zip archive whose comment ends with the SHA-256 of every byte before it.

The digest finds accidents, not forgery. Writing is atomic: a reader sees the old file or the new one.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from pathcast.predict.errors import ModelFileError

LARGEST_BYTES = 64 * 1024 * 1024
LEARN_AGAIN = "make it again with `pathcast learn`"


def seal(members: Mapping[str, bytes], kind: str) -> bytes:
    """The archive of `members`, not compressed; its comment is the mark of its kind and the digest of all before it."""
    mark = _mark(kind)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)
        archive.comment = mark + b"0" * 64
    body = buffer.getvalue()[:-64]
    return body + hashlib.sha256(body).hexdigest().encode()


def unseal(path: Path, data: bytes, kind: str) -> dict[str, bytes]:
    """The members of what `seal` made. `path` names it in errors. Raises ModelFileError."""
    mark = _mark(kind)
    if data[-len(mark) - 64 : -64] != mark:
        raise ModelFileError(path, "is no pathcast model, or is cut off", f"check the path, or {LEARN_AGAIN}")
    if hashlib.sha256(data[:-64]).hexdigest().encode() != data[-64:]:
        raise ModelFileError(path, "is damaged: its SHA-256 does not match", f"copy it again, or {LEARN_AGAIN}")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = [item.filename for item in archive.infolist()]
            if len(set(names)) < len(names) or any(i.compress_type != zipfile.ZIP_STORED for i in archive.infolist()):
                raise ModelFileError(path, f"holds {sorted(names)}, not a stored model", LEARN_AGAIN)
            return {name: archive.read(name) for name in names}
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise ModelFileError(path, f"is no readable archive ({error})", LEARN_AGAIN) from error


def read(path: Path) -> bytes:
    """The bytes of a file. Raises ModelFileError where there is none, or none of that size is a model."""
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
    return data


def write(path: Path, data: bytes) -> None:
    """Beside the target, then renamed over it. Raises OSError when the place cannot be written."""
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


def _mark(kind: str) -> bytes:
    return f"pathcast.{kind} sha256=".encode()
