"""What was meant by a word that is not known: the allowed one that is nearest to it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

# how refusals tell what is allowed: after the word itself, to the end
_ALLOWED = re.compile(r"`([^`\s]+)`[^`]*?(?:allowed(?: are)?|it has|there are|there is|lines are):?\s+(.+)$", re.DOTALL)


def closest(word: str, words: Iterable[str]) -> str | None:
    """The nearest of `words`; None where none is near."""
    found = get_close_matches(word, list(words), 1, 0.6)
    return found[0] if found else None


def meant(message: str) -> str | None:
    """Of a refusal that names a word and then the allowed ones: the one that is nearest to it."""
    if (found := _ALLOWED.search(message)) is None:
        return None
    words = [word.strip("`.;()") for word in re.split(r"[,\s]+", found[2])]
    # an example of a time is not near to another time
    return closest(found[1], [word for word in words if len(word) > 1 and ":" not in word and word != found[1]])
