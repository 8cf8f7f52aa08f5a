"""What the row that stays holds: the SQL by which the values of a cluster's rows become one row's.

Texts of DuckDB over transformed rows; runs nothing.
"""

from __future__ import annotations

from pathlib import Path

from connectors.protocols import Kind
from engine.check import CheckedEntity
from engine.merge_plan import MergePlan, Ordered
from engine.query import identifier, literal

_NUMBERS = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)


def ranked(entity: CheckedEntity, rows: str, members: str) -> str:
    """A SELECT of n, home, home_key and rank: the rows of `members` (n, home) in the order of their clusters, by n.
    Where `home` is below 0 there is no such row, and it is NULL."""
    merge = _merge(entity)
    if isinstance(merge.survivor, Ordered):
        order = _ordered(entity, merge.survivor, "r.")
    else:
        filled = [f"CAST(r.{identifier(f.column.name)} IS NOT NULL AS INTEGER)" for f in entity.fields]
        order = f"({' + '.join(filled) or '0'}) DESC"
    return (
        f"SELECT m.n, CASE WHEN m.home >= 0 THEN m.home END AS home, h._ph_key AS home_key, "
        f"CAST(row_number() OVER (PARTITION BY m.home ORDER BY {order}, m.n) AS INTEGER) AS rank "
        f"FROM {members} m JOIN {rows} r ON r._ph_n = m.n LEFT JOIN {rows} h ON h._ph_n = m.home ORDER BY m.n"
    )


def merged_values(entity: CheckedEntity, rows: str, decided: Path) -> str:
    """A SELECT of _ph_n, a row that stays, and the entity's fields as its cluster gives them."""
    merge = _merge(entity)
    helped: list[str] = []
    chosen: list[str] = []
    home = {c: f"_ph_g{i}" for i, group in enumerate(merge.together) for c in group}
    for i, group in enumerate(merge.together):
        any_filled = " OR ".join(f"{identifier(c)} IS NOT NULL" for c in group)
        helped.append(f"min(CASE WHEN {any_filled} THEN _ph_rank END) OVER (PARTITION BY _ph_home) AS _ph_g{i}")
    for i, f in enumerate(entity.fields):
        name = identifier(f.column.name)
        rule = merge.fields.get(f.column.name, "first")
        if f.column.name in home:
            value = f"max({name}) FILTER (WHERE _ph_rank = {home[f.column.name]})"
        elif rule == "own":
            value = f"max({name}) FILTER (WHERE _ph_rank = 1)"
        else:
            order = ""
            if isinstance(rule, Ordered):
                order = f"{_ordered(entity, rule, '')}, "
            elif rule == "longest":
                order = f"length({name}) DESC, "
            elif rule == "frequent":
                helped.append(f"count(*) OVER (PARTITION BY _ph_home, {name}) AS _ph_c{i}")
                order = f"_ph_c{i} DESC, "
            value = f"first({name} ORDER BY {order}_ph_rank) FILTER (WHERE {name} IS NOT NULL)"
        if f.column.name in merge.strictest:
            strict = "true" if merge.strictest[f.column.name] else "false"
            value = f"CASE WHEN bool_or({name} = '{strict}') THEN '{strict}' ELSE {value} END"
        chosen.append(f"{value} AS {name}")
    helpers = "".join(f", {each}" for each in helped)
    values = "".join(f", {each}" for each in chosen)
    return (
        f"SELECT _ph_home AS _ph_n{values} FROM (SELECT d.home AS _ph_home, d.rank AS _ph_rank, r.*{helpers} FROM read_parquet({literal(str(decided))}) d "
        f"JOIN {rows} r ON r._ph_n = d.n WHERE d.home IS NOT NULL) GROUP BY _ph_home"
    )


def _ordered(entity: CheckedEntity, rule: Ordered, prefix: str) -> str:
    column = next(f.column for f in entity.fields if f.column.name == rule.column)
    value = f"{prefix}{identifier(column.name)}"
    if column.kind in _NUMBERS:
        value = f"CAST({value} AS DOUBLE)"
    return f"{value} {'ASC' if rule.oldest else 'DESC'} NULLS LAST"


def _merge(entity: CheckedEntity) -> MergePlan:
    assert entity.plan.merge is not None
    return entity.plan.merge
