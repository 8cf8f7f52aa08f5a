"""What a row that the target held before must hold once the plan's `fill` has been at it, field by field: what it held, or
what the source has.

Values are text as the target spells it. Decides nothing of what is written.
"""

from __future__ import annotations

from connectors.records import Fill

KEPT = "the row was there before the job, and holds something else than it held"
"""What is wrong with a field that the job had to leave alone."""


def filled_value(rule: Fill, own: str | None, before: str | None) -> str | None:
    """What the column holds after the rule, of the source's `own` value and the one `before`, as the target's UPDATE has
    it."""
    if rule.strict is not None and (strict := str(rule.strict).lower()) in (own, before):
        return strict
    if rule.how == "over":
        return before if own is None else own
    if rule.how == "empty":
        return own if before is None else before
    return before
