"""A slice of a job's stage that is closed under references: few rows, but none that refers to nowhere.

The slice is the stage of a job of its own, the pilot, which is loaded, verified and taken back as any other. Which rows
it holds follows from their keys alone, so that the same stage gives the same slice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from connectors.target import Target
from engine.check import CheckedEntity, CheckedPlan
from engine.compile import compile_references
from engine.context import Context, Progress
from engine.merge import Part
from engine.merge_preview import merge_for_preview
from engine.prepare import Preparer, Settled
from engine.query import EXCLUDED, MERGED, identifier, literal, read_parts
from engine.stage import part_path, write_part
from engine.stager import first_parts
from engine.transform import execute
from workspace.disk import disk_errors
from workspace.errors import InterruptedJobError, UsageError
from workspace.events import JobStarted, PartStaged, StageCompleted
from workspace.log import Workspace
from workspace.paths import JobPaths

_SPEC = re.compile(r"(\d+(?:\.\d+)?)%|(\d+)")


@dataclass(frozen=True)
class Share:
    """How much of each entity a pilot begins with: a share of its rows, or a number of them; one of the two is None."""

    share: float | None
    rows: int | None

    @classmethod
    def parse(cls, text: str) -> Share:
        """`1%` or `500`. UsageError for what isn't one of these, and for more than all and less than anything."""
        found = _SPEC.fullmatch(text.strip())
        share = float(found[1]) / 100 if found and found[1] else None
        rows = int(found[2]) if found and found[2] else None
        if not (share is not None and 0 < share <= 1) and not (rows is not None and 0 < rows <= 10**9):
            raise UsageError(
                f"{text!r} is no part of the rows", where="--pilot", advice="say --pilot 1% or --pilot 500"
            )
        return cls(share, rows)

    def of(self, rows: int) -> int:
        """How many of so many rows: never fewer than one, where there is one."""
        wanted = self.rows if self.rows is not None else -(-rows * (self.share or 0) // 1)
        return min(rows, max(1, int(wanted)))


def cut(ctx: Context, share: Share, into: JobPaths) -> list[PartStaged | StageCompleted]:
    """Writes the slice as the stage of the job `into`; what that job's log has to tell of it, in one piece.

    All rows of the stage, which must stand, are transformed first, to know which ones lose a collision: those are never in
    a slice, or it would decide who wins. Entities without a key are left out: a row's number is its key there.
    """
    if matching := [e.name for e in ctx.checked.entities if e.plan.match is not None]:
        raise UsageError(
            f"the plan matches rows of {matching[0]}, which is decided over all rows and not over a slice",
            where=f"job {ctx.paths.job}", advice="run the whole job; `migrate undo` gives matched rows back what they held",
        )  # fmt: skip
    preparer = Preparer(ctx.paths, ctx.checked, "pilot")
    try:
        slices = _Slices(ctx, preparer, share)
        for entity in ctx.checked.entities:
            slices.take_up(entity)
        slices.choose()
        told: list[PartStaged | StageCompleted] = []
        for entity in ctx.checked.entities:
            parts = list(_written(ctx, entity, slices.chosen(entity), into))
            rows = sum(part.rows for part in parts)
            told += [*parts, StageCompleted(entity=entity.name, rows=rows, parts=len(parts))]
        return told
    finally:
        preparer.close()


def refuse_while_the_job_stands(workspace: Workspace, target: Target, checked: CheckedPlan) -> None:
    """UsageError where the job at hand is the pilot of one that has rows in the target: those count the pilot's as
    theirs, and refer to them."""
    begun = next((e.event for e in workspace.events(types=[JobStarted]) if isinstance(e.event, JobStarted)), None)
    whole = begun.options.get("pilot_of") if begun is not None else None
    if not isinstance(whole, str) or not target.know(whole):
        return
    source = target.source_of_job()
    for entity in checked.entities:
        target.know_entity(source, entity.name, entity.plan.to)
    if any(not row.undone for row in target.ledger()):
        raise UsageError(
            f"the rows of {workspace.paths.job} are a part of the job {whole} now", where=str(workspace.paths.folder),
            advice=f"`migrate undo {whole}` first, then this one",
        )  # fmt: skip


class _Slices:
    """The rows of each entity that are chosen, in DuckDB: `rows_N` (n, key, wanted), `chosen_N` (n), and `leads_N` (n, the
    number of the entity referred to, the key there), N being an entity's number."""

    def __init__(self, ctx: Context, preparer: Preparer, share: Share) -> None:
        self._ctx, self._preparer, self._share = ctx, preparer, share
        self._number = {entity.name: i for i, entity in enumerate(ctx.checked.entities)}
        self._ours = ctx.target.has_schema()

    def take_up(self, entity: CheckedEntity) -> None:
        """Transforms an entity's stage and notes its rows but those that lose; entities in load order."""
        ctx, preparer, number = self._ctx, self._preparer, self._number[entity.name]
        known = self._ours and ctx.target.know_entity(ctx.source_identity, entity.name, entity.plan.to)
        settler = preparer.settler(entity, ctx.target, ours=known)
        existing = preparer.existing(entity, ctx.target) if known else None
        whole: list[Part] = []
        done = 0
        for part in first_parts(ctx.workspace, entity.name):
            if ctx.stop():
                raise InterruptedJobError(
                    "interrupted; nothing was written to the target", where=f"job {ctx.paths.job}",
                    advice="the same command goes on; what was read is not read again",
                )  # fmt: skip
            out, counts = preparer.transform(entity, part, again=True)
            whole.append(Part(part, out, counts))
            done += part.rows
            ctx.progress(Progress("pilot", entity.name, done, None))
        merged = merge_for_preview(ctx.paths, entity, whole, existing, settler).parts
        parts = [
            Settled(p.staged, p.out, p.counts, settler.settle(p.staged.part, p.out, p.staged.rows)) for p in merged
        ]
        preparer.foresee_crosswalk(entity, parts, existing)
        rows = "(SELECT NULL::BIGINT AS _ph_n, NULL::VARCHAR AS _ph_key, NULL::INTEGER AS _ph_outcome WHERE false)"
        lost = ""
        if parts and entity.plan.key:
            rows = read_parts(part.out for part in parts)
            losers = [part.losers.path for part in parts if part.losers]
            lost = f"ANTI JOIN {read_parts(losers)} l ON l._ph_n = t._ph_n" if losers else ""
        self._run(
            f"CREATE OR REPLACE TEMP TABLE rows_{number} AS SELECT t._ph_n AS n, t._ph_key AS key, t._ph_outcome <> {EXCLUDED} AS wanted "
            f"FROM {rows} t {lost}"
        )
        self._run(f"CREATE OR REPLACE TEMP TABLE leads_{number} (n BIGINT, entity INTEGER, key VARCHAR)")
        if with_merged := [part.out for part in parts if part.counts.merged]:
            self._note_merged(entity, with_merged)

    def _note_merged(self, entity: CheckedEntity, parts: list[Path]) -> None:
        """Rows that are one come along with each other, so that the pilot merges what the job will. Where likeness
        decides, which is judged by all rows, a slice can't tell, and such rows are in none."""
        number = self._number[entity.name]
        self._run(
            f"CREATE OR REPLACE TEMP TABLE merged_rows AS SELECT m._ph_n AS n, m._ph_key AS key, r.n AS home_n, r.key AS home "
            f"FROM {read_parts(parts)} m JOIN rows_{number} r ON r.key = m._ph_home WHERE m._ph_outcome = {MERGED}"
        )
        if entity.plan.merge is not None and entity.plan.merge.by:
            self._run(
                f"DELETE FROM rows_{number} WHERE n IN (SELECT n FROM merged_rows UNION ALL SELECT home_n FROM merged_rows)"
            )
        else:
            self._run(
                f"INSERT INTO leads_{number} SELECT n, {number}, home FROM merged_rows UNION ALL "
                f"SELECT home_n, {number}, key FROM merged_rows"
            )

    def choose(self) -> None:
        """Chooses what the slices begin with, and then all that this refers to, as often as that leads to more rows; at
        last links between rows that are there."""
        entities = self._ctx.checked.entities
        for entity in entities:
            self._note_leads(entity)
        for entity in entities:
            self._begin(entity)
        while sum(self._follow(entity) for entity in entities if not _is_link(entity)):
            pass
        for entity in entities:
            if _is_link(entity):
                self._link(entity)

    def chosen(self, entity: CheckedEntity) -> pa.Array:
        """The numbers of an entity's chosen rows, in order."""
        found = self._run(f"SELECT n FROM chosen_{self._number[entity.name]} ORDER BY n")
        return pa.array([n for (n,) in found], pa.int64())

    def _note_leads(self, entity: CheckedEntity) -> None:
        number = self._number[entity.name]
        fields = [f for f in entity.fields if f.plan.ref]
        parts = first_parts(self._ctx.workspace, entity.name)
        if not fields or not parts:
            return
        # a "crosswalk" in which each source key stands for itself: what a reference leads to is then a source key
        keys = {name: self._own_keys(name) for name in entity.references}
        query = compile_references(entity, self._ctx.checked.plan, keys)
        for statement in query.setup:
            self._run(statement)
        for part in parts:
            path = part_path(self._ctx.paths.stage / entity.name, part.part)
            for field in fields:
                name = identifier(field.column.name)
                self._run(
                    f"INSERT INTO leads_{number} SELECT _ph_n, {self._number[field.plan.ref or '']}, {name} FROM ({query.over(path)}) "
                    f"WHERE {name} IS NOT NULL"
                )

    def _own_keys(self, entity: str) -> Path:
        path = self._preparer.folder(self._ctx.checked.entity(entity)) / "own-keys.parquet"
        self._run(
            f"COPY (SELECT key AS old_id, key AS new_id FROM rows_{self._number[entity]}) TO {literal(str(path))} (FORMAT parquet)"
        )
        return path

    def _begin(self, entity: CheckedEntity) -> None:
        number = self._number[entity.name]
        ((wanted,),) = self._run(f"SELECT count(*) FROM rows_{number} WHERE wanted")
        most = 0 if _is_link(entity) or not wanted else self._share.of(wanted)
        self._run(
            f"CREATE OR REPLACE TEMP TABLE chosen_{number} AS SELECT n FROM rows_{number} WHERE wanted "
            f"ORDER BY md5(concat({literal(entity.name)}, chr(31), key)), n LIMIT {most}"
        )

    def _follow(self, entity: CheckedEntity) -> int:
        """Adds the rows that an entity's chosen rows refer to; how many there were to add."""
        number, added = self._number[entity.name], 0
        for other in {number, *(self._number[name] for name in entity.references)}:
            ((before,),) = self._run(f"SELECT count(*) FROM chosen_{other}")
            self._run(
                f"INSERT INTO chosen_{other} SELECT DISTINCT r.n FROM chosen_{number} c JOIN leads_{number} l ON l.n = c.n AND l.entity = {other} "
                f"JOIN rows_{other} r ON r.key = l.key WHERE r.n NOT IN (SELECT n FROM chosen_{other})"
            )
            ((after,),) = self._run(f"SELECT count(*) FROM chosen_{other}")
            added += after - before
        return added

    def _link(self, entity: CheckedEntity) -> None:
        """Adds links all of whose ends are chosen, and that have as many ends as their key needs."""
        number = self._number[entity.name]
        needed = sum(1 for f in entity.fields if f.plan.ref and f.column.name in entity.identity)
        ends = " UNION ALL ".join(
            f"SELECT l.n FROM leads_{number} l JOIN rows_{other} r ON r.key = l.key JOIN chosen_{other} c ON c.n = r.n WHERE l.entity = {other}"
            for other in sorted({self._number[name] for name in entity.references})
        )
        self._run(
            f"INSERT INTO chosen_{number} SELECT r.n FROM rows_{number} r JOIN (SELECT n, count(*) AS led FROM leads_{number} GROUP BY n) l USING (n) "
            f"JOIN (SELECT n, count(*) AS ended FROM ({ends}) GROUP BY n) e USING (n) WHERE wanted AND led = ended AND led >= {needed}"
        )

    def _run(self, sql: str) -> list[tuple[int, ...]]:
        return execute(self._preparer.duck, sql)


def _is_link(entity: CheckedEntity) -> bool:
    """True where rows are nothing but links between rows of others: they have no id of their own."""
    return entity.plan.id == "none" and bool(entity.references)


def _written(ctx: Context, entity: CheckedEntity, chosen: pa.Array, into: JobPaths) -> Iterator[PartStaged]:
    """Writes an entity's chosen rows as parts of another stage, in the order of the key, numbered anew."""
    with disk_errors():
        (into.stage / entity.name).mkdir(mode=0o700, parents=True, exist_ok=True)
    held: list[pa.Table] = []
    number = position = 0
    parts = first_parts(ctx.workspace, entity.name)
    for i, part in enumerate(parts):
        table = pq.read_table(part_path(ctx.paths.stage / entity.name, part.part))
        held.append(table.filter(pc.is_in(table["_ph_n"], chosen)).drop_columns(["_ph_n"]))
        rows = sum(table.num_rows for table in held)
        if rows and (rows >= ctx.batch_rows or i == len(parts) - 1):
            yield write_part(into, entity, number, pa.concat_tables(held), position)
            number, position, held = number + 1, position + rows, []
