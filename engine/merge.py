"""Merges an entity's duplicates: decides once which rows are one, and makes of each transformed part one in which the
row that stays holds the merged values and the others are marked as merged.

The row that stays is the first of its cluster in the stage, or the one that an earlier job loaded: so it is in the
target before any row that is merged into it is counted. What was decided is on disk and in the log before the first
batch; a resumed load takes it up and never decides anew. Never takes away a row that the target has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from engine.check import CheckedEntity
from engine.clusters import clusters
from engine.collisions import Settler, keyed_for_sure
from engine.compile import target_hash_sql
from engine.duck import open_duck
from engine.faults import fault_point
from engine.likeness import Likeness
from engine.merge_values import merged_values, ranked
from engine.query import LOADED, MERGED, identifier, literal, read_parts
from engine.stage import write_durably
from engine.transform import Counts, count_part, execute, fetch
from workspace.disk import disk_errors
from workspace.errors import JobFailedError
from workspace.events import DuplicatesFound, PartStaged
from workspace.log import Workspace
from workspace.paths import JobPaths

_DECIDED = pa.schema(
    [("n", pa.int64()), ("home", pa.int64()), ("home_key", pa.string()), ("rank", pa.int32()), ("sure", pa.float64())]
)


@dataclass(frozen=True)
class Part:
    """A transformed part: as it was staged, where its rows lie, their counts."""

    staged: PartStaged
    out: Path
    counts: Counts


@dataclass(frozen=True)
class Decided:
    """Which rows are one: a Parquet with a row's number, that of the row it goes into (its own, where it stays; NULL
    where an earlier job merged it into a row that isn't staged), that row's key, its place in the order of the cluster,
    and how sure it is. `compared` rows were looked at; `left_out` values were too common to go by."""

    path: Path
    compared: int
    clusters: int
    merged: int
    left_out: int


def decided_path(paths: JobPaths, entity: str) -> Path:
    """Where it lies which rows of an entity are one, once that is decided."""
    return paths.stage / entity / "merged.parquet"


class Merging:
    """The duplicates of one entity whose parts are all transformed. A context manager, with a DuckDB of its own: one
    thread, so that the same rows give the same clusters to the last digit."""

    def __init__(
        self, paths: JobPaths, entity: CheckedEntity, parts: Sequence[Part], existing: Path | None, settler: Settler
    ) -> None:
        """`existing` is the entity's crosswalk as it was before, None where there was none; `settler` settles its
        collisions, and isn't touched."""
        self.entity = entity
        self.path = decided_path(paths, entity.name)
        self._parts, self._existing = parts, existing
        self._duck = open_duck(paths, memory="512MB", threads=1)
        self._settler = settler
        self._folder = (parts[0].out.parent if parts else paths.transformed) / "merge"

    def __enter__(self) -> Merging:
        return self

    def __exit__(self, *_: object) -> None:
        self._duck.close()

    def decide(self, path: Path) -> Decided:
        """Decides which rows are one, and writes it to `path`, durably."""
        assert self.entity.plan.merge is not None
        compared, groups, sure, left_out = self._alike()
        known = self._known(groups)
        homes = _homes(groups, known)
        while True:
            table = self._table(homes, known, sure)
            with disk_errors():
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_durably(path, table)
            lost = self._lost({home for home in homes if home >= 0 and home not in known.rows}, path)
            if not lost:
                break
            homes = _without(homes, lost)
        merged = sum(1 for n, home in zip(table["n"].to_pylist(), table["home"].to_pylist(), strict=True) if n != home)
        return Decided(path, compared, sum(1 for home in homes if home >= 0), merged, left_out)

    def parts(self, decided: Path) -> list[Part]:
        """The parts with their duplicates merged. Parts without any are as they were."""
        merge_values = merged_values(self.entity, self._rows(), decided)
        with disk_errors():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        values = self._folder / "values.parquet"
        execute(self._duck, f"COPY ({merge_values}) TO {literal(str(values))} (FORMAT parquet)")
        touched = [n for (n,) in execute(self._duck, f"SELECT n FROM read_parquet({literal(str(decided))}) ORDER BY n")]
        found, first, at = [], 0, 0
        for part in self._parts:
            first, start = first + part.staged.rows, at
            while at < len(touched) and touched[at] < first:
                at += 1
            found.append(part if at == start else self._merged(part, decided, values))
        return found

    def examples(
        self, decided: Path, merged: Sequence[Part], most: int
    ) -> list[tuple[float, list[str], list[str], str]]:
        """Some clusters, the least sure first: how sure that row is, the source keys, the one that stays first, the
        fields of each row as JSON, and those of the row that stays once they are merged."""
        names = ", ".join(f"{literal(f.column.name)}: r.{identifier(f.column.name)}" for f in self.entity.fields)
        shown = f"CAST(to_json({{{names}}}) AS VARCHAR)"
        found: list[tuple[float, list[str], list[str], str]] = execute(
            self._duck,
            f"WITH d AS (SELECT * FROM read_parquet({literal(str(decided))}) WHERE home IS NOT NULL), "
            f"c AS (SELECT home, min(sure) AS sure FROM d GROUP BY 1 ORDER BY 2, 1 LIMIT {most}) "
            f"SELECT any_value(c.sure), list(r._ph_key ORDER BY d.n <> d.home, d.rank), list({shown} ORDER BY d.n <> d.home, d.rank), "
            f"any_value(m.held) FROM c JOIN d USING (home) JOIN {self._rows()} r ON r._ph_n = d.n "
            f"JOIN (SELECT r._ph_n, {shown} AS held FROM {read_parts(part.out for part in merged)} r) m ON m._ph_n = home "
            f"GROUP BY home ORDER BY 1, home",
        )
        return found

    # -- who is one -------------------------------------------------------------------------------

    def _rows(self) -> str:
        """DuckDB SQL of all rows that would be loaded, the first of each source key."""
        first = (
            ""
            if keyed_for_sure(self.entity)
            else " QUALIFY row_number() OVER (PARTITION BY _ph_key ORDER BY _ph_n) = 1"
        )
        return f"(SELECT * FROM {read_parts(part.out for part in self._parts)} WHERE _ph_outcome = {LOADED}{first})"

    def _alike(self) -> tuple[int, list[tuple[int, ...]], dict[int, float], int]:
        """How many rows were compared, the clusters by row number, how sure each row's place is, values left out."""
        merge = self.entity.plan.merge
        assert merge is not None
        if not self._parts:
            return 0, [], {}, 0
        names = dict.fromkeys([*merge.by, *merge.apart, *(c for rule in (*merge.same, *merge.block) for c in rule)])
        columns = ", ".join(identifier(name) for name in names)
        rows = f"(SELECT _ph_n, {columns} FROM {self._rows()})"
        likeness = Likeness(self._duck, rows, merge.by, merge.apart, merge.same, merge.block)
        pairs = likeness.pairs(merge.threshold)
        sure: dict[int, float] = {}
        for pair in reversed(pairs):
            sure[pair.left] = sure[pair.right] = pair.sure
        return likeness.rows, clusters(pairs, likeness.apart), sure, likeness.left_out

    def _known(self, groups: Sequence[tuple[int, ...]]) -> _Known:
        """What earlier jobs did with the rows of clusters, and which rows they merged."""
        if self._existing is None:
            return _Known({}, {})
        execute(self._duck, "CREATE OR REPLACE TEMP TABLE clustered (n BIGINT)")
        numbers = [n for group in groups for n in group]
        if numbers:
            self._duck.register("clustered_rows", pa.table({"n": pa.array(numbers, pa.int64())}))
            execute(self._duck, "INSERT INTO clustered SELECT n FROM clustered_rows")
            self._duck.unregister("clustered_rows")
        there = f"(SELECT _ph_n, new_id, coalesce(merged, 'f') = 't' AS merged FROM {self._rows()} JOIN read_parquet({literal(str(self._existing))}) ON old_id = _ph_key)"
        rows = execute(
            self._duck,
            f"WITH x AS MATERIALIZED {there} SELECT * FROM x WHERE merged OR _ph_n IN (SELECT n FROM clustered) "
            "OR new_id IN (SELECT new_id FROM x WHERE merged)",
        )
        return _Known(
            {n: (new_id, merged) for n, new_id, merged in rows},
            {new_id: n for n, new_id, merged in rows if not merged},
        )

    def _lost(self, staying: set[int], decided: Path) -> set[int]:
        """Rows of `staying` that a unique key keeps out, with the values that they would have."""
        if not staying or not self._settler.needed:
            return set()
        settler = self._settler.afresh(self._duck, self._folder)
        lost: set[int] = set()
        for part in self.parts(decided):
            losers = settler.settle(part.staged.part, part.out, part.staged.rows)
            if losers is not None:
                lost |= {
                    n for (n,) in execute(self._duck, f"SELECT _ph_n FROM read_parquet({literal(str(losers.path))})")
                }
        return lost & staying

    def _table(self, homes: Mapping[int, Sequence[int]], known: _Known, sure: Mapping[int, float]) -> pa.Table:
        """What is decided, as _DECIDED, in the order of the rows."""
        pairs = [(n, home) for home, rows in homes.items() for n in rows]
        members = pa.table(
            {"n": pa.array([n for n, _ in pairs], pa.int64()), "home": pa.array([h for _, h in pairs], pa.int64())}
        )
        if not pairs:
            return _DECIDED.empty_table()
        self._duck.register("members", members)
        found = fetch(self._duck, ranked(self.entity, self._rows(), "members"))
        self._duck.unregister("members")
        surely = pa.array([sure.get(n, 1.0) for n in found["n"].to_pylist()], pa.float64())
        return found.append_column("sure", surely).cast(_DECIDED)

    # -- what becomes of them ---------------------------------------------------------------------

    def _merged(self, part: Part, decided: Path, values: Path) -> Part:
        entity = self.entity
        out = self._folder / part.out.name
        columns = [f.column.name for f in entity.fields]
        taken = "".join(
            f", CASE WHEN v._ph_n IS NOT NULL THEN v.{identifier(c)} ELSE t.{identifier(c)} END AS {identifier(c)}"
            for c in columns
        )
        own_id = None if entity.plan.id in ("sequence", "none") else "t._ph_id"
        hashed = target_hash_sql(entity.fields, [f"v.{identifier(c)}" for c in columns], own_id)
        outcome = f"CASE WHEN d.n IS NOT NULL AND d.home IS DISTINCT FROM d.n THEN {MERGED} ELSE t._ph_outcome END AS _ph_outcome"
        target_hash = f"CASE WHEN v._ph_n IS NOT NULL THEN {hashed} ELSE t._ph_target_hash END AS _ph_target_hash"
        execute(
            self._duck,
            f"COPY (SELECT t.* REPLACE ({outcome}, {target_hash}, d.home_key AS _ph_home{taken}) "
            f"FROM read_parquet({literal(str(part.out))}) t LEFT JOIN read_parquet({literal(str(decided))}) d ON d.n = t._ph_n "
            f"LEFT JOIN read_parquet({literal(str(values))}) v ON v._ph_n = t._ph_n ORDER BY t._ph_n) "
            f"TO {literal(str(out))} (FORMAT parquet, COMPRESSION lz4)",
        )
        return replace(part, out=out, counts=count_part(self._duck, out))


@dataclass(frozen=True)
class _Known:
    """What earlier jobs did: by row number the id of its target row and whether it was merged into that; and the row
    that each target row came from."""

    rows: Mapping[int, tuple[str, bool]]
    owners: Mapping[str, int]


def _homes(groups: Sequence[tuple[int, ...]], known: _Known) -> dict[int, list[int]]:
    """By the row that stays, the rows of its cluster, itself among them; under -1, rows that an earlier job merged into
    one that isn't here.

    A row that has a place in the target keeps it, so that two of them are never merged; new rows go to the first.
    """
    homes: dict[int, list[int]] = {}
    for group in groups:
        new = [n for n in group if n not in known.rows]
        places = [
            n if not known.rows[n][1] else known.owners.get(known.rows[n][0], -1) for n in group if n in known.rows
        ]
        home = min((n for n in places if n >= 0), default=-1)
        if home < 0 and len(new) > 1:
            homes.setdefault(new[0], []).extend(new)
        elif home >= 0 and new:
            homes.setdefault(home, [home]).extend(new)
    for n, (new_id, merged) in known.rows.items():
        if merged:
            home = known.owners.get(new_id, -1)
            homes.setdefault(home, [home] if home >= 0 else []).append(n)
    return homes


def _without(homes: Mapping[int, list[int]], lost: set[int]) -> dict[int, list[int]]:
    """The same without rows that can't stay: they stand alone, and of the others the first stays."""
    found: dict[int, list[int]] = {}
    for home, rows in homes.items():
        left = sorted(n for n in rows if n not in lost) if home in lost else rows
        if home in lost and len(left) > 1:
            found[left[0]] = left
        elif home not in lost:
            found[home] = left
    return found


def merge_parts(
    workspace: Workspace, merging: Merging, version: int | None
) -> list[tuple[PartStaged, Future[tuple[Path, Counts]]]]:
    """The parts with their duplicates merged, as a load takes them: as was decided before, or is decided now and recorded. `version` is the
    plan's; None once a batch of the entity is in the ledger: then what was decided stands, under whichever version.

    Keeps the invariant that no batch is committed before what it follows is durable and in the log.
    """
    path, entity = merging.path, merging.entity.name
    if not _stands(workspace, entity, path, version):
        if version is None:
            raise JobFailedError(
                f"what was decided about duplicates of {entity} is missing or cut off", where=str(path),
                advice="start a new job; the crosswalk in the target keeps what was loaded from being loaded twice",
            )  # fmt: skip
        decided = merging.decide(path)
        fault_point("after duplicates decided")
        workspace.record(
            DuplicatesFound(
                entity,
                version,
                decided.compared,
                decided.clusters,
                decided.merged,
                decided.left_out,
                _digest(path),
            )
        )
    found: list[tuple[PartStaged, Future[tuple[Path, Counts]]]] = []
    for part in merging.parts(path):
        done: Future[tuple[Path, Counts]] = Future()
        done.set_result((part.out, part.counts))
        found.append((part.staged, done))
    return found


def _stands(workspace: Workspace, entity: str, path: Path, version: int | None) -> bool:
    """True where the log has what the file holds, decided by that plan version (None: by any)."""
    last = None
    for entry in workspace.events(types=[DuplicatesFound]):
        if isinstance(entry.event, DuplicatesFound) and entry.event.entity == entity:
            last = entry.event
    if last is None or (version is not None and last.plan_version != version) or not path.exists():
        return False
    return last.sha256 == _digest(path)


def _digest(path: Path) -> str:
    with disk_errors():
        return hashlib.sha256(path.read_bytes()).hexdigest()
