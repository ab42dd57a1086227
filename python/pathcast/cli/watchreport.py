"""`pathcast watch report`: some weeks as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from pathcast.cli.history import Url, shown_place
from pathcast.cli.progress import busy
from pathcast.errors import need, usage

REPORT = "report"
_WEEK_S = 7 * 86_400.0


def report(
    html: Annotated[Path, typer.Option(metavar="FILE", help="Where the page goes.", show_default=False)],
    weeks: Annotated[int, typer.Option(min=1, max=520, help="Of the last so many weeks.")] = 4,
    history: Url = None,
) -> None:
    """Write a page of how every line was: degraded, away, worst hours, alerts, forecasts against what came, bytes."""
    from pathcast.web.facts import Facts
    from pathcast.web.report import gathered, page

    if html.is_dir() or not html.parent.is_dir():
        why = "a directory" if html.is_dir() else f"in no directory: there is no `{html.parent}`"
        raise usage(f"--html `{html}` is {why}", "allowed is a file, for example report.html")
    place = shown_place(history)
    need("matplotlib")
    with busy("gathering and drawing"):
        found = gathered(Facts(place), weeks * _WEEK_S)
        text = page(found)
    try:
        html.write_text(text, encoding="utf-8")
    except OSError as error:
        raise usage(f"cannot write `{html}`: {error.strerror}") from None
    print(f"{html}: {weeks} {'week' if weeks == 1 else 'weeks'}")
    for sentence in found.sentences():
        print(sentence)


class WithReport(TyperCommand):
    """`watch`, which hands over to `report` where that is its first word; `report:PORT` and `-- report` are hosts."""

    @property
    def commands(self) -> dict[str, Any]:
        """As a group has them, for the manual."""
        return {REPORT: self._report()}

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        if args[:1] != [REPORT]:
            return super().make_context(info_name, args, parent, **extra)
        # without the arguments of `watch`, which usage lines would show before `report`
        above = self.context_class(TyperCommand(self.name), info_name=info_name, parent=parent)
        return self._report().make_context(REPORT, args[1:], above, **extra)

    @staticmethod
    def _report() -> Any:
        from typer.main import get_command

        app = typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
        app.command(REPORT)(report)
        return get_command(app)


def first(context: typer.Context, incomplete: str) -> list[str]:
    """For a shell: what the first word may be beside a host."""
    return [REPORT] if REPORT.startswith(incomplete) and not context.params.get("hosts") else []
