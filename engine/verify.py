"""Verification: the equation and the checksums, by counts of its own and not the loader's.

Read is counted in the stage and by the source; excluded by the plan's `where` over the stage; loaded and
quarantined by SQL in the target, where each row's hash is computed again from what is stored. A sample is compared
field by field (sample.py).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from connectors.records import FOUND_COLUMNS
from engine.archive import Archive
from engine.check import CheckedEntity
from engine.context import Context, Progress
from engine.faults import fault_point
from engine.generation import LastCount, last_count, open_generation, open_redrive
from engine.loaded import loaded_entity
from engine.match import matched_path
from engine.match_verify import count_matched, miscounted_matches, strayed_matches
from engine.persist import persist
from engine.prepare import Preparer
from engine.query import literal
from engine.retried_rows import stage_keys
from engine.sample import SAMPLE_ROWS, Compared, Sampled, choose_sample, compare_sample
from engine.stager import completed_stage, recorded_parts
from engine.transform import execute
from workspace.disk import disk_errors
from workspace.errors import InterruptedJobError, PackhorseError
from workspace.events import PhaseStarted, Verified

MOST_SHOWN = 10
_LEFT_OUT_THERE = """
SELECT DISTINCT s.key FROM staged s JOIN carried c ON c.old_id = s.key
WHERE NOT s.wanted AND c.own = 't' AND c.merged = 'f' AND c.found_hash IS NOT NULL
AND s.key NOT IN (SELECT key FROM staged WHERE wanted) AND s.key NOT IN (SELECT old_id FROM kept)
"""


@dataclass(frozen=True)
class EntityVerified:
    """One entity's reconciliation: read = loaded + merged + excluded + quarantined. Rows that left the quarantine are
    excluded by the plan that retried them, all others by the one that moved them; `dropped` are among `quarantined`.

    `counted` is the source's own COUNT when the stage was filled. Of batches that were taken back, only rows that
    stay in the target are read. `compared` rows were made anew from the stage and compared field by field. `problems`
    are lines for a person, each naming the batch or row; empty when all holds. `notes` are facts that are no fault.
    `matched` of those loaded are one with a row that the target held before; None where the plan matches none.
    `excluded_by` counts excluded rows by the condition that holds them back.
    """

    entity: str
    source: str
    target: str
    read: int
    counted: int | None
    loaded: int
    merged: int
    excluded: int
    quarantined: int
    dropped: int
    compared: int
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    excluded_by: dict[str, int] = field(default_factory=dict)
    matched: int | None = None


@dataclass(frozen=True)
class Verification:
    """The result for all entities."""

    ok: bool
    entities: tuple[EntityVerified, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def verify(ctx: Context, *, ask_source: bool = True, sample: int = SAMPLE_ROWS) -> Verification:
    """Counts and compares everything the job did, and of each entity `sample` rows field by field; records the result
    in the log.

    Reads the target only. InterruptedJobError when asked to stop.
    """
    ctx.workspace.record(PhaseStarted("verify"))
    fault_point("in verify")
    again = f"migrate verify {ctx.paths.job}"
    if not persist(ctx, "taking the job", partial(ctx.target.know, ctx.paths.job), again):
        result = Verification(False, (_nothing_loaded(ctx),))
        ctx.workspace.record(Verified(False, result.to_dict()))
        return result
    preparer = Preparer(ctx.paths, ctx.checked, "verify")
    entities: list[EntityVerified] = []
    samples: list[list[Sampled]] = []
    for entity in ctx.checked.entities:
        know = partial(ctx.target.know_entity, ctx.source_identity, entity.name, entity.plan.to)
        persist(ctx, "taking the job", know, again)
    try:
        for entity in ctx.checked.entities:
            if ctx.stop():
                raise InterruptedJobError("interrupted while verifying", advice=f"migrate verify {ctx.paths.job}")
            ctx.progress(Progress("verify", entity.name))
            act = partial(_verify_entity, ctx, preparer, entity, ask_source)
            entities.append(persist(ctx, f"verifying {entity.name}", act, again))
            samples.append(choose_sample(preparer.duck, sample, matched=entity.plan.match is not None))
        for n, entity in enumerate(ctx.checked.entities):  # after all: references need each other's crosswalks
            if samples[n]:
                compare = partial(compare_sample, ctx, preparer, entity, samples[n])
                entities[n] = _with_sample(entities[n], persist(ctx, f"comparing {entity.name}", compare, again))
    finally:
        preparer.close()
    result = Verification(all(not e.problems for e in entities), tuple(entities))
    ctx.workspace.record(Verified(result.ok, result.to_dict()))
    return result


def _with_sample(verified: EntityVerified, found: Compared) -> EntityVerified:
    problems = found.problems[:MOST_SHOWN]
    if len(found.problems) > MOST_SHOWN:
        problems += (f"{len(found.problems) - MOST_SHOWN:,} more fields of the sample differ",)
    return replace(
        verified,
        compared=found.rows,
        problems=verified.problems + problems,
        notes=verified.notes + found.notes,
    )


def _nothing_loaded(ctx: Context) -> EntityVerified:
    problem = f"the target's ledger doesn't know the job {ctx.paths.job}: nothing of it was loaded there"
    return EntityVerified("", ctx.source_identity, ctx.target.identity, 0, None, 0, 0, 0, 0, 0, 0, (problem,), ())


def _verify_entity(ctx: Context, preparer: Preparer, entity: CheckedEntity, ask_source: bool) -> EntityVerified:
    duck, target = preparer.duck, ctx.target
    problems: list[str] = []
    notes: list[str] = []
    parts = recorded_parts(ctx.workspace, entity.name)
    undone = _undone(ctx, entity, [part.part for part in parts])
    complete = completed_stage(ctx.workspace, entity.name)
    if complete is None and not undone:
        problems.append("the stage is not complete: the job did not finish")
    if open_generation(ctx.workspace) is not None:
        verb = "resume" if open_redrive(ctx.workspace) is not None else "sync"
        problems.append(f"a {verb} began and didn't end: `migrate {verb} {ctx.paths.job}` goes on")
    last = last_count(ctx.workspace, entity.name)
    counted = last.counted if last else None
    gone = _still_gone(ctx, entity, last) if last else 0
    path = preparer.folder(entity) / "target.parquet"
    _write(path, target.found_rows(loaded_entity(entity)))
    preparer.crosswalks[entity.name] = path
    execute(duck, f"CREATE OR REPLACE TEMP TABLE carried AS SELECT * FROM read_parquet({literal(str(path))})")
    stage_keys(ctx, entity, duck, [part.part for part in parts if part.part not in undone], "staged")
    (rest, excluded) = execute(duck, "SELECT count(*), count(*) FILTER (WHERE NOT wanted) FROM staged")[0]
    excluded_by = dict(execute(duck, "SELECT why, count(*) FROM staged WHERE NOT wanted GROUP BY 1 ORDER BY 2 DESC, 1"))
    problems += _not_archived(ctx, entity, [part.part for part in parts if part.part not in undone], excluded_by)
    stayed, taken = 0, 0
    if undone:
        stage_keys(ctx, entity, duck, undone, "taken")
        (taken,) = execute(duck, "SELECT count(*) FROM taken")[0]
        execute(
            duck,
            "INSERT INTO staged SELECT DISTINCT NULL::BIGINT, key, true, NULL FROM taken JOIN carried c ON c.old_id = key WHERE c.own = 't' AND c.merged = 'f' "
            f"AND CAST(c.batch AS INTEGER) IN ({', '.join(map(str, undone))})",
        )
        (both,) = execute(duck, "SELECT count(*) FROM staged")[0]
        stayed = both - rest
        notes.append(f"{taken - stayed:,} rows of {len(undone):,} batches were taken back")
    read = rest + stayed
    staged = rest + taken
    if gone:
        notes.append(f"{gone:,} rows of the stage were gone from the source at the last sync")
    if last is not None and last.counted + gone != staged:
        line = f"the source counted {last.counted:,} rows and the stage holds {staged - gone:,}"
        fault = "rows were lost or read twice on the way into the stage"
        again = f"`migrate sync {ctx.paths.job} --full` brings in what changed"
        if last.gone is None and last.counted < staged:
            notes.append(f"{line}: some are gone from the source, and no sync looked for those")
        elif last.one_instant and last.gone is not None:
            problems.append(f"{line}: {fault}")
        else:
            problems.append(f"{line}: {fault}, or the source changed meanwhile: {again}")
    elif last is not None and not last.one_instant:
        notes.append("the stage is not of one instant of the source: a sync brings in what changed while it was read")
    if ask_source:
        try:
            now = ctx.source.count(entity.plan.from_)
            if now != (counted if counted is not None else staged - gone):
                notes.append(f"the source holds {now:,} rows now")
        except PackhorseError as error:
            notes.append(f"the source could not be asked again: {error.what}")
    held = target.quarantined_keys(entity.name)
    quarantined = sum(n for _, n, _, _ in held)
    columns = {"key": pa.array([row[0] for row in held], pa.string())}
    columns |= {name: pa.array([row[i] for row in held], pa.int64()) for name, i in (("n", 1), ("batch", 3))}
    _put(duck, "held", pa.table(columns))
    kept = target.kept_edits(entity.name)
    names, hashes = [row.old_id for row in kept], [row.edited_hash for row in kept]
    _put(duck, "kept", pa.table({"old_id": pa.array(names, pa.string()), "hash": pa.array(hashes, pa.string())}))
    (left,) = execute(duck, "SELECT count(*) FROM kept WHERE old_id IN (SELECT old_id FROM carried)")[0]
    if left:
        notes.append(
            f"{left:,} rows were left as they are: edited in the target, gone from the source, or left out by the plan"
        )
    left_out = {key for (key,) in execute(duck, _LEFT_OUT_THERE)} - set(target.marked_keys(entity.name))
    if left_out:
        notes.append(
            f"{len(left_out):,} rows that the plan leaves out stand in the target: "
            f"`migrate sync {ctx.paths.job} --deletes delete` takes them out"
        )
    stays = execute(
        duck,
        "SELECT count(*) FROM (SELECT key FROM staged GROUP BY key HAVING count(*) = 1) s JOIN held h ON h.key = s.key "
        "JOIN carried c ON c.old_id = s.key WHERE c.found_hash IS NOT NULL AND c.merged = 'f'",
    )[0][0]
    if stays:
        notes.append(
            f"{stays:,} rows in quarantine also stand in the target, as they were before their newer version failed"
        )
    loaded = execute(
        duck,
        # A row in quarantine that an earlier job loaded stays in the target as it was, and counts once.
        "SELECT count(*) FROM (SELECT key, count(*) AS n FROM staged WHERE wanted GROUP BY 1) s JOIN carried c ON c.old_id = s.key "
        "LEFT JOIN held h ON h.key = s.key WHERE c.found_hash IS NOT NULL AND s.n > coalesce(h.n, 0) AND c.merged = 'f'",
    )[0][0]
    merged = execute(
        duck,
        "SELECT count(*) FROM (SELECT key, count(*) AS n FROM staged WHERE wanted GROUP BY 1) s JOIN carried c ON c.old_id = s.key "
        "LEFT JOIN held h ON h.key = s.key WHERE s.n > coalesce(h.n, 0) AND c.merged = 't'",
    )[0][0]
    matched = count_matched(duck) if entity.plan.match is not None else None
    if matched is not None:
        problems += strayed_matches(duck, matched_path(ctx.paths, entity.name))
        problems += miscounted_matches(duck, target.ledger(), entity.name, matched)
    problems += _lost_and_doubled(duck)
    problems += _mismatches(duck)
    problems += _ledger_differs(ctx, entity, stayed, read, loaded, merged, excluded, quarantined)
    if entity.deferred and (todo := target.unfilled(entity.name)):
        line = f"references of rows that left the quarantine were not looked up, in {len(todo):,} batches"
        problems.append(f"{line}: `migrate quarantine retry {ctx.paths.job}` goes on")
    problems += _unresolved(ctx, entity)
    problems += _low_sequence(ctx, entity)
    if read != loaded + merged + excluded + quarantined:
        problems.insert(
            0,
            f"read {read:,} is not loaded {loaded:,} + merged {merged:,} + excluded {excluded:,} + quarantined {quarantined:,}",
        )
    return EntityVerified(
        entity.name,
        entity.plan.from_,
        entity.plan.to,
        read,
        counted,
        loaded,
        merged,
        excluded,
        quarantined,
        sum(row[2] for row in held),
        0,
        tuple(problems),
        tuple(notes),
        excluded_by,
        matched,
    )


def _still_gone(ctx: Context, entity: CheckedEntity, last: LastCount) -> int:
    """Rows of the stage that the source had no longer when it was last read, and that no removal took out since."""
    left = last.gone or 0
    for batch in last.removals:
        left -= sum(sum(each.values()) for each in ctx.target.superseded_counts(entity.name, batch).values())
    return left


def _not_archived(ctx: Context, entity: CheckedEntity, parts: list[int], excluded_by: dict[str, int]) -> list[str]:
    """Where the archive, if the plan names one, holds other rows than were left out of these parts."""
    archive = Archive.of(ctx.checked.plan, ctx.paths.job)
    if archive is None:
        return []
    later = {
        (row.batch, row.step) for row in ctx.target.retried_rows(entity.name) if row.excluded and row.batch in parts
    }
    found = archive.counted(
        entity.name, [*((part, 1) for part in parts), *sorted(later)], ctx.target.superseded_rows(entity.name)
    )
    return [
        f"the archive holds {found[reason]:,} rows that {reason!r} left out, counted {excluded_by.get(reason, 0):,}"
        for reason in sorted({*found, *excluded_by})
        if found[reason] != excluded_by.get(reason, 0)
    ]


def _undone(ctx: Context, entity: CheckedEntity, parts: list[int]) -> list[int]:
    """The entity's batches that were taken back; all its parts where the whole job was."""
    rows = ctx.target.ledger()
    if rows and all(row.undone for row in rows):
        return parts
    return [row.batch for row in rows if row.entity == entity.name and row.step == 1 and row.undone]


def _lost_and_doubled(duck: Any) -> list[str]:
    lost = execute(
        duck,
        "SELECT key FROM staged WHERE wanted AND key NOT IN (SELECT old_id FROM carried) "
        f"AND key NOT IN (SELECT key FROM held) ORDER BY key LIMIT {MOST_SHOWN + 1}",
    )
    both = execute(
        duck,
        "SELECT s.key FROM (SELECT key FROM staged GROUP BY key HAVING count(*) = 1) s JOIN carried c ON c.old_id = s.key "
        # what an earlier batch loaded stays when a sync brings a newer version of it that can't be
        f"JOIN held h ON h.key = s.key WHERE c.own = 't' AND CAST(c.batch AS INTEGER) >= h.batch LIMIT {MOST_SHOWN}",
    )
    twice = execute(
        duck, f"SELECT new_id FROM carried WHERE merged = 'f' GROUP BY 1 HAVING count(*) > 1 LIMIT {MOST_SHOWN}"
    )
    astray = execute(
        duck,
        "SELECT old_id FROM carried WHERE merged = 't' AND new_id NOT IN (SELECT new_id FROM carried WHERE merged = 'f') "
        f"ORDER BY 1 LIMIT {MOST_SHOWN}",
    )
    lines = []
    if lost:
        more = " and more" if len(lost) > MOST_SHOWN else ""
        lines.append(f"neither loaded nor quarantined: source keys {', '.join(r[0] for r in lost[:MOST_SHOWN])}{more}")
    if both:
        lines.append(f"loaded and quarantined: source keys {', '.join(r[0] for r in both)}")
    if twice:
        lines.append(f"two source rows point at one target row: {', '.join(r[0] for r in twice)}")
    if astray:
        lines.append(f"merged into a row that no source row has: source keys {', '.join(r[0] for r in astray)}")
    return lines


def _mismatches(duck: Any) -> list[str]:
    """Rows gone from the target or holding other values than were loaded, by batch."""
    lines = []
    for condition, what in (
        ("found_hash IS NULL", "no longer in the target"),
        (
            "found_hash IS NOT NULL AND found_hash <> target_hash "
            "AND NOT EXISTS (SELECT 1 FROM kept k WHERE k.old_id = carried.old_id AND k.hash = found_hash)",
            "hold other values than were loaded",
        ),
        (
            "found_hash IS NOT NULL AND coalesce(found_reference, '') <> coalesce(reference_hash, '')",
            "hold other references than were filled",
        ),
    ):
        mine = "merged = 'f' AND old_id IN (SELECT key FROM staged WHERE wanted)"
        for batch, count, keys in execute(
            duck,
            f"SELECT batch, count(*), list(old_id ORDER BY old_id)[1:5] FROM carried WHERE {condition} AND {mine} "
            f"GROUP BY 1 ORDER BY CAST(batch AS INTEGER) LIMIT {MOST_SHOWN}",
        ):
            lines.append(f"batch {batch}: {count:,} rows {what}: source keys {', '.join(keys)}")
    return lines


def _ledger_differs(
    ctx: Context,
    entity: CheckedEntity,
    stayed: int,
    read: int,
    loaded: int,
    merged: int,
    excluded: int,
    quarantined: int,
) -> list[str]:
    """Where the ledger differs from what was counted; `stayed` rows of batches that were taken back are in both."""
    rows = [r for r in ctx.target.ledger() if r.entity == entity.name and r.step == 1 and not r.undone]
    later = ctx.target.retry_totals(entity.name).values()
    undone = {r.batch for r in ctx.target.ledger() if r.entity == entity.name and r.step == 1 and r.undone}
    over: Counter[str] = Counter()
    for batch, outcomes in ctx.target.superseded_counts(entity.name).items():
        over.update(outcomes if batch not in undone else {})
    moved = sum(each.inserted + each.updated + each.unchanged for each in later)
    sums = {
        "read": (sum(r.read for r in rows) + stayed - over.total(), read),
        "loaded": (
            sum(r.inserted + r.updated + r.unchanged for r in rows) + stayed + moved - over["loaded"],
            loaded,
        ),
        "merged": (sum(r.merged for r in rows) + sum(each.merged for each in later), merged),
        "excluded": (sum(r.excluded for r in rows) + sum(e.excluded for e in later) - over["excluded"], excluded),
        "quarantined": (
            sum(r.quarantined for r in rows) - sum(each.left for each in later) - over["quarantined"],
            quarantined,
        ),
    }
    return [
        f"the ledger says {name} {said:,}, counted {found:,}" for name, (said, found) in sums.items() if said != found
    ]


def _unresolved(ctx: Context, entity: CheckedEntity) -> list[str]:
    lines = []
    for f in entity.fields:
        if f.plan.ref is None:
            continue
        other = ctx.checked.entity(f.plan.ref)
        if other.id_column is None:
            continue
        count = ctx.target.dangling(entity.target, f.column.name, other.target, other.id_column.name)
        if count:
            lines.append(f"{f.column.name}: {count:,} references point at no row of {other.plan.to}")
    return lines


def _low_sequence(ctx: Context, entity: CheckedEntity) -> list[str]:
    column = entity.id_column
    if column is None or not column.sequence:
        return []
    low = ctx.target.low_sequence(entity.target, column)
    return [f"the sequence of {column.name} stands at {low[0]:,}, below the highest id {low[1]:,}"] if low else []


def _put(duck: Any, name: str, rows: pa.Table) -> None:
    duck.register("rows_view", rows)
    execute(duck, f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM rows_view")
    duck.unregister("rows_view")


def _write(path: Path, batches: Any) -> None:
    with disk_errors(), pq.ParquetWriter(path, pa.schema([(name, pa.string()) for name in FOUND_COLUMNS])) as writer:
        for batch in batches:
            writer.write_batch(batch)
