"""The world of one sample: how large it is, whose keys are whose, and which rows have which kind of mess.

`Trouble` rows cannot be right on the other side: each names the target field and the reason code that a
correct migration quarantines it with. All other mess is undone without loss. No records are made here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .draw import Draw, Index, Lane, Lanes, Mask

FORMS = ("sqlite", "mariadb", "postgresql", "csv")
"""The forms a sample can be written in."""

NONE, NOWHERE = -1, -2
"""A reference that is empty, and one whose key no row has."""


@dataclass(frozen=True)
class Trouble(Lane):
    """Rows that belong in quarantine: the target field it shows in, and the reason code."""

    field: str = ""
    code: str = ""


def _t(name: str, share: float, field: str, code: str, floor: int = 2) -> Trouble:
    return Trouble(name, share, floor, field=field, code=code)


TROUBLES: dict[str, tuple[Lane, ...]] = {
    "users": (),
    "campaigns": (_t("period", 0.02, "ends_on", "check", 1),),
    "accounts": (
        _t("name_missing", 0.002, "name", "required"),
        _t("industry_unknown", 0.003, "industry", "map"),
        _t("country_unknown", 0.003, "country_code", "function"),
        _t("since_impossible", 0.002, "customer_since", "function"),
        _t("created_zero", 0.002, "created_at", "required"),
    ),
    "contacts": (
        _t("family_missing", 0.002, "family_name", "required"),
        _t("email_broken", 0.004, "email", "function"),
        _t("mobile_broken", 0.003, "mobile", "function"),
        _t("birth_half", 0.002, "birthday", "cast"),
        _t("birth_impossible", 0.001, "birthday", "cast"),
        _t("newsletter_odd", 0.003, "newsletter", "function"),
        _t("score_huge", 0.002, "engagement", "range"),
        _t("credit_words", 0.002, "credit_limit", "function"),
        _t("country_unknown", 0.003, "country_code", "function"),
        _t("source_unknown", 0.002, "acquired_through", "map"),
        _t("created_zero", 0.002, "created_at", "required"),
        _t("contract_impossible", 0.001, "contract_signed_on", "function"),
        _t("postal_long", 0.001, "postal_code", "length"),
        Trouble("twin", 0.004, 4, True, "email", "unique"),
        Lane("again", 0.004, 2, True),
    ),
    "leads": (
        _t("family_missing", 0.002, "family_name", "required"),
        _t("email_broken", 0.003, "email", "function"),
        _t("status_unknown", 0.003, "state", "map"),
        _t("amount_words", 0.003, "estimated_value", "function"),
        _t("created_zero", 0.002, "created_at", "required"),
    ),
    "opportunities": (
        _t("title_missing", 0.002, "title", "required"),
        _t("company_missing", 0.003, "company_id", "required"),
        _t("company_nowhere", 0.003, "company_id", "reference"),
        _t("amount_missing", 0.003, "amount", "required"),
        _t("amount_huge", 0.001, "amount", "range"),
        _t("amount_negative", 0.002, "amount", "check"),
        _t("probability_odd", 0.002, "win_probability", "check"),
        _t("stage_unknown", 0.003, "stage", "map"),
        _t("won_nothing", 0.002, "amount", "trigger"),
        _t("currency_gone", 0.002, "currency_code", "foreign_key"),
    ),
    "opportunities_contacts": (
        _t("person_nowhere", 0.003, "person_id", "reference"),
        Trouble("twin", 0.004, 4, True, "person_id", "unique"),
    ),
    "cases": (
        _t("subject_long", 0.004, "subject", "length"),
        _t("status_unknown", 0.003, "state", "map"),
        _t("created_zero", 0.002, "opened_at", "required"),
    ),
    "notes": (
        _t("subject_missing", 0.002, "subject", "required"),
        _t("created_zero", 0.002, "created_at", "required"),
    ),
    "calls": (
        _t("status_unknown", 0.003, "state", "map"),
        _t("duration_negative", 0.002, "duration_minutes", "check"),
    ),
    "meetings": (_t("status_unknown", 0.003, "state", "map"), _t("subject_missing", 0.002, "subject", "required")),
    "tasks": (_t("status_unknown", 0.003, "state", "map"),),
}
"""By legacy table. A plain lane among them is no trouble, but its rows have none either."""

_KINDS = frozenset(lane.name for lanes in TROUBLES.values() for lane in lanes)

DELETED: dict[str, float] = {
    "users": 0.1,
    "campaigns": 0.05,
    "accounts": 0.06,
    "contacts": 0.06,
    "leads": 0.08,
    "opportunities": 0.05,
    "opportunities_contacts": 0.05,
    "cases": 0.04,
    "notes": 0.05,
    "calls": 0.05,
    "meetings": 0.05,
    "tasks": 0.05,
}
"""The share of rows marked as deleted, by table."""

TEXT_MESS = (Lane("html", 0.03), Lane("html_twice", 0.008), Lane("mojibake", 0.02), Lane("spaces", 0.02))
"""How a text column is dirtied: entities, entities twice over, UTF-8 read as cp1252, blanks around."""
PLAIN_MESS = (Lane("html", 0.03), Lane("html_twice", 0.008), Lane("spaces", 0.02))
"""The same for texts that were never decoded wrongly."""

AS_SENT_MESS = (Lane("html", 0.03), Lane("html_twice", 0.008))
"""The same for texts whose blanks around are kept."""

_MISREAD = frozenset({"name", "family", "street", "city", "account_name"})

LANES: dict[str, tuple[Lane, ...]] = {
    "accounts.parent": (Lane("loop", 0.004, 2, True), Lane("self", 0.001, 1), Lane("nowhere", 0.005)),
    "accounts.phone": (Lane("broken", 0.01),),
    "accounts.money": (Lane("words", 0.01),),
    "accounts.staff": (Lane("words", 0.01),),
    "contacts.link": (Lane("nowhere", 0.005), Lane("old", 0.08)),
    "contacts.boss": (Lane("nowhere", 0.003), Lane("loop", 0.002, 2, True), Lane("boss", 0.05)),
    "contacts.side": (Lane("missing", 0.03),),
    "contacts.birth": (Lane("zero", 0.015),),
    "contacts.phone": (Lane("broken", 0.01),),
    "contacts.modified": (Lane("zero", 0.01),),
    "contacts.second": (Lane("second", 0.08, 12), Lane("nowhere", 0.002)),
    "leads.country": (Lane("words", 0.005),),
    "leads.phone": (Lane("broken", 0.01),),
    "leads.campaign": (Lane("nowhere", 0.003),),
    "leads.person": (Lane("nowhere", 0.003),),
    "opportunities.closed": (Lane("zero", 0.01),),
    "notes.parent": (Lane("nowhere", 0.006),),
    "notes.nul": (Lane("nul", 0.004),),
    "tasks.due": (Lane("zero", 0.02),),
    "calls.start": (Lane("zero", 0.01),),
}
"""Mess that is undone or becomes NULL, by table and what it concerns; shares are of the table's rows."""

_NOT_HELD: dict[str, frozenset[str]] = {
    # PostgreSQL has no zero timestamps and no NUL in a text; its date columns are text in this sample.
    "postgresql": frozenset({"created_zero", "modified_zero", "moment_zero", "nul"}),
    # A NUL byte ends a line for many readers of CSV.
    "csv": frozenset({"nul"}),
}


@dataclass(frozen=True)
class World:
    """One sample: `contacts` rows of contacts and what belongs to them, drawn by `seed`, for a form."""

    contacts: int
    seed: int
    form: str

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ValueError(f"no such form: {self.form}; there are {', '.join(FORMS)}")
        if not 200 <= self.contacts <= 50_000_000:
            raise ValueError(f"{self.contacts} contacts: a sample has 200 to 50,000,000")

    @cached_property
    def draw(self) -> Draw:
        """The draws of this seed."""
        return Draw(self.seed)

    @cached_property
    def rows(self) -> dict[str, int]:
        """Rows by table (link and side tables go with the table they belong to)."""
        n = self.contacts
        return {
            "users": 20 + min(n // 1000, 480),
            "campaigns": 15 + min(n // 500, 2000),
            "accounts": n // 4,
            "contacts": n,
            "leads": n * 6 // 10,
            "opportunities": n * 4 // 10,
            "opportunities_contacts": n // 2,
            "cases": n * 15 // 100,
            "notes": n * 8 // 10,
            "calls": n * 3 // 10,
            "meetings": n * 2 // 10,
            "tasks": n * 2 // 10,
        }

    @cached_property
    def _lanes(self) -> dict[str, Lanes]:
        return {}

    def lanes(self, name: str) -> Lanes:
        """The kinds of mess of `table.what`, of `table/trouble`, of `table/deleted` or of `table:column`."""
        if name not in self._lanes:
            table, _, what = name.replace(".", "/").replace(":", "/").partition("/")
            spec: tuple[Lane, ...]
            if name in LANES:
                spec = LANES[name]
            elif what == "trouble":
                spec = TROUBLES[table]
            elif what == "deleted":
                spec = (Lane("deleted", DELETED[table]),)
            else:
                spec = TEXT_MESS if what in _MISREAD else AS_SENT_MESS if name == "notes:body" else PLAIN_MESS
            self._lanes[name] = Lanes(self.draw, name, self.rows[table], spec)
        return self._lanes[name]

    def holds(self, kind: str) -> bool:
        """Whether this form can hold a kind of mess."""
        return kind not in _NOT_HELD.get(self.form, frozenset())

    def trouble(self, table: str, index: Index, kind: str) -> Mask:
        """True for the rows of a table that have that trouble, in forms and tables that know it."""
        if kind not in _KINDS:
            raise KeyError(kind)
        if not self.holds(kind) or kind not in self.lanes(f"{table}/trouble").lanes:
            return np.zeros(len(index), dtype=bool)
        return self.lanes(f"{table}/trouble").has(index, kind)

    def key(self, table: str, index: Index) -> pa.Array:
        """The keys of a table's rows; the first user is the administrator, whose key is 1."""
        keys = self.draw.keys(table, index)
        if table == "users":
            keys = pc.if_else(pa.array(index == 0), "1", keys)
        return keys

    def reference(self, table: str, target: Index, stream: str, index: Index) -> pa.Array:
        """Keys of the rows `target` of a table; NULL for NONE, a key that no row has for NOWHERE."""
        keys = self.key(table, np.maximum(target, 0))
        lost = target == NOWHERE
        if lost.any():
            keys = pc.replace_with_mask(keys, pa.array(lost), self.draw.keys(f"{stream}/nowhere", index[lost]))
        return pc.if_else(pa.array(target != NONE), keys, pa.scalar(None, pa.string()))

    def troubled(self, table: str, index: Index) -> Mask:
        """True for the rows of a table that have any trouble of their own."""
        mask = np.zeros(len(index), dtype=bool)
        for lane in TROUBLES[table]:
            if isinstance(lane, Trouble):
                mask |= self.trouble(table, index, lane.name)
        return mask
