"""The commands by name."""

from __future__ import annotations

from typing import Annotated

import typer

from pathcast.cli import (
    completion,
    control,
    demo,
    doctor,
    history,
    job,
    lab,
    learn,
    line,
    man,
    measure,
    net,
    paths,
    plan,
    predict,
    run,
    schema,
    serve,
    sim,
    undo,
    watch,
    web,
)

app = typer.Typer(
    name="pathcast",
    help="Measure the paths between two hosts, predict how fast Multipath TCP will go over them, choose, send.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"pathcast {version('pathcast')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


app.command("completion")(completion.completion)
app.command("demo")(demo.demo)
app.command("doctor")(doctor.doctor)
app.command("learn")(learn.learn)
app.command("man")(man.man)
app.command("measure")(measure.measure)
app.command("paths")(paths.paths)
app.command("plan")(plan.plan)
app.command("predict")(predict.predict)
app.command("run", context_settings={"ignore_unknown_options": True})(run.run)
app.command("schema")(schema.schema)
app.command("serve")(serve.serve)
app.command("sim")(sim.sim)
app.command("undo")(undo.undo)
app.command("watch", cls=watch.Command)(watch.watch)
app.command("web")(web.web)
app.add_typer(control.app, name="control")
app.add_typer(history.app, name="history")
app.add_typer(job.app, name="job")
app.add_typer(lab.app, name="lab")
app.add_typer(line.app, name="line")
app.add_typer(net.app, name="net")
