"""The plan: one YAML document that says what goes where, shared by the agent, a person and the engine.

Models are pydantic with `extra="forbid"`; an error names the line and column in the YAML. Nothing here
touches a database: `engine.check` holds a plan against two catalogues.
"""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from engine.match_plan import MatchPlan
from engine.merge_plan import Columns, MergePlan
from engine.plan_shapes import CONDITIONS, ONE_ORIGIN, Flag, GivenText
from workspace.errors import PlanError, UsageError

Scalar = str | int | float | bool | None
_SIGNS = ("?", ":", "-")
_REASON = re.compile(r"\w[\w .-]{0,59}")
Otherwise = Literal["quarantine", "null", "keep"]
Missing = Literal["quarantine", "null"]
Edited = Literal["keep", "overwrite", "ask"]


def _null_word(value: object) -> object:
    """`missing: null` unquoted reads as YAML's null and means the word."""
    return "null" if value is None else value


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FieldPlan(_Model):
    """Where one target column's value comes from: exactly one of `from`, `sql`, `default`.

    `map` names a value map that the value goes through; `ref` names an entity whose crosswalk turns
    the old id into the new one. `otherwise` says what a value that can't be converted or isn't in the
    map does: `quarantine` the row, become `null`, or (maps only) `keep` its own text. `missing` says
    the same for a reference whose row isn't there. `edited` says what a sync does with the field in a row that
    somebody edited in the target: None leaves that to the entity.
    """

    model_config = ConfigDict(json_schema_extra=ONE_ORIGIN)

    from_: GivenText = Field(None, alias="from")
    sql: GivenText = None
    default: Scalar = None
    map: str | None = None
    otherwise: Annotated[Otherwise, BeforeValidator(_null_word, json_schema_input_type=Otherwise | None)] = "quarantine"
    ref: str | None = None
    missing: Annotated[Missing, BeforeValidator(_null_word, json_schema_input_type=Missing | None)] = "quarantine"
    edited: Edited | None = None

    @model_validator(mode="after")
    def _one_origin(self) -> FieldPlan:
        given = [name for name in ("from", "sql", "default") if self._has(name)]
        if len(given) != 1:
            raise ValueError(
                "needs exactly one of from, sql, default" + (f", has {' and '.join(given)}" if given else "")
            )
        if given != ["default"] and not isinstance(self.from_ if given == ["from"] else self.sql, str):
            raise ValueError(f"{given[0]} is empty: it takes a text")
        if self._has("default") and (self.map or self.ref):
            raise ValueError("a default takes no map and no ref")
        if self.map and self.ref:
            raise ValueError("takes a map or a ref, not both")
        return self

    def _has(self, name: str) -> bool:
        return ("from_" if name == "from" else name) in self.model_fields_set

    @property
    def constant(self) -> bool:
        """True where the value is `default`, the same for each row."""
        return "default" in self.model_fields_set

    @property
    def expression(self) -> str:
        """The SQL over the source row: `sql`, or the column quoted; empty for a default."""
        if self.sql is not None:
            return self.sql
        if self.from_ is not None:
            return '"' + self.from_.replace('"', '""') + '"'
        return ""


class DeletionMarker(_Model):
    """The target column that marks a row as deleted, and whether an upsert may bring such a row back."""

    column: str
    revive: Flag = False


class Watermark(_Model):
    """A source column that rises whenever a row changes. A sync reads rows from its highest value on, less `overlap`
    (seconds, or units of a number): clocks differ, and transactions end later than they began."""

    column: str
    overlap: int = Field(3600, ge=0, strict=True)


def _watermark(value: object) -> object:
    """A column where a mapping may stand."""
    return {"column": value} if isinstance(value, str) else value


class EntityPlan(_Model):
    """One kind of record: from a source table or SELECT to a target table.

    `key` is what makes a source row itself. `id` says where the target's primary key comes from:
    `keep` the source key, `uuid5` of it, the target's `sequence`, or `none` (the key's columns are
    among the fields, as in a link table). `where` holds rows back: one condition, or several by name, of which the
    first that doesn't hold is why. `after` lists entities to load first for reasons that no `ref` shows. `edited` says
    what a sync does with a row that somebody edited in the target; with a `watermark`, it reads only what changed.
    """

    from_: str = Field(alias="from")
    to: str
    where: Annotated[str | dict[str, str] | None, WithJsonSchema(CONDITIONS)] = None
    key: Columns
    id: Literal["keep", "uuid5", "sequence", "none"] = "keep"
    write: Literal["insert", "upsert"] = "insert"
    deleted: DeletionMarker | None = None
    after: tuple[str, ...] = ()
    edited: Edited = "keep"
    merge: MergePlan | None = None
    match: MatchPlan | None = None
    watermark: Annotated[
        Watermark | None, BeforeValidator(_watermark, json_schema_input_type=str | Watermark | None)
    ] = None
    fields: dict[str, FieldPlan] = {}
    unmapped: dict[str, str] = {}

    @field_validator("where")
    @classmethod
    def _named(cls, where: str | dict[str, str] | None) -> str | dict[str, str] | None:
        if isinstance(where, dict):
            if not where or not all(text.strip() for text in where.values()):
                raise ValueError("a where of named conditions needs one, and each its condition")
            if wrong := [name for name in where if not _REASON.fullmatch(name)]:
                raise ValueError(
                    f"{wrong[0][:60]!r} can't be a condition's name: letters, digits, blanks, '-', '_', '.'"
                )
        return where

    @property
    def conditions(self) -> dict[str, str]:
        """The conditions of `where` by name, in order; a plain text's name is `where`."""
        if isinstance(self.where, dict):
            return dict(self.where)
        return {"where": self.where} if self.where else {}

    @property
    def is_select(self) -> bool:
        """True where `from` is a SELECT and not a table's name."""
        return bool(re.match(r"\s*(select|with)\b", self.from_, re.IGNORECASE))


class Plan(_Model):
    """The whole document. `version` counts up with each change the agent or a person makes. `archive` is a folder for
    the rows that `where` holds back; in a file, relative to it."""

    version: int = Field(1, ge=1, strict=True)
    source: str = ""
    target: str = ""
    archive: str = ""
    entities: dict[str, EntityPlan]
    value_maps: dict[str, dict[str, Scalar]] = {}

    def dsn(self, side: Literal["source", "target"], given: str | None) -> str:
        """The DSN of a side: the one given, which goes before what the plan names. UsageError for neither."""
        if found := given or (self.source if side == "source" else self.target):
            return found
        raise UsageError(
            f"the plan names no {side}", advice=f"write `{side}: ${{NAME}}` in it, or give its DSN: --{side} DSN"
        )

    @model_validator(mode="before")
    @classmethod
    def _text_keys(cls, data: Any) -> Any:
        """YAML reads `1:` and `no:` in a value map as a number and a word; the source sends text."""
        maps = data.get("value_maps") if isinstance(data, dict) else None
        if isinstance(maps, dict):
            data = {
                **data,
                "value_maps": {
                    name: {_yaml_text(k): v for k, v in m.items()} if isinstance(m, dict) else m
                    for name, m in maps.items()
                },
            }
        return data


def _yaml_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


@lru_cache(maxsize=64)
def parse_plan(text: str, name: str = "plan") -> Plan:
    """The plan in a YAML text. PlanError with `name:line:column` for bad YAML, unknown keys, wrong values.

    The same text gives the same object: a plan of a dozen entities takes a quarter of a second to read, and the log is
    asked for its versions entity by entity."""
    yaml = YAML(typ="rt")
    try:
        document = yaml.load(io.StringIO(text))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        raise PlanError(
            f"not valid YAML: {error.problem or error.context}",
            where=where,
            advice="mend the line and run it again",
        ) from None
    except YAMLError as error:
        raise PlanError(f"not valid YAML: {' '.join(str(error).split())[:200]}", where=name) from None
    if not isinstance(document, CommentedMap):
        raise PlanError(
            "a plan is a mapping with the key entities",
            where=f"{name}:1:1",
            advice="`migrate init` writes one to start from",
        )
    try:
        return Plan.model_validate(_plain(document))
    except ValidationError as error:
        first = error.errors()[0]
        path = [part for part in first["loc"] if part != "function-after" and not str(part).startswith("union-")]
        line, column = _position(document, path)
        message = {
            "extra_forbidden": f"unknown key {path[-1]!r}" if path else "unknown key",
            "missing": f"the key {path[-1]!r} is missing" if path else "a key is missing",
        }.get(first["type"], first["msg"].removeprefix("Value error, "))
        raise PlanError(
            f"{'.'.join(map(str, path))}: {message}" if path else message,
            where=f"{name}:{line}:{column}",
            advice="docs/reference/plan.md lists the keys of a plan",
        ) from None


def load_plan(path: Path) -> Plan:
    """The plan in a file. PlanError where it can't be read."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise PlanError(
            "no such plan", where=str(path), advice="`migrate init` or `migrate plan draft` writes one"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"cannot be read: {error.__class__.__name__}", where=str(path)) from None
    plan = parse_plan(text, str(path))
    if plan.archive:  # the log has the plan without its file
        return plan.model_copy(update={"archive": str(path.absolute().parent / Path(plan.archive).expanduser())})
    return plan


def dump_plan(plan: Plan) -> str:
    """The plan as YAML, keys in the order of the documentation, only what was set."""
    yaml = YAML(typ="rt")
    yaml.width = 110
    yaml.indent(mapping=2, sequence=4, offset=2)
    out = io.StringIO()
    yaml.dump(plan_document(plan), out)
    if _hides(out.getvalue()):
        out = io.StringIO()
        yaml.allow_unicode = False  # escapes: what turns text around or can't be seen would mislead whoever reviews it
        yaml.width = 1_000_000  # the writer folds a text among escapes so that a blank more is read
        yaml.dump(plan_document(plan), out)
    return out.getvalue()


def _hides(text: str) -> bool:
    """True for a text with characters that can't be seen; joiners are part of words in Persian and Hindi."""
    return any(
        not character.isprintable() and character not in "\n\u200c\u200d" and unicodedata.category(character) != "Zs"
        for character in text
    )


def plan_document(plan: Plan) -> CommentedMap:
    """The plan as a ruamel document, for a caller that adds comments before it is written."""
    document = CommentedMap()
    document["version"] = plan.version
    if plan.source:
        document["source"] = plan.source
    if plan.target:
        document["target"] = plan.target
    if plan.archive:
        document["archive"] = plan.archive
    entities = CommentedMap()
    for name, entity in plan.entities.items():
        data = entity.model_dump(by_alias=True, exclude_unset=True, exclude={"fields"})
        node = CommentedMap(data)
        node["key"] = entity.key[0] if len(entity.key) == 1 else list(entity.key)
        fields = CommentedMap()
        for column, field in entity.fields.items():
            flow = CommentedMap(field.model_dump(by_alias=True, exclude_unset=True))
            for key, value in flow.items():
                # the writer leaves a leading sign bare that its reader takes for one of YAML's own
                if key == "sql" or (isinstance(value, str) and value[:1] in _SIGNS):
                    flow[key] = DoubleQuotedScalarString(value)
            flow.fa.set_flow_style()
            fields[column] = flow
        node["fields"] = fields
        for last in ("unmapped",):
            if last in node:
                node.move_to_end(last)
        entities[name] = node
    document["entities"] = entities
    if plan.value_maps:
        document["value_maps"] = {name: dict(m) for name, m in plan.value_maps.items()}
    return document


def _plain(node: Any) -> Any:
    if isinstance(node, CommentedMap):
        return {key: _plain(value) for key, value in node.items()}
    if isinstance(node, CommentedSeq):
        return [_plain(value) for value in node]
    return node


def _position(document: CommentedMap, path: Sequence[Any]) -> tuple[int, int]:
    """Line and column, from 1, of the deepest part of `path` that the document has."""
    node: Any = document
    line, column = 1, 1
    for part in path:
        if not isinstance(node, CommentedMap) or part not in node:
            break
        row, col = node.lc.key(part)
        line, column = row + 1, col + 1
        node = node[part]
    return line, column
