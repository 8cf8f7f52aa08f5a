"""The commands that `bench.faults` strikes, each in a process of its own: a load, what takes it back, drives it again,
brings in what changed, cleans up after it, a load that merges duplicates, and one whose rows the target held in part before;
which named places each passes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import engine.faults
import engine.workers
from connectors.dsn import Dsn, open_source, open_target
from engine.check import check_loaded, check_plan
from engine.cleanup import Cleanup
from engine.context import Context
from engine.faults import (
    CLEANUP_POINTS,
    MERGE_POINTS,
    POINTS,
    PURGE_POINTS,
    REDRIVE_POINTS,
    RETRY_POINTS,
    SYNC_POINTS,
    UNDO_POINTS,
)
from engine.load import load
from engine.match_plan import MatchPlan
from engine.plan import Plan, dump_plan, load_plan, parse_plan
from engine.redrive import Redrive, check_grown, grown_plan
from engine.retry import Retry
from engine.retry_plan import check_next
from engine.sync import Sync
from engine.sync_outcome import SyncOptions
from engine.undo import Undo
from engine.verify import verify
from sample_data import CLOUD_SQL, GOLD_PLAN, duplicates
from workspace.events import PlanChanged, RetryMade
from workspace.lock import JobLock
from workspace.log import Workspace
from workspace.paths import JobPaths
from workspace.state import state_at

NAME = "struck"
SMALL = ("users", "accounts", "contacts")
"""Entities of the sample that refer to themselves, to each other, and to no other."""
_LATER = {"accounts": ("primary_contact_id", "domain"), "contacts": ("reports_to_id", "department", "birthday")}
"""Their fields that wait until the rows have moved."""


@dataclass(frozen=True)
class BenchJob:
    """A job over one of the samples. With `processes`, every part of a load but an entity's last is transformed in one."""

    folder: str
    source: str
    target: str
    batch_rows: int
    processes: int

    @property
    def paths(self) -> JobPaths:
        """Its files."""
        return JobPaths(Path(self.folder), NAME)

    def retries(self) -> int:
        """How often something was tried again, as the log tells."""
        with Workspace.open(self.paths) as workspace:
            return len(list(workspace.events(types=[RetryMade])))

    def latest(self, otherwise: Plan) -> Plan:
        """The plan that its log has last, or the other before there is one."""
        if not self.paths.exists():
            return otherwise
        with Workspace.open(self.paths) as workspace:
            text = state_at(workspace).belief.plan
        return parse_plan(text) if text else otherwise

    @contextmanager
    def running(self, plan: Plan) -> Iterator[Context]:
        """Its context under the plan, with both systems connected and the workspace held for writing."""
        if self.processes:
            engine.workers._WORTH_A_PROCESS = 1
        paths = self.paths.create()
        with closing(open_source(self.source)) as source, closing(open_target(self.target)) as target:
            checked = check_plan(plan, source, target.catalogue())
            identity = Dsn.parse(self.source).identity
            with JobLock(paths), Workspace.open(paths, write=True) as workspace:
                yield Context(
                    paths, workspace, source, target, checked, identity, batch_rows=self.batch_rows,
                    processes=self.processes,
                )  # fmt: skip


@dataclass(frozen=True)
class Command:
    """What a person would give. `plan` gives the plan of its job before it, and `work` does it; `after` names the command
    whose end it begins with ("": an empty target, made by `schema`); `points` are the places it is struck at.
    `change` is made to the source before it, in place: commands are struck in the order of COMMANDS. `held` is SQL for the rows
    that the target holds before, out of the source."""

    name: str
    work: Callable[[BenchJob], None]
    plan: Callable[[], Plan]
    points: tuple[str, ...]
    after: str = ""
    sample: str = "crm"
    schema: str = ""
    change: Callable[[Path], None] | None = None
    held: Callable[[Path], str] | None = None
    spreads: bool = False
    """Other processes have a part in it, where the job has any."""


def gold_plan() -> Plan:
    """What a careful person wrote, of all entities."""
    return load_plan(GOLD_PLAN)


def whole_small_plan() -> Plan:
    """The same of the few."""
    plan = gold_plan()
    return plan.model_copy(update={"entities": {name: plan.entities[name] for name in SMALL}})


def small_plan() -> Plan:
    """The same without the fields that wait."""
    plan = whole_small_plan()
    entities = dict(plan.entities)
    for name, later in _LATER.items():
        fields = {column: field for column, field in entities[name].fields.items() if column not in later}
        entities[name] = entities[name].model_copy(update={"fields": fields})
    return plan.model_copy(update={"entities": entities})


def lenient_plan() -> Plan:
    """The small plan with NULL where a value can't be converted, but for what the target must have."""
    plan = small_plan()
    entities = {}
    for name, entity in plan.entities.items():
        fields = {c: f.model_copy(update={"otherwise": "null"}) for c, f in entity.fields.items() if f.ref is None}
        entities[name] = entity.model_copy(update={"fields": {**entity.fields, **fields}})
    return plan.model_copy(update={"entities": entities})


def matching_plan() -> Plan:
    """The small plan, in which a contact is who has its e-mail address in the target already."""
    plan = small_plan()
    match = MatchPlan.model_validate({"by": ["email"]})
    contacts = plan.entities["contacts"].model_copy(update={"match": match})
    return plan.model_copy(update={"entities": {**plan.entities, "contacts": contacts}})


def people_before(path: Path) -> str:
    """A person for each fifth address of the source, without all else."""
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(
            "SELECT DISTINCT lower(email_address) FROM email_addresses WHERE rowid % 5 = 0 AND email_address LIKE '%_@_%._%' ORDER BY 1"
        )
        addresses = ", ".join("('" + address.replace("'", "''") + "')" for (address,) in found)
    return (
        "INSERT INTO people (id, family_name, email, created_at, updated_at) "
        f"SELECT md5(a)::uuid, 'Here before', a, '2020-01-01', '2020-01-01' FROM (VALUES {addresses}) AS held (a)"
    )


def _duplicates_plan() -> Plan:
    return load_plan(duplicates.PLAN)


def _load(plan: Callable[[], Plan], job: BenchJob) -> None:
    with job.running(plan()) as ctx:
        if not list(ctx.workspace.events(types=[PlanChanged])):  # what a re-drive looks for
            version, text = ctx.checked.plan.version, dump_plan(ctx.checked.plan)
            ctx.workspace.record(PlanChanged(version, text, "file", "given"))
        load(ctx)
        _verified(ctx)


def _undo(job: BenchJob) -> None:
    with closing(open_target(job.target)) as target:
        checked = check_loaded(gold_plan(), target.catalogue())
        with JobLock(job.paths), Workspace.open(job.paths, write=True) as workspace:
            undo = Undo(job.paths, workspace, target, checked)
            undo.foresee()
            undo.run()


def _retry(job: BenchJob) -> None:
    with job.running(job.latest(small_plan())) as ctx:
        Retry(ctx, checked=check_next(ctx, lenient_plan())).run()
    _verify_latest(job)


def _redrive(job: BenchJob) -> None:
    with job.running(job.latest(small_plan())) as ctx:
        begun = Redrive.going_on(ctx)
        if begun is None:
            plan, names = grown_plan(ctx.checked.plan, whole_small_plan())
            # killed after its last batch was told of: nothing is left to do
            begun = Redrive(replace(ctx, checked=check_grown(ctx, plan)), ctx.checked, names) if names else None
        if begun is not None:
            begun.run()
    _verify_latest(job)


def _sync(job: BenchJob) -> None:
    with job.running(small_plan()) as ctx:
        Sync(ctx, SyncOptions(deletes="delete")).run()
        _verified(ctx)


def _clean_up(job: BenchJob) -> None:
    with (
        closing(open_target(job.target)) as target,
        JobLock(job.paths),
        Workspace.open(job.paths, write=True) as workspace,
    ):
        Cleanup(job.paths, workspace, target, unverified=True).run()


def _verify_latest(job: BenchJob) -> None:
    with job.running(job.latest(small_plan())) as ctx:
        _verified(ctx)


def _verified(ctx: Context) -> None:
    result = verify(ctx)
    assert result.ok, [entity.problems for entity in result.entities]


def change_source(path: Path) -> None:
    """Rows of accounts and contacts that are new, changed, gone, newly bad, and that refer to others than before."""
    with closing(sqlite3.connect(path)) as connection:
        for table in ("accounts", "contacts"):
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            taken = ", ".join("'new-' || substr(id, 1, 30)" if c == "id" else f'"{c}"' for c in columns)
            connection.execute(f"INSERT INTO {table} SELECT {taken} FROM {table} WHERE rowid % 9 = 0")
        connection.executescript(_CHANGES)


_CHANGES = """
UPDATE accounts SET parent_id = (SELECT min(id) FROM accounts) WHERE rowid % 5 = 1 AND id > (SELECT min(id) FROM accounts);
UPDATE contacts SET title = 'Changed since' WHERE rowid % 4 = 0;
UPDATE contacts SET first_name = 'Renamed' WHERE rowid % 11 = 3;
UPDATE contacts SET date_entered = 'never' WHERE rowid % 17 = 5;
DELETE FROM contacts WHERE rowid % 13 = 7;
DELETE FROM accounts WHERE rowid % 19 = 7;
"""

COMMANDS = (
    Command("load", partial(_load, gold_plan), gold_plan, POINTS, schema=CLOUD_SQL.read_text("utf-8"), spreads=True),
    Command("undo", _undo, gold_plan, UNDO_POINTS, after="load"),
    Command("small load", partial(_load, small_plan), small_plan, (), schema=CLOUD_SQL.read_text("utf-8")),
    Command("retry", _retry, small_plan, RETRY_POINTS, after="small load"),
    Command(
        "redrive", _redrive, whole_small_plan,
        (*REDRIVE_POINTS, *(point for point in SYNC_POINTS if point != "sync begun")), after="small load",
    ),
    Command("cleanup", _clean_up, small_plan, CLEANUP_POINTS, after="small load"),
    Command("sync", _sync, small_plan, SYNC_POINTS, after="small load", change=change_source),
    Command(
        "match", partial(_load, matching_plan), matching_plan, (*POINTS, "after matches decided"),
        schema=CLOUD_SQL.read_text("utf-8"), held=people_before,
    ),
    Command(
        "merge", partial(_load, _duplicates_plan), _duplicates_plan, MERGE_POINTS, sample="duplicates",
        schema=duplicates.TARGET_SQL,
    ),
)  # fmt: skip

ELSEWHERE = {
    "rehearsal begun": "a rehearsal writes to a scratch server alone, and begins anew: tests/test_cli_rehearse.py kills one",
    "rehearsal done": "the same: all that a kill here loses is the rehearsal",
    "pilot cut": "nothing of a pilot is in the target yet: tests/test_cli_pilot.py kills it here",
    **dict.fromkeys(PURGE_POINTS, "a purge touches no target: tests/test_purge.py kills it here"),
    "late matches found": "it wants others who write meanwhile: tests/test_engine_match_late.py kills it here",
}
"""Places that no command here is struck at, and why."""


def unreached() -> list[str]:
    """Places of the engine that no command is struck at and no reason is given for; and reasons that are none any more."""
    lists = [value for name, value in vars(engine.faults).items() if name.endswith("POINTS")]
    named = {point for points in lists for point in points}
    reached = {point for command in COMMANDS for point in command.points}
    return sorted((named - reached) ^ set(ELSEWHERE))
