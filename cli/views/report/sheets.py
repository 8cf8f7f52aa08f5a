"""A report as tables in the order of reading: what the page, Markdown and the workbook all show."""

from __future__ import annotations

from cli.views.report import course, moved
from cli.views.report.sheet import Sheet, masked_value, moment, whole_value
from engine.report import Report


def sheets(report: Report, *, show_values: bool = False) -> list[Sheet]:
    """The sheets in the order of reading. Record values are shapes (letters a, digits 9) but with `show_values`."""
    value = whole_value if show_values else masked_value
    return [
        moved.reconciliation(report),
        moved.moved(report),
        moved.columns_left(report),
        moved.rows_left(report),
        moved.quarantine(report),
        moved.changes(report, value, show_values),
        moved.duplicates(report),
        course.decisions(report),
        course.questions(report),
        course.timing(report),
        course.verification(report),
        course.versions(report),
    ]


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
