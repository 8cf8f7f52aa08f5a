"""The preview as one HTML file that needs no network: counts, then rows side by side, to be filtered."""

from __future__ import annotations

from cli.views.preview import origins
from cli.views.preview_page.records import records
from cli.views.report.self_contained import render
from cli.views.text import one_line
from engine.plan import Plan
from engine.preview import Preview

_MOST = 12  # clusters and changes of an entity

OUTCOMES = ("read", "load", "unchanged", "merged", "excluded", "quarantined")


def page(job: str, preview: Preview, plan: Plan, *, only: str = "") -> str:
    """The HTML text; of the entity `only` alone where it is given. Values are as the terminal shows them."""
    entities = [each for each in preview.entities if only in ("", each.entity)]
    shown = [each for each in records(preview, plan, origins(plan)) if only in ("", each.entity)]
    columns = sorted(
        {name for row in shown for pair in row.pairs for name in (*pair.columns, pair.field)}, key=str.casefold
    )
    return render(
        "cli.views.preview_page",
        ["cli.views.report", "cli.views.preview_page"],
        {"line": one_line},
        job=job,
        version=preview.plan_version,
        entities=entities,
        outcomes=OUTCOMES,
        sums={name: sum(getattr(each, name) for each in entities) for name in OUTCOMES},
        most=_MOST,
        records=shown,
        columns=columns,
    )
