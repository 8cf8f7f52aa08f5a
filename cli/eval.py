"""`migrate eval`: MigrationBench, migrations with known right answers, run and scored."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.options import AsJson
from cli.views import eval as view
from cli.views.output import on_stderr, on_stdout, print_json
from workspace.errors import UsageError

Wanted = Annotated[
    list[str] | None, typer.Argument(help="Scenarios, families or splits (train, dev, test); all without.", show_default=False)
]  # fmt: skip
Model = Annotated[str | None, typer.Option("--model", help="As for `migrate run`; `none` for rules alone.")]
Oracle = Annotated[
    str | None, typer.Option("--oracle", help="A decider that is right so often, and how it errs: 0.9 or 0.9,near.")
]
Ablate = Annotated[str | None, typer.Option("--ablate", help="Switch parts of the harness off: ladder,experience.")]
Second = Annotated[
    bool,
    typer.Option("--second-job", help="Score a second job with the experience of a first: the same system, most columns renamed."),
]  # fmt: skip
Autonomy = Annotated[float, typer.Option("--autonomy", min=0.5, max=1.0, help="As for `migrate run`.")]
Repeat = Annotated[int, typer.Option("--repeat", min=1, help="How often, each time with other rows.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Keep results in this file; a run that was ended goes on there.")
]
Compare = Annotated[
    Path | None, typer.Option("--compare", help="Say what is better and worse than in this file of results.")
]
ListOnly = Annotated[bool, typer.Option("--list", help="Name the scenarios and run none.")]


def evaluate(
    wanted: Wanted = None,
    model: Model = None,
    oracle: Oracle = None,
    ablate: Ablate = None,
    second: Second = False,
    autonomy: Autonomy = 0.9,
    repeat: Repeat = 1,
    output: Output = None,
    compare: Compare = None,
    list_only: ListOnly = False,
    as_json: AsJson = False,
) -> int:
    """Run migrations with known right answers and score what comes out: how many end right, what was asked, what was
    wrong in silence, at which price.

    JSON: `setting`, `figures` (by name: `value`, `low`, `high`), `rungs` (right and wrong by rung), `results`, a
    list of objects a scenario; with --compare also `compared`. With --list: `scenarios`.
    """
    from bench.eval_compare import compare as compared
    from bench.eval_figures import by_rung, figures
    from bench.eval_runs import cells, read_results, run_cells, setting
    from bench.scenarios import scenarios

    found = scenarios(*(wanted or ()))
    if not found:
        raise UsageError("no such scenario", where=" ".join(wanted or ()), advice="`migrate eval --list` names them")
    if list_only:
        if as_json:
            print_json({"scenarios": [{"name": s.name, "split": s.split, "faults": s.faults} for s in found]})
        else:
            view.listed(on_stdout(), found)
        return 0
    before = [r for _, r in read_results(compare)] if compare is not None else None
    chosen = setting(model, oracle, autonomy, ablate, second)
    progress = view.progress(on_stderr())
    results = list(run_cells(cells(found, [chosen], repeat), output, progress))
    if as_json:
        document = {
            "setting": chosen.name, "figures": view.as_document(figures(results)), "rungs": by_rung(results),
            "results": [r.to_dict() for r in results],
        }  # fmt: skip
        if before is not None:
            document["compared"] = compared(before, results).to_dict()
        print_json(document)
        return 0
    view.show(on_stdout(), chosen.name, results)
    if before is not None:
        view.show_compared(on_stdout(), compared(before, results))
    return 0
