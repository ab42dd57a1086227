"""What goes wrong in prediction: the error says what was found and what to do."""

from __future__ import annotations

from pathcast.errors import Exit, PathcastError


class RoundError(PathcastError, ValueError):
    """A round of measurements that no predictor can use. Also a ValueError."""

    def __init__(self, message: str, hint: str):
        super().__init__("round", message, hint, Exit.RUNTIME)
