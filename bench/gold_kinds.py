"""What the gold plan says of a table with several kinds of record: where each value of the column that tells goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import duckdb
import sqlglot
from sqlglot import exp

from agent.kinds import EMPTY, FILLED, Kinds, read_kinds
from engine.plan import EntityPlan

NONE = "none"


def answer_kinds(offered: Sequence[str], entities: Sequence[EntityPlan]) -> str | None:
    """The answer that agrees with the gold plan's entities of a table, one that is offered or else one of the same column
    in words; `none` where they take all rows alike, None where the gold plan tells by something else."""
    own = []
    for answer in offered:
        kinds = read_kinds(answer)
        places = [_places(entities, kinds.column, value) for value, _ in kinds.places]
        if any(found is None or len(found) > 1 for found in places) or not any(places):
            continue
        told = Kinds(
            kinds.column,
            tuple((v, found[0] if found else None) for (v, _), found in zip(kinds.places, places, strict=True)),
        )
        if told == kinds:
            return answer
        own.append(told.text)
    if own:
        return own[0]
    return NONE if len({e.to for e in entities}) < 2 or not any(list(_conditions(e)) for e in entities) else None


def told_kinds(entities: Sequence[EntityPlan]) -> str:
    """The kinds that the gold plan's entities of a table tell apart by the values of one column; empty where they don't."""
    conditions = [c for e in entities for c in _conditions(e)]
    columns = dict.fromkeys(n.name for c in conditions for n in c.find_all(exp.Column))
    for column in columns:
        own = [c for c in conditions if {n.name for n in c.find_all(exp.Column)} == {column}]
        values = dict.fromkeys(v.this for c in own for v in c.find_all(exp.Literal) if str(v.this).strip())
        found = {value: _places(entities, column, value) or [] for value in (*values, EMPTY, FILLED)}
        places = tuple((v, f[0]) for v, f in found.items() if len(f) == 1)
        if len({t for _, t in places}) > 1 and all(len(f) < 2 for f in found.values()):
            return Kinds(column, places).text
    return ""


def _places(entities: Sequence[EntityPlan], column: str, value: str) -> list[str] | None:
    """The tables that a row of that value goes to; None where no entity looks at the column."""
    tests = [[c for c in _conditions(e) if {n.name for n in c.find_all(exp.Column)} == {column}] for e in entities]
    if not any(tests):
        return None
    return list(
        dict.fromkeys(
            e.to for e, own in zip(entities, tests, strict=True) if all(_holds(c, column, value) for c in own)
        )
    )


def _conditions(entity: EntityPlan) -> Iterator[exp.Expr]:
    """The conditions that all have to hold of an entity's rows, each for itself."""
    if entity.is_select:
        where = sqlglot.parse_one(entity.from_, dialect="duckdb").args.get("where")
        yield from _parts(where.this) if where is not None else ()
    for condition in entity.conditions.values():
        yield from _parts(sqlglot.parse_one(condition, dialect="duckdb"))


def _parts(condition: exp.Expr) -> Iterator[exp.Expr]:
    bare = condition.unnest()
    if isinstance(bare, exp.And):
        yield from _parts(bare.left)
        yield from _parts(bare.right)
    else:
        yield bare


def _holds(condition: exp.Expr, column: str, value: str) -> bool:
    """Whether a condition on one column holds of a row with that value."""
    plain = condition.copy()
    for named in plain.find_all(exp.Column):
        named.set("table", None)
    given = {EMPTY: None, FILLED: "x"}.get(value, value)
    quoted = '"' + column.replace('"', '""') + '"'
    query = f"SELECT ({plain.sql(dialect='duckdb')}) FROM (SELECT $value::VARCHAR AS {quoted})"
    try:
        with duckdb.connect() as connection:
            row = connection.execute(query, {"value": given}).fetchone()
    except duckdb.Error:  # no value of that type, or a function of the engine's own
        return False
    return bool(row and row[0])
