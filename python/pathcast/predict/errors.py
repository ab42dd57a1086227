"""What goes wrong in prediction: each error says what was found and what to do."""

from __future__ import annotations

from pathlib import Path

from pathcast.errors import Exit, PathcastError


class PredictError(PathcastError):
    """Base of the errors of `pathcast.predict`; always has a hint."""


class RoundError(PredictError, ValueError):
    """A round of measurements that no predictor can use. Also a ValueError."""

    def __init__(self, message: str, hint: str):
        super().__init__("round", message, hint, Exit.RUNTIME)


class ModelFileError(PredictError):
    """A model file that is missing, damaged, foreign, of another schema, or holds an untrusted type."""

    def __init__(self, path: str | Path, problem: str, hint: str):
        super().__init__("model-file", f"model file {str(path)!r}: {problem}", hint, Exit.USAGE)
        self.path = Path(path)
        self.problem = problem
