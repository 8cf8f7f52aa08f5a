"""Labels of numbered choices that one table keeps for many columns: `stage = 3`, and a table of column, number and label.

Told from values: a column that names columns of other tables, one with their numbers, one of words. Labels are
taken only where it is clear whose they are: two lists of the same name belong to two tables, and a wrong label would be
seen by nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from agent.lexicon import words
from agent.profile import ColumnProfile, TableProfile, profile_values
from agent.survey import Survey
from connectors.protocols import Kind

_LEAST_LABELLED = 0.9  # share of a column's numbers that the table has to know
_MOST_NUMBERS = 60  # of one list
_MOST_LISTS = 5_000  # rows of a table of labels
_BOOLEAN = frozenset({"yes", "no", "true", "false", "on", "off"})
_ENGLISH = ("1033", "en", "en-us", "en_us", "en-gb", "en_gb", "english")

_Row = Mapping[str, str]


@dataclass(frozen=True)
class CodeList:
    """The labels of one `column`: kept in `table`, in `label` beside the number in `number`, in the rows where each
    column of `conditions` has its value. `profile` is the column's as if it held the labels."""

    column: str
    table: str
    number: str
    label: str
    conditions: tuple[tuple[str, str], ...]
    profile: ColumnProfile


def code_lists(name: str, found: Survey) -> Iterator[CodeList]:
    """The lists of a table's numbered columns, one a column at most."""
    coded = [c for c in found.tables[name].columns if _numbered(found.tables[name], c)]
    if not coded:
        return
    shared = [s for t in found.tables if t != name and (s := _shared(t, found)) is not None]
    for column in coded:
        lists = [each for s in shared if (each := _list_of(s, name, column, found)) is not None]
        if len(lists) == 1:
            yield lists[0]


def labels_sql(of: CodeList, name: str, label: str, quote: Callable[[str], str]) -> str:
    """A SELECT of each number of `name` once, as `of_NAME`, with its `label`. A number without one stands for itself, so
    that it is asked about and not lost. Texts of 20 characters compare alike on every server."""
    number, tables = f"x.{quote(of.column)}", [".".join(quote(p) for p in t.split(".")) for t in (name, of.table)]
    text = f"CAST({number} AS CHAR(20))"
    told = "".join(f" AND l.{quote(c)} = '" + v.replace("'", "''") + "'" for c, v in of.conditions)
    return (
        f"SELECT {number} AS {quote(f'of_{name}')}, COALESCE(MIN(l.{quote(of.label)}), {text}) AS {quote(label)} "
        f"FROM {tables[0]} x LEFT JOIN {tables[1]} l ON CAST(l.{quote(of.number)} AS CHAR(20)) = {text}{told} "
        f"GROUP BY {number}"
    )


@dataclass(frozen=True)
class _Shared:
    """A table of labels: which of its columns names the column, the number, the label and, if any does, the owner."""

    table: str
    attribute: str
    number: str
    label: str
    owner: str
    rows: tuple[_Row, ...]


def _numbered(table: TableProfile, column: str) -> bool:
    profile = table.columns[column]
    pointing = {r.column for r in table.references if r.known_by == "declared"}
    return (
        column not in table.key
        and column not in pointing
        and profile.trait("integer") > 0.95
        and 1 < profile.distinct <= _MOST_NUMBERS
    )


def _shared(name: str, found: Survey) -> _Shared | None:
    table, sample = found.tables[name], found.samples[name]
    if not 4 <= table.rows <= _MOST_LISTS or sample.num_rows < table.rows or len(table.columns) > 12:
        return None
    rows = [{k: "" if v is None else str(v).strip() for k, v in row.items()} for row in sample.to_pylist()]
    texts = [c for c, p in table.columns.items() if p.trait("letters") > 0.8 and p.distinct > 1]
    columns = {c.casefold() for n, t in found.tables.items() if n != name for c in t.columns}
    naming = [c for c in texts if _share({r[c].casefold() for r in rows}, columns) >= 0.5]
    if len(naming) != 1:
        return None
    attribute = naming[0]
    owner = _owner(name, attribute, texts, rows, found)
    labels = [c for c in texts if c not in (attribute, owner)]
    labels.sort(key=lambda c: -table.columns[c].distinct)
    lists = len({r[attribute] for r in rows})
    numbers = [
        c for c, p in table.columns.items()
        if p.trait("integer") > 0.95 and c != owner and not p.unique and len({(r[attribute], r[c]) for r in rows}) > lists
    ]  # fmt: skip
    if not labels or not numbers:
        return None
    if len(numbers) > 1:  # beside the number: the order in which a form shows them, a language
        said = [c for c in numbers if set(words(c)) & {"value", "code", "number", "no", "key", "option", "wert", "nr"}]
        numbers = said if len(said) == 1 else []
    return _Shared(name, attribute, numbers[0], labels[0], owner, tuple(rows)) if numbers else None


def _share(values: set[str], known: set[str]) -> float:
    return len(values & known) / len(values) if values else 0.0


def _owner(name: str, attribute: str, texts: list[str], rows: list[dict[str, str]], found: Survey) -> str:
    """The column that says whose list it is: by the name of a table, or by a number that nearly all rows of a list share."""
    tables = [n for n in found.tables if n != name]
    for column in texts:
        values = {r[column] for r in rows}
        if column != attribute and sum(any(_names(v, t) for t in tables) for v in values) >= 0.5 * len(values):
            return column
    lists = {r[attribute] for r in rows}
    for column, profile in found.tables[name].columns.items():
        if profile.trait("integer") <= 0.95 or not 1 < profile.distinct <= len(lists):
            continue
        alone = [a for a in lists if len({r[column] for r in rows if r[attribute] == a}) == 1]
        if 2 * len(alone) >= len(lists):
            return column
    return ""


def _names(value: str, table: str) -> bool:
    """True for a table's own name, in the singular or the plural."""
    ours, theirs = (w.casefold().replace("_", "").replace(" ", "") for w in (value, table.split(".")[-1]))
    return bool(ours) and bool(_forms(ours) & _forms(theirs))


def _forms(name: str) -> set[str]:
    return {name, name.removesuffix("s"), name[:-3] + "y" if name.endswith("ies") else name}


def _list_of(shared: _Shared, name: str, column: str, found: Survey) -> CodeList | None:
    attributes = {r[shared.attribute] for r in shared.rows if r[shared.attribute].casefold() == column.casefold()}
    if len(attributes) != 1:
        return None
    attribute = attributes.pop()
    rows = [r for r in shared.rows if r[shared.attribute] == attribute]
    conditions = [(shared.attribute, attribute)]
    if shared.owner:
        owner = _owned_by(shared, name, found)
        if owner is None:
            return None
        rows = [r for r in rows if r[shared.owner] == owner]
        conditions.append((shared.owner, owner))
    elif sum(any(c.casefold() == column.casefold() for c in t.columns) for t in found.tables.values()) > 1:
        return None  # nothing says whose list it is
    if _many(rows, shared):
        language = _language(rows, shared, found.tables[shared.table])
        if language is None:
            return None
        conditions.append(language)
        rows = [r for r in rows if r[language[0]] == language[1]]
    labels = {r[shared.number]: r[shared.label] for r in rows if r[shared.label]}
    raw = found.tables[name].columns[column]
    values = [None if v is None else str(v).strip() for v in found.samples[name].column(column).to_pylist()]
    if _share({v for v in values if v}, set(labels)) < _LEAST_LABELLED:
        return None
    if {label.casefold() for label in labels.values()} <= _BOOLEAN:
        return None  # says no more than the number
    profile = profile_values(
        replace(found.tables[shared.table].columns[shared.label].column, name=f"{column}_label", kind=Kind.TEXT),
        [labels.get(v, v) if v else v for v in values],
        rows=raw.rows, nulls=raw.nulls, blanks=raw.blanks, distinct=raw.distinct, capped=raw.capped,
    )  # fmt: skip
    return CodeList(column, shared.table, shared.number, shared.label, tuple(conditions), profile)


def _many(rows: list[_Row], shared: _Shared) -> bool:
    return len({(r[shared.number], r[shared.label]) for r in rows}) > len({r[shared.number] for r in rows})


def _language(rows: list[_Row], shared: _Shared, table: TableProfile) -> tuple[str, str] | None:
    """The column that tells several wordings of a number apart, and the value to read: English where there is one."""
    for column in table.columns:
        if column in (shared.attribute, shared.number, shared.label, shared.owner):
            continue
        values = sorted({r[column] for r in rows})
        numbers = {r[shared.number] for r in rows}
        full = [
            v for v in values
            if {r[shared.number] for r in rows if r[column] == v} == numbers
            and not _many([r for r in rows if r[column] == v], shared)
        ]  # fmt: skip
        if full:
            return column, next((v for v in full if v.casefold() in _ENGLISH), full[0])
    return None


def _owned_by(shared: _Shared, name: str, found: Survey) -> str | None:
    """The owner that is this table: by name, else the one whose lists are all columns of this table and of no other."""
    owners = {r[shared.owner] for r in shared.rows}
    named = [o for o in owners if _names(o, name)]
    if named:
        return named[0] if len(named) == 1 else None
    mine = []
    for owner in owners:
        lists = {r[shared.attribute].casefold() for r in shared.rows if r[shared.owner] == owner}
        fits = [n for n, t in found.tables.items() if lists <= {c.casefold() for c in t.columns}]
        if fits == [name]:
            mine.append(owner)
    return mine[0] if len(mine) == 1 and mine[0].lstrip("-").isdigit() else None
