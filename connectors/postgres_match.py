"""SQL over rows that a PostgreSQL target held before a job: which they are, and what of them a source row fills.

Builds statements and runs none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from psycopg import sql

from connectors.postgres_rows import MERGED, found_row, held_json, held_value, key_part, name_of, shown_id
from connectors.protocols import Column, Table, UniqueKey
from connectors.records import FIT, Fill, LoadedEntity

_OWNED = """
LEFT JOIN {crosswalk} x ON x.entity_id = {entity} AND x.new_id = {id} AND NOT ({merged})
"""
_THERE_BEFORE = """
(x.old_id IS NULL AND {unmarked} OR x.replaced IS NOT NULL) AND NOT EXISTS (
  SELECT FROM {crosswalk} y JOIN {entities} e ON e.id = y.entity_id
   WHERE y.job_id = {job} AND y.entity_id <> {entity} AND e.target_table = {to} AND y.new_id = {id})
"""
_FITS = """
SELECT s._ph_n, {rule} AS _ph_rule, h._ph_id, h._ph_unmarked, h._ph_fit FROM (SELECT t._ph_n, {parts} FROM pg_temp.packhorse_rows t) s
  JOIN (SELECT {id} AS _ph_id, {unmarked} AS _ph_unmarked, {fit} AS _ph_fit, {parts} FROM {table} t) h ON {same} WHERE {filled}
"""
_FITTING = """
SELECT DISTINCT ON (_ph_n) _ph_n::bigint, _ph_rule, fits, id, fit, owner FROM (
  SELECT t._ph_n, t._ph_rule, count(*)::int AS fits, min(t._ph_id) AS id, min(t._ph_fit) AS fit, min(x.old_id) AS owner
    FROM pg_temp.packhorse_fits t {owned} WHERE {there_before} GROUP BY 1, 2) found
 ORDER BY _ph_n, _ph_rule
"""
_BEFORE = """
SELECT x.old_id, ARRAY[{values}]::text[] FROM {crosswalk} x LEFT JOIN LATERAL (
  SELECT b.held FROM {held_before} b WHERE (b.entity_id, b.old_id, b.job_id) = (x.entity_id, x.old_id, {job})
     AND b.held IS NOT NULL ORDER BY b.step LIMIT 1) b ON true
 WHERE x.entity_id = {entity} AND x.old_id = ANY({keys}) AND x.replaced IS NOT NULL
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
    unmarked = _unmarked(marker)
    owner: sql.Composable = sql.SQL("NULL")
    joined: sql.Composable = sql.SQL("")
    condition = unmarked
    if ours is not None:
        names = _names(entity, ours, shown_id(entity.identity), unmarked)
        owner, joined = sql.SQL("x.old_id"), sql.SQL(_OWNED).format(**names)
        condition = sql.SQL(_THERE_BEFORE).format(**names)
    shown = [shown_id(entity.identity), owner, *(sql.SQL("t.{}::text").format(sql.Identifier(c.name)) for c in columns)]
    return sql.SQL("SELECT {} FROM {} t {} WHERE {}").format(
        sql.SQL(", ").join(shown), name_of(entity.table), joined, condition
    )


def lock_statement(table: Table) -> sql.Composed:
    """The LOCK that has others who write to a table, or lock all of it, wait; not those who read."""
    return sql.SQL("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE").format(name_of(table))


def fits_statement(entity: LoadedEntity, rules: Sequence[UniqueKey], marker: Column | None) -> sql.Composed:
    """Makes packhorse_fits: a row for each row of packhorse_rows and each row of the target that it fits by a rule, whoever
    wrote that."""
    fits = []
    for number, rule in enumerate(rules):
        keys = [sql.Identifier(f"_ph_k{i}") for i in range(len(rule.expressions))]
        parts = [
            sql.SQL("{} AS {}").format(key_part(part, rule, entity.table), key)
            for part, key in zip(rule.expressions, keys, strict=True)
        ]
        fits.append(
            sql.SQL(_FITS).format(
                rule=sql.Literal(number), parts=sql.SQL(", ").join(parts), id=shown_id(entity.identity), table=name_of(entity.table),
                unmarked=_unmarked(marker), fit=_fit(number, rule.columns),
                same=sql.SQL(" AND ").join(sql.SQL("s.{0} = h.{0}").format(key) for key in keys),
                # DuckDB's trim, by which rows were matched, takes off blanks alone, as this one does
                filled=sql.SQL(" AND ").join(sql.SQL("btrim(s.{}::text) <> ''").format(key) for key in keys),
            )
        )  # fmt: skip
    return sql.SQL("CREATE TEMP TABLE packhorse_fits ON COMMIT DROP AS {}").format(sql.SQL(" UNION ALL ").join(fits))


def fitting_statement(entity: LoadedEntity, ours: tuple[str, int, int]) -> sql.Composed:
    """The SELECT of FittingRow's values out of packhorse_fits, without rows that the job wrote. `ours` as for
    `held_statement`."""
    names = _names(entity, ours, sql.Identifier("t", "_ph_id"), sql.Identifier("t", "_ph_unmarked"))
    return sql.SQL(_FITTING).format(
        owned=sql.SQL(_OWNED).format(**names), there_before=sql.SQL(_THERE_BEFORE).format(**names)
    )


def before_statement(ours: tuple[str, int, int], keys: Sequence[str], columns: Sequence[Column]) -> sql.Composed:
    """A SELECT of source keys, and of what their rows held in these columns when the job first wrote to them, as text.
    `ours` as for `held_statement`."""
    schema, job, number = ours
    held = sql.SQL("coalesce(b.held, x.replaced)")
    return sql.SQL(_BEFORE).format(
        values=sql.SQL(", ").join(sql.SQL("{}::text").format(held_value(column, held)) for column in columns),
        crosswalk=sql.Identifier(schema, "crosswalk"), held_before=sql.Identifier(schema, "held_before"),
        job=sql.Literal(job), entity=sql.Literal(number), keys=sql.Literal(list(keys)),
    )  # fmt: skip


def _unmarked(marker: Column | None) -> sql.Composable:
    """Whether a target row t isn't marked as deleted."""
    if marker is None:
        return sql.SQL("true")
    return sql.SQL("(t.{0} IS NULL OR t.{0}::text IN ('false', '0'))").format(sql.Identifier(marker.name))


def _names(
    entity: LoadedEntity, ours: tuple[str, int, int], id_: sql.Composable, unmarked: sql.Composable
) -> dict[str, sql.Composable]:
    """What _OWNED and _THERE_BEFORE speak of, for a row of that id."""
    schema, job, number = ours
    return {
        "crosswalk": sql.Identifier(schema, "crosswalk"), "entities": sql.Identifier(schema, "entity"),
        "entity": sql.Literal(number), "job": sql.Literal(job), "to": sql.Literal(entity.to), "id": id_,
        "unmarked": unmarked, "merged": MERGED,
    }  # fmt: skip


def _fit(number: int, columns: Sequence[str]) -> sql.Composed:
    """FIT of a target row t by a rule."""
    shown = sql.SQL(", ").join(sql.SQL("t.{}::text").format(sql.Identifier(c)) for c in columns)
    return sql.SQL("{} || concat_ws(chr(31), {})").format(sql.Literal(f"{number}:"), shown)


def locked_statement(entity: LoadedEntity, key: str) -> sql.Composed:
    """A SELECT that locks the rows which packhorse_rows is about to fill: source key, what each holds, its hashes."""
    return _filled(entity, key, sql.SQL("({})::text").format(held_json(entity.table)), sql.SQL("FOR UPDATE OF t"))


def strayed_statement(entity: LoadedEntity, by: Sequence[Sequence[str]]) -> sql.Composed:
    """The DELETE of rows to fill whose target row no longer holds what made them fit; see FIT."""
    fits = sql.SQL(" ").join(
        sql.SQL("WHEN {} THEN {}").format(sql.Literal(f"{n}:"), _fit(n, rule)) for n, rule in enumerate(by)
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
