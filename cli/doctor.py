"""`migrate doctor`: is this machine, this installation and this pair of systems ready for a job?"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from cli.options import AsJson, Model, here
from cli.views import checks as view
from cli.views.output import on_stdout, print_json

MaybeSource = Annotated[str | None, typer.Argument(metavar="[SOURCE]", help="A source to look at too.")]
MaybeTarget = Annotated[str | None, typer.Argument(metavar="[TARGET]", help="A target to look at too.")]


def doctor(source: MaybeSource = None, target: MaybeTarget = None, model: Model = None, as_json: AsJson = False) -> int:
    """Check the machine, the installation, the model and, where given, both systems. Changes nothing.

    Exits with 1 when a line fails. JSON: `ok`, and `checks`, a list of objects with `name`, `state` (ok,
    warn, fail), `found`, `advice`.
    """
    from cli import checks  # looks at heavy libraries

    found = [
        checks.machine(),
        checks.python(),
        checks.disk(here()),
        checks.workspace(here()),
        checks.drivers(),
        checks.llama_build(),
        checks.model(model),
    ]
    if source:
        found.append(checks.source(source))
    if target:
        found.append(checks.target(target))
    ok = all(check.state != "fail" for check in found)
    if as_json:
        print_json({"ok": ok, "checks": [asdict(check) for check in found]})
    else:
        view.show(on_stdout(), found)
    return 0 if ok else 1
