"""What the columns of a table say, read in one another's company.

A name alone is ambiguous: `name` beside a first name is the last name, `state` without an address is a status.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from agent.lexicon import Meaning, column_meaning, table_meaning, words
from agent.lexicon_words import MEANINGS, WORDS
from agent.structure import Relation
from connectors.protocols import Table


def relation_meanings(relation: Relation) -> dict[str, Meaning]:
    """What each column of a relation says, read in the company of the others."""
    said = {o.name: column_meaning(o.says or o.name, relation.holds) for o in relation.columns}
    for origin in relation.columns:
        meaning = said[origin.name]
        flag = origin.profile.trait("boolean") == 1 and origin.profile.distinct <= 2
        if flag and meaning.qualifiers and meaning.core <= {"address", "email", "phone", "name"}:
            said[origin.name] = Meaning(meaning.qualifiers, faint=meaning.core)  # `primary_address` = 1: is primary
    return in_company(said, relation.holds)


def table_meanings(table: Table) -> dict[str, Meaning]:
    """What each column of a target table says. Where one office number and no other is kept, it is the number."""
    out = in_company({c.name: column_meaning(c.name, table.name) for c in table.columns}, table.name)
    for name, meaning in out.items():
        alone = not any(m.core == meaning.core and m.place != meaning.place and not m.place for m in out.values())
        if meaning.place in ("work", "primary", "mailing") and alone:
            out[name] = replace(meaning, qualifiers=meaning.qualifiers - {meaning.place})
    return out


_PLACES = ("primary", "billing", "shipping", "mailing", "home", "work", "alternate")
_TEXTS = (frozenset({"description"}), frozenset({"body"}), frozenset({"note"}))


def in_company(out: dict[str, Meaning], table: str) -> dict[str, Meaning]:
    """Meanings of a table's columns that hang on the columns beside them: beside a first name, `name` is the
    last name; in a table of companies that has no name, `company` is it, and a second line of a name adds to the
    first; where people are, a title is a job's, or where that and an address are told otherwise, an academic one;
    where one column only can be a record's heading or its long text, it is that; without an address, a state is
    a status, and with one, the code of a billing address is its postal code."""
    out = _second_lines(out)
    cores = [m.core for m in out.values()]
    person = (
        frozenset({"first_name"}) in cores or frozenset({"last_name"}) in cores or frozenset({"full_name"}) in cores
    )
    rules: list[tuple[bool, str, str]] = [
        (frozenset({"first_name"}) in cores and frozenset({"last_name"}) not in cores, "name", "last_name"),
        (person and frozenset({"job_title"}) not in cores, "title", "job_title"),
        (person and {frozenset({"job_title"}), frozenset({"salutation"})} <= set(cores), "title", "academic_title"),
        (person and frozenset({"job_title"}) in cores, "title", "form_of_address"),
        (
            bool(table_meaning(table).core & {"organisation", "customer"}) and frozenset({"name"}) not in cores,
            "organisation",
            "name",
        ),
    ]
    for holds, said, meant in rules:
        named = [n for n, m in out.items() if m.core == {said} and not m.faint and not m.qualifiers]
        if holds and len(named) == 1:
            out[named[0]] = replace(out[named[0]], core=frozenset({meant}))
    address = {"city", "postal_code", "street"}
    placed = any(core & address for core in cores)
    for name, meaning in out.items():
        if meaning.core == {"region"} and not placed and "state" in words(name):
            out[name] = replace(meaning, core=frozenset({"status"}))  # a state of things, not of a country
        if (
            meaning.core == {"code"}
            and meaning.place in _PLACES
            and placed
            and not any(m.core == {"postal_code"} and m.place == meaning.place for m in out.values())
        ):
            out[name] = replace(meaning, core=frozenset({"postal_code"}))
    if "email" in table_meaning(table).core:
        for name, meaning in out.items():
            if meaning.core == {"address"}:
                out[name] = replace(meaning, core=frozenset({"email"}))
    texts = [n for n, m in out.items() if m.core in _TEXTS and not m.qualifiers]
    if len(texts) == 1:
        out[texts[0]] = replace(out[texts[0]], core=frozenset({"description"}))
    headings = [n for n, m in out.items() if m.core <= {"name", "title", "subject"} and not m.qualifiers]
    if len(headings) == 1 and not person:
        out[headings[0]] = replace(out[headings[0]], core=frozenset({"name"}))
    return out


def _second_lines(said: Mapping[str, Meaning]) -> dict[str, Meaning]:
    """A name's further lines (`Firma2` beside `Firma`, `NAME2` beside `NAME1`) as additions to it."""
    out = dict(said)
    for core in (frozenset({"name"}), frozenset({"organisation"})):
        if any(m.core == core and not m.numbers for m in said.values()):
            for name, meaning in said.items():
                if meaning.core == core and meaning.numbers and meaning.numbers <= {"2", "3", "4"}:
                    out[name] = replace(meaning, core=frozenset({"name_addition"}), numbers=meaning.numbers - {"2"})
    return out


def readable(meaning: Meaning) -> bool:
    """True where the lexicon knows a word of the name."""
    return any(_known(token) for token in meaning.core | meaning.qualifiers)


def understood(meaning: Meaning) -> bool:
    """True where the lexicon knows all that the name is about: no rule may say of another name that none fits it."""
    return all(_known(token) for token in meaning.core)


def _known(token: str) -> bool:
    return token in WORDS or token in MEANINGS
