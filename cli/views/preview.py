"""A preview for a person: rows by outcome, failures before the load, what is left behind, rows side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from cli.views.table import Heading, number, show_table
from cli.views.text import visible

if TYPE_CHECKING:
    from engine.plan import Plan
    from engine.preview import EntityPreview, Preview, RowShown

Origins = Mapping[str, Mapping[str, Sequence[str]]]
_WORDS = {"first": "a first row", "random": "by chance", "changed": "values changed", "worst": "would be quarantined"}
_MOST = 8  # clusters and collisions shown of an entity


def origins(plan: Plan) -> Origins:
    """By entity and target column, the source columns it is made of; empty for a default."""
    from engine.syntax import columns_of

    return {
        name: {
            column: columns_of(field.expression) if field.expression else [] for column, field in entity.fields.items()
        }
        for name, entity in plan.entities.items()
    }


def show(console: Console, job: str, preview: Preview, side_by_side: Origins | None, only: str = "") -> None:
    """The whole preview; rows side by side where `side_by_side` says what comes from what. Of the entity
    `only`, all that is known; without it, one row of a kind."""
    show_counts(console, preview)
    wanted = [each for each in preview.entities if only in ("", each.entity)]
    for entity in wanted:
        show_failures(console, entity)
        if side_by_side is not None:
            for row in entity.rows if only else _few(entity.rows):
                _show_row(console, entity.entity, row, side_by_side[entity.entity])
    _show_left_behind(console, wanted)
    console.print("\nnothing was written to the target")
    if side_by_side is not None and not only:
        console.print(f"more rows of one entity: migrate preview {job} --entity NAME")
    console.print(f"to load just these rows: migrate resume {job}")


def _few(rows: Sequence[RowShown]) -> list[RowShown]:
    """One first row, one by chance, and up to three that would be quarantined."""
    most = {"first": 1, "random": 1, "worst": 3}
    return [row for kind, n in most.items() for row in [each for each in rows if each.kind == kind][:n]]


def show_counts(console: Console, preview: Preview) -> None:
    """The rows of each entity by outcome."""
    headings = [
        Heading("entity"), Heading("to"), number("read"), number("load"), number("unchanged"), number("merged"),
        number("excluded"), number("quarantined"),
    ]  # fmt: skip
    rows = [
        [each.entity, each.target, each.read, each.load, each.unchanged, each.merged, each.excluded, each.quarantined]
        for each in preview.entities
    ]
    sums = [sum(int(str(row[i])) for row in rows) for i in range(2, 8)]
    show_table(console, headings, rows, total=["all", "", *sums])


def show_failures(console: Console, entity: EntityPreview) -> None:
    """What would be quarantined, what collides, and what changes on the way, of one entity."""
    left_out = {reason: count for reason, count in entity.excluded_by.items() if reason != "where"}
    if entity.clusters or entity.changes or entity.duplicates or entity.matched or left_out:
        console.print(f"\n{entity.entity}", style="bold")
    if entity.matched:
        console.print(f"  {entity.matched:>9,} matched with rows already there")
    for reason, count in left_out.items():
        console.print(f"  {count:>9,} excluded: {visible(reason, 60)}")
    for cluster in entity.clusters[:_MOST]:
        console.print(f"  {cluster.count:>9,} to quarantine: {visible(cluster.signature, 110)}")
    if len(entity.clusters) > _MOST:
        console.print(f"  {'':>9} and {len(entity.clusters) - _MOST} clusters more")
    for key, detail in entity.collisions[: _MOST // 2]:
        console.print(f"  {'':>9} collision: {visible(key, 40)}: {visible(detail, 100)}")
    _show_duplicates(console, entity)
    for change, count in list(entity.changes.items())[:_MOST]:
        console.print(f"  {count:>9,} changed: {visible(change, 110)}")


def _show_duplicates(console: Console, entity: EntityPreview) -> None:
    """Clusters of rows that would become one, the least sure first, with what tells their rows apart."""
    if entity.duplicates_total:
        console.print(
            f"  {entity.merged:>9,} merged into others, in {entity.duplicates_total:,} clusters; the least sure:"
        )
    for each in entity.duplicates[: _MOST // 2]:
        for n, (key, values) in enumerate(each.rows.items()):
            told = ", ".join(f"{visible(name)} {_value(value)}" for name, value in values.items() if value is not None)
            console.print(f"  {f'{each.sure:.3f}' if not n else '':>9} {visible(key, 40)}: {told}")


def _show_row(console: Console, entity: str, row: RowShown, made_of: Mapping[str, Sequence[str]]) -> None:
    console.print()
    console.print(Text.assemble((f"{entity} {visible(row.key, 40)}", "bold"), f"  {_WORDS.get(row.kind, row.kind)}"))
    if row.after is None:
        console.print(f"  {visible(row.reason, 120)}", style="yellow")
        failed = row.reason.partition(":")[0]
        for column in made_of.get(failed, []):
            console.print(f"    {visible(column)} = {_value(row.before.get(column))}")
        return
    lines = []
    for field, value in row.after.items():
        columns = [name for name in made_of.get(field, []) if name in row.before]
        before = ", ".join(_value(row.before[name]) for name in columns)
        if value is not None or any(row.before[name] for name in columns):
            lines.append((visible(", ".join(columns)) or "default", before, visible(field), _value(value)))
    names = max((len(line[0]) for line in lines), default=0)
    values = min(max((len(line[1]) for line in lines), default=0), 44)
    for columns_text, before, field, value in lines:
        console.print(f"  {columns_text:<{min(names, 30)}} {before:<{values}} -> {field} {value}")


def _show_left_behind(console: Console, entities: Sequence[EntityPreview]) -> None:
    named = [(each.entity, column, why) for each in entities for column, why in each.unmapped.items()]
    silent = [(each.entity, column, None) for each in entities for column in each.unaccounted]
    if not named and not silent:
        return
    headings = [Heading("entity"), Heading("column"), Heading("left behind because", wrap=True)]
    console.print()
    show_table(console, headings, [*silent, *named], title="source columns that go nowhere")


def _value(value: object) -> str:
    return "NULL" if value is None else f"'{visible(value, 60)}'"
