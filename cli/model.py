"""`migrate model`: the model that decides: which there are, how one gets here, what one is, how fast it is."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from cli.options import AsJson
from cli.views import checks as view
from cli.views import models as models_view
from cli.views.output import on_stderr, on_stdout, print_json
from workspace.errors import ModelError

app = typer.Typer(rich_markup_mode=None, help="The model that decides where rules leave it open.")

File = Annotated[
    str | None, typer.Argument(metavar="[FILE]", help="A GGUF file, or a name from the list; the default without it.")
]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="qwen3-8b, qwen3-4b, or OWNER/REPOSITORY/FILE.gguf of huggingface.co.")
]


@app.command("list")
def list_models(as_json: AsJson = False) -> int:
    """List the models of this machine, and those that can be pulled by name.

    `*` marks the one that decides where --model says nothing. JSON: `folder`, `default` (`path`, `why`), `models`, a list of
    objects with `name`, `path`, `size` in bytes, `sha256`, `verified`, `origin` and `default`, and `to_pull`, a list of objects
    with `name`, `repository`, `revision`, `file`, `size`, `sha256`, `about`.
    """
    from agent.models.catalogue import CATALOGUE
    from agent.models.kept import default_model, kept_models, models_folder

    kept = kept_models()
    default, why = default_model()
    missing = [each for each in CATALOGUE.values() if each.name not in {model.name for model in kept}]
    if as_json:
        print_json(
            {
                "folder": str(models_folder()),
                "default": {"path": str(default), "why": why},
                "models": [{**asdict(each), "default": each.path == default} for each in kept],
                "to_pull": [asdict(each) for each in missing],
            }
        )
    else:
        models_view.show_list(on_stdout(), kept, default, why, missing, models_folder())
    return 0


@app.command("pull")
def pull_model(name: Name, as_json: AsJson = False) -> int:
    """Fetch a model from huggingface.co, pinned and checked by its SHA-256; a pull that was cut goes on where it stopped.

    What is here already is read whole and checked again, without a network. JSON: `name`, `path`, `size`, `sha256`,
    `verified`, `origin`.
    """
    from agent.models.catalogue import named
    from agent.models.kept import default_model, models_folder
    from agent.models.pull import pull

    kept = pull(named(name), models_folder(), progress=sys.stderr.isatty())
    if as_json:
        print_json(asdict(kept))
    else:
        models_view.show_pulled(on_stdout(), on_stderr(), kept, default_model()[0])
    return 0


@app.command("check")
def check(path: File = None, as_json: AsJson = False) -> int:
    """Try a model: what it is, whether it fits this machine, how fast it is here, and whether it keeps to a grammar.

    Exits with 2 when a line fails. JSON: `path`, `ok`, and `checks`, a list of objects with `name`, `state`
    (ok, warn, fail), `found`, `advice`.
    """
    from agent.models.check import check_model
    from agent.models.kept import path_of

    file = path_of(path)
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


@app.command("bench")
def bench(path: File = None, as_json: AsJson = False) -> int:
    """Measure a model here: loading, reading prompts, writing answers, deciding. Takes some seconds, or minutes for a large one.

    JSON: `path`, `name`, `parameters`, `load_seconds`, `memory_mib`, `prompt_rate` and `answer_rate` in tokens a second,
    `decision_seconds`, `decisions_rate` a second, `cached` (the share of a decision's prompt that the prefix cache served),
    `form`, `threads`, `gpu`.
    """
    from agent.models.kept import path_of
    from agent.models.measure import measure

    file = path_of(path)
    found = measure(file)
    if as_json:
        print_json({"path": str(file), **asdict(found), "decisions_rate": found.decisions_rate})
    else:
        models_view.show_speeds(on_stdout(), found)
    return 0
