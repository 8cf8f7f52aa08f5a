"""The tables of a report on what became of the records: rows, columns, values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cli.views.report.sheet import Cell, Sheet, name_of, words
from engine.report import EntityReported, Report


def reconciliation(report: Report) -> Sheet:
    """The equation, entity by entity and in all."""

    def row(name: str, target: str, of: Sequence[EntityReported]) -> tuple[Cell, ...]:
        def total(count: Callable[[EntityReported], int]) -> int:
            return sum(map(count, of))

        return (
            name,
            target,
            total(lambda e: e.read),
            total(lambda e: e.loaded),
            total(lambda e: e.merged),
            total(lambda e: e.excluded),
            total(lambda e: e.quarantined),
            total(lambda e: e.dropped),
            "yes" if all(e.holds for e in of) else "NO",
        )

    return Sheet(
        "reconciliation",
        "Reconciliation",
        "For each entity: rows read = loaded + merged + excluded + in quarantine. Rows given up are among those in quarantine.",
        ("entity", "goes to", "read", "loaded", "merged", "excluded", "in quarantine", "given up", "holds"),
        tuple(row(name_of(e.name), name_of(e.target), [e]) for e in report.entities),
        total=row("all", "", report.entities),
        nothing="No row was read yet.",
    )


def moved(report: Report) -> Sheet:
    """Columns of the target and what they were made of."""
    return Sheet(
        "moved",
        "What went where",
        "Each column of the target that was filled, what it was made of (SQL over the source row), and who decided so.",
        ("entity", "goes to", "column", "made of", "decided by", "sure", "why"),
        tuple(
            (
                name_of(e.name),
                name_of(e.target),
                name_of(f.column),
                words(f.comes_from),
                f.rung,
                "" if f.sure is None else f"{f.sure:.2f}",
                words(f.why),
            )
            for e in report.entities
            for f in e.fields
        ),
        by_entity=True,
    )


def columns_left(report: Report) -> Sheet:
    """Columns of the source that went nowhere."""
    return Sheet(
        "columns-left",
        "Columns left behind",
        "Columns of the old system that went nowhere, each with the reason.",
        ("entity", "column", "why"),
        tuple(
            (name_of(e.name), name_of(column), words(why))
            for e in report.entities
            for column, why in e.left_behind.items()
        ),
        by_entity=True,
        nothing="None: each column of the source was carried over or used.",
    )


def rows_left(report: Report) -> Sheet:
    """Rows excluded, by the condition that held them back."""
    return Sheet(
        "rows-left",
        "Rows left out on purpose",
        "Rows that the plan excludes, by the condition that held them back.",
        ("entity", "because", "rows"),
        tuple((name_of(e.name), words(why), rows) for e in report.entities for why, rows in e.excluded_by.items()),
        by_entity=True,
        nothing="None.",
    )


def quarantine(report: Report) -> Sheet:
    """Rows that could not be loaded, by signature."""
    return Sheet(
        "quarantine",
        "Rows in quarantine",
        "Rows that could not be loaded, by the way in which they failed. They are kept whole; a value is shown by its shape.",
        ("entity", "column", "what failed", "rows", "given up"),
        tuple(
            (name_of(c.entity), name_of(c.field), words(_without(c.signature, c.field)), c.rows, c.dropped)
            for c in report.clusters
        ),
        by_entity=True,
        nothing="None: every row that was not excluded stands in the target.",
    )


def _without(signature: str, field: str) -> str:
    return signature.removeprefix(f"{field}: ")


def changes(report: Report, value: Callable[[str | None], str], show_values: bool) -> Sheet:
    """Values written otherwise than before; `value` shows or masks an example."""
    form = "as they are" if show_values else "as shapes: a letter is a or A, a digit 9"
    looked = ", ".join(f"{rows:,} of {name_of(name)}" for name, rows in report.rows_looked_at.items())
    about = (
        "Columns whose value in the target is written otherwise than in the source, and the most frequent kinds of change, "
        f"each with an example ({form})."
    )
    return Sheet(
        "changes",
        "Values changed",
        f"{about} Looked at: {looked} rows that load." if looked else about,
        ("entity", "column", "from", "by", "rows changed", "of this kind", "before", "after"),
        tuple(
            (
                name_of(c.entity), name_of(c.column), name_of(c.source), words(c.expression), c.rows,
                kind.rows, value(kind.before), value(kind.after),
            )
            for c in report.changes or ()
            for kind in c.kinds
        ),
        by_entity=True,
        nothing=report.why_no_changes or "None.",
    )  # fmt: skip


def duplicates(report: Report) -> Sheet:
    """Rows merged, and rows linked to those already there."""
    return Sheet(
        "duplicates",
        "Duplicates merged, and rows already there",
        "Rows of the source that became one row, and rows that the target held before and that were linked to.",
        ("entity", "clusters of duplicates", "rows merged", "linked to rows already there"),
        tuple(
            (name_of(e.name), e.duplicates or 0, e.merged, e.matched or 0)
            for e in report.entities
            if e.duplicates is not None or e.matched is not None or e.merged
        ),
        nothing="The plan merges no rows and links to none.",
    )
