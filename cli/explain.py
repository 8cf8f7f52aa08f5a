"""`migrate explain`: what an error's code means and what mends it."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.options import AsJson
from cli.views.output import on_stdout, print_json
from workspace.errors import UsageError, errors_by_code

Code = Annotated[str, typer.Argument(metavar="CODE", help="As it stands in the error: PH-103, or 103.")]

_ENDS = {
    1: "The command ends with 1: it failed.",
    2: "The command ends with 2: it was found before anything moved.",
    3: "The command ends with 3: more rows are in quarantine than tolerated.",
    4: "The command ends with 4: it waits for a person.",
    130: "The command ends with 130: it was interrupted, and goes on with `migrate resume`.",
}


def explain(code: Code, as_json: AsJson = False) -> int:
    """Tell what an error's code means, what it does to the command, and what mends it.

    JSON: `code`, `meaning`, `exit_code`, `remedy`.
    """
    known = errors_by_code()
    wanted = f"PH-{code.upper().removeprefix('PH-')}"
    if wanted not in known:
        raise UsageError(f"there is no error {code!r}", advice=f"the codes are {', '.join(known)}")
    kind = known[wanted]
    meaning = (kind.__doc__ or "").strip().partition("\n")[0]
    if as_json:
        print_json({"code": wanted, "meaning": meaning, "exit_code": kind.exit_code, "remedy": kind.remedy})
        return 0
    console = on_stdout()
    console.print(f"{wanted}: {meaning}")
    console.print(f"  {_ENDS[kind.exit_code]}")
    console.print(f"  do: {kind.remedy}")
    return 0
