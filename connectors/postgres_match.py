"""SQL over rows that a PostgreSQL target held before a job: which they are, and what of them a source row fills.

Builds statements and runs none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from psycopg import sql

from connectors.postgres_rows import MERGED, found_row, held_json, name_of, shown_id
from connectors.protocols import Column
from connectors.records import FIT, Fill, LoadedEntity

_OWNED = """
LEFT JOIN {crosswalk} x ON x.entity_id = {entity} AND x.new_id = {id} AND NOT ({merged})
"""
_THERE_BEFORE = """
(x.old_id IS NULL AND {unmarked} OR x.replaced IS NOT NULL) AND NOT EXISTS (
  SELECT FROM {crosswalk} y JOIN {entities} e ON e.id = y.entity_id
   WHERE y.job_id = {job} AND y.entity_id <> {entity} AND e.target_table = {to} AND y.new_id = {id})
"""
_FILLED = """
SELECT r.{key}, {before}, ({hash}), ({reference}) FROM pg_temp.packhorse_rows r JOIN {table} t ON {same} {locked}
"""


def held_statement(
    entity: LoadedEntity, columns: Sequence[Column], marker: Column | None, ours: tuple[str, int, int] | None
) -> sql.Composed:
    """A SELECT of rows that the job didn't write, as text: the id, the source key that one was matched with before (NULL
    for most), then `columns`. Those that `marker` marks as deleted are left out, unless matched. `ours` is our schema, the job's number
    and the entity's, each -1 where there is none yet; None without our schema."""
    unmarked: sql.Composable = sql.SQL("true")
    if marker is not None:
        unmarked = sql.SQL("(t.{0} IS NULL OR t.{0}::text IN ('false', '0'))").format(sql.Identifier(marker.name))
    owner: sql.Composable = sql.SQL("NULL")
    joined: sql.Composable = sql.SQL("")
    condition = unmarked
    if ours is not None:
        schema, job, number = ours
        names: dict[str, sql.Composable] = {
            "crosswalk": sql.Identifier(schema, "crosswalk"), "entities": sql.Identifier(schema, "entity"),
            "entity": sql.Literal(number), "job": sql.Literal(job), "to": sql.Literal(entity.to),
            "id": shown_id(entity.identity), "unmarked": unmarked, "merged": MERGED,
        }  # fmt: skip
        owner, joined = sql.SQL("x.old_id"), sql.SQL(_OWNED).format(**names)
        condition = sql.SQL(_THERE_BEFORE).format(**names)
    shown = [shown_id(entity.identity), owner, *(sql.SQL("t.{}::text").format(sql.Identifier(c.name)) for c in columns)]
    return sql.SQL("SELECT {} FROM {} t {} WHERE {}").format(
        sql.SQL(", ").join(shown), name_of(entity.table), joined, condition
    )


def locked_statement(entity: LoadedEntity, key: str) -> sql.Composed:
    """A SELECT that locks the rows which packhorse_rows is about to fill: source key, what each holds, its hashes."""
    return _filled(entity, key, sql.SQL("({})::text").format(held_json(entity.table)), sql.SQL("FOR UPDATE OF t"))


def strayed_statement(entity: LoadedEntity, by: Sequence[Sequence[str]]) -> sql.Composed:
    """The DELETE of rows to fill whose target row no longer holds what made them fit; see FIT."""
    fits = sql.SQL(" ").join(
        sql.SQL("WHEN {} THEN {} || concat_ws(chr(31), {})").format(
            sql.Literal(f"{n}:"),
            sql.Literal(f"{n}:"),
            sql.SQL(", ").join(sql.SQL("t.{}::text").format(sql.Identifier(c)) for c in rule),
        )
        for n, rule in enumerate(by)
    )
    return sql.SQL(
        "DELETE FROM pg_temp.packhorse_rows r USING {table} t WHERE {same} AND {fit} IS NOT NULL "
        "AND {fit} <> CASE substring({fit} FROM '^[0-9]+:') {fits} END"
    ).format(table=name_of(entity.table), same=same_row_of(entity), fit=sql.Identifier("r", FIT), fits=fits)


def filled_statement(entity: LoadedEntity, key: str) -> sql.Composed:
    """The same of rows once they are filled, without what they hold."""
    return _filled(entity, key, sql.SQL("NULL::text"), sql.SQL(""))


def fill_statement(entity: LoadedEntity, rules: Mapping[str, Fill]) -> sql.Composed:
    """The UPDATE that fills, of rows that hold something else then. No NULL takes the place of a value."""
    values = {name: _value(sql.Identifier(name), rule) for name, rule in rules.items()}
    return sql.SQL("UPDATE {} t SET {} FROM pg_temp.packhorse_rows r WHERE {} AND ({})").format(
        name_of(entity.table),
        sql.SQL(", ").join(sql.SQL("{} = {}").format(sql.Identifier(name), value) for name, value in values.items()),
        same_row_of(entity),
        sql.SQL(" OR ").join(
            # as text: not every type can tell whether two values are equal
            sql.SQL("t.{}::text IS DISTINCT FROM ({})::text").format(sql.Identifier(name), value)
            for name, value in values.items()
        ),
    )


def same_row_of(entity: LoadedEntity) -> sql.Composed:
    """The join of a target row t with its row r in packhorse_rows."""
    return sql.SQL(" AND ").join(sql.SQL("t.{0} = r.{0}").format(sql.Identifier(c.name)) for c in entity.identity)


def _filled(entity: LoadedEntity, key: str, before: sql.Composable, locked: sql.Composable) -> sql.Composed:
    found = found_row(entity)
    return sql.SQL(_FILLED).format(
        key=sql.Identifier(key), before=before, hash=found.hash, reference=found.reference, table=name_of(entity.table),
        same=same_row_of(entity), locked=locked,
    )  # fmt: skip


def _value(name: sql.Identifier, rule: Fill) -> sql.Composed:
    """What the column will hold, of the row t that was there and the source's r."""
    forms = {"empty": "coalesce(t.{0}, r.{0})", "over": "coalesce(r.{0}, t.{0})", "keep": "t.{0}"}
    value = sql.SQL(forms[rule.how]).format(name)
    if rule.strict is None:
        return value
    strict = sql.Literal(rule.strict)
    return sql.SQL("CASE WHEN t.{0} = {1} OR r.{0} = {1} THEN {1} ELSE {2} END").format(name, strict, value)
