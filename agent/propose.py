"""Proposals: an expression for values that no rule carries over. It counts only after it passed on the sample.

Dates in an order that is not told are tried in every usual form: one that takes them all, alone, is evidence.
A model's expression is written under a grammar of allowed calls over the columns at hand, and tried like any
other; what failed comes back to it once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pyarrow as pa

from agent.conversions import quoted
from agent.models.counting import Count, counter_of
from agent.models.protocol import Model, Price, Prompt
from agent.profile import ColumnProfile
from agent.trial import Bench, Trial
from agent.view import PROPOSAL_TOKENS, chosen, shortened, values_within
from connectors.protocols import Column, Kind
from workspace.errors import ModelError

PASSED = 0.98  # share of the sample's values that an expression has to carry over
_QUESTION_TOKENS = PROPOSAL_TOKENS // 2
_VALUES_TOKENS = PROPOSAL_TOKENS // 2 - 40  # less our own line, and the answer's frame
_FORMATS = (
    "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%d.%m.%y", "%m/%d/%y", "%d/%m/%y", "%Y%m%d",
)  # fmt: skip
_TIMES = ("", " %H:%M", " %H:%M:%S")


def date_forms(profile: ColumnProfile) -> dict[str, float]:
    """The forms of date that take at least half of the values, each with the share that it takes."""
    total = sum(n for _, n in profile.top)
    out = {}
    for form in (f + t for f in _FORMATS for t in _TIMES):
        taken = sum(n for v, n in profile.top if _reads(v, form))
        if total and taken / total >= 0.5:
            out[form] = taken / total
    return out


def dated(name: str, form: str) -> str:
    """The expression that reads a column of dates in that form."""
    return f"strptime(nullif(trim({quoted(name)}), ''), '{form}')"


def propose(
    model: Model,
    bench: Bench,
    column: Column,
    columns: Sequence[str],
    profile: ColumnProfile,
    sample: pa.Table,
    view: str = "",
    count: Count | None = None,
) -> tuple[str | None, Trial, Price]:
    """The model's expression for a target column, if one passed on the sample within two tries; `view` is the
    workspace as it stands."""
    grammar, count = _grammar(columns, column), count or counter_of(model)
    price, told, trial = Price(), "", Trial(refused="nothing was proposed")
    values = values_within(profile.samples[:5], _VALUES_TOKENS, count)
    for _ in range(2):
        prompt = Prompt(
            f"You write SQL expressions that convert values of an old CRM.\n{view}".strip(),
            shortened(_asked(columns, column) + told, _QUESTION_TOKENS, count),
            values,
        )
        try:
            text = model.write(prompt, grammar, 80)
        except ModelError:
            return None, trial, price
        price += text.price
        trial = bench.try_out(text.text.strip(), column, sample)
        if trial.share >= PASSED and trial.filled:
            return text.text.strip(), trial, price
        failed = [trial.refused] if trial.refused else [signature for signature, _ in trial.failures]
        room = _QUESTION_TOKENS - count(_asked(columns, column)) - 12
        told = f" A try before this one failed: {', '.join(chosen(failed, room, lambda all_: count(', '.join(all_))))}"
    return None, trial, price


def _asked(columns: Sequence[str], column: Column) -> str:
    return f"Write one expression over {', '.join(columns)} that gives {column.name} as {column.type}."


def _grammar(columns: Sequence[str], column: Column) -> str:
    """GBNF over allowed calls; a column can only be one of those at hand."""
    names = " | ".join('"' + quoted(c).replace("\\", "\\\\").replace('"', '\\"') + '"' for c in columns)
    calls = {
        Kind.DATE: ["excel_date", "trim"], Kind.BOOLEAN: ["boolean"], Kind.ARRAY: ["multiselect"],
        Kind.INTEGER: ["money", "trim"], Kind.DECIMAL: ["money"],
    }.get(column.kind, ["trim", "lower", "upper", "html_text", "mojibake", "email", "phone", "country"])  # fmt: skip
    named = " | ".join(f'"{c}"' for c in calls)
    return (
        "root ::= call | strptime | split | column\n"
        f"column ::= {names}\n"
        f'call ::= ({named}) "(" column ")"\n'
        'strptime ::= "strptime(" column ", \'" form "\')"\n'
        "form ::= [%dmYybHMS./ :-]+\n"
        'split ::= "trim(split_part(" column ", \'" [,;|/ -] "\', " [1-3] "))"\n'
    )


def _reads(value: str, form: str) -> bool:
    try:
        return 1000 <= datetime.strptime(value, form).year <= 2999
    except ValueError:
        return False
