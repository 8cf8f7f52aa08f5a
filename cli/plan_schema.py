"""`migrate plan schema`, and the line at a plan's head by which an editor finds that schema."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from cli.options import here
from cli.views.output import on_stderr
from workspace.errors import UsageError
from workspace.paths import schema_file

Out = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where to write it; without it, stdout.")
]
Force = Annotated[bool, typer.Option("--force", help="Write over a file that is there.")]
_NO_ADDRESS = re.compile(r"[^\w./-]", re.ASCII)


def schema(output: Out = None, force: Force = False) -> int:
    """Print the JSON Schema (2020-12) of a plan, by which an editor completes and checks one."""
    from engine.plan_schema import schema_text

    if output is None:
        print(schema_text(), end="")
        return 0
    try:
        with output.open("w" if force else "x", encoding="utf-8") as out:
            out.write(schema_text())
    except FileExistsError:
        raise UsageError(
            "there is a file of that name", where=str(output), advice="choose another, or --force"
        ) from None
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", where=str(output)) from None
    on_stderr().print(f"wrote {output}; a plan names it with: # yaml-language-server: $schema={output}")
    return 0


def schema_line(plan: Path | None) -> str:
    """The comment that points an editor from a plan at that place to the schema, which is written under `.packhorse`.

    `plan` None stands for a file in this folder. Empty where the schema can't be written or has no address that editors
    read: a plan is as good without it."""
    from engine.plan_schema import schema_text

    folder = plan.absolute().parent if plan else here()
    try:
        file = schema_file(here())
        file.write_text(schema_text(), encoding="utf-8")
        address = Path(os.path.relpath(file, folder)).as_posix()
    except OSError:
        return ""
    return "" if _NO_ADDRESS.search(address) else f"# yaml-language-server: $schema={address}\n"
