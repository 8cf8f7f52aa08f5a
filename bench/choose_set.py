"""The made-up questions of `bench.choose`: which field an old column goes to, which column a new field comes from.

The columns are written by hand in eight families (English CRM, a cloud CRM's export, German, French/Spanish/
Italian, cryptic ERP names, Norwegian/Dutch/Swedish, spaced titles, home-grown). The candidates beside the
right one are drawn with a fixed seed: those of the same kind first, so that a question is not easy.
"""

from __future__ import annotations

import csv
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rapidfuzz import fuzz

from agent.models.protocol import NONE_OF_THESE

DEVELOPMENT = ("suite", "german", "cryptic")  # forms and weights are picked on these, figures come of the others

# field: kind
TARGETS: dict[str, dict[str, str]] = {
    "people": {
        "first_name": "text", "last_name": "text", "salutation": "text", "job_title": "text",
        "department": "text", "email": "email", "secondary_email": "email", "phone": "phone",
        "mobile": "phone", "fax": "phone", "street": "text", "city": "text", "postal_code": "code",
        "region": "text", "country": "text", "birthday": "date", "website": "url", "company_id": "reference",
        "owner_id": "reference", "lead_source": "text", "email_opt_out": "boolean", "do_not_call": "boolean",
        "description": "text", "created_at": "moment", "updated_at": "moment", "last_contacted_at": "moment",
        "assistant_name": "text", "language": "text", "time_zone": "text",
    },
    "companies": {
        "name": "text", "legal_name": "text", "industry": "text", "employees": "integer",
        "annual_revenue": "number", "tax_id": "code", "registration_number": "code", "website": "url",
        "phone": "phone", "fax": "phone", "email": "email", "billing_street": "text", "billing_city": "text",
        "billing_postal_code": "code", "billing_country": "text", "shipping_street": "text",
        "shipping_city": "text", "shipping_country": "text", "parent_id": "reference", "owner_id": "reference",
        "rating": "text", "account_type": "text", "customer_number": "code", "is_active": "boolean",
        "created_at": "moment", "updated_at": "moment", "description": "text", "credit_limit": "number",
        "payment_terms_days": "integer",
    },
    "deals": {
        "title": "text", "amount": "number", "currency": "text", "stage": "text", "probability": "integer",
        "expected_close_date": "date", "closed_at": "moment", "company_id": "reference",
        "person_id": "reference", "owner_id": "reference", "lead_source": "text", "next_step": "text",
        "loss_reason": "text", "description": "text", "created_at": "moment", "is_won": "boolean",
    },
    "activities": {
        "subject": "text", "body": "text", "kind": "text", "due_at": "moment", "starts_at": "moment",
        "ends_at": "moment", "duration_minutes": "integer", "done": "boolean", "location": "text",
        "direction": "text", "person_id": "reference", "company_id": "reference", "created_by": "reference",
        "created_at": "moment", "priority": "text",
    },
}  # fmt: skip

# a person might take one for the other; not offered where the right one is withheld
LOOSE = (
    {"phone", "mobile"}, {"email", "secondary_email"}, {"name", "legal_name"}, {"tax_id", "registration_number"},
    {"due_at", "starts_at"}, {"city", "region"}, {"closed_at", "expected_close_date"}, {"rating", "account_type"},
    {"subject", "body"}, {"body", "description"}, {"owner_id", "created_by"}, {"title", "description"},
    {"billing_city", "shipping_city"}, {"billing_country", "shipping_country"}, {"billing_street", "shipping_street"},
)  # fmt: skip


@dataclass(frozen=True)
class Question:
    """A choice with a known answer. With `to_field` an old column is asked about and `candidates` are fields of the
    new table; else a new field is, and they are columns of the old table. `right` is the index of the right one,
    `len(candidates)` where none is."""

    to_field: bool
    family: str
    table: str
    target: str
    subject: str
    candidates: tuple[str, ...]
    right: int
    types: dict[str, str]
    values: dict[str, tuple[str, ...]]

    @property
    def options(self) -> tuple[str, ...]:
        """The candidates and the last way out."""
        return (*self.candidates, NONE_OF_THESE)

    @property
    def held_out(self) -> bool:
        """True for a question that figures are reported on."""
        return self.family not in DEVELOPMENT

    @property
    def answerable(self) -> bool:
        """True where one of the candidates is right."""
        return self.right < len(self.candidates)


@dataclass(frozen=True)
class _Row:
    family: str
    table: str
    column: str
    type: str
    samples: tuple[str, ...]
    target: str
    gold: str


def load_questions(to_field: bool, seed: int = 1, withheld: float = 0.12) -> list[Question]:
    """All questions of one direction, the same for the same seed. The share `withheld` of them is asked
    without the right answer, so that "none of these" is right."""
    path = Path(__file__).with_name("choose_questions.csv")
    with path.open(encoding="utf-8", newline="") as file:
        found = csv.DictReader(file, delimiter="|", quoting=csv.QUOTE_NONE)
        rows = [
            _Row(r["family"], r["table"], r["column"], r["type"], _samples(r["samples"]), r["target"], r["gold"])
            for r in found
        ]
    questions = []
    for number, row in enumerate(rows):
        chance = random.Random(f"{seed}:{number}")
        if to_field:
            questions.append(_to_field(row, chance, withheld))
        elif row.gold in TARGETS[row.target]:
            same = [
                other for other in rows if other is not row and other.family == row.family and other.table == row.table
            ]
            questions.append(_to_column(row, same, chance, withheld))
    return [question for question in questions if len(question.candidates) > 2]


def _samples(text: str) -> tuple[str, ...]:
    return tuple(value.strip() for value in text.split(";") if value.strip() and value != "NULL")


def _to_field(row: _Row, chance: random.Random, withheld: float) -> Question:
    fields = TARGETS[row.target]
    gold = row.gold
    others = [name for name in fields if name != gold]
    chance.shuffle(others)
    alike = [name for name in others if gold in fields and fields[name] == fields[gold]][:3]
    near = sorted(others, key=lambda name: -fuzz.WRatio(row.column.lower(), name))
    present = gold in fields and chance.random() >= withheld
    unfair = _loose(gold) if not present else {"name", "legal_name"} if gold in ("name", "legal_name") else set()
    drawn = [name for name in dict.fromkeys([*alike, *near[:2], *others]) if name not in unfair]
    drawn = drawn[: chance.choice((4, 5, 6))]
    candidates = [gold, *drawn] if present else drawn
    chance.shuffle(candidates)
    right = candidates.index(gold) if present else len(candidates)
    return Question(
        True, row.family, row.table, row.target, row.column, tuple(candidates), right,
        {row.column: row.type}, {row.column: row.samples},
    )  # fmt: skip


def _to_column(row: _Row, same: list[_Row], chance: random.Random, withheld: float) -> Question:
    kinds = TARGETS[row.target]
    present = chance.random() >= withheld
    unfair = {row.gold} if present else {row.gold, *_loose(row.gold)}
    others = [other for other in same if other.gold not in unfair]
    chance.shuffle(others)
    others.sort(key=lambda other: kinds.get(other.gold) != kinds[row.gold])  # those of the same kind first
    count = chance.choice((4, 5, 6))
    drawn = [*others[:3], *chance.sample(others[3:], max(0, min(count - 3, len(others) - 3)))]
    shown = [row, *drawn] if present else drawn
    chance.shuffle(shown)
    right = shown.index(row) if present else len(shown)
    return Question(
        False, row.family, row.table, row.target, row.gold, tuple(r.column for r in shown), right,
        {r.column: r.type for r in shown}, {r.column: r.samples for r in shown},
    )  # fmt: skip


def _loose(gold: str) -> set[str]:
    return {name for pair in LOOSE if gold in pair for name in pair}


def value_kinds(question: Question) -> list[float]:
    """For each candidate 1 where the sample values of the column suit the field's kind, else 0."""
    if question.to_field:
        seen = _kinds_of(question.types[question.subject], question.values[question.subject])
        return [float(TARGETS[question.target][name] in seen) for name in question.candidates]
    wanted = TARGETS[question.target][question.subject]
    return [float(wanted in _kinds_of(question.types[n], question.values[n])) for n in question.candidates]


def _kinds_of(type_: str, values: Sequence[str]) -> set[str]:
    """The kinds of field that these values could be."""
    if not values:
        return {"reference", "text"}
    if all("@" in value for value in values):
        return {"email"}
    if all(re.fullmatch(r"(https?://)?[\w-]+(\.[\w-]+)+(/\S*)?", value) for value in values):
        return {"url"}
    if all(value.casefold() in _FLAGS for value in values):
        return {"boolean", "integer"}
    if "date" in type_.lower() or all(re.match(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}", value) for value in values):
        return {"date", "moment"}
    digits = [sum(c.isdigit() for c in value) for value in values]
    if all(re.fullmatch(r"[-\d.,]+[%kmKM]?", value) for value in values):
        long = max(digits) > 7
        return {"integer", "number", "reference", "code"} | ({"phone", "date", "moment"} if long else set())
    if all(7 <= count <= 15 and re.fullmatch(r"[-+()/. \d]+", v) for count, v in zip(digits, values, strict=True)):
        return {"phone"}
    if all(re.fullmatch(r"[\w-]{14,}", value) and count for count, value in zip(digits, values, strict=True)):
        return {"reference", "code"}
    return {"text", "code", "reference"} if max(digits) < 6 else {"text", "code", "phone"}


_FLAGS = {"0", "1", "-1", "y", "n", "x", "yes", "no", "true", "false", "allow", "do not allow", "active", "inactive"}
