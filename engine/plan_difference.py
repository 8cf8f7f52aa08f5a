"""What differs between two plans, by what they say: comments, order and quotes make no difference, nor does the version."""

from __future__ import annotations

from engine.plan import Plan, plan_document
from workspace.difference import Difference, compare


def plan_difference(before: Plan, after: Plan) -> Difference:
    """What appeared, changed and went, field by field; without items where the plans say the same."""
    old, new = plan_document(before), plan_document(after)
    for document in (old, new):
        document.pop("version", None)
    return Difference(0, 0, tuple(compare(old, new)))
