"""Parts of self-contained pages: tables and pictures in them."""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any


def table(
    header: Sequence[str], rows: Iterable[Sequence[Any]], marked: int | None = None, words: Collection[str] = ()
) -> str:
    """A table, one row of which may be marked; all text is shown as it is. words: columns of class `words`."""
    of = [" class=words" if h in words else "" for h in header]
    head = "".join(f"<th{kind}>{escape(h)}</th>" for h, kind in zip(header, of, strict=True))
    body = "".join(
        f"<tr{' class=mark' if i == marked else ''}>"
        + "".join(f"<td{kind}>{escape(str(c))}</td>" for c, kind in zip(row, of, strict=True))
        + "</tr>"
        for i, row in enumerate(rows)
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def image(file: Path, text: str) -> str:
    """An SVG file as a part of the page."""
    data = base64.b64encode(file.read_bytes()).decode()
    return f'<p><img alt="{escape(text)}" src="data:image/svg+xml;base64,{data}"></p>'
