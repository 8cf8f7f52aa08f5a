"""A report as sheets of text and numbers: what the page, Markdown and the workbook all show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from cli.views.text import one_line, visible
from engine.report import EntityReported, Report
from workspace.signature import shape

Cell = str | int | float

_LONGEST = 120


@dataclass(frozen=True)
class Sheet:
    """A table: its name for links, title, what is to be known of it, headings and rows. `total` is the last row where
    it sums the others; `by_entity` where the first column names an entity, to filter by."""

    id: str
    title: str
    about: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: tuple[Cell, ...] | None = None
    by_entity: bool = False
    nothing: str = "Nothing."


def sheets(report: Report, *, show_values: bool = False) -> list[Sheet]:
    """The sheets in the order of reading. Record values are shapes (letters a, digits 9) but with `show_values`."""
    value = _whole if show_values else _masked
    return [
        _reconciliation(report),
        _moved(report),
        _columns_left(report),
        _rows_left(report),
        _quarantine(report),
        _changes(report, value, show_values),
        _duplicates(report),
        _decisions(report),
        _questions(report),
        _timing(report),
        _verification(report),
        _versions(report),
    ]


def moment(at: datetime | None) -> str:
    """A point in time as a reader wants it."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC" if at else "never"


def verdict(report: Report) -> str:
    """One sentence: does it reconcile, and by what is that known?"""
    checked = report.verification
    if report.taken_back:
        return "Taken back: what this job wrote was removed from the target again."
    if report.reconciled and checked:
        return f"Reconciled: every row that was read has an outcome, verified {moment(checked.at)}."
    if not all(each.holds for each in report.entities):
        return "NOT reconciled: there are rows without an outcome."
    if checked is None:
        return "Not verified yet: migrate verify counts anew."
    if not checked.ok:
        return f"NOT reconciled: the verification of {moment(checked.at)} found what doesn't hold."
    return f"Not verified since rows last moved: the last verification, of {moment(checked.at)}, held."


def _reconciliation(report: Report) -> Sheet:
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
        tuple(row(_name(e.name), _name(e.target), [e]) for e in report.entities),
        total=row("all", "", report.entities),
        nothing="No row was read yet.",
    )


def _moved(report: Report) -> Sheet:
    return Sheet(
        "moved",
        "What went where",
        "Each column of the target that was filled, what it was made of (SQL over the source row), and who decided so.",
        ("entity", "goes to", "column", "made of", "decided by", "sure", "why"),
        tuple(
            (
                _name(e.name),
                _name(e.target),
                _name(f.column),
                _text(f.comes_from),
                f.rung,
                "" if f.sure is None else f"{f.sure:.2f}",
                _text(f.why),
            )
            for e in report.entities
            for f in e.fields
        ),
        by_entity=True,
    )


def _columns_left(report: Report) -> Sheet:
    return Sheet(
        "columns-left",
        "Columns left behind",
        "Columns of the old system that went nowhere, each with the reason.",
        ("entity", "column", "why"),
        tuple(
            (_name(e.name), _name(column), _text(why)) for e in report.entities for column, why in e.left_behind.items()
        ),
        by_entity=True,
        nothing="None: each column of the source was carried over or used.",
    )


def _rows_left(report: Report) -> Sheet:
    return Sheet(
        "rows-left",
        "Rows left out on purpose",
        "Rows that the plan excludes, by the condition that held them back.",
        ("entity", "because", "rows"),
        tuple((_name(e.name), _text(why), rows) for e in report.entities for why, rows in e.excluded_by.items()),
        by_entity=True,
        nothing="None.",
    )


def _quarantine(report: Report) -> Sheet:
    return Sheet(
        "quarantine",
        "Rows in quarantine",
        "Rows that could not be loaded, by the way in which they failed. They are kept whole; a value is shown by its shape.",
        ("entity", "column", "what failed", "rows", "given up"),
        tuple(
            (_name(c.entity), _name(c.field), _text(_without(c.signature, c.field)), c.rows, c.dropped)
            for c in report.clusters
        ),
        by_entity=True,
        nothing="None: every row that was not excluded stands in the target.",
    )


def _without(signature: str, field: str) -> str:
    return signature.removeprefix(f"{field}: ")


def _changes(report: Report, value: Callable[[str | None], str], show_values: bool) -> Sheet:
    form = "as they are" if show_values else "as shapes: a letter is a or A, a digit 9"
    looked = ", ".join(f"{rows:,} of {_name(name)}" for name, rows in report.rows_looked_at.items())
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
                _name(c.entity), _name(c.column), _name(c.source), _text(c.expression), c.rows,
                kind.rows, value(kind.before), value(kind.after),
            )
            for c in report.changes or ()
            for kind in c.kinds
        ),
        by_entity=True,
        nothing=report.why_no_changes or "None.",
    )  # fmt: skip


def _duplicates(report: Report) -> Sheet:
    return Sheet(
        "duplicates",
        "Duplicates merged, and rows already there",
        "Rows of the source that became one row, and rows that the target held before and that were linked to.",
        ("entity", "clusters of duplicates", "rows merged", "linked to rows already there"),
        tuple(
            (_name(e.name), e.duplicates or 0, e.merged, e.matched or 0)
            for e in report.entities
            if e.duplicates is not None or e.matched is not None or e.merged
        ),
        nothing="The plan merges no rows and links to none.",
    )


def _decisions(report: Report) -> Sheet:
    return Sheet(
        "decisions",
        "Decisions by rung",
        "Who decided: rules, experience of earlier jobs, the model choosing or proposing, or a person asked.",
        ("rung", "decisions", "model calls", "tokens", "seconds"),
        tuple((r.rung, r.decisions, r.calls, r.tokens, round(r.seconds, 1)) for r in report.rungs),
        nothing="None: the plan was given.",
    )


def _questions(report: Report) -> Sheet:
    return Sheet(
        "questions",
        "Questions to a person",
        "What the data did not tell, and what was answered. An open question left its column or entity out.",
        ("question", "answer", "by", "waits for it"),
        tuple(
            (_text(a.text), "open" if a.answer is None else _text(a.answer), a.by, ", ".join(map(_name, a.holds)))
            for a in sorted(report.asked, key=lambda each: each.answer is not None)
        ),
    )


def _timing(report: Report) -> Sheet:
    return Sheet(
        "timing",
        "Time by phase",
        "Time that the job worked; what lies between an interruption and the resume is left out.",
        ("phase", "seconds"),
        tuple((phase, round(seconds, 1)) for phase, seconds in report.phases.items()),
        total=("all", round(sum(report.phases.values()), 1)),
    )


def _verification(report: Report) -> Sheet:
    checked = report.verification
    rows: list[tuple[Cell, ...]] = []
    if checked:
        rows += [("problem", _text(line)) for line in checked.problems]
        rows += [("note", _text(line)) for line in checked.notes]
        rows += [
            ("compared", f"{rows:,} rows of {_name(name)}, field by field") for name, rows in checked.compared.items()
        ]
    return Sheet(
        "verification",
        "Verification",
        "Counted anew in the stage and in the target, with checksums that the target computes from what it holds.",
        ("kind", "what"),
        tuple(rows),
        nothing="None yet." if checked is None else f"Nothing to tell: it held, {moment(checked.at)}.",
    )


def _versions(report: Report) -> Sheet:
    return Sheet(
        "versions",
        "Versions of the plan",
        "",
        ("version", "by", "why"),
        tuple((number, by, _text(why)) for number, by, why in report.plan_versions),
    )


def _name(text: str) -> str:
    return one_line(text)


def _text(text: str) -> str:
    """Words that may hold names and SQL, on one line and not too long to read."""
    line = one_line(text)
    return line if len(line) <= 4 * _LONGEST else line[: 4 * _LONGEST - 1] + "…"


def _whole(value: str | None) -> str:
    return "(none)" if value is None else "(empty)" if not value else visible(value, _LONGEST)


def _masked(value: str | None) -> str:
    return _whole(value if value is None else shape(value))
