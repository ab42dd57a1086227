"""What was meant by a word that is not known: the allowed one that is nearest to it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

import typer

from pathcast.errors import PathcastError, usage

# how refusals tell what is allowed: after the word itself, to the end
_ALLOWED = re.compile(
    r"`([^`\s]+)`[^`]*?(?:(?:allowed are|it has|there are|there is|lines are):?|allowed:)\s+(.+)$", re.DOTALL
)


def closest(word: str, words: Iterable[str]) -> str | None:
    """The nearest of `words`; None where none is near."""
    found = get_close_matches(word, list(words), 1, 0.6)
    return found[0] if found else None


def no_option(word: str, context: typer.Context) -> PathcastError:
    """Of a command before whose program stands what is no option of ours, and no program either."""
    verb = context.command_path.removeprefix("pathcast ")
    ours = [one for parameter in context.command.params for one in parameter.opts if one.startswith("--")]
    nearest = closest(name := word.partition("=")[0], ours)
    hint = f"did you mean `{nearest}`? " if nearest else ""
    return usage(f"{verb}: there is no option `{name}`", f"{hint}options of the program stand after its name")


def meant(message: str) -> str | None:
    """Of a refusal that names a word and then the allowed ones: the one that is nearest to it."""
    if (found := _ALLOWED.search(message)) is None:
        return None
    words = [word.strip("`.;()") for word in re.split(r"[,\s]+", found[2])]
    # an example of a time is not near to another time
    return closest(found[1], [word for word in words if len(word) > 1 and ":" not in word and word != found[1]])
