"""Dumps of a loaded target that can be compared byte for byte, whatever ids a sequence gave.

Each entity's rows in the order of their source keys, an id of a sequence replaced by the source key that
the crosswalk has for it, and the checksums over such ids left out; then the whole table's count, so that a row beside the crosswalk shows.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import psycopg
from psycopg import sql

from engine.check import CheckedEntity, CheckedPlan


def dump_target(target: str, checked: CheckedPlan, folder: Path) -> dict[str, str]:
    """Writes a CSV an entity, of quarantine and of the ledger's sums; the SHA-256 of each by name."""
    folder.mkdir(parents=True, exist_ok=True)
    digests = {}
    with psycopg.connect(target) as connection:
        connection.execute("SET timezone = 'UTC'; SET datestyle = 'ISO, YMD'")
        for entity in checked.entities:
            digests[entity.name] = _copy(connection, _rows(entity, checked), folder / f"{entity.name}.csv")
            count = sql.SQL("SELECT {}, count(*) FROM {}").format(
                sql.Literal(entity.plan.to), sql.Identifier(entity.plan.to)
            )
            digests[f"{entity.plan.to} count"] = _copy(connection, count, folder / f"{entity.plan.to}-count.csv")
        sequenced = {e.name for e in checked.entities if e.plan.id == "sequence"}
        hashed = [e.name for e in checked.entities if sequenced.isdisjoint(e.references)]
        for name, query in _OURS.items():
            statement = sql.SQL(query).format(hashed=sql.Literal(hashed))
            digests[name] = _copy(connection, statement, folder / f"{name}.csv")
    return digests


_OURS = {
    "crosswalk": "SELECT e.name, x.batch, x.old_id, x.source_hash, CASE WHEN e.name = ANY({hashed}) THEN x.target_hash END FROM packhorse.crosswalk x "
    "JOIN packhorse.entity e ON e.id = x.entity_id ORDER BY 1, 3",
    "quarantine": "SELECT e.name, q.batch, q.key, q.field, q.code, q.signature, q.raw::text FROM packhorse.quarantine q "
    "JOIN packhorse.entity e ON e.id = q.entity_id ORDER BY 1, q.row",
    "ledger": "SELECT e.name, l.batch, l.step, l.read, l.inserted, l.updated, l.unchanged, l.matched, l.excluded, l.quarantined, "
    "CASE WHEN e.name = ANY({hashed}) THEN l.checksum END "
    "FROM packhorse.ledger l JOIN packhorse.entity e ON e.id = l.entity_id "
    # a retry given again drives what stayed once more, in a step that moves nothing
    "WHERE l.step < 3 OR (l.inserted, l.updated, l.unchanged, l.merged, l.excluded, l.quarantined) <> (0, 0, 0, 0, 0, 0) "
    "ORDER BY 1, 2, 3",
}


def _rows(entity: CheckedEntity, checked: CheckedPlan) -> sql.Composed:
    columns, joins = [], []
    for column in entity.target.columns:
        name = sql.Identifier(column.name)
        plan = entity.plan.fields.get(column.name)
        if entity.id_column is not None and column.name == entity.id_column.name and entity.plan.id == "sequence":
            continue
        if plan is not None and plan.ref is not None and checked.plan.entities[plan.ref].id == "sequence":
            # a join, since our schema has no index by new id
            alias = sql.Identifier(f"old {column.name}")
            columns.append(sql.SQL("{}.old_id AS {}").format(alias, name))
            joins.append(
                sql.SQL(
                    "LEFT JOIN packhorse.crosswalk {0} ON {0}.new_id = t.{1}::text "
                    "AND {0}.entity_id = (SELECT id FROM packhorse.entity WHERE name = {2})"
                ).format(alias, name, sql.Literal(plan.ref))
            )
        else:
            columns.append(sql.SQL("t.{}").format(name))
    if entity.id_column is not None:
        new_id: sql.Composable = sql.SQL("t.{}::text").format(sql.Identifier(entity.id_column.name))
    else:
        new_id = sql.SQL(" || chr(31) || ").join(
            sql.SQL("t.{}::text").format(sql.Identifier(c)) for c in entity.identity
        )
    return sql.SQL(
        "SELECT x.old_id, {} FROM packhorse.crosswalk x JOIN packhorse.entity e ON e.id = x.entity_id AND e.name = {} "
        'LEFT JOIN {} t ON {} = x.new_id {} ORDER BY x.old_id COLLATE "C"'
    ).format(
        sql.SQL(", ").join(columns), sql.Literal(entity.name), sql.Identifier(entity.plan.to), new_id,
        sql.SQL(" ").join(joins),
    )  # fmt: skip


def _copy(connection: psycopg.Connection[tuple[object, ...]], query: sql.Composable, path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("wb") as out, connection.cursor().copy(sql.SQL("COPY ({}) TO STDOUT").format(query)) as copy:
        for block in copy:
            out.write(block)
            digest.update(block)
    return digest.hexdigest()
