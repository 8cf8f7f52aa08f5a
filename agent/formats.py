"""Dates written in a form that is not told: which one it is, by trying, by the model, or by a person."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from agent.ladder import Ladder
from agent.match import FieldMatch
from agent.matter import Decision, Matter, Option
from agent.models.counting import Count, counter_of
from agent.models.protocol import Model, Price
from agent.propose import PASSED, date_forms, dated, propose
from agent.structure import Origin
from agent.trial import Bench

View = Callable[[Count], str]
"""The workspace as it stands, for whoever counts tokens so; told only where a model is asked."""


def decide_format(
    ladder: Ladder, model: Model | None, subject: str, match: FieldMatch, origin: Origin, sample: pa.Table, view: View
) -> tuple[str | None, str]:
    """The expression that reads the column, or None where a person has to say; and the id of the matter.

    One form that takes every value, alone, leaves one answer; day and month may be exchanged where no day over
    12 is there, and then both are offered."""
    forms = {f: s for f, s in date_forms(origin.profile).items() if s >= PASSED}
    alone = len(forms) == 1
    options = tuple(
        Option(dated(origin.name, form), form, 0.97 if alone else 0.5, {"values_read": round(share, 3)})
        for form, share in sorted(forms.items(), key=lambda item: (-item[1], item[0]))
    )
    text = f"In which form are the dates of {subject} written? Answer with one of the forms, or an expression."
    holds = (subject.split(".")[0],) if match.required else ()
    matter = Matter("format", subject, text, options, holds=holds, must=True)
    if options:
        return ladder.decide(matter).answer, matter.id
    matter, price = replace(matter, free=True), Price()
    settled = ladder.made(matter.id) is not None or ladder.answer_to(matter.id) is not None
    if model is not None and not settled and not ladder.left_open(matter) and ladder.can_pay:
        proposed, price = _proposed(ladder, model, matter, match, origin, sample, view)
        if proposed is not None:
            return proposed, matter.id
    return ladder.decide(matter, price).answer, matter.id


def _proposed(
    ladder: Ladder, model: Model, matter: Matter, match: FieldMatch, origin: Origin, sample: pa.Table, view: View
) -> tuple[str | None, Price]:
    renamed = sample.select([origin.profile.column.name]).rename_columns([origin.name])
    with Bench() as bench:
        expression, trial, price = propose(
            model, bench, match.column, [origin.name], origin.profile, renamed, view(counter_of(model))
        )
    ladder.pay(price)
    if expression is None:
        return None, price
    why = f"carried over {trial.arrived} of {trial.filled} values of the sample"
    ladder.record(matter, Decision(matter.id, expression, "propose", round(trial.share, 3), why, price=price))
    return expression, price
