"""docs/controllers.md says of each controller what the register says; run as a program, this file renews it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from pathcast import _native

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "controllers.md"
BLOCK = re.compile(r"(<!-- register: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
HOOKS = ("init", "ack", "grow", "ssthresh", "event", "send", "undo", "release")


def block(row: dict) -> str:
    """One controller's rows of the register."""
    hooks = [name for bit, name in enumerate(HOOKS) if row["hooks"] >> bit & 1]
    lines = [
        f"Kernel name `{row['kernel_name']}`; hooks {', '.join(hooks)}; {row['state_bytes']} bytes of state a flow.",
        f"Paper: {row['paper']}.",
        f"Basis: {row['basis']}.",
        "",
        "| parameter | default | range | meaning | source |",
        "|---|---|---|---|---|",
    ]
    for p in row["params"]:
        lines.append(f"| `{p['name']}` | {p['default']} | {p['least']} to {p['most']} | {p['text']} | {p['source']} |")
    return "\n".join(lines) + "\n"


def renewed(text: str) -> str:
    """The document with its blocks as the register has them."""
    register = {row["name"]: row for row in json.loads(_native.controllers())}
    seen = [match[2] for match in BLOCK.finditer(text)]
    if sorted(seen) != sorted(register):
        raise SystemExit(f"docs/controllers.md has blocks of {seen}, the register {list(register)}")
    return BLOCK.sub(lambda match: match[1] + block(register[match[2]]) + match[3], text)


def test_the_document_says_what_the_register_says():
    text = DOCUMENT.read_text()
    assert renewed(text) == text, "run python tests/test_controllers_doc.py"


if __name__ == "__main__":
    DOCUMENT.write_text(renewed(DOCUMENT.read_text()))
