"""`migrate doctor`: is this machine, this installation and this pair of systems ready for a job?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cli.options import AsJson, LedgerSchema, Model, SourceSsh, TargetSsh, here
from cli.views import checks as view
from cli.views.output import on_stdout, print_json

MaybeSource = Annotated[str | None, typer.Argument(metavar="[SOURCE]", help="A source to look at too.")]
MaybeTarget = Annotated[str | None, typer.Argument(metavar="[TARGET]", help="A target to look at too.")]
NeededBy = Annotated[
    Path | None, typer.Option("--plan", metavar="FILE", help="Name the rights that this plan needs, and no more.")
]
GrantTo = Annotated[
    str | None,
    typer.Option("--grant-to", metavar="USER", help="Whose rights to look at. Default: the user of each DSN."),
]


def doctor(
    source: MaybeSource = None,
    target: MaybeTarget = None,
    plan: NeededBy = None,
    grant_to: GrantTo = None,
    ledger_schema: LedgerSchema = None,
    source_ssh: SourceSsh = None,
    target_ssh: TargetSsh = None,
    model: Model = None,
    as_json: AsJson = False,
) -> int:
    """Check the machine, the installation, the model and, where given, both systems. Changes nothing.

    Of each system it tells version, clock, encoding, and of one that copies another how far behind it is; of the source
    its size against the disk here, of the target triggers and foreign keys without an index. It names the rights that a
    job needs, as the statements that grant them, and whether the user has them. Exits with 1 when a line fails. JSON: `ok`, and `checks`, a list of objects with `name`, `state` (ok,
    warn, fail), `found`, `advice`.
    """
    from cli import checks  # looks at heavy libraries
    from cli.rights import source_rights, target_rights
    from cli.standing import source_standing, target_standing
    from connectors.dsn import through
    from engine.plan import load_plan

    found = [
        checks.machine(),
        checks.python(),
        checks.disk(here()),
        checks.workspace(here()),
        checks.defaults(),
        checks.drivers(),
        checks.llama_build(),
        checks.compiler(),
        checks.model(model),
    ]
    given = load_plan(plan) if plan is not None else None
    if source:
        source = through(source, source_ssh)
        found += checks.source(source)
        if found[-1].state != "fail":
            found += [*source_standing(source, here()), *source_rights(source, given, grant_to)]
    if target:
        target = through(target, target_ssh)
        found.append(checks.target(target))
        if found[-1].state != "fail":
            tables = None if given is None else {entity.to for entity in given.entities.values()}
            found += [
                *target_standing(target, tables),
                *target_rights(target, given, grant_to, ledger_schema),
            ]
    ok = all(check.state != "fail" for check in found)
    if as_json:
        print_json({"ok": ok, "checks": [asdict(check) for check in found]})
    else:
        view.show(on_stdout(), found)
    return 0 if ok else 1
