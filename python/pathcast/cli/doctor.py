"""`pathcast doctor`: what this machine can do, what is missing and its mend, what pathcast has changed here."""

from __future__ import annotations

import sys

from pathcast.cli.output import Json, print_json, show


def doctor(json: Json = False) -> None:
    """Show what this machine can do, what is missing and its mend, and what pathcast has changed here."""
    from pathcast.runtime import state
    from pathcast.service import doctor as examine

    if not json and sys.stderr.isatty():
        print("looking; how late wake-ups are takes a second or two …", file=sys.stderr)
    checks, changed = examine.run(), examine.changed()
    if json:
        print_json("doctor", {"checks": [vars(c) for c in checks], "changed": changed})
        return
    from rich.table import Table

    colours = {"ok": "green", "degraded": "yellow", "missing": "red"}
    table = Table(show_header=False, box=None)
    for check in checks:
        table.add_row(f"[{colours[check.status]}]{check.status}[/]", check.name, check.detail)
    show(table)
    for check in checks:
        if check.status != "ok":
            print(f"\n{check.name} is {check.status}; it is needed for {check.needed_for}")
            print(f"mend: {check.mend}")
    print()
    roots = state.hidden()
    if roots is not None:
        print(f"what root's commands changed is recorded in {roots}: sudo pathcast doctor")
    elif not changed:
        print("pathcast has changed nothing on this host")
    for part in changed:
        made = ", ".join(name for names in part["made"].values() for name in names) or "nothing else"
        owner = "pinned" if part["pid"] is None else f"process {part['pid']}"
        how = owner if part["alive"] else "left behind; `pathcast undo` removes it"
        print(f"{part['kind']} {part['id']} ({how}): {made}")
