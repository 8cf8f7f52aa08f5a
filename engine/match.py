"""Links source rows to rows that the target held before: decides once which is which, and makes of each transformed
part one in which a matched row has the id of the target's row and the values that this will hold.

What was decided is on disk and in the log before the first batch, what the target held then with it; a resumed load
takes it up and never decides anew. Never matches a row that the job itself has carried over.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from connectors.target import Target
from engine.check import CheckedEntity
from engine.collisions import compared_parts, keyed_for_sure, marker_of
from engine.compile import raw_sql, target_hash_sql
from engine.faults import fault_point
from engine.loaded import loaded_entity
from engine.merge import Part
from engine.query import LOADED, QUARANTINED, identifier, literal, read_parts
from engine.stage import part_path, sync_folder
from engine.transform import Counts, count_part, execute
from workspace.disk import disk_errors
from workspace.errors import JobFailedError
from workspace.events import PartStaged, RowsMatched
from workspace.log import Workspace
from workspace.paths import JobPaths


@dataclass(frozen=True)
class Matched:
    """How many rows were looked at, are one with a row of the target (those that an earlier job matched too), and fit
    several or one that another has."""

    compared: int
    matched: int
    contested: int


def matched_path(paths: JobPaths, entity: str) -> Path:
    """Where it lies which rows of an entity the target holds already, once that is decided: _ph_n, _ph_outcome (one,
    several, second), whether an earlier job matched it (_ph_known), _ph_held, _ph_rung (the rule that decided, NULL where _ph_known), _ph_field,
    _ph_detail, _ph_same (nothing is filled), and under the names of their columns what the target's row held."""
    return paths.stage / entity / "matched.parquet"


class Matching:
    """The rows of one entity whose parts are all transformed, beside what the target holds."""

    def __init__(
        self, duck: duckdb.DuckDBPyConnection, paths: JobPaths, entity: CheckedEntity, parts: Sequence[Part],
        existing: Path | None, first: int = 0,
    ) -> None:  # fmt: skip
        """`existing` is the entity's crosswalk as it was before, None where there was none; `first` the number in the stage
        that the parts begin with."""
        self.entity = entity
        self._duck, self._paths, self._parts, self._existing = duck, paths, parts, existing
        self._first = first
        self._columns = [f.column for f in entity.fields]
        self._folder = (parts[0].out.parent if parts else paths.transformed) / "match"

    def decide(self, target: Target, path: Path, *, ours: bool) -> Matched:
        """Decides which rows the target holds already, and writes it to `path`, durably. `ours`: our records are in the
        target, and rows in them are left out."""
        match = self.entity.plan.match
        assert match is not None
        with disk_errors():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        held = self._folder / "held.parquet"
        names = ["_ph_held", "_ph_owner", *(c.name for c in self._columns)]
        with disk_errors(), pq.ParquetWriter(held, pa.schema([(n, pa.string()) for n in names])) as writer:
            for batch in target.rows_held(loaded_entity(self.entity), self._columns, marker_of(self.entity), ours=ours):
                writer.write_batch(batch)
        there = f"read_parquet({literal(str(held))})"
        rungs = " UNION ALL ".join(self._rung(number, rule, there) for number, rule in enumerate(match.by))
        several = "" if match.several == "quarantine" else " WHERE fits = 1"
        takes = [f"{self._taken(c.name)} IS NOT DISTINCT FROM h.{identifier(c.name)}" for c in self._columns]
        shown = f"{' AND '.join(takes)} AS _ph_same{''.join(', h.' + identifier(c.name) for c in self._columns)}"
        statement = (
            f"WITH fit AS (SELECT * FROM ({rungs}) QUALIFY row_number() OVER (PARTITION BY n ORDER BY rung) = 1), "
            "ranked AS (SELECT *, first_value(key) OVER w AS winner, row_number() OVER w AS place FROM fit"
            f"{several} WINDOW w AS (PARTITION BY new_id, fits = 1 ORDER BY n)) "
            "SELECT r.n AS _ph_n, CASE WHEN r.fits > 1 THEN 'several' WHEN r.place > 1 OR h._ph_owner IS NOT NULL THEN 'second' ELSE 'one' END AS _ph_outcome, "
            "false AS _ph_known, r.new_id AS _ph_held, r.rung AS _ph_rung, r.fields AS _ph_field, CASE WHEN r.fits > 1 THEN 'match several rows of the target' "
            f"ELSE 'match a row that another has: source key ' || coalesce(h._ph_owner, r.winner) END AS _ph_detail, {shown} "
            f"FROM ranked r JOIN {there} h ON h._ph_held = r.new_id JOIN {self._rows()} t ON t._ph_n = r.n{self._known(there, shown)} ORDER BY _ph_n"
        )
        _copy_durably(self._duck, statement, path)
        found = dict(execute(self._duck, f"SELECT _ph_outcome, count(*) FROM {_read(path)} GROUP BY 1"))
        (known,) = execute(self._duck, f"SELECT count(*) FROM {_read(path)} WHERE _ph_known")[0]
        (compared,) = execute(self._duck, f"SELECT count(*) FROM {self._rows()}")[0]
        return Matched(compared + known, found.get("one", 0), found.get("several", 0) + found.get("second", 0))

    def parts(self, decided: Path) -> list[Part]:
        """The parts with what was decided. Parts that it doesn't concern are as they were."""
        with disk_errors():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found, end = [], self._first
        for part in self._parts:
            first, end = end, end + part.staged.rows
            within = f"_ph_n >= {first} AND _ph_n < {end}"
            (touched,) = execute(self._duck, f"SELECT count(*) FROM {_read(decided)} WHERE {within}")[0]
            found.append(self._rewritten(part, decided) if touched else part)
        return found

    def _known(self, there: str, shown: str) -> str:
        """A further SELECT of the rows that an earlier job matched: each is one with what it was one with then."""
        if self._existing is None or not self._parts:
            return ""
        return (
            f" UNION ALL SELECT t._ph_n, 'one', true, h._ph_held, NULL, '', '', {shown} FROM {self._rows(carried=True)} t "
            f"JOIN read_parquet({literal(str(self._existing))}) e ON e.old_id = t._ph_key AND e.replaced = 't' "
            f"JOIN {there} h ON h._ph_held = e.new_id"
        )

    def _rows(self, *, carried: bool = False) -> str:
        """DuckDB SQL of the rows that would be inserted, with `carried` those too that an earlier job carried over, the first
        of each source key."""
        if not self._parts:
            return f"(SELECT NULL::BIGINT AS _ph_n, NULL::VARCHAR AS _ph_key{''.join(f', NULL::VARCHAR AS {identifier(c.name)}' for c in self._columns)} WHERE false)"
        anti = (
            f" ANTI JOIN read_parquet({literal(str(self._existing))}) e ON e.old_id = p._ph_key"
            if self._existing and not carried
            else ""
        )
        first = (
            ""
            if keyed_for_sure(self.entity)
            else " QUALIFY row_number() OVER (PARTITION BY _ph_key ORDER BY _ph_n) = 1"
        )
        return f"(SELECT p.* FROM {read_parts(p.out for p in self._parts)} p{anti} WHERE _ph_outcome = {LOADED}{first})"

    def _rung(self, number: int, rule: Sequence[str], there: str) -> str:
        """A SELECT of the rows that fit by this rule: n, key, rung, fields, how many rows they fit, the lowest of those.
        NULL is equal to nothing, and blank text neither."""
        keys = [f"({part})" for part in compared_parts(self.entity, rule)]
        own = ", ".join(f"{key} AS k{i}" for i, key in enumerate(keys))
        filled = " AND ".join(f"trim({key}) <> ''" for key in keys)
        same = " AND ".join(f"s.k{i} = h.k{i}" for i in range(len(keys)))
        return (
            f"SELECT s._ph_n AS n, s._ph_key AS key, {number} AS rung, {literal(', '.join(rule))} AS fields, h.fits, h.new_id "
            f"FROM (SELECT _ph_n, _ph_key, {own} FROM {self._rows()} WHERE {filled}) s JOIN (SELECT {own}, count(*) AS fits, "
            f"min(_ph_held) AS new_id FROM {there} WHERE {filled} GROUP BY ALL) h ON {same}"
        )

    def _taken(self, name: str) -> str:
        """What the target's row will hold in a column: of the row t, and what was held, h."""
        match = self.entity.plan.match
        assert match is not None
        own, held = f"t.{identifier(name)}", f"h.{identifier(name)}"
        if match.fill == "all" or (isinstance(match.fill, tuple) and name in match.fill):
            value = f"coalesce({own}, {held})"
        elif match.fill == "empty":
            value = f"coalesce({held}, {own})"
        else:
            value = held
        if name in match.strictest:
            strict = "true" if match.strictest[name] else "false"
            value = f"CASE WHEN '{strict}' IN ({own}, {held}) THEN '{strict}' ELSE {value} END"
        return value

    def _rewritten(self, part: Part, decided: Path) -> Part:
        entity = self.entity
        out = self._folder / part.out.name
        one, lost = "h._ph_outcome = 'one'", "h._ph_outcome <> 'one'"
        # what the second pass fills is not there yet
        values = [f"t.{identifier(f.column.name)}" if f.deferred else self._taken(f.column.name) for f in entity.fields]
        own_id = None if entity.plan.id in ("sequence", "none") else "h._ph_held"
        replaced = [
            f"CASE WHEN {lost} THEN {QUARANTINED} ELSE t._ph_outcome END AS _ph_outcome",
            f"CASE WHEN {lost} THEN h._ph_field ELSE t._ph_field END AS _ph_field",
            f"CASE WHEN {lost} THEN h._ph_detail ELSE t._ph_reason END AS _ph_reason",
            f"CASE WHEN {lost} THEN '' ELSE t._ph_shown END AS _ph_shown",
            f"CASE WHEN {lost} THEN s.raw ELSE t._ph_raw END AS _ph_raw",
            f"CASE WHEN {one} THEN h._ph_held ELSE t._ph_id END AS _ph_id",
            f"CASE WHEN {one} THEN {target_hash_sql(entity.fields, values, own_id)} ELSE t._ph_target_hash END AS _ph_target_hash",
            *(
                f"CASE WHEN {one} THEN {value} ELSE t.{identifier(c.name)} END AS {identifier(c.name)}"
                for c, value in zip(self._columns, values, strict=True)
            ),
        ]
        stage = literal(str(part_path(self._paths.stage / entity.name, part.staged.part)))
        execute(
            self._duck,
            f"COPY (SELECT t.* REPLACE ({', '.join(replaced)}) FROM read_parquet({literal(str(part.out))}) t "
            f"LEFT JOIN {_read(decided)} h ON h._ph_n = t._ph_n "
            f"LEFT JOIN (SELECT _ph_n, {raw_sql(entity)} AS raw FROM read_parquet({stage})) s ON s._ph_n = t._ph_n AND {lost} "
            f"ORDER BY t._ph_n) TO {literal(str(out))} (FORMAT parquet, COMPRESSION lz4)",
        )
        return replace(part, out=out, counts=count_part(self._duck, out))


def match_parts(
    workspace: Workspace, matching: Matching, target: Target, path: Path, version: int | None
) -> list[tuple[PartStaged, Future[tuple[Path, Counts]]]]:
    """The parts with their matches, as a load takes them: as was decided before, or is decided now and recorded.
    `version` is the plan's; None once a batch of the entity is in the ledger: then what was decided stands.

    Keeps the invariant that no batch is committed before what it follows is durable and in the log.
    """
    entity = matching.entity.name
    if not _stands(workspace, entity, path, version):
        if version is None:
            raise JobFailedError(
                f"which rows of {entity} the target held before is missing or cut off", where=str(path),
                advice="start a new job; the crosswalk in the target keeps what was loaded from being loaded twice",
            )  # fmt: skip
        found = matching.decide(target, path, ours=True)
        fault_point("after matches decided")
        workspace.record(RowsMatched(entity, version, found.compared, found.matched, found.contested, _digest(path)))
    done: list[tuple[PartStaged, Future[tuple[Path, Counts]]]] = []
    for part in matching.parts(path):
        future: Future[tuple[Path, Counts]] = Future()
        future.set_result((part.out, part.counts))
        done.append((part.staged, future))
    return done


def _stands(workspace: Workspace, entity: str, path: Path, version: int | None) -> bool:
    last = None
    for entry in workspace.events(types=[RowsMatched]):
        if isinstance(entry.event, RowsMatched) and entry.event.entity == entity:
            last = entry.event
    if last is None or (version is not None and last.plan_version != version) or not path.exists():
        return False
    return last.sha256 == _digest(path)


def _copy_durably(duck: duckdb.DuckDBPyConnection, statement: str, path: Path) -> None:
    """Writes a SELECT as Parquet, so that after a crash it is there whole or not at all."""
    temporary = path.with_suffix(".writing")
    execute(duck, f"COPY ({statement}) TO {literal(str(temporary))} (FORMAT parquet, COMPRESSION lz4)")
    with disk_errors():
        with temporary.open("r+b") as file:
            os.fsync(file.fileno())
        temporary.rename(path)
        sync_folder(path.parent)


def _digest(path: Path) -> str:
    with disk_errors(), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(path: Path) -> str:
    return f"read_parquet({literal(str(path))})"
