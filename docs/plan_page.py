"""The page docs/reference/plan.md: every key of a plan, out of the models that read it.

A key without a text here is an error, so that none can be left out.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from cli.init import plan_to_start_from
from engine.match_plan import MatchPlan
from engine.merge_plan import MergePlan, Ordered
from engine.plan import DeletionMarker, EntityPlan, FieldPlan, Plan, Watermark

TEXTS: dict[tuple[type[BaseModel], str], str] = {
    (Plan, "version"): "Counts up with each change that is recorded. A batch remembers the version that moved it.",
    (Plan, "source"): "The source's DSN, or `${NAME}` for the environment variable that holds it. `plan check` and"
    " `preview --plan` use it; `migrate run` is given its DSNs as arguments.",
    (Plan, "target"): "The target's DSN, in the same way.",
    (Plan, "archive"): "A folder for the rows that `where` holds back, whole: see [how](../how-to/scope.md). In a file,"
    " relative to it.",
    (Plan, "entities"): "The entities by name (letters, digits, blanks, `-`, `_`, `.`). Names are yours; `ref` and"
    " `after` use them, and so does the crosswalk: an entity with another name is another entity.",
    (Plan, "value_maps"): "Value maps by name: source text to target value.",
    (EntityPlan, "from"): "A table of the source, or one SELECT in the source's own dialect. Joins, aggregates and"
    " subqueries go here.",
    (EntityPlan, "to"): "The target's table; `schema.table` where it isn't on the search path. A view is refused.",
    (
        EntityPlan,
        "where",
    ): "A condition over the row. Rows for which it is false or NULL are excluded, and counted. Or several by name,"
    ' `{deleted: "deleted = \'0\'", in force: "..."}`: rows are counted by the first that doesn\'t hold.',
    (EntityPlan, "key"): "The column, or the list of columns, that makes a source row itself. `[]` where there is"
    " none: rows are then numbered as they are read, and a later job takes the same number for the same row.",
    (EntityPlan, "id"): "Where the target's primary key comes from: see below.",
    (EntityPlan, "write"): "`insert`: a row whose primary key the target holds already goes to quarantine. `upsert`:"
    " it takes that row's place, and what it replaced is kept in the crosswalk.",
    (EntityPlan, "deleted"): "How the target marks a row as deleted: see below.",
    (EntityPlan, "after"): "Entities to load before this one for a reason that no `ref` shows, such as a trigger.",
    (EntityPlan, "edited"): "What `migrate sync` does with a row that changed in the source and that somebody edited in"
    " the target: `keep` leaves the row as it is, `overwrite` writes what the source says, `ask` leaves it and waits for"
    " a person.",
    (EntityPlan, "merge"): "How duplicates among the rows are found and merged: see below, and"
    " [duplicates](../how-to/duplicates.md).",
    (EntityPlan, "match"): "Which rows that the target held before the job these are: see below, and"
    " [rows already there](../how-to/rows-already-there.md). In a PostgreSQL target, without `merge` and `upsert`.",
    (MatchPlan, "by"): "A column, a list of columns, or several lists, tried in order: a row is one with the row of the"
    " target that is equal in all of them. NULL and blank text are equal to nothing.",
    (
        MatchPlan,
        "fill",
    ): "What a matched row takes over: the columns where it holds nothing, `all`, or those listed. A NULL"
    " never takes the place of a value.",
    (MatchPlan, "several"): "What becomes of a row that fits several rows of the target: `quarantine`, or `new`.",
    (MatchPlan, "strictest"): "By flag, the value that wins wherever it stands: `{email_opt_out: true}`. No fill"
    " weakens an opt-out that is named here.",
    (
        MatchPlan,
        "lock",
    ): "Whether others who write to the table wait while a batch that inserts rows is on its way, so that"
    " none they add is missed. With `false` nobody waits, and a row added during a batch may be there twice.",
    (MergePlan, "same"): "Rules. Rows that are equal in all columns of one are one row.",
    (MergePlan, "by"): "The columns that the model compares, each with how: see below.",
    (MergePlan, "block"): "Rules. The model looks at two rows only where they are equal in all columns of one.",
    (MergePlan, "threshold"): "How sure the model has to be, from 0.5 to below 1.",
    (MergePlan, "apart"): "Rows that hold different values in one of these columns are never one, whatever else says"
    " so. A slip of the pen is no difference.",
    (MergePlan, "survivor"): "Whose values lead: the row with most fields filled, or the `oldest` or `newest` by a"
    " column, as in `{newest: updated_at}`.",
    (MergePlan, "fields"): "By column, where its value comes from: `first` (the default: of the survivor, or where that"
    " has none, of the next row that has one), `own` (of the survivor alone), `longest`, `frequent`, or `oldest` or"
    " `newest` by a column.",
    (MergePlan, "together"): "Lists of columns that come from one row, such as those of an address: the first that"
    " has any of them.",
    (MergePlan, "strictest"): "By flag, the value that wins wherever it stands: `{email_opt_out: true}`. A merge never"
    " weakens an opt-out that is named here.",
    (Ordered, "oldest"): "The column by which the lowest value comes first.",
    (Ordered, "newest"): "The column by which the highest value comes first.",
    (
        EntityPlan,
        "watermark",
    ): "A source column that rises whenever a row changes, such as `date_modified`: a sync reads"
    " only rows from its highest value on. Without one, it reads all and compares. `{column: ..., overlap: ...}` where the"
    " overlap is said too.",
    (EntityPlan, "fields"): "The target's columns by name. A column without a field gets the target's default or"
    " NULL; a required one without a default must have a field.",
    (EntityPlan, "unmapped"): "Source columns left behind, each with the reason. It changes nothing; `plan check` and"
    " the preview list the columns that are in neither place.",
    (FieldPlan, "from"): "A source column, converted to what the target's column holds.",
    (FieldPlan, "sql"): "An expression over the source row: [functions](functions.md).",
    (FieldPlan, "default"): "A constant, the same for each row. Takes neither `map` nor `ref`.",
    (FieldPlan, "map"): "The value map that the value goes through.",
    (FieldPlan, "otherwise"): "What a value that can't be converted, or that the map doesn't have, does: `quarantine`"
    " puts the row there; `'null'` writes NULL and counts the change, where the column may be NULL; `keep`, with a"
    " map, lets the value's own text go on to the conversion.",
    (FieldPlan, "ref"): "The entity whose crosswalk turns the old id into the new one.",
    (
        FieldPlan,
        "missing",
    ): "What a reference does whose row wasn't loaded: `quarantine`, or `'null'` where the column may be"
    " NULL, counted as a change.",
    (
        FieldPlan,
        "edited",
    ): "The same for this field alone, in the place of what the entity says. With `keep` and `ask`, the field of"
    " such a row takes what the source says unless it is the one that was edited.",
    (Watermark, "column"): "The source's column: dates, times or numbers; text only where it is dates, written"
    " `YYYY-MM-DD HH:MM:SS`. NULL counts as changed.",
    (Watermark, "overlap"): "How far below its highest value reading begins, in seconds, or in units of a number:"
    " clocks differ, and a transaction ends later than it began.",
    (DeletionMarker, "column"): "The target's column. A row counts as deleted when it is neither NULL, false nor 0.",
    (DeletionMarker, "revive"): "Whether an upsert may write to such a row. Without it, the source row goes to"
    " quarantine (`unique`).",
}

HEAD = """\
<!-- Generated by docs/generate.py from engine/plan.py (`make docs`); change that, or docs/plan_page.py. -->

# The plan

One YAML file that says what goes where. An unknown key, a wrong value and an expression that isn't
allowed are refused with line and column before anything moves. `migrate plan check FILE` holds a
plan against both systems.

    entities:
      NAME:              one kind of record: from a source table or SELECT to a target table
        fields:
          COLUMN: {...}  where one target column's value comes from
    value_maps:
      NAME: {source text: target value}

A field needs exactly one of `from`, `sql` and `default`. YAML reads an unquoted `null` as its own
null; the plan takes it for the word, quoted or not.
"""

REST = """\
## Where the id comes from

The target's primary key is filled by `id`, so it is not among the fields, except with `none`.

| `id` | the target's primary key is | needs |
|---|---|---|
| `keep` | the source key, converted to the column's type | a source key of one column |
| `uuid5` | a UUID made from entity name and source key, the same each time | a uuid or text column |
| `sequence` | the next value of the column's sequence; the crosswalk keeps which row got which | a column with a sequence |
| `none` | among the fields, as in a link table; other entities can't refer to this one | a field for each key column |

A composite key's parts are joined with the character U+001F. `uuid5` of the key text `k` of the
entity `e` is, in Python, `uuid.uuid5(uuid.uuid5(uuid.NAMESPACE_URL, "packhorse:e"), k)`.

## Order and references

Entities are loaded in the order that their references ask for; their order in the file only settles
what is left open. A field with `ref` looks its value up in the crosswalk of that entity, which
holds every row that this or an earlier job loaded from the same source. Blank text is no reference.

A reference within the entity (a parent), or in a circle (a company's contact, the contact's
company), is filled in a second pass, when all rows are there. It has to be nullable in the target,
and `missing: 'null'`.

A parent that may be of several kinds takes one field a kind:

    company_id: {sql: "case when parent_type = 'Accounts' then parent_id end", ref: accounts, missing: 'null'}
    person_id:  {sql: "case when parent_type = 'Contacts' then parent_id end", ref: contacts, missing: 'null'}

## Value maps

Keys are the source's text. Quote those that YAML would spell anew, such as `'007'` and `'1.50'`. A
value that is found exactly wins; else it is compared without blanks at its ends and without case,
unless that leaves two answers. Blank text is NULL unless the map has it. What a value is mapped to
may be `null`; for an enum column it must be one of the column's labels.

## From text to the target's type

The source sends text. Each kind of column takes certain texts, and nothing is rounded, cut or
guessed: what doesn't fit is a [reason](reasons.md). For all kinds but text, blank text is NULL, and
that change is counted.

| column | takes |
|---|---|
| text, varchar(n) | the text as it is, without NUL bytes (counted); longer than n is a reason |
| smallint, integer, bigint | whole numbers within the range, `12.0` among them |
| numeric(p,s) | decimal numbers, with an exponent too, whose digits fit; a digit too many is a reason |
| real, double precision | numbers within the range, `inf` and `nan` |
| boolean | `1`, `t`, `true`, `0`, `f`, `false` in any case; for more, the function `boolean` |
| date | `YYYY-MM-DD`, years 1 to 9999, a time only where it is midnight |
| timestamp | `YYYY-MM-DD`, with `HH:MM[:SS[.ffffff]]` after a space or T |
| timestamptz | the same, with an offset or Z: without one the row goes to quarantine, since nobody can tell where its clock stood; the function `local_time` takes the zone. What the source itself holds as an instant (MySQL's `timestamp`) is one |
| uuid | a UUID, or 16 bytes of binary |
| enum | a label, exactly or without blanks at its ends |
| text[], enum[] | a list, as the function `multiselect` makes it |
| bytea | binary as it is, or a text's UTF-8 bytes |
| json, jsonb | valid JSON |
| time | `HH:MM[:SS[.ffffff]]` |
| any other | the text without NUL bytes; whether it fits, the target says |

A zero date (`0000-00-00`, with or without a time) is how some systems write "none": it becomes
NULL, counted, where the column may be NULL, and puts the row into quarantine where it may not.

## A plan to start from

`migrate init` writes this:

```yaml
{init}```
"""


_HOW_ALIKE = """\
It needs `same`, or `by` and `block`. A rule is a column or a list of columns. A value that more than
100 rows share is taken for a default value: nothing is held against each other for it.

| `by` | takes two values for one where they are | and for nearly one where |
|---|---|---|
| `exact` | the same text | |
| `name` | the same but for case, accents and punctuation | letters differ; one begins with the other, as an initial does. Jr., Sr., II, III, IV, Filho and Neto tell people apart |
| `email` | the same but for case | what stands before the @ is the same |
| `phone` | the same digits | the last seven digits are the same |
| `date` | the same day | one digit differs; day and month are exchanged |
| `text` | the same but for case, accents and punctuation | letters differ, few or some |
"""


def plan_page() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, model in (("The file", Plan), ("An entity", EntityPlan), ("A field", FieldPlan)):
        parts += [f"## {title}", "", *_table(model), ""]
        if model is EntityPlan:
            parts += ["`deleted` holds:", "", *_table(DeletionMarker), ""]
            parts += ["`merge` holds, in words of the target's columns:", "", *_table(MergePlan), "", _HOW_ALIKE]
            parts += ["`match` holds, in words of the target's columns:", "", *_table(MatchPlan), ""]
            parts += ["`watermark` holds:", "", *_table(Watermark), ""]
    parts.append(REST.replace("{init}", plan_to_start_from()))
    return "\n".join(parts)


def _table(model: type[BaseModel]) -> list[str]:
    lines = ["| key | takes | default | |", "|---|---|---|---|"]
    rules = "list of rules"
    takes = {
        "after": "list of entities", "key": "column or list of columns", "apart": "column or list of columns",
        "same": rules, "block": rules, "together": "list of lists of columns",
        "watermark": "column or mapping",
    }  # fmt: skip
    if model is MatchPlan:
        takes = {"by": "column, list of columns, or list of such lists", "fill": "`empty`, `all`, list of columns"}
    for name, info in model.model_fields.items():
        key = info.alias or name
        text = TEXTS[model, key]
        lines.append(f"| `{key}` | {takes.get(key) or _takes(info.annotation)} | {_default(info)} | {text} |")
    return lines


def _takes(annotation: Any) -> str:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "mapping"
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _takes(arguments[0])
    if origin is Literal:
        return ", ".join(f"`{each}`" for each in arguments)
    if origin is dict:
        return "mapping"
    if arguments:
        kinds = [_takes(each) for each in arguments if each is not type(None)]
        return " or ".join(dict.fromkeys(kinds))
    return {str: "text", int: "number", float: "number", bool: "true or false"}[annotation]


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    value = info.get_default(call_default_factory=True)
    if value is PydanticUndefined or value in (None, "", (), {}):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"
