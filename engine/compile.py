"""One entity of a checked plan as one DuckDB query over one part of the stage.

The query reads a part and gives, for each of its rows, what becomes of it: the text of each target
column, or the reason why the row can't be loaded. Layers, each a CTE: the row and its key; domain
functions; values; value maps and references joined; casts; the outcome.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from connectors.protocols import Column, Kind
from engine.casts import HASHED_KINDS, cast_to
from engine.check import CheckedEntity, CheckedField
from engine.expressions import Compiler, Piece
from engine.plan import Plan
from engine.query import EXCLUDED, LOADED, QUARANTINED, Query, identifier, literal
from engine.syntax import columns_of
from workspace.errors import PlanError

NAMESPACE_URL = uuid.NAMESPACE_URL


LONG_CROSSWALK = 2**22
"""Bytes of a crosswalk from which the ids that a part refers to are picked out of it before they are joined. A part is
joined to a table of the picked ones; to make one of all ids, for each part, would take the longer the more there are.
"""


def stage_columns(entity: CheckedEntity) -> dict[str, str]:
    """The stage's columns and their DuckDB types: text, and binary as it is."""
    return {c.name: "BLOB" if c.kind is Kind.BINARY else "VARCHAR" for c in entity.source.columns}


def key_sql(entity: CheckedEntity) -> str:
    """The source key as text: parts joined with U+001F, binary as hex; the row's number where there is no key."""
    if not entity.plan.key:
        return "CAST(_ph_n AS VARCHAR)"
    types = stage_columns(entity)
    parts = [
        f"lower(hex({identifier(k)}))" if types[k] == "BLOB" else f"coalesce({storable(identifier(k))}, '')"
        for k in entity.plan.key
    ]
    return parts[0] if len(parts) == 1 else f"concat_ws(chr(31), {', '.join(parts)})"


def storable(sql: str) -> str:
    """Text of a key as our own tables can hold it: no target's text holds a NUL; U+2400 stands for it."""
    return f"replace({sql}, chr(0), '␀')"


def raw_sql(entity: CheckedEntity) -> str:
    """The source row as JSON text, as quarantine keeps it; binary as hex."""
    parts = ", ".join(
        f"{literal(c)}: {f'lower(hex({identifier(c)}))' if t == 'BLOB' else identifier(c)}"
        for c, t in stage_columns(entity).items()
    )
    return f"CAST(to_json({{{parts}}}) AS VARCHAR)"


def source_hash_sql(entity: CheckedEntity) -> str:
    """The checksum of a source row: MD5 of its columns' text, binary as hex."""
    parts = ", ".join(
        f"coalesce({f'lower(hex({identifier(c)}))' if t == 'BLOB' else identifier(c)}, chr(30))"
        for c, t in stage_columns(entity).items()
    )
    return f"md5(concat_ws(chr(31), {parts}))"


def left_out_sql(conditions: Mapping[str, str], compiler: Compiler, entity: str) -> str:
    """Why a row is held back: the name of the first condition that doesn't hold, NULL where all do."""
    whens = []
    for name, condition in conditions.items():
        where = f"entities.{entity}.where" + (f".{name}" if len(conditions) > 1 else "")
        piece = compiler.compile(condition, where)
        if piece.type != "BOOLEAN":
            raise PlanError("where: is not a condition", where=where, advice="compare: deleted = 0")
        whens.append(f"WHEN NOT coalesce(CAST({piece.sql} AS BOOLEAN), false) THEN {literal(name)}")
    return f"CASE {' '.join(whens)} END" if whens else "CAST(NULL AS VARCHAR)"


def uuid5_sql(namespace: uuid.UUID, text: str) -> str:
    """RFC 9562 UUID version 5 of a text under a namespace, in DuckDB's own functions."""
    h = f"sha1(unhex('{namespace.hex}') || encode({text}))"
    variant = f"substr('89ab', ((strpos('0123456789abcdef', substr({h}, 17, 1)) - 1) & 3) + 1, 1)"
    return (
        f"(substr({h}, 1, 8) || '-' || substr({h}, 9, 4) || '-5' || substr({h}, 14, 3) || '-' || {variant} || "
        f"substr({h}, 18, 3) || '-' || substr({h}, 21, 12))"
    )


def compile_entity(
    entity: CheckedEntity, plan: Plan, crosswalks: Mapping[str, Path], *, second_pass: bool = False
) -> Query:
    """The query of an entity. `crosswalks` holds the Parquet (old_id, new_id) of each entity referred to.

    First pass: deferred fields are NULL. Second pass: only the deferred fields, for the rows loaded.
    PlanError and ExpressionError as `check_plan` would give them.
    """
    return _EntityQuery(entity, plan, crosswalks, second_pass).build()


def compile_references(entity: CheckedEntity, plan: Plan, crosswalks: Mapping[str, Path]) -> Query:
    """The query that gives what `crosswalks` have as new_id for each of a row's references (at least one), by column."""
    return _EntityQuery(entity, plan, crosswalks, False).references()


class _EntityQuery:
    def __init__(self, entity: CheckedEntity, plan: Plan, crosswalks: Mapping[str, Path], second_pass: bool) -> None:
        self.entity = entity
        self.plan = plan
        self.crosswalks = crosswalks
        self.second_pass = second_pass
        self.compiler = Compiler(stage_columns(entity))
        self.columns = frozenset(map(identifier, self.compiler.columns))
        self.setup: list[str] = []
        self.values: list[str] = []
        self.joins: list[str] = []
        self.joined: list[str] = []
        self.casts: list[str] = []

    def build(self) -> Query:
        entity = self.entity
        fields = [f for f in entity.fields if f.deferred] if self.second_pass else list(entity.fields)
        self.values.append(f"{left_out_sql(entity.plan.conditions, self.compiler, entity.name)} AS _ph_left")
        self._id()
        for i, field in enumerate(fields):
            self._field(i, field)
        layers = [
            *self._joined(),
            f"casts AS (SELECT *, {', '.join(self.casts)} FROM joined)",
            self._reasons(fields),
            self._outcome(fields),
        ]
        return Query(tuple(self.setup), tuple(layers), tuple(f.column.name for f in fields))

    def references(self) -> Query:
        """Only where the entity's references lead, by target column."""
        fields = [f for f in self.entity.fields if f.plan.ref]
        for i, field in enumerate(fields):
            piece = self.compiler.compile(field.plan.expression, field.where)
            known = piece.type != "NULL"
            self.values.append(f"{piece.sql if known else 'CAST(NULL AS VARCHAR)'} AS _ph_v{i}")
            self._reference(i, field, Piece(f"_ph_v{i}", None, piece.type if known else "VARCHAR"), None)
        led = "".join(f", _ph_m{i} AS {identifier(f.column.name)}" for i, f in enumerate(fields))
        done = f"done AS (SELECT _ph_n{led} FROM joined)"
        return Query(tuple(self.setup), (*self._joined(), done), tuple(f.column.name for f in fields))

    def _joined(self) -> list[str]:
        """The layers up to the values with their maps and references."""
        hoisted = [
            f"h{n} AS (SELECT *, {', '.join(f'{call} AS {name}' for call, name in level.items())} FROM {'base' if n == 0 else f'h{n - 1}'})"
            for n, level in enumerate(self.compiler.hoists.levels)
            if level
        ]
        before = f"h{len(hoisted) - 1}" if hoisted else "base"
        return [
            f"base AS (SELECT *, {key_sql(self.entity)} AS _ph_key FROM part)",
            *hoisted,
            f"vals AS (SELECT *, {', '.join(self.values)} FROM {before})",
            f"joined AS (SELECT vals.*{''.join(', ' + j for j in self.joined)} FROM vals {' '.join(self.joins)})",
        ]

    def _id(self) -> None:
        entity = self.entity
        kind = entity.plan.id
        if kind == "uuid5":
            namespace = uuid.uuid5(NAMESPACE_URL, f"packhorse:{entity.name}")
            self.values.append(f"{uuid5_sql(namespace, '_ph_key')} AS _ph_vid")
            self.casts.append("_ph_vid AS _ph_cid, CAST(NULL AS VARCHAR) AS _ph_rid")
        elif kind == "keep":
            assert entity.id_column is not None
            self.values.append("_ph_key AS _ph_vid")
            cast = cast_to(entity.id_column, Piece("_ph_vid", None, "VARCHAR"), f"entities.{entity.name}.id")
            self.casts.append(
                f"{cast.value} AS _ph_cid, CASE WHEN nullif(trim(_ph_vid), '') IS NULL THEN 'required' ELSE {cast.reason or 'NULL'} END AS _ph_rid"
            )
        else:
            self.casts.append("CAST(NULL AS VARCHAR) AS _ph_cid, CAST(NULL AS VARCHAR) AS _ph_rid")

    def _field(self, i: int, field: CheckedField) -> None:
        if field.deferred and not self.second_pass:
            self.casts.append(
                f"CAST(NULL AS VARCHAR) AS _ph_c{i}, CAST(NULL AS VARCHAR) AS _ph_x{i}, CAST(NULL AS VARCHAR) AS _ph_g{i}"
            )
            self.values.append(f"CAST(NULL AS VARCHAR) AS _ph_s{i}")
            return
        plan = field.plan
        if plan.constant:
            piece = Piece(
                "CAST(NULL AS VARCHAR)" if plan.default is None else literal(_constant(plan.default)),
                None,
                "VARCHAR",
            )
        else:
            piece = self.compiler.compile(plan.expression, field.where)
        sql = "CAST(NULL AS VARCHAR)" if piece.type == "NULL" else piece.sql
        kind = "VARCHAR" if piece.type == "NULL" else piece.type
        self.values.append(
            f"{sql} AS _ph_v{i}, {piece.reason or 'CAST(NULL AS VARCHAR)'} AS _ph_e{i}, {self._shown(field)} AS _ph_s{i}"
        )
        piece = Piece(f"_ph_v{i}", None, kind)
        own: str | None = f"_ph_e{i}"
        change: str | None = None
        if plan.map is not None:
            piece, miss = self._map(i, plan.map, piece, plan.otherwise == "keep")
            own = f"coalesce(_ph_e{i}, {miss})"
        elif plan.ref is not None:
            piece, miss = self._reference(i, field, piece, sql if sql in self.columns else None)
            if plan.missing == "null" and field.column.nullable:
                change = f"CASE WHEN {miss} IS NOT NULL THEN 'missing reference to null' END"
            else:
                own = f"coalesce(_ph_e{i}, {miss})"
        if self._is_instant(field):
            # What the source knows to be an instant comes in UTC where it comes without an offset.
            bare = f"regexp_matches({piece.sql}, ':[0-9]{{2}}([.][0-9]+)?$') AND NOT regexp_matches({piece.sql}, '[+-][0-9]{{2}}:[0-9]{{2}}$')"
            piece = Piece(f"CASE WHEN {bare} THEN {piece.sql} || '+00' ELSE {piece.sql} END", None, "VARCHAR")
        cast = cast_to(field.column, piece, field.where)
        reason = f"coalesce({own}, {cast.reason})" if cast.reason else own
        changes = [c for c in (change, cast.change) if c]
        self.casts.append(
            f"{cast.value} AS _ph_c{i}, {reason} AS _ph_x{i}, "
            f"{'coalesce(' + ', '.join(changes) + ')' if changes else 'CAST(NULL AS VARCHAR)'} AS _ph_g{i}"
        )

    def _is_instant(self, field: CheckedField) -> bool:
        """True where a column that is an instant in the source goes as it is into one that is in the target."""
        name = (field.plan.from_ or "").lower()
        instants = {c.name.lower() for c in self.entity.source.columns if c.kind is Kind.INSTANT}
        return field.column.kind is Kind.INSTANT and name in instants

    def _shown(self, field: CheckedField) -> str:
        """The source value that a signature shows the shape of: the first column the field draws on."""
        drawn = [] if field.plan.constant else columns_of(field.plan.expression, field.where)
        for name in drawn:
            match = next((c for c in self.compiler.columns if c == name or c.lower() == name.lower()), None)
            if match and self.compiler.columns[match] == "VARCHAR":
                return identifier(match)
        return "CAST(NULL AS VARCHAR)"

    def _map(self, i: int, name: str, piece: Piece, keep: bool) -> tuple[Piece, str]:
        table = f"map_{i}_{self.entity.name}{'_2' if self.second_pass else ''}"
        rows = ", ".join(
            f"({literal(k)}, {'NULL' if v is None else literal(_constant(v))})"
            for k, v in self.plan.value_maps[name].items()
        )
        quoted = identifier(table)
        loose = identifier(table + "_loose")
        source = (
            f"(VALUES {rows}) AS t(k, v)" if rows else "(SELECT NULL::VARCHAR AS k, NULL::VARCHAR AS v WHERE false) t"
        )
        self.setup += [
            f"CREATE OR REPLACE TEMP TABLE {quoted} AS SELECT CAST(k AS VARCHAR) AS k, CAST(v AS VARCHAR) AS v, true AS hit FROM {source}",
            # A spelling whose loose form has two different values matches exactly or not at all.
            f"CREATE OR REPLACE TEMP TABLE {loose} AS SELECT lower(trim(k)) AS k, min(v) AS v, true AS hit FROM {quoted} "
            f"GROUP BY 1 HAVING count(DISTINCT coalesce(v, chr(30))) = 1",
        ]
        text = piece.sql if piece.type == "VARCHAR" else f"CAST({piece.sql} AS VARCHAR)"
        self.joins.append(
            f"LEFT JOIN {quoted} AS m{i} ON m{i}.k = vals.{text}"
            if piece.type == "VARCHAR"
            else f"LEFT JOIN {quoted} AS m{i} ON m{i}.k = CAST(vals.{piece.sql} AS VARCHAR)"
        )
        self.joins.append(f"LEFT JOIN {loose} AS l{i} ON l{i}.k = lower(trim(CAST(vals.{piece.sql} AS VARCHAR)))")
        blank = f"nullif(trim(CAST(vals.{piece.sql} AS VARCHAR)), '') IS NULL"
        otherwise = f"CAST(vals.{piece.sql} AS VARCHAR)" if keep else "NULL"
        self.joined.append(
            f"CASE WHEN m{i}.hit THEN m{i}.v WHEN l{i}.hit THEN l{i}.v WHEN {blank} THEN NULL ELSE {otherwise} END AS _ph_m{i}, "
            f"(m{i}.hit IS NULL AND l{i}.hit IS NULL AND NOT {blank}) AS _ph_n{i}"
        )
        miss = "CAST(NULL AS VARCHAR)" if keep else f"CASE WHEN _ph_n{i} THEN {literal('map ' + name)} END"
        return Piece(f"_ph_m{i}", None, "VARCHAR"), miss

    def _reference(self, i: int, field: CheckedField, piece: Piece, column: str | None) -> tuple[Piece, str]:
        """The new id for an old one: for the very same text, else for text that differs in what doesn't count
        (blanks around it; case, where the source takes it for nothing), if that leaves one row. `column` is the part's
        where the old id is nothing but its value."""
        entity = field.plan.ref or ""
        path = literal(str(self.crosswalks[entity]))
        text = _referred(f"vals.{piece.sql}", piece.type)
        loose = "lower(trim({}))" if self._loosely_compared(field) else "trim({})"
        odd = identifier(f"odd_{i}_{self.entity.name}{'_2' if self.second_pass else ''}")
        folded = identifier(f"folded_{i}_{self.entity.name}{'_2' if self.second_pass else ''}")
        self.setup += [
            # Old ids that aren't in their loose form: few, as a rule, so that one join over all ids is enough.
            f"CREATE OR REPLACE TEMP TABLE {odd} AS SELECT old_id, new_id FROM read_parquet({path}) "
            f"WHERE {loose.format('old_id')} <> old_id",
            f"CREATE OR REPLACE TEMP TABLE {folded} AS SELECT {loose.format('old_id')} AS k, min(new_id) AS new_id, "
            f"count(*) AS n FROM {odd} GROUP BY 1",
        ]
        few = ""
        if column is not None and not self.second_pass and self.crosswalks[entity].stat().st_size > LONG_CROSSWALK:
            few = (
                f" SEMI JOIN (SELECT {loose.format(_referred(column, piece.type))} AS k FROM part) w ON w.k = c.old_id"
            )
        self.joins.append(
            f"LEFT JOIN (SELECT c.old_id, c.new_id FROM read_parquet({path}) c{few}) AS x{i} ON x{i}.old_id = {loose.format(text)} "
            f"LEFT JOIN {odd} AS o{i} ON o{i}.old_id = {text} LEFT JOIN {folded} AS y{i} ON y{i}.k = {loose.format(text)}"
        )
        found = (
            f"CASE WHEN o{i}.old_id IS NOT NULL THEN o{i}.new_id WHEN x{i}.old_id = {text} OR y{i}.k IS NULL THEN x{i}.new_id "
            f"WHEN x{i}.old_id IS NULL AND y{i}.n = 1 THEN y{i}.new_id END"
        )
        self.joined.append(f"{found} AS _ph_m{i}, ({text} IS NOT NULL AND {found} IS NULL) AS _ph_n{i}")
        return Piece(f"_ph_m{i}", None, "VARCHAR"), f"CASE WHEN _ph_n{i} THEN {literal('reference ' + entity)} END"

    def _loosely_compared(self, field: CheckedField) -> bool:
        """True where the source holds text to be equal that differs in case, in a column the field draws on."""
        drawn = {name.lower() for name in columns_of(field.plan.expression, field.where)}
        return any(not c.exact for c in self.entity.source.columns if c.name.lower() in drawn)

    def _reasons(self, fields: list[CheckedField]) -> str:
        """Turns raw reasons into what they mean for the row, given `otherwise` and whether NULL may stand."""
        parts = []
        for i, field in enumerate(fields):
            required = not field.column.nullable
            value, raw = f"_ph_c{i}", f"_ph_x{i}"
            if field.deferred and not self.second_pass:
                parts.append(
                    f"CAST(NULL AS VARCHAR) AS _ph_r{i}, CAST(NULL AS VARCHAR) AS _ph_o{i}, CAST(NULL AS VARCHAR) AS _ph_d{i}"
                )
                continue
            soft = f"starts_with({raw}, 'soft ')"
            if required:
                reason = (
                    f"CASE WHEN {soft} THEN 'required: ' || substr({raw}, 6) WHEN {raw} IS NOT NULL THEN {raw} "
                    f"WHEN {value} IS NULL THEN 'required' END"
                )
                change = f"_ph_g{i}"
            elif field.plan.otherwise == "null":
                reason = "CAST(NULL AS VARCHAR)"
                change = f"CASE WHEN {raw} IS NOT NULL THEN CASE WHEN {soft} THEN substr({raw}, 6) ELSE {raw} END || ' to null' ELSE _ph_g{i} END"
            else:
                reason = f"CASE WHEN NOT {soft} THEN {raw} END"
                change = f"CASE WHEN {soft} THEN substr({raw}, 6) || ' to null' ELSE _ph_g{i} END"
            parts.append(
                f"{reason} AS _ph_r{i}, CASE WHEN {raw} IS NULL THEN {value} END AS _ph_o{i}, {change} AS _ph_d{i}"
            )
        return f"reasons AS (SELECT *{''.join(', ' + p for p in parts)} FROM casts)"

    def _outcome(self, fields: list[CheckedField]) -> str:
        entity = self.entity
        names = [f.column.name for f in fields]
        failed = "coalesce(_ph_rid" + "".join(f", _ph_r{i}" for i in range(len(fields))) + ")"
        first_field = "CASE WHEN _ph_rid IS NOT NULL THEN " + literal(
            entity.id_column.name if entity.id_column else "id"
        )
        shape = "CASE WHEN _ph_rid IS NOT NULL THEN _ph_key"
        for i, name in enumerate(names):
            first_field += f" WHEN _ph_r{i} IS NOT NULL THEN {literal(name)}"
            shape += f" WHEN _ph_r{i} IS NOT NULL THEN _ph_s{i}"
        changes = "".join(
            f", CASE WHEN _ph_d{i} IS NOT NULL THEN {literal(name + ': ')} || _ph_d{i} END"
            for i, name in enumerate(names)
        ).lstrip(", ")
        any_change = "coalesce(" + ", ".join(f"_ph_d{i}" for i in range(len(names))) + ")" if names else "NULL"
        raw = raw_sql(entity)
        outcome = f"CASE WHEN _ph_left IS NOT NULL THEN {EXCLUDED} WHEN {failed} IS NOT NULL THEN {QUARANTINED} ELSE {LOADED} END"
        own_id = None if entity.plan.id in ("sequence", "none") or self.second_pass else "_ph_cid"
        values = "".join(f", _ph_o{i} AS {identifier(name)}" for i, name in enumerate(names))
        return (
            f"done AS (SELECT _ph_n, _ph_key, _ph_cid AS _ph_id, {outcome} AS _ph_outcome, "
            f"CASE WHEN _ph_left IS NULL THEN {first_field} END END AS _ph_field, CASE WHEN _ph_left IS NULL THEN {failed} ELSE _ph_left END AS _ph_reason, "
            f"CASE WHEN _ph_left IS NULL AND {failed} IS NOT NULL THEN {shape} END END AS _ph_shown, "
            f"CASE WHEN _ph_left IS NULL AND {failed} IS NOT NULL THEN {raw} END AS _ph_raw, "
            f"CASE WHEN _ph_left IS NULL AND {any_change} IS NOT NULL THEN list_filter([{changes or 'NULL'}], lambda x: x IS NOT NULL) END AS _ph_changes, "
            f"CAST(NULL AS VARCHAR) AS _ph_home, {source_hash_sql(entity)} AS _ph_source_hash, "
            f"{target_hash_sql(fields, [f'_ph_o{i}' for i in range(len(fields))], own_id)} AS _ph_target_hash{values} FROM reasons)"
        )


def _referred(value: str, kind: str) -> str:
    """The old id that a value refers to, as a crosswalk has it; NULL for blank text."""
    given = f"lower(hex({value}))" if kind == "BLOB" else storable(f"CAST({value} AS VARCHAR)")
    return f"CASE WHEN trim({given}) <> '' THEN {given} END"


def is_hashed(column: Column) -> bool:
    """True where the checksum holds the column's text; else only whether there is a value."""
    if column.kind is Kind.ARRAY:
        # the target spells the elements of other arrays its own way
        return column.element in (Kind.TEXT, Kind.ENUM)
    return column.kind in HASHED_KINDS


def target_hash_sql(fields: Sequence[CheckedField], values: Sequence[str], own_id: str | None) -> str:
    """The checksum of a target row, of its fields' values as texts and its id (None where that isn't known yet, or is
    among the fields)."""
    hashed = [f"coalesce({own_id}, chr(30))"] if own_id else []
    hashed += [f"coalesce({_hash_text(f, value)}, chr(30))" for f, value in zip(fields, values, strict=True)]
    return f"md5(concat_ws(chr(31), {', '.join(hashed) or literal('')}))"


def _hash_text(field: CheckedField, sql: str) -> str:
    return sql if is_hashed(field.column) else f"CASE WHEN {sql} IS NOT NULL THEN '~' END"


def _constant(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
