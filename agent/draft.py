"""The draft: from a survey of both systems to a plan, decision by decision on the ladder.

What is decided stands in the plan; what isn't is a question, and what depends on it is left out (a nullable
field) or held (an entity). A field is never filled on a guess.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from agent.actions import (
    AddEntity,
    HoldEntity,
    LeaveColumns,
    LeaveField,
    MapField,
    SetOtherwise,
    SetSource,
    SetValueMap,
    SetWhere,
)
from agent.conversions import quoted_for
from agent.countries import check_country, country_matter
from agent.fields import field_matter
from agent.formats import decide_format
from agent.kinds_apart import filled_alone
from agent.ladder import AUTONOMY, Budget, Ladder, Person
from agent.loop import Loop
from agent.match import FieldMatch, match_fields
from agent.matter import SQL, Matter
from agent.models.counting import Count
from agent.models.protocol import Encoder, Model
from agent.places import Places, place_tables
from agent.remembered import Remembered
from agent.rivals import FieldCandidate
from agent.structure import Relation, Structure, beliefs, find_structure, relation_sql
from agent.survey import Survey, likeness, survey
from agent.tables import Filter, constant_for, filter_matter, id_for, row_filter
from agent.unmapped import reasons
from agent.valuemaps import decide_values
from agent.waiting import waits_with
from agent.zones import ZONE, check_zone, look_at_clock, zone_matter
from connectors.protocols import Catalogue, Source, Table
from engine.expressions import Compiler
from engine.plan import Plan
from engine.syntax import columns_of
from workspace.errors import ExpressionError, UsageError
from workspace.events import PhaseStarted
from workspace.experience_store import ExperienceStore
from workspace.log import Workspace

_ON_FORMATS = ["propose an expression", "ask"]
Watch = Callable[[str, str, int, int], None]


@dataclass(frozen=True)
class Draft:
    """What came of drafting.

    `plan` can be executed as it stands; `whole` also has the entities that are held, as far as they are
    decided. `held` names for each held entity the questions it waits for; `open_fields` for each field that is
    left out its question.
    """

    plan: Plan
    whole: Plan
    held: dict[str, tuple[str, ...]] = field(default_factory=dict)
    open_fields: dict[tuple[str, str], str] = field(default_factory=dict)


def draft(
    source: Source,
    target: Catalogue,
    workspace: Workspace,
    *,
    model: Model | None = None,
    encoder: Encoder | None = None,
    autonomy: float = AUTONOMY,
    experience: ExperienceStore | None = None,
    zone: str | None = None,
    budget: Budget | None = None,
    watch: Watch = lambda phase, what, done, total: None,
    on_call: Callable[[int], None] = lambda calls: None,
    keep: Callable[[Plan], Plan] = lambda plan: plan,
    person: Person | None = None,
) -> Draft:
    """Surveys, matches and drafts; what the log has decided already is taken from there.

    `zone` is the time zone of the source's clock, where whoever calls knows it. `keep` may put parts of an
    earlier plan back before the new version is recorded; `person` is asked at once what would wait else. Raises CatalogueError for an empty source, UsageError
    for a zone that isn't known.
    """
    if zone is not None and not check_zone(zone):
        raise UsageError(f"no time zone {zone!r}", advice="name it as America/New_York or Europe/Berlin, or UTC")
    workspace.record(PhaseStarted("survey"))
    found = survey(source, target, workspace, lambda table, done, total: watch("survey", table, done, total))
    workspace.record(PhaseStarted("match"))
    ladder = Ladder(
        workspace, model=model, encoder=encoder, experience=experience, autonomy=autonomy, budget=budget, on_call=on_call,
        person=person,
    )  # fmt: skip
    drafter = _Drafter(source, found, workspace, ladder, model, experience, zone, watch)
    return drafter.run(keep)


@dataclass
class _Pending:
    """A field that is decided but for what `needs` names."""

    entity: str
    match: FieldMatch
    candidate: FieldCandidate


class _Drafter:
    def __init__(
        self, source: Source, found: Survey, workspace: Workspace, ladder: Ladder, model: Model | None,
        experience: ExperienceStore | None, zone: str | None, watch: Watch,
    ) -> None:  # fmt: skip
        self._source, self._found, self._workspace, self._ladder = source, found, workspace, ladder
        self._model, self._experience, self._zone, self._watch = model, experience, zone, watch
        self._quote = partial(quoted_for, source)
        self._structure: Structure = find_structure(found, self._quote)
        self._loop = Loop(workspace, Plan(version=1, entities={}), found.target)
        self._places = Places(self._structure)
        self._to = self._places.to
        self._open: dict[tuple[str, str], str] = {}
        self._waiting: dict[str, list[str]] = {}  # entity -> questions that hold it
        self._used: dict[str, set[str]] = {}
        self._pending: list[_Pending] = []

    def run(self, keep: Callable[[Plan], Plan]) -> Draft:
        found = beliefs(self._found.tables, self._structure)
        if found:
            self._workspace.record(*found)
        self._places = place_tables(
            self._source, self._found, self._structure, self._ladder, self._workspace, self._experience
        )
        self._structure, self._to = self._places.structure, self._places.to
        for done, name in enumerate(self._to):
            self._watch("match", name, done, len(self._to))
            self._entity(name)
        self._zones()
        for name in self._to:
            self._finish(name)
        self._remedies()
        whole = self._loop.plan
        held = self._hold()
        self._loop.plan = keep(self._loop.plan)
        plan = self._loop.keep_version("rule", "drafted from the survey")
        return Draft(plan, whole, held, dict(self._open))

    # -- one entity -------------------------------------------------------------------------------

    def _entity(self, name: str) -> None:
        part, table = self._places.kinds.get(name), self._found.target.tables[self._to[name]]
        profile, sample = (part.profile, part.sample) if part else (self._found.tables[name], self._found.samples[name])
        relation = self._structure.relations[name] if part is None else filled_alone(self._structure.relations[name])
        shared = list(self._to.values()).count(table.name) > 1
        key = profile.key
        if not key:
            matter = Matter("key", name, f"What makes a row of {name} itself? Name its key's columns.", (), must=True,
                            holds=(name,), free=True)  # fmt: skip
            decision = self._ladder.decide(matter)
            if decision.answer is None:
                self._waiting.setdefault(name, []).append(matter.id)
            key = tuple(k.strip() for k in (decision.answer or next(iter(profile.columns))).split(","))
        identity = id_for(profile, table, shared)
        self._loop.know_columns({name: frozenset(o.name for o in relation.columns)})
        settings = {"from": relation.main, "to": table.name, "key": list(key), "id": identity}
        self._loop.act(AddEntity(name, settings))
        self._used[name] = set(key)
        if part is not None and part.where:
            self._used[name].add(part.told_by)
            self._loop.act(SetWhere(name, part.conditions))
        remembered = Remembered(self._experience, relation.main)
        found = row_filter(relation, table, remembered)
        if found is not None:
            self._filter(name, found)
        skip = set(table.primary_key) if identity != "none" else set()
        self._constants(name, table, skip)
        for match in match_fields(
            relation, table, self._to, skip=frozenset(skip), alike=likeness(sample), remembered=remembered
        ):
            self._field(name, relation, table, match)

    def _filter(self, name: str, found: Filter) -> None:
        """Leaves deleted rows behind; where a person has to say, the entity waits."""
        matter = filter_matter(name, self._structure.relations[name].main, found)
        decision = self._ladder.decide(matter)
        if decision.open:
            self._waiting.setdefault(name, []).append(matter.id)
        elif decision.answer is not None:
            others = part.conditions if (part := self._places.kinds.get(name)) else {}
            self._loop.act(SetWhere(name, {**others, "deleted": found.where} if others else found.where))
        if decision.open or decision.answer is not None:
            self._used[name].add(found.column)

    def _constants(self, name: str, table: Table, skip: set[str]) -> None:
        for column in table.columns:
            constant = constant_for(name, self._to, table, column.name)
            if constant is not None:
                self._loop.act(MapField(name, column.name, {"default": constant[0]}))
                skip.add(column.name)

    def _field(self, name: str, relation: Relation, table: Table, match: FieldMatch) -> None:
        column = match.column
        waits = None if match.candidates else self._places.unplaced.question(relation, table, column.name)
        if waits is not None:
            self._leave_open(name, match, waits)
            return
        if not match.candidates and not match.required and match.none_weight > 0.999:
            return  # nothing to decide: the target fills it, or it stays empty
        matter = field_matter(name, relation, table, match)
        decision = self._ladder.decide(matter)
        if decision.open:
            self._leave_open(name, match, matter.id)
            self._foresee_values(name, relation, match)
            return
        if decision.answer is not None and decision.answer.startswith(SQL):
            self._own_expression(name, match, decision.answer.removeprefix(SQL).strip(), matter.id)
            return
        candidate = next((c for c in match.candidates if c.answer == decision.answer), None)
        if candidate is None and decision.answer is not None and matter.free:
            self._loop.act(MapField(name, column.name, {"default": decision.answer}))
        elif candidate is None:
            self._loop.act(LeaveField(name, column.name, decision.why))
        elif "zone" in candidate.needs:
            self._pending.append(_Pending(name, match, candidate))
        elif "date_format" in candidate.needs:
            self._format(name, relation, match, candidate)
        elif "country" in candidate.needs:
            self._country(name, relation, match, candidate)
        elif "values" in candidate.needs:
            self._values(name, relation, match, candidate)
        elif candidate.selects is not None and match.required:
            self._only(name, match, candidate)
        else:
            self._map(name, match, candidate, dict(candidate.plan))

    def _only(self, name: str, match: FieldMatch, candidate: FieldCandidate) -> None:
        """A required parent of one kind: rows that have another kind of parent are none of this entity's."""
        column, selector, value = candidate.selects or ("", "", "")
        condition = f"m.{self._quote(selector)} = '" + value.replace("'", "''") + "'"
        known = self._structure.relations[name]
        where = f"{known.where} AND {condition}" if known.where else condition
        self._structure.relations[name] = replace(known, where=where)
        self._map(name, match, candidate, {"from": column, "ref": candidate.plan["ref"]})

    def _own_expression(self, name: str, match: FieldMatch, sql: str, question: str) -> None:
        """An expression that a person wrote; one that can't be compiled leaves the field open."""
        relation = self._structure.relations[name]
        foreign = next(
            (f for f in self._found.target.tables[self._to[name]].foreign_keys if f.columns == (match.column.name,)),
            None,
        )
        try:
            Compiler({o.name: "VARCHAR" for o in relation.columns}).compile(sql, f"{name}.{match.column.name}")
            drawn = tuple(columns_of(sql))
        except ExpressionError:
            self._leave_open(name, match, question)
            return
        origin: dict[str, object] = {"sql": sql}
        pointed = [s for s, t in self._to.items() if foreign is not None and t == foreign.referred_table]
        if pointed:
            origin |= {"ref": pointed[0], **({"missing": "null"} if match.column.nullable else {})}
        feedback = self._loop.act(MapField(name, match.column.name, origin, drawn))
        if feedback.outcome == "done":
            self._used[name].update(drawn)

    def _map(self, name: str, match: FieldMatch, candidate: FieldCandidate, origin: dict[str, object]) -> None:
        feedback = self._loop.act(MapField(name, match.column.name, origin, candidate.columns))
        if feedback.outcome == "done":
            self._used[name].update(candidate.columns)

    def _values(self, name: str, relation: Relation, match: FieldMatch, candidate: FieldCandidate) -> None:
        origin = relation.origin(candidate.columns[0])
        assert origin is not None
        subject = f"{name}.{match.column.name}"
        made = decide_values(
            self._ladder, self._experience, subject, candidate.columns[0], origin.profile, match.column.labels
        )
        plan = dict(candidate.plan)
        if not made.direct:
            self._loop.act(SetValueMap(f"{name}_{match.column.name}", dict(sorted(made.values.items()))))
            plan["map"] = f"{name}_{match.column.name}"
        self._map(name, match, candidate, plan)

    def _foresee_values(self, name: str, relation: Relation, match: FieldMatch) -> None:
        """While a person is asked for the column, the values of the likeliest one are asked about too."""
        best = match.best
        if best is not None and "values" in best.needs and best.confidence >= 0.4:
            origin = relation.origin(best.columns[0])
            assert origin is not None
            subject = f"{name}.{match.column.name}"
            decide_values(self._ladder, self._experience, subject, best.columns[0], origin.profile, match.column.labels)

    def _country(self, name: str, relation: Relation, match: FieldMatch, candidate: FieldCandidate) -> None:
        """Telephone numbers without a country, in rows without one."""
        origin = relation.origin(candidate.columns[0])
        assert origin is not None
        holds = (name,) if match.required else ()
        matter = country_matter(self._found, f"{name}.{match.column.name}", origin.profile, holds)
        decision = self._ladder.decide(matter)
        if decision.open or decision.answer is None or not check_country(decision.answer):
            self._leave_open(name, match, matter.id)
            return
        sql = str(candidate.plan["sql"]).removesuffix(")") + f", '{decision.answer}')"
        self._map(name, match, candidate, {"sql": sql})

    def _format(self, name: str, relation: Relation, match: FieldMatch, candidate: FieldCandidate) -> None:
        """Dates in a form that is not told."""
        origin = relation.origin(candidate.columns[0])
        assert origin is not None
        subject = f"{name}.{match.column.name}"

        def view(count: Count) -> str:
            return self._loop.observe("carry the records over", f"the form of {subject}", _ON_FORMATS, count)

        sample = self._found.samples[origin.table]
        expression, question = decide_format(self._ladder, self._model, subject, match, origin, sample, view)
        if expression is None:
            self._leave_open(name, match, question)
        else:
            self._own_expression(name, match, expression.removeprefix(SQL).strip(), question)

    def _leave_open(self, name: str, match: FieldMatch, question: str) -> None:
        """Left out where the target can do without; else the entity waits."""
        self._open[name, match.column.name] = question
        if match.required:
            self._waiting.setdefault(name, []).append(question)

    # -- what several fields wait for -------------------------------------------------------------

    def _zones(self) -> None:
        if not self._pending:
            return
        holds = tuple(dict.fromkeys(p.entity for p in self._pending if p.match.required))
        known = self._zone is not None or self._ladder.made(ZONE) or self._ladder.answer_to(ZONE)
        clock = None if known else look_at_clock(self._found, self._source, self._local_times(), self._watch)
        fields = tuple(f"{p.entity}.{p.match.column.name}" for p in self._pending)
        matter = zone_matter(self._found, fields, holds, clock)
        if self._zone is not None:
            decision = self._ladder.given(matter, self._zone, "given with the command")
        else:
            decision = self._ladder.decide(matter)
        for pending in self._pending:
            if decision.answer is None:
                self._leave_open(pending.entity, pending.match, matter.id)
                continue
            sql = str(pending.candidate.plan["sql"]).replace("{zone}", decision.answer.replace("'", "''"))
            self._map(pending.entity, pending.match, pending.candidate, {"sql": sql})

    def _local_times(self) -> set[tuple[str, str]]:
        """The source's columns whose times wait for the zone."""
        drawn = ((self._structure.relations[p.entity], c) for p in self._pending for c in p.candidate.columns)
        origins = (relation.origin(column) for relation, column in drawn)
        return {(o.table, o.profile.column.name) for o in origins if o is not None}

    # -- the end ----------------------------------------------------------------------------------

    def _remedies(self) -> None:
        """What was decided on failures that an earlier preview found stays decided."""
        for subject, answer in self._ladder.settled("remedy").items():
            entity, _, column = subject.partition(".")
            if (
                answer == "null"
                and entity in self._loop.plan.entities
                and column in self._loop.plan.entities[entity].fields
            ):
                self._loop.act(SetOtherwise(entity, column, "null"))

    def _finish(self, name: str) -> None:
        relation = self._structure.relations[name]
        used = self._used[name]
        wanted = {
            c: f"{name}.{f}" for (e, f), q in self._open.items() if e == name for c in self._asked_columns(relation, q)
        }
        # What an open question may want is read too, so that its answer changes nothing that is staged.
        drawn = used | set(wanted)
        self._loop.act(SetSource(name, relation_sql(relation, drawn, self._quote)))
        self._loop.act(LeaveColumns(name, reasons(relation, used, drawn, wanted)))

    def _asked_columns(self, relation: Relation, question: str) -> list[str]:
        made = self._ladder.question(question)
        answers = [] if made is None else [str(c["answer"]) for c in made.candidates]
        named = [a.removeprefix("column:") for a in answers if a.startswith("column:")]
        return named + self._places.unplaced.columns(relation, question)

    def _hold(self) -> dict[str, tuple[str, ...]]:
        """Holds the entities that wait, and those that can't do without one that does."""
        waiting = waits_with(self._loop.plan, self._found.target.tables, self._waiting)
        for name, questions in waiting.items():
            self._loop.act(HoldEntity(name, questions))
        return waiting | {n: (q,) for n, q in self._places.unsorted.items()}
