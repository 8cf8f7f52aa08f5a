"""What each key of a plan is for, in words: the manual's page of the plan and the schema for editors are made of these.

A key without a text here is an error in both, so that none can be left out. Links are as in docs/reference/.
"""

from __future__ import annotations

from pydantic import BaseModel

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
"""A text for each key, by its model and its name in the file."""
