"""Brings rows that are loaded under a plan that says more: fields that waited for an answer when the rows moved.

The rows are a further generation of the stage, as of a sync, but the source isn't read: each row that the stage has is
driven again. What the plan said of rows that are loaded stays; what a person edited in the target meanwhile stays too,
unless the plan says otherwise. Rows that an edited `where` holds back leave the target, as in a sync that deletes.
"""

from __future__ import annotations

from engine.check import CheckedPlan, check_plan
from engine.context import Context
from engine.faults import fault_point
from engine.generation import Generation, generations, open_redrive
from engine.plan import Plan, dump_plan, parse_plan
from engine.prepare import try_queries
from engine.retry_plan import changed_wheres
from engine.stager import recorded_parts
from engine.sync import Sync
from engine.sync_outcome import SyncOptions, SyncOutcome
from engine.sync_read import GenerationReader
from engine.sync_stage import EntityRead, GenerationStager, scratch_table
from engine.syntax import columns_of
from engine.transform import execute
from workspace.errors import UsageError
from workspace.events import PlanChanged, SyncStarted
from workspace.log import Workspace


def grown_plan(loaded: Plan, wished: Plan) -> tuple[Plan, tuple[str, ...]]:
    """The plan that rows were loaded by, with the fields and value maps that `wished` has besides; and the entities that
    get more fields: none without a source key, whose rows nobody can find again, and none at all where the plan merges
    duplicates or matches rows, which is decided once, and which a sync refuses. What both have stays as rows were loaded
    by it, and so does what rows are read from."""
    entities, grown = dict(loaded.entities), []
    once = any(entity.match is not None or entity.merge is not None for entity in loaded.entities.values())
    maps = {name: {**values, **loaded.value_maps.get(name, {})} for name, values in wished.value_maps.items()}
    for name, entity in loaded.entities.items():
        other = wished.entities.get(name)
        more = other.fields.items() if other is not None else ()
        added = {c: f for c, f in more if c not in entity.fields and (f.ref is None or f.ref in loaded.entities)}
        if added and entity.key and not once:
            drawn = {c for f in added.values() if not f.constant for c in columns_of(f.expression, name)}
            left = {column: why for column, why in entity.unmapped.items() if column not in drawn}
            update = {"fields": {**entity.fields, **added}, "unmapped": left}
            entities[name] = entity.model_copy(update=update)
            grown.append(name)
    plan = loaded.model_copy(update={"entities": entities, "value_maps": {**loaded.value_maps, **maps}})
    return plan, tuple(grown)


class Redrive(Sync):
    """One command's part of it."""

    def __init__(self, ctx: Context, before: CheckedPlan, names: tuple[str, ...]) -> None:
        """`ctx` has the next plan version, as `check_grown` gives it, for rows of the entities `names`, which were
        loaded by the version `before`. UsageError as a sync's."""
        super().__init__(ctx, SyncOptions())
        self._before, self._names = before, names
        self._again = f"migrate resume {ctx.paths.job}"

    @classmethod
    def going_on(cls, ctx: Context) -> Redrive | None:
        """The re-drive that a run before this one began and didn't end, or None. `ctx` has the job's last plan."""
        begun = open_redrive(ctx.workspace)
        if begun is None:
            return None
        plan = _version(ctx.workspace, begun.written_by)
        return cls(ctx, check_plan(plan, ctx.source, ctx.target.catalogue()), begun.redriven)

    def run(self) -> SyncOutcome:
        """Drives the rows again, or goes on with it. Raises as a sync does; the same command goes on."""
        return self._go()

    # -- what differs from a sync -----------------------------------------------------------------

    def _stage(self) -> Generation:
        """The plan's next version and the generation are told of together: rows are never by a version that the log
        has and a generation that it hasn't."""
        ctx = self._ctx
        number = generations(ctx.workspace)[-1].number + 1
        narrowed: tuple[str, ...] = ()
        begun = open_redrive(ctx.workspace)
        if begun is None:
            plan = ctx.checked.plan
            ctx.workspace.record(
                PlanChanged(plan.version, dump_plan(plan), "rule", "answers that came after rows had moved"),
                SyncStarted(number, redriven=list(self._names), written_by=self._before.plan.version),
            )
        else:
            number = begun.number
            if begun.deletes == "delete":
                narrowed = changed_wheres(self._before.plan, ctx.checked.plan)
        fault_point("redrive begun")
        return self._staged(_StageReader(ctx, number, self._again, self._names, narrowed), number)

    def _written_by(self, generation: Generation) -> CheckedPlan:
        return self._before


class _StageReader(GenerationReader):
    """Reads the stage in the source's place. Of the entities `narrowed`, rows that are held back leave the target; of
    others they stay, as a sync has left them."""

    def __init__(
        self, ctx: Context, number: int, again: str, names: tuple[str, ...], narrowed: tuple[str, ...]
    ) -> None:
        super().__init__(ctx, number, again)
        self._names, self._narrowed = names, narrowed

    def read(self) -> list[EntityRead]:
        """Every row that the stage has of the entities, the latest of each source key."""
        found = []
        for name in self._names:
            entity = self._ctx.checked.entity(name)
            read = EntityRead(entity, recorded_parts(self._ctx.workspace, name))
            self._take_latest(read)
            self._compare(read)
            read.gone = None  # nobody asked the source
            again, latest = scratch_table("again", entity), scratch_table("latest", entity)
            execute(self._duck, f"INSERT INTO {again} SELECT n FROM {latest}")
            (read.again,) = execute(self._duck, f"SELECT count(*) FROM {again}")[0]
            found.append(read)
        return found

    def stage(self, found: list[EntityRead]) -> None:
        """Writes the rows as parts once more, and beside each what it takes the place of."""
        leave = [read for read in found if read.entity.name in self._narrowed]
        GenerationStager(self._ctx, self._preparer, "delete").stage_again(leave)
        GenerationStager(self._ctx, self._preparer, "keep").stage_again([read for read in found if read not in leave])


def check_grown(ctx: Context, grown: Plan) -> CheckedPlan:
    """The grown plan as the job's next version, checked as for a run. PlanError, ExpressionError, CatalogueError."""
    plan = grown.model_copy(update={"version": ctx.checked.plan.version + 1})
    checked = check_plan(plan, ctx.source, ctx.target.catalogue())
    try_queries(ctx.paths, checked)
    return checked


def _version(workspace: Workspace, version: int) -> Plan:
    for entry in workspace.events(types=[PlanChanged]):
        if isinstance(entry.event, PlanChanged) and entry.event.version == version:
            return parse_plan(entry.event.plan, f"plan version {version}")
    raise UsageError(f"the log has no plan version {version}", where=str(workspace.paths.folder))
