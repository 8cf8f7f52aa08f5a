"""Dates written in a form that is not told: which one it is, by trying, by the model, or by a person."""

from __future__ import annotations

import pyarrow as pa

from agent.ladder import Ladder
from agent.match import FieldMatch
from agent.matter import Decision, Matter, Option
from agent.models.protocol import Model
from agent.propose import PASSED, date_forms, dated, propose
from agent.structure import Origin
from agent.trial import Bench


def decide_format(
    ladder: Ladder, model: Model | None, subject: str, match: FieldMatch, origin: Origin, sample: pa.Table, view: str
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
    if not options and model is not None and ladder.made(matter.id) is None and ladder.answer_to(matter.id) is None:
        proposed = _proposed(ladder, model, matter, match, origin, sample, view)
        if proposed is not None:
            return proposed, matter.id
    if not options:
        matter = Matter("format", subject, text, (), holds=holds, must=True, free=True)
    return ladder.decide(matter).answer, matter.id


def _proposed(
    ladder: Ladder, model: Model, matter: Matter, match: FieldMatch, origin: Origin, sample: pa.Table, view: str
) -> str | None:
    renamed = sample.select([origin.profile.column.name]).rename_columns([origin.name])
    with Bench() as bench:
        expression, trial, price = propose(model, bench, match.column, [origin.name], origin.profile, renamed, view)
    if expression is None:
        return None
    why = f"carried over {trial.arrived} of {trial.filled} values of the sample"
    free = Matter(matter.kind, matter.subject, matter.text, (), holds=matter.holds, must=True, free=True)
    ladder.record(free, Decision(matter.id, expression, "propose", round(trial.share, 3), why, price=price))
    return expression
