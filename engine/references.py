"""The second pass: references within an entity, or to entities that are loaded after it.

One transaction a part, with a ledger row of its own, so that a crash between or within the passes repeats
nothing and leaves nothing out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from connectors.protocols import LedgerRow, RowsRefusedError
from connectors.target import Target
from engine.batch import shown_key
from engine.check import CheckedEntity, CheckedField
from engine.compile import stage_columns, target_hash_sql
from engine.context import Context
from engine.expressions import Compiler
from engine.loaded import loaded_entity
from engine.match_rows import fill_rules
from engine.merge import decided_path
from engine.prepare import Preparer
from engine.query import EXCLUDED, identifier, literal, read_parts
from engine.refusing import load_refusing
from engine.stage import part_path
from engine.transaction import batch_transaction
from engine.transform import execute, fetch
from workspace.events import PartStaged


def referring_sql(entity: CheckedEntity, planned: CheckedField, stage: Sequence[Path], keys: str) -> str:
    """A SELECT of the numbers of staged rows whose reference `planned` is to one of the source keys that the table `keys`
    has, trimmed and in lower case, as `key`. The Parquet files are at least one."""
    compiler = Compiler(stage_columns(entity))
    piece = compiler.compile(planned.plan.expression, planned.where)
    text = f"lower(hex({piece.sql}))" if piece.type == "BLOB" else f"CAST({piece.sql} AS VARCHAR)"
    source = f"SELECT * FROM {read_parts(stage)}"
    for level in compiler.hoists.levels:
        calls = ", ".join(f"{call} AS {name}" for call, name in level.items())
        source = f"SELECT *, {calls} FROM ({source})"
    return f"SELECT _ph_n FROM ({source}) WHERE lower(trim({text})) IN (SELECT key FROM {keys})"


def resolve_references(preparer: Preparer, entity: CheckedEntity, parts: Sequence[PartStaged]) -> Path:
    """Looks up the deferred references of all of an entity's rows at once; a Parquet of those that are to be set
    (`_ph_set`), and of those where something was left NULL (`_ph_changes`). The parts are at least one."""
    return resolve_in(preparer, entity, [part_path(preparer.paths.stage / entity.name, part.part) for part in parts])


def resolve_in(preparer: Preparer, entity: CheckedEntity, stage: Sequence[Path]) -> Path:
    """The same of the rows in these Parquet files, which are as the stage's."""
    columns = [f.column.name for f in entity.deferred]
    query = preparer.second_pass(entity)
    crosswalk = literal(str(preparer.crosswalks[entity.name]))
    some = " OR ".join(f"q.{identifier(c)} IS NOT NULL" for c in columns)
    # NULL where a row refers to nothing, as in a crosswalk row that is new
    hash_ = f"CASE WHEN {some} THEN q._ph_target_hash END"
    names = ", ".join(identifier(c) for c in columns)
    listed = ", ".join(f"q.{identifier(c)}" for c in columns)
    replaced, wanted = "CAST(NULL AS VARCHAR)", f"replace(x.reference_hash, '-', '') IS DISTINCT FROM {hash_}"
    if entity.plan.match is not None:
        # a matched row is filled by what it holds then, and what the source lacks takes nothing from it
        replaced, wanted = "x.replaced", f"CASE WHEN x.replaced = 't' THEN {some} ELSE {wanted} END"
    out = preparer.folder(entity) / "references.parquet"
    execute(
        preparer.duck,
        # Materialised: a filter pushed into the query's own joins makes them compare row by row.
        f"COPY (WITH p AS MATERIALIZED (SELECT _ph_n, _ph_key, _ph_outcome, _ph_target_hash, _ph_changes, {names} "
        f"FROM ({query.over(*stage)}) AS q), q AS MATERIALIZED ({_of_clusters(preparer, entity)}), "
        f"r AS (SELECT q._ph_n, q._ph_key, x.new_id AS _ph_id, {hash_} AS _ph_target_hash, {listed}, q._ph_changes, "
        f"{replaced} AS _ph_replaced, q._ph_outcome <> {EXCLUDED} AND {wanted} AS _ph_set "
        f"FROM q JOIN read_parquet({crosswalk}) x ON x.old_id = q._ph_key WHERE x.merged IS DISTINCT FROM 't') "
        f"SELECT * FROM r WHERE _ph_set OR _ph_changes IS NOT NULL ORDER BY _ph_n) "
        f"TO {literal(str(out))} (FORMAT parquet, COMPRESSION lz4)",
    )
    return out


def _of_clusters(preparer: Preparer, entity: CheckedEntity) -> str:
    """The rows of p: without those that were merged, and where others were merged into a row, with the first reference
    that one of its cluster has, by the cluster's order, and none to the row itself."""
    path = decided_path(preparer.paths, entity.name)
    if entity.plan.merge is None or not path.exists():
        return "SELECT * FROM p"
    decided, crosswalk = literal(str(path)), literal(str(preparer.crosswalks[entity.name]))
    names = [identifier(f.column.name) for f in entity.deferred]
    firsts, taken = [], []
    for f, name in zip(entity.deferred, names, strict=True):
        other = f" AND {name} IS DISTINCT FROM _ph_own" if f.plan.ref == entity.name else ""
        firsts.append(f"first({name} ORDER BY _ph_rank) FILTER (WHERE {name} IS NOT NULL{other}) AS {name}")
        taken.append(f"CASE WHEN m._ph_home IS NOT NULL THEN m.{name} ELSE p.{name} END AS {name}")
    hashed = target_hash_sql(entity.deferred, [f"m.{name}" for name in names], None)
    return (
        f"SELECT p.* REPLACE ({', '.join(taken)}, "
        f"CASE WHEN m._ph_home IS NOT NULL THEN {hashed} ELSE p._ph_target_hash END AS _ph_target_hash) "
        f"FROM p LEFT JOIN (SELECT _ph_home, {', '.join(firsts)} FROM "
        f"(SELECT p.*, d.home AS _ph_home, d.rank AS _ph_rank, x.new_id AS _ph_own FROM p "
        f"JOIN read_parquet({decided}) d ON d.n = p._ph_n LEFT JOIN read_parquet({crosswalk}) x ON x.old_id = d.home_key) "
        f"GROUP BY _ph_home) m ON m._ph_home = p._ph_n "
        f"ANTI JOIN (SELECT n FROM read_parquet({decided}) WHERE home IS DISTINCT FROM n) g ON g.n = p._ph_n"
    )


def fill_part(
    ctx: Context, preparer: Preparer, entity: CheckedEntity, resolved: Path, part: PartStaged, start: int
) -> tuple[LedgerRow, dict[str, int]] | None:
    """Fills the deferred references of one part's rows, which begin at number `start`; the ledger row, and what was
    left NULL by `field: change`. None when the ledger has it already."""
    rows, missing = rows_to_fill(preparer, entity, resolved, start, start + part.rows)
    row = LedgerRow(
        entity.name, part.part, 2, shown_key(part.key_low), shown_key(part.key_high),
        ctx.checked.plan.version, read=part.rows,
    )  # fmt: skip
    with batch_transaction(ctx.target, partial(ctx.target.take, row)) as taken:
        if not taken:
            return None
        row = replace(row, updated=fill_rows(ctx.target, entity, rows, missing))
        ctx.target.settle(row)
    return row, missing


def rows_to_fill(
    preparer: Preparer, entity: CheckedEntity, resolved: Path, first: int, end: int
) -> tuple[pa.Table, dict[str, int]]:
    """Of what was resolved, the rows numbered from `first` to before `end` whose references are to be set; and what
    was left NULL by `field: change`."""
    assert entity.id_column is not None
    listed = ", ".join(identifier(f.column.name) for f in entity.deferred)
    these = f"read_parquet({literal(str(resolved))}) WHERE _ph_n >= {first} AND _ph_n < {end}"
    rows = fetch(
        preparer.duck,
        f"SELECT _ph_n, _ph_key, _ph_id, _ph_target_hash, _ph_replaced, {listed} FROM {these} AND _ph_set ORDER BY _ph_n",
    )
    missing = dict(
        execute(preparer.duck, f"SELECT c, count(*) FROM (SELECT unnest(_ph_changes) AS c FROM {these}) GROUP BY 1")
    )
    return rows.append_column(entity.id_column.name, rows["_ph_id"]), missing


def fill_rows(target: Target, entity: CheckedEntity, rows: pa.Table, missing: dict[str, int]) -> int:
    """Sets the deferred references of rows in the target, in the caller's transaction; how many took them. Those that
    the target refuses are left empty and counted in `missing`."""
    assert entity.id_column is not None
    columns = [f.column.name for f in entity.deferred]
    refused: list[tuple[int, RowsRefusedError]] = []
    matched = pc.equal(pc.fill_null(rows["_ph_replaced"], "f"), "t")
    filled = _fill_matched(target, entity, rows.filter(matched), refused)
    rows = rows.filter(pc.invert(matched))

    def fill(slice_: pa.Table) -> None:
        with target.savepoint():
            target.update(entity.target, entity.identity, columns, slice_)

    load_refusing(rows, fill, refused)
    bad = {n for n, _ in refused}
    kept = rows if not bad else rows.filter(pa.array([n not in bad for n in rows["_ph_n"].to_pylist()]))
    if kept.num_rows:
        target.note_references(
            entity.name, pa.table({"old_id": kept["_ph_key"], "reference_hash": kept["_ph_target_hash"]})
        )
    if refused:
        missing[f"{', '.join(columns)}: refused by the target, left empty"] = len(refused)
    return int(kept.num_rows) + filled


def _fill_matched(
    target: Target, entity: CheckedEntity, rows: pa.Table, refused: list[tuple[int, RowsRefusedError]]
) -> int:
    """The same of rows that the target held before, by what each holds: how many hold another reference now."""
    if not rows.num_rows:
        return 0
    loaded, rules = loaded_entity(entity), fill_rules(entity, deferred=True)
    noted: dict[str, str | None] = {}
    changed = 0

    def fill(slice_: pa.Table) -> None:
        nonlocal changed
        with target.savepoint():
            found = target.fill(loaded, rules, slice_)
        noted.update({key: row.reference_hash for key, row in found.rows.items()})
        changed += found.changed

    load_refusing(rows, fill, refused)
    if noted:
        hashes = pa.array(list(noted.values()), pa.string())
        target.note_references(entity.name, pa.table({"old_id": list(noted), "reference_hash": hashes}))
    return changed
