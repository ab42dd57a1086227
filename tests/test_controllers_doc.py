"""docs/controllers.md and controllers.csv say what the register says; run as a program, this file renews them."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

from pathcast import _native

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "controllers.md"
PARAMETERS = DOCUMENT.with_suffix(".csv")
BLOCK = re.compile(r"(<!-- register: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
HOOKS = ("init", "ack", "grow", "ssthresh", "event", "send", "undo", "release")
REGISTER = {row["name"]: row for row in json.loads(_native.controllers())}


def block(row: dict) -> str:
    """What the register says of one controller, without its parameters."""
    hooks = [name for bit, name in enumerate(HOOKS) if row["hooks"] >> bit & 1]
    return (
        f"Kernel name `{row['kernel_name']}`; hooks {', '.join(hooks)}; {row['state_bytes']} bytes of state a flow.\n"
        f"Paper: {row['paper']}.\nBasis: {row['basis']}.\n"
    )


def renewed(text: str) -> str:
    """The document with its blocks as the register has them."""
    seen = [match[2] for match in BLOCK.finditer(text)]
    if sorted(seen) != sorted(REGISTER):
        raise SystemExit(f"docs/controllers.md has blocks of {seen}, the register {list(REGISTER)}")
    return BLOCK.sub(lambda match: match[1] + block(REGISTER[match[2]]) + match[3], text)


def parameters() -> str:
    """Every parameter of every controller, as CSV."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("controller", "parameter", "default", "least", "most", "meaning", "source"))
    for name, row in REGISTER.items():
        for p in row["params"]:
            table.writerow((name, *(p[key] for key in ("name", "default", "least", "most", "text", "source"))))
    return text.getvalue()


def test_the_document_says_what_the_register_says():
    told = "run python tests/test_controllers_doc.py"
    assert renewed(text := DOCUMENT.read_text()) == text, told
    assert PARAMETERS.read_text() == parameters(), told


if __name__ == "__main__":
    DOCUMENT.write_text(renewed(DOCUMENT.read_text()))
    PARAMETERS.write_text(parameters())
