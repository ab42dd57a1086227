"""Scenario files as they are read, with what is set over them; the extension checks them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from pathcast.errors import usage
from pathcast.files import read_file

LARGEST_BYTES = 16 << 20
SHIPPED = Path(__file__).parent / "topologies"


def shipped() -> dict[str, Path]:
    """The topologies that come with pathcast, by name."""
    return {file.stem: file for file in sorted(SHIPPED.glob("*.toml"))}


def find(file: Path | str) -> Path:
    """A file as it is named; where there is none, the shipped topology of that name."""
    path = Path(file)
    return path if path.exists() else shipped().get(str(file), path)


def pair(option: str, item: str) -> tuple[str, str]:
    """`KEY=VALUE` as its two parts."""
    key, equals, value = item.partition("=")
    if not equals or not key.strip():
        raise usage(f"{option} `{item}` is not KEY=VALUE, for example flow.bulk.control=lia")
    return key.strip(), value.strip()


@dataclass(frozen=True)
class Scenario:
    """The text of a scenario file, not yet checked, and what is set over it."""

    text: str
    sets: tuple[tuple[str, str], ...] = ()
    source: str | None = None

    @classmethod
    def load(cls, file: Path | str, sets: Sequence[str] = ()) -> Scenario:
        """Reads a file; `sets` are as `--set` takes them."""
        pairs = tuple(pair("--set", item) for item in sets)
        if str(file) == "-":
            raise usage("a scenario is a file, not the standard input (`-`): others may lie beside it")
        path = find(file)
        try:
            text = read_file(path, LARGEST_BYTES).decode()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            hint = f"give the path of a scenario file (TOML), or the name of a shipped one: {', '.join(shipped())}"
            if (nearest := get_close_matches(path.stem, shipped(), 1)) and nearest[0] != str(file):
                hint = f"did you mean `{nearest[0]}`? {hint}"
            raise usage(f"cannot read the scenario `{file}`: {reason}", hint) from None
        return cls(text, pairs, str(path))

    @property
    def base(self) -> str | None:
        """The directory that files named in it are relative to."""
        return None if self.source is None else str(Path(self.source).absolute().parent)

    def over(self, sets: Sequence[tuple[str, str]]) -> Scenario:
        """The same with more set over it."""
        return Scenario(self.text, (*self.sets, *sets), self.source)
