"""Scores a plan against the gold plan, target field by target field, without running either.

Two mappings of a field count as the same when they draw on the same source columns, refer to the same
table, apply the same conversions (domain functions, arithmetic, splitting, joining, with the constants
in them) and give each spelling that the gold plan's value map knows the same value or none. What only
tidies a text (trim, nullif, lower, replace, html_text, mojibake, a coalesce over one column) is not
compared, nor is what happens to bad values (`otherwise`, `missing`); `bench.score` sees those in the data.

A mapping that differs only in falling back on fewer or more columns (a time of change without its second
choice, a telephone number without the country), or that asks for one condition more, is near: neither right
nor a silent error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from engine.plan import EntityPlan, FieldPlan, Plan

Schema = Mapping[str, Sequence[str]]
"""The source's columns by table."""

Place = tuple[str, str, str]
"""Source table, target table, target column; the column is (key) or (where) for what is no field."""

_TIDYING = frozenset(
    {"trim", "ltrim", "rtrim", "nullif", "lower", "upper", "replace", "html_text", "mojibake", "cast", "trycast"}
)
_SAME = {"concatws": "concat", "dpipe": "concat", "safeconcat": "concat", "concat_ws": "concat", "if": "case"}


@dataclass(frozen=True)
class PlanScore:
    """Where each field of the gold plan stands in a plan.

    `wrong` fields are mapped otherwise and nobody is asked: silent errors. `extra` ones are mapped where
    the gold plan has nothing. `near` ones lack a fallback. `open` ones wait for a person. `missing` ones are
    just not there.
    """

    right: tuple[Place, ...]
    near: tuple[tuple[Place, str, str], ...]
    wrong: tuple[tuple[Place, str, str], ...]  # with what the gold plan and the plan say
    open: tuple[Place, ...]
    missing: tuple[Place, ...]
    extra: tuple[tuple[Place, str], ...]

    @property
    def precision(self) -> float:
        """Right among all that the plan maps; 1 where it maps nothing."""
        mapped = len(self.right) + len(self.near) + len(self.wrong) + len(self.extra)
        return len(self.right) / mapped if mapped else 1.0

    @property
    def recall(self) -> float:
        """Right among all that the gold plan maps."""
        gold = len(self.right) + len(self.near) + len(self.wrong) + len(self.open) + len(self.missing)
        return len(self.right) / gold if gold else 1.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0

    @property
    def silent_errors(self) -> int:
        """Mappings that are wrong and that nobody is asked about."""
        return len(self.wrong) + len(self.extra)

    def report(self) -> str:
        """The sums in a line, and a line for each that is wrong, extra, open or missing."""
        lines = [
            f"{len(self.right)} right, {len(self.near)} near, {len(self.wrong)} wrong, {len(self.extra)} extra, "
            f"{len(self.open)} open, {len(self.missing)} missing; F1 {self.f1:.3f}"
        ]
        lines += [f"  wrong {_shown(p)}: wanted {wanted}, got {got}" for p, wanted, got in self.wrong]
        lines += [f"  extra {_shown(p)}: {got}" for p, got in self.extra]
        lines += [f"  near {_shown(p)}: wanted {wanted}, got {got}" for p, wanted, got in self.near]
        lines += [f"  open {_shown(p)}" for p in self.open]
        lines += [f"  missing {_shown(p)}" for p in self.missing]
        return "\n".join(lines)


def _shown(place: Place) -> str:
    return f"{place[0]} -> {place[1]}.{place[2]}"


@dataclass(frozen=True)
class _Meaning:
    """What a mapping says: source columns, conversions, the table referred to, a value map, a constant."""

    columns: frozenset[str]
    conversions: frozenset[str]
    refers_to: str | None
    values: Mapping[str, object] | None
    constant: object = None

    def text(self) -> str:
        parts = [", ".join(sorted(self.columns)) or repr(self.constant)]
        parts += [f"by {c}" for c in sorted(self.conversions)]
        if self.refers_to:
            parts.append(f"as {self.refers_to}")
        if self.values is not None:
            parts.append("through a value map")
        return " ".join(parts)

    def same(self, gold: _Meaning) -> bool:
        return self.conversions == gold.conversions and self.columns == gold.columns and self._agrees(gold)

    def near(self, gold: _Meaning) -> bool:
        more, less = self.conversions - gold.conversions, gold.conversions - self.conversions
        close = less <= {"coalesce"} and all(c.split()[0] in ("coalesce", "case", "eq") for c in more)
        nested = self.columns <= gold.columns or self.columns >= gold.columns
        return close and nested and bool(self.columns & gold.columns) and self._agrees(gold)

    def _agrees(self, gold: _Meaning) -> bool:
        if (self.refers_to, self.constant) != (gold.refers_to, gold.constant):
            return False
        if gold.values is None or self.values is None:
            return gold.values is self.values
        known = [s for s in gold.values if s in self.values]
        return bool(known) and all(str(self.values[s]) == str(gold.values[s]) for s in known)


def score_plan(plan: Plan, gold: Plan, schema: Schema, open_fields: Iterable[tuple[str, str]] = ()) -> PlanScore:
    """Compares a plan with the gold plan.

    `schema` holds the source's columns by table, for `SELECT a.*`. `open_fields` are (target table, column)
    that a question waits for; they count as open only where the plan doesn't map them.
    """
    asked = set(open_fields)
    mine, wanted = _meanings(plan, schema), _meanings(gold, schema)
    right, near, wrong, waiting, missing = [], [], [], [], []
    for place, meaning in wanted.items():
        got = mine.get(place)
        if got is not None and got.same(meaning):
            right.append(place)
        elif got is not None and got.near(meaning):
            near.append((place, meaning.text(), got.text()))
        elif got is not None:
            wrong.append((place, meaning.text(), got.text()))
        elif place[1:] in asked:
            waiting.append(place)
        else:
            missing.append(place)
    extra = [(p, m.text()) for p, m in mine.items() if p not in wanted and m.columns]
    return PlanScore(tuple(right), tuple(near), tuple(wrong), tuple(waiting), tuple(missing), tuple(extra))


def entity_names(plan: Plan, gold: Plan) -> dict[str, str]:
    """The gold plan's entities by the plan's names for them: same first source table, same target table."""
    mine = {(base_table(entity), entity.to): name for name, entity in plan.entities.items()}
    places = {name: (base_table(entity), entity.to) for name, entity in gold.entities.items()}
    return {name: mine[place] for name, place in places.items() if place in mine}


def base_table(entity: EntityPlan) -> str:
    """The first table that an entity reads from."""
    if not entity.is_select:
        return entity.from_
    query = sqlglot.parse_one(entity.from_, dialect="duckdb")
    table = query.find(exp.Table)
    return table.name if table else ""


def reads(expression: str, entity: EntityPlan, schema: Schema) -> frozenset[str]:
    """The columns of source tables (`contacts.email`) that an expression of the entity draws on."""
    return _read(expression, _origins(entity, schema))[0]


def carries(expression: str, entity: EntityPlan, schema: Schema) -> frozenset[str]:
    """Those of the columns that an expression reads which its value is made of: not the country that a telephone number is read
    by, nor the type that a CASE asks for, nor what is fallen back on."""
    tree = sqlglot.parse_one(expression, dialect="duckdb")
    origins = _origins(entity, schema)
    names = frozenset(column.name for column in _carried(tree))
    return frozenset().union(*(origins.get(name, frozenset({name})) for name in names))


def _carried(node: exp.Expr) -> Iterator[exp.Column]:
    if isinstance(node, exp.Column):
        yield node
        return
    parts: Iterable[exp.Expr] = node.iter_expressions()
    if isinstance(node, exp.Case):
        parts = [branch.args["true"] for branch in node.args["ifs"]]
    elif isinstance(node, exp.Coalesce):
        parts = [node.this]
    elif isinstance(node, exp.Anonymous):  # a domain function: what it reads comes first
        parts = node.expressions[:1]
    for part in parts:
        yield from _carried(part)


def _meanings(plan: Plan, schema: Schema) -> dict[Place, _Meaning]:
    found: dict[Place, _Meaning] = {}
    for entity in plan.entities.values():
        origins = _origins(entity, schema)
        base = base_table(entity)
        for column, field in entity.fields.items():
            found[base, entity.to, column] = _meaning(field, plan, origins)
        key = frozenset().union(*(origins.get(c, frozenset({c})) for c in entity.key))
        found[base, entity.to, "(key)"] = _Meaning(key, frozenset(), None, None)
        if entity.conditions:
            read = [_read(condition, origins) for condition in entity.conditions.values()]
            columns = frozenset().union(*(each[0] for each in read))
            conversions = frozenset().union(*(each[1] for each in read))
            found[base, entity.to, "(where)"] = _Meaning(columns, conversions, None, None)
    return found


def _meaning(field: FieldPlan, plan: Plan, origins: Mapping[str, frozenset[str]]) -> _Meaning:
    if field.constant:
        return _Meaning(frozenset(), frozenset(), None, None, field.default)
    columns, conversions = _read(field.expression, origins)
    refers_to = plan.entities[field.ref].to if field.ref and field.ref in plan.entities else field.ref
    values = None
    if field.map is not None:
        values = {k.strip().casefold(): v for k, v in plan.value_maps.get(field.map, {}).items()}
    return _Meaning(columns, conversions, refers_to, values)


def _read(expression: str, origins: Mapping[str, frozenset[str]]) -> tuple[frozenset[str], frozenset[str]]:
    """The source columns of an expression, and the conversions in it with their constants."""
    tree = sqlglot.parse_one(expression, dialect="duckdb")
    columns = frozenset().union(*(origins.get(c.name, frozenset({c.name})) for c in tree.find_all(exp.Column)))
    conversions = set()
    for node in tree.walk():
        if not isinstance(node, exp.Func | exp.DPipe | exp.Mul | exp.Add | exp.Sub | exp.Div | exp.EQ | exp.NEQ):
            continue
        name = node.name.lower() if isinstance(node, exp.Anonymous) else node.key
        if name in _TIDYING or (name == "coalesce" and len({c.name for c in node.find_all(exp.Column)}) < 2):
            continue
        constants = [v.this for v in node.iter_expressions() if isinstance(v, exp.Literal)] if name != "case" else []
        name = _SAME.get(name, name)
        conversions.add(name if name == "concat" else " ".join([name, *map(str, constants)]))
    return columns, frozenset(conversions)


def _origins(entity: EntityPlan, schema: Schema) -> dict[str, frozenset[str]]:
    """For each column of an entity's `from`, the table columns it comes from."""
    if not entity.is_select:
        return {c: frozenset({f"{entity.from_}.{c}"}) for c in schema.get(entity.from_, ())}
    return _selected(sqlglot.parse_one(entity.from_, dialect="duckdb", into=exp.Select), schema)


def _selected(query: exp.Query, schema: Schema) -> dict[str, frozenset[str]]:
    """The same for a SELECT; joined SELECTs are followed to the tables they read."""
    joins = query.args.get("joins") or []
    sources: dict[str, dict[str, frozenset[str]]] = {}
    for part in [query.args.get("from_") or query.args.get("from"), *joins]:
        relation = part.this if part is not None else None
        if isinstance(relation, exp.Subquery) and isinstance(relation.this, exp.Query):
            sources[relation.alias_or_name] = _selected(relation.this, schema)
        elif isinstance(relation, exp.Table):
            name = relation.name
            sources[relation.alias_or_name] = {c: frozenset({f"{name}.{c}"}) for c in schema.get(name, ())}
    found: dict[str, frozenset[str]] = {}
    for item in query.selects:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            for alias in [item.table] if isinstance(item, exp.Column) else list(sources):
                for column, places in sources.get(alias, {}).items():
                    found.setdefault(column, places)
            continue
        columns = [item] if isinstance(item, exp.Column) else list(item.find_all(exp.Column))
        found[item.alias_or_name] = frozenset().union(*(_places(c, sources) for c in columns))
    return found


def _places(column: exp.Column, sources: Mapping[str, Mapping[str, frozenset[str]]]) -> frozenset[str]:
    some = [sources.get(column.table, {})] if column.table else list(sources.values())
    return next((s[column.name] for s in some if column.name in s), frozenset({f"?.{column.name}"}))
