"""An experiment's tables, plots and verdicts: renewed inside its README.md, and as one self-contained HTML page.

README.md is the experiment's text. What stands between `<!-- lab: WORLD claims -->` (or `run`, `table NAME`,
`data NAME`, `figure NAME`) and `<!-- end -->` is made from the results of that world. `data` is a table that is too
long for a README: there it is a line that names its file, data/WORLD-NAME.csv; on the page it is the table.
`claims brief` are the verdicts without what is claimed, which the table of another world says; `claims counted` are
those that count, where `data claims` have the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pathcast.errors import usage
from pathcast.lab.experiment import Experiment, Results, Table
from pathcast.lab.page import page
from pathcast.lab.tally import VERDICTS, below, full, short, told
from pathcast.results.rundir import RunDir
from pathcast.results.style import style

_BLOCK = re.compile(r"(<!-- lab: (\w+) (\w+)(?: ([\w-]+))? -->\n)(.*?)(<!-- end -->)", re.DOTALL)


# the tables of an experiment's results, and what draws its figures
Shown = tuple[dict[str, Table], dict[str, Callable[[Results], Any]]]
# hears what is being made
Say = Callable[[str], None]


def write(
    experiment: Experiment,
    results: Results,
    document: Mapping[str, Any],
    run: Mapping[str, Any],
    directory: RunDir,
    made: Shown | None = None,
    say: Say = lambda _: None,
) -> Path:
    """Writes tables (CSV), plots (SVG, PNG) and `index.html` into the run's directory; returns the page.

    made: what `shown` gave, which is not computed again then; as below.
    """
    tables, figures = made or shown(experiment, results, say)
    for name, (header, rows) in {**tables, "claims": _everything(document["claims"])}.items():
        directory.table(name, header, rows)
    files = {}
    with style():
        for name, draw in figures.items():
            say(f"figure {name}")
            files[_plot(results.world, name)] = directory.figure(name, _drawn(experiment, draw, results))[0]
    blocks = _blocks(results, document, run, tables, figures)
    text = _filled(experiment, results.world, blocks)
    text += _others(experiment, results.world, text, blocks)
    text += f"\n## The claims in full\n\n{full(document['claims'])}"
    html = page(experiment.plan.title, text, files, experiment.directory, _notice(results))
    return directory.text("index.html", html)


def renew(
    experiment: Experiment,
    results: Results,
    document: Mapping[str, Any],
    run: Mapping[str, Any],
    made: Shown | None = None,
    say: Say = lambda _: None,
) -> list[Path]:
    """Renews README.md, `plots/` and the tables in `data/` of the experiment's folder; returns what was written.

    Raises PathcastError (exit 2) for results of a quick run: what stands there is of the whole.
    """
    if results.quick:
        whole = f"pathcast lab run {experiment.name} --world {results.world}"
        raise usage("--readme: these results are of a quick run, README.md is of the whole", f"first {whole}")
    tables, figures = made or shown(experiment, results, say)
    blocks = _blocks(results, document, run, tables, figures)
    long = {**tables, "claims": _everything(document["claims"])}
    blocks |= {("data", name): _named(results.world, name, len(rows)) for name, (_, rows) in long.items()}
    text = _filled(experiment, results.world, blocks)
    files = []
    for name, table in long.items():
        if f"]({_csv(results.world, name)})" in text:
            files.append(RunDir(experiment.directory / "data").table(f"{results.world}-{name}", *table))
    plots = RunDir(experiment.directory / "plots")
    with style():
        for name, draw in figures.items():
            if _plot(results.world, name) not in text:
                continue
            say(f"figure {name} of README.md")
            svg, png = plots.figure(f"{results.world}-{name}", _drawn(experiment, draw, results))
            png.unlink()
            files.append(svg)
    return [RunDir(experiment.directory).text("README.md", text), *files]


def tables(
    experiment: Experiment, results: Results, names: Sequence[str], made: Shown | None = None
) -> dict[str, list[Sequence[str]]]:
    """Tables by name, header first; `all` stands for every one. Raises PathcastError (exit 2) for another name."""
    if not names:
        return {}
    there, _ = made or shown(experiment, results)
    if unknown := [name for name in names if name not in there and name != "all"]:
        raise usage(f"--table {unknown[0]}: there is no such table; allowed: all, {', '.join(there)}")
    return {name: [header, *rows] for name, (header, rows) in there.items() if name in names or "all" in names}


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as documents have it."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def shown(experiment: Experiment, results: Results, say: Say = lambda _: None) -> Shown:
    """The tables of these results, and what draws their figures: to be made once, and given to what writes them."""
    show = experiment.module("show")
    only = getattr(show, "ONLY", {})
    tables, figures = (
        {name: make for name, make in all_of.items() if only.get(name, results.world) == results.world}
        for all_of in (show.TABLES, show.FIGURES)
    )
    made: dict[str, Table] = {}
    with experiment.blamed():
        for name, make in tables.items():
            say(f"table {name}")
            made[name] = make(results)
    return made, figures


def _drawn(experiment: Experiment, draw: Callable[[Results], Any], results: Results) -> Any:
    with experiment.blamed():
        return draw(results)


def _notice(results: Results) -> str | None:
    if not results.quick:
        return None
    whole = sum(1 for _ in results.plan.points(results.world))
    return (
        f"A quick run: tables and plots of world {results.world} are of a part of the plan, "
        f"{len(results.rows):,} of {whole:,} samples, while the text is about the whole run and need not fit them."
    )


def _blocks(
    results: Results,
    document: Mapping[str, Any],
    run: Mapping[str, Any],
    tables: Mapping[str, Table],
    figures: Iterable[str],
) -> dict[tuple[str, str | None], str]:
    """Markdown by kind and name."""
    every = document["claims"]
    counted = [one for one in every if one["uncounted"] is None]
    claims = {
        name: (markdown(*short(of, results.plan.reconstruction, statements=name != "brief")), below(of))
        for name, of in ((None, every), ("brief", every), ("counted", counted))
    }
    kernels = ", ".join(run.get("kernels", ()))
    about = (
        f"{document['samples']} samples in world `{results.world}`{' (a part of the plan)' if results.quick else ''}, "
        f"{document['failed']} failed; pathcast {run['versions'].get('pathcast', 'of a checkout')}, "
        f"code `{run['code']}`{f', kernel {kernels}' if kernels else ''}.\n"
    )
    found: dict[tuple[str, str | None], str] = {
        ("run", None): about,
        ("data", "claims"): "",  # the page has every claim in full at its end
    }
    for name, (table, more) in claims.items():
        found["claims", name] = f"{told(every)}.\n\n{table}" + (f"\n{more}" if more else "")
    shown = {name: markdown(*table) for name, table in tables.items()}
    found |= {(kind, name): text for kind in ("table", "data") for name, text in shown.items()}
    return found | {("figure", name): f"![{name}]({_plot(results.world, name)})\n" for name in figures}


def _everything(claims: Sequence[Mapping[str, Any]]) -> Table:
    """Every claim with all that the document says of it."""
    keys = list(claims[0]) if claims else []
    told = [{**one, "details": "\n".join(one["details"]), "holds": VERDICTS[one["holds"]]} for one in claims]
    return keys, [[one[key] or "" for key in keys] for one in told]


def _others(experiment: Experiment, world: str, text: str, blocks: Mapping[tuple[str, str | None], str]) -> str:
    """The tables and plots of a world that the README has no place for."""
    show = experiment.module("show")
    found = (match.group(2, 3, 4) for match in _BLOCK.finditer(text))
    there = {("table" if kind == "data" else kind, name) for of, kind, name in found if of == world}
    parts = []
    for (kind, name), block in blocks.items():
        if name is not None and kind in ("table", "figure") and (kind, name) not in there:
            makes = (show.TABLES if kind == "table" else show.FIGURES)[name]
            parts.append(f"### {name}\n\n{_about(makes)}\n\n{block}")
    return "\n## Other tables and plots\n\n" + "\n".join(parts) if parts else ""


def _about(makes: Callable[[Results], Any]) -> str:
    """The first paragraph of its docstring."""
    return (getattr(makes, "__doc__", None) or "").split("\n\n")[0].strip()


def _plot(world: str, name: str) -> str:
    """How the README calls a plot."""
    return f"plots/{world}-{name}.svg"


def _csv(world: str, name: str) -> str:
    """How the README calls a table's file."""
    return f"data/{world}-{name}.csv"


def _named(world: str, name: str, rows: int) -> str:
    return f"[{_csv(world, name)}]({_csv(world, name)}): {rows} row{'' if rows == 1 else 's'}.\n"


def _filled(experiment: Experiment, world: str, blocks: Mapping[tuple[str, str | None], str]) -> str:
    """The README with the blocks of `world` renewed; an experiment without one gets all blocks under its title."""
    readme = experiment.directory / "README.md"
    if readme.exists():
        text = readme.read_text(encoding="utf-8")
    else:
        once = (block for block in blocks if block[0] != "data" and block[1:] not in (("brief",), ("counted",)))
        names = (" ".join(filter(None, (world, *block))) for block in once)
        every = (f"<!-- lab: {name} -->\n<!-- end -->" for name in names)
        text = "\n\n".join((f"# {experiment.plan.title}", experiment.plan.paper, *every)) + "\n"

    def fill(match: re.Match[str]) -> str:
        start, of, kind, name, old, end = match.groups()
        if of != world:
            return start + old + end
        if (kind, name) not in blocks:
            raise usage(f"{readme}: there is no `{' '.join(filter(None, (kind, name)))}` to put there")
        return f"{start}\n{blocks[kind, name]}\n{end}"

    return _BLOCK.sub(fill, text)
