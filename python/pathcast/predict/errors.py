"""What goes wrong in prediction: each error says what was found and what to do."""

from __future__ import annotations

from pathlib import Path


class PredictError(Exception):
    """Base of the errors of `pathcast.predict`. `hint` says what to do; `code` is the word for JSON
    output."""

    code = "predict"

    def __init__(self, message: str, hint: str):
        super().__init__(f"{message}; {hint}")
        self.message = message
        self.hint = hint


class RoundError(PredictError, ValueError):
    """A round of measurements that no predictor can use. Also a ValueError."""

    code = "round"


class ModelFileError(PredictError):
    """A model file that is missing, damaged, foreign, of another schema, or holds a type that is not
    trusted."""

    code = "model-file"

    def __init__(self, path: str | Path, problem: str, hint: str):
        super().__init__(f"model file {str(path)!r}: {problem}", hint)
        self.path = Path(path)
        self.problem = problem
