"""The Typer application: every verb by its name, in the order of the manual."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.main import get_command

from cli import dsn, experience, model, plan, quarantine
from cli.answer import answer
from cli.cleanup import cleanup
from cli.completing import mend_zsh_script
from cli.defaults import read_defaults
from cli.demo import demo
from cli.doctor import doctor
from cli.eval import evaluate
from cli.examples import epilog
from cli.explain import explain
from cli.init import init
from cli.inspect import inspect
from cli.jobs import jobs
from cli.observed import observed
from cli.preview import preview
from cli.purge import purge
from cli.quarantine_retry import drop, retry
from cli.rehearse import rehearse
from cli.report import report
from cli.resume import resume
from cli.run import run
from cli.status import status
from cli.sync import sync
from cli.undo import undo
from cli.verify import verify
from cli.watch import watch

UsageProblem: type[Exception] = typer.BadParameter.__mro__[2]
"""What Typer raises for a command that was called wrongly; it gives that class no public name."""

app = typer.Typer(
    name="migrate",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "PACKHORSE"},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # a tenth of the time that a command takes to start

        print(f"packhorse {version('packhorse')}")
        raise typer.Exit


@app.callback()
def _migrate(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    _debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; may stand anywhere.")] = False,
) -> None:
    """Carry a company's records out of a legacy CRM and into a cloud database."""


app.command()(observed(run))
app.command()(observed(resume))
app.command()(observed(rehearse))
app.add_typer(plan.app, name="plan")
app.command()(preview)
app.command()(jobs)
app.command()(status)
app.command()(watch)
app.command()(inspect)
quarantine.app.command("retry")(retry)
quarantine.app.command("drop")(drop)
app.add_typer(quarantine.app, name="quarantine")
app.command()(answer)
app.command()(observed(verify))
app.command()(report)
app.command()(observed(undo))
app.command()(observed(sync))
app.command()(cleanup)
app.command()(purge)
app.command()(doctor)
app.add_typer(dsn.app, name="dsn")
app.add_typer(model.app, name="model")
app.add_typer(experience.app, name="experience")
app.command()(init)
app.command()(explain)
app.command("eval")(evaluate)
app.command()(demo)


def tree() -> Any:
    """The verbs as the parser has them. Help names the variables that were named here, not those of every option."""
    root: Any = get_command(app)
    todo = [("", root)]
    while todo:
        words, command = todo.pop()
        todo += [(f"{words} {name}".strip(), child) for name, child in getattr(command, "commands", {}).items()]
        command.epilog = epilog(words)
        for parameter in command.params:
            parameter.show_envvar = parameter.envvar is not None
    return root


def execute(arguments: list[str]) -> int:
    """Runs one command and returns its exit code. Raises UsageProblem, PackhorseError."""
    if not arguments:
        arguments = ["--help"]
    command = tree()
    if arguments[0] in ("--install-completion", "--show-completion"):
        mend_zsh_script()
    # help is given whatever a file of defaults says
    values = {} if {"-h", "--help", "--version"} & set(arguments) else read_defaults(command)
    result = command.main(arguments, standalone_mode=False, prog_name="migrate", default_map=values)
    return result if isinstance(result, int) else 0
