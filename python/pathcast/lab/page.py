"""An experiment's README as one self-contained HTML page: plots inside, a table of contents, links within the page."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from pathcast.results.style import PAGE

if TYPE_CHECKING:
    from markdown_it.token import Token

_IMAGE = re.compile(r'src="([^":]+\.svg)"')
# cells whose columns a line break would lose: numbers, and rows of signs, which want the same width too
_VALUES = re.compile(r"[\W\d_]{1,40}")
_SIGNS = re.compile(r"[\W_]{3,40}")
_CSS = """
th, td { text-align: left; vertical-align: top; padding-right: .8rem } td.values { white-space: nowrap }
td.signs { font-family: monospace }
pre { overflow-x: auto; padding: .6rem .8rem; background: var(--mark); border-radius: 4px }
nav ul { list-style: none; padding: 0; columns: 2; font-size: .92rem }
"""


def page(title: str, text: str, plots: Mapping[str, Path], folder: Path, notice: str | None = None) -> str:
    """The page of a README's text.

    plots: files by the names that the text has for them; others are looked for in `folder`. notice: what must be read
    before anything else.
    """
    from markdown_it import MarkdownIt

    markdown = MarkdownIt("commonmark").enable("table")
    tokens = markdown.parse(text)
    headings = _headings(tokens)
    _cells(tokens)
    for token in tokens:
        if token.children:
            token.children = _links(token.children, {anchor for anchor, *_ in headings})
    body = markdown.renderer.render(tokens, markdown.options, {})

    def inline(match: re.Match[str]) -> str:
        data = base64.b64encode(plots.get(match[1], folder / match[1]).read_bytes()).decode()
        return f'src="data:image/svg+xml;base64,{data}"'

    body = _IMAGE.sub(inline, body)
    body = body.replace("<table>", '<div class="scroll"><table>').replace("</table>", "</table></div>")
    first, end, rest = body.rpartition("</h1>") if body.count("</h1>") == 1 else ("", "", body)
    warning = f'<p class="warning"><strong>{escape(notice)}</strong></p>\n' if notice else ""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(title)}</title><style>{PAGE}{_CSS}</style></head><body>
{warning}{first}{end}
{_contents(headings)}{rest}</body></html>
"""


def _headings(tokens: Sequence[Token]) -> list[tuple[str, str, str]]:
    """Gives every heading the id that GitHub gives it; returns id, tag and text of each."""
    found, seen = [], Counter[str]()
    for token, inline in pairwise(tokens):
        if token.type != "heading_open":
            continue
        text = "".join(child.content for child in inline.children or () if child.type in ("text", "code_inline"))
        anchor = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        seen[anchor] += 1
        if seen[anchor] > 1:
            anchor += f"-{seen[anchor] - 1}"
        token.attrSet("id", anchor)
        found.append((anchor, token.tag, text))
    return found


def _contents(headings: Sequence[tuple[str, str, str]]) -> str:
    parts = [f'<li><a href="#{anchor}">{escape(text)}</a></li>\n' for anchor, tag, text in headings if tag == "h2"]
    return f"<nav><ul>\n{''.join(parts)}</ul></nav>\n" if parts else ""


def _cells(tokens: Sequence[Token]) -> None:
    """Marks cells of values, which stay on one line."""
    for token, inline in pairwise(tokens):
        if token.type == "td_open" and _VALUES.fullmatch(inline.content):
            token.attrJoin("class", "values signs" if _SIGNS.fullmatch(inline.content) else "values")


def _links(children: Sequence[Token], anchors: set[str]) -> list[Token]:
    """Without links to files beside the README, which the page does not have beside it; their text stays."""
    kept, ours = [], True
    for child in children:
        if child.type == "link_open":
            target = str(child.attrGet("href"))
            ours = target.startswith(("http:", "https:")) or (target[:1] == "#" and target[1:] in anchors)
        if ours or child.type not in ("link_open", "link_close"):
            kept.append(child)
    return kept
