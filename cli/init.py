"""`migrate init`: a commented plan to start from."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from cli.plan_schema import schema_line
from cli.views.output import on_stdout
from workspace.errors import UsageError

File = Annotated[Path, typer.Argument(metavar="[FILE]", help="Where to write it.")]
Force = Annotated[bool, typer.Option("--force", help="Write over a file that is there.")]


def plan_to_start_from() -> str:
    """The text of the plan that `init` writes."""
    return files("cli").joinpath("plan_to_start_from.yaml").read_text(encoding="utf-8")


def init(file: File = Path("plan.yaml"), force: Force = False) -> int:
    """Write a commented plan to start from."""
    try:
        with file.open("w" if force else "x", encoding="utf-8") as out:
            out.write(schema_line(file) + plan_to_start_from())
    except FileExistsError:
        raise UsageError("there is a file of that name", where=str(file), advice="choose another, or --force") from None
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", where=str(file)) from None
    on_stdout().print(f"wrote {file}; edit it, then: migrate plan check {file}")
    return 0
