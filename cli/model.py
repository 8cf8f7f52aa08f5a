"""`migrate model`: the model that decides."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from cli.options import AsJson
from cli.views import checks as view
from cli.views.output import on_stdout, print_json
from workspace.errors import ModelError

app = typer.Typer(rich_markup_mode=None, help="The model that decides where rules leave it open.")

File = Annotated[str | None, typer.Argument(metavar="[PATH]", help="A GGUF file; the embedded model without it.")]


@app.callback()
def _model() -> None:
    """Keeps `check` a verb of its own while it is the only one."""


@app.command("check")
def check(path: File = None, as_json: AsJson = False) -> int:
    """Try a model: what it is, how fast it is here, and whether it keeps to a grammar.

    Exits with 2 when a line fails. JSON: `path`, `ok`, and `checks`, a list of objects with `name`, `state`
    (ok, warn, fail), `found`, `advice`.
    """
    from agent.models.check import check_model
    from cli.checks import model_path

    file = model_path(path)
    found = check_model(file)
    failed = next((each for each in found if each.state == "fail"), None)
    if as_json:
        checks = [asdict(each) for each in found]
        print_json({"path": str(file), "ok": failed is None, "checks": checks})
    else:
        view.show(on_stdout(), [each for each in found if each is not failed])
    if failed is not None:
        raise ModelError(f"{failed.name}: {failed.found}", advice=failed.advice)
    return 0
