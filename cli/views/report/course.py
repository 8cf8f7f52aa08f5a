"""The tables of a report on how the job went: decisions, questions, time, verification, versions of the plan."""

from __future__ import annotations

from cli.views.report.sheet import Cell, Sheet, moment, name_of, words
from engine.report import Report


def decisions(report: Report) -> Sheet:
    """Decisions and their price, by rung."""
    return Sheet(
        "decisions",
        "Decisions by rung",
        "Who decided: rules, experience of earlier jobs, the model choosing or proposing, or a person asked.",
        ("rung", "decisions", "model calls", "tokens", "read from cache", "seconds"),
        tuple(
            (r.rung, r.decisions, r.calls, r.tokens, "" if r.cached is None else f"{r.cached:.0%}", round(r.seconds, 1))
            for r in report.rungs
        ),
        nothing="None: the plan was given.",
    )


def questions(report: Report) -> Sheet:
    """What was asked, the open ones first."""
    return Sheet(
        "questions",
        "Questions to a person",
        "What the data did not tell, and what was answered. An open question left its column or entity out.",
        ("question", "answer", "by", "waits for it"),
        tuple(
            (words(a.text), "open" if a.answer is None else words(a.answer), a.by, ", ".join(map(name_of, a.holds)))
            for a in sorted(report.asked, key=lambda each: each.answer is not None)
        ),
    )


def timing(report: Report) -> Sheet:
    """Seconds by phase."""
    return Sheet(
        "timing",
        "Time by phase",
        "Time that the job worked; what lies between an interruption and the resume is left out.",
        ("phase", "seconds"),
        tuple((phase, round(seconds, 1)) for phase, seconds in report.phases.items()),
        total=("all", round(sum(report.phases.values()), 1)),
    )


def verification(report: Report) -> Sheet:
    """What the last verification said."""
    checked = report.verification
    rows: list[tuple[Cell, ...]] = []
    if checked:
        rows += [("problem", words(line)) for line in checked.problems]
        rows += [("note", words(line)) for line in checked.notes]
        rows += [
            ("compared", f"{rows:,} rows of {name_of(name)}, field by field") for name, rows in checked.compared.items()
        ]
    return Sheet(
        "verification",
        "Verification",
        "Counted anew in the stage and in the target, with checksums that the target computes from what it holds.",
        ("kind", "what"),
        tuple(rows),
        nothing="None yet." if checked is None else f"Nothing to tell: it held, {moment(checked.at)}.",
    )


def versions(report: Report) -> Sheet:
    """The plan's versions and who made them."""
    return Sheet(
        "versions",
        "Versions of the plan",
        "",
        ("version", "by", "why"),
        tuple((number, by, words(why)) for number, by, why in report.plan_versions),
    )
