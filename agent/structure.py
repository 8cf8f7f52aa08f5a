"""How the source's tables hang together: side tables that add columns 1:1, link tables, and the rest, the
entities; and the relation (a table or a SELECT) that an entity is read from.

Told from keys, inclusion and counts. A relation never multiplies an entity's rows: what joins it is unique
on the joined column, by key or by GROUP BY.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from agent.code_lists import code_lists, labels_sql
from agent.lexicon import column_meaning, table_meaning, words
from agent.profile import ColumnProfile, Reference, TableProfile
from agent.survey import Survey
from workspace.events import BeliefHeld

_META = {"created_at", "modified_at", "created_by", "modified_by", "deleted", "owner"}
_CONTACT_POINTS = {"email", "phone", "address", "street", "website"}


class Role(Enum):
    """What a source table is for."""

    ENTITY = "entity"
    SIDE = "side"  # more columns of another table's rows
    LINK = "link"  # says which rows of two tables belong together
    ADDRESSES = "addresses"  # addresses of other tables' rows, reached through a link
    EMPTY = "empty"
    KIND = "kind"  # some rows of a table that holds several kinds of record


@dataclass(frozen=True)
class Origin:
    """A column of an entity's relation: `name` there, and where it comes from.

    `through` is empty for the main table; else it names the side or linked table. `says` is the column of numbers
    whose labels it holds, if it holds any."""

    name: str
    table: str
    profile: ColumnProfile
    through: str = ""
    aggregate: str = ""  # MIN or MAX, where it is read through a link
    found: float = 1.0  # the share of keys that the joined table has
    says: str = ""


@dataclass(frozen=True)
class Join:
    """What is joined to the main table: a side table by its key, or a table reached through a link.

    `sql` is the join, with the main table called `m`."""

    table: str
    alias: str
    sql: str
    optional: bool  # left out where no column of it is used


@dataclass(frozen=True)
class Relation:
    """All that one entity may draw on."""

    main: str
    columns: tuple[Origin, ...]
    joins: tuple[Join, ...] = ()
    references: tuple[Reference, ...] = ()  # columns by their name in the relation
    where: str = ""  # in the source's dialect, for links and tables that hold several kinds
    kind: str = ""  # of a table with several kinds of record the target table that these rows go to

    @property
    def holds(self) -> str:
        """What its rows are, in a table's name: columns are read in its light."""
        return self.kind or self.main

    def origin(self, name: str) -> Origin | None:
        """The column of that name, or None."""
        return next((o for o in self.columns if o.name == name), None)


@dataclass(frozen=True)
class Structure:
    """The role of each table, whom a side table adds to, and a relation for each entity and link."""

    roles: dict[str, Role]
    side_of: dict[str, str]
    relations: dict[str, Relation] = field(default_factory=dict)


def find_structure(found: Survey, quote: Callable[[str], str]) -> Structure:
    """Roles and relations from a survey; `quote` quotes an identifier in the source's dialect."""
    roles: dict[str, Role] = {}
    side_of: dict[str, str] = {}
    for name, table in found.tables.items():
        main = _main_of(table, found.tables)
        if not table.rows:
            roles[name] = Role.EMPTY
        elif main is not None:
            roles[name], side_of[name] = Role.SIDE, main
        elif _is_link(table):
            roles[name] = Role.LINK
        else:
            roles[name] = Role.ENTITY
    pointed = {
        r.table for n, t in found.tables.items() if roles[n] is Role.LINK for r in t.references if not r.selector
    }
    for name in pointed:
        if roles[name] is Role.ENTITY and _holds_contact_points(found.tables[name]):
            roles[name] = Role.ADDRESSES
    for side, main in list(side_of.items()):  # a side of a side adds to the same main table
        while main in side_of and side_of[main] != side:
            main = side_of[main]
        side_of[side] = main
    relations = {
        name: _relation(name, found, roles, side_of, quote)
        for name, role in roles.items()
        if role in (Role.ENTITY, Role.LINK)
    }
    return Structure(roles, side_of, relations)


def relation_sql(relation: Relation, used: set[str], quote: Callable[[str], str]) -> str:
    """What `from:` says: the main table's name, or a SELECT with the side tables and the links that are used."""
    kept = [
        j
        for j in relation.joins
        if not j.optional or any(o.through == j.table and o.name in used for o in relation.columns)
    ]
    if not kept and not relation.where:
        return relation.main
    tables = {j.table: j.alias for j in kept}
    columns = []
    for origin in relation.columns:
        if origin.through and origin.through not in tables:
            continue
        alias = tables[origin.through] if origin.through else "m"
        source = origin.name if origin.aggregate else origin.profile.column.name  # a grouped join names its columns
        named = "" if source == origin.name else f" AS {quote(origin.name)}"
        columns.append(f"{alias}.{quote(source)}{named}")
    table = ".".join(quote(p) for p in relation.main.split("."))
    joins = " ".join(j.sql for j in kept)
    where = f" WHERE {relation.where}" if relation.where else ""
    return f"SELECT {', '.join(columns)} FROM {table} m" + (f" {joins}" if joins else "") + where


def _main_of(table: TableProfile, tables: dict[str, TableProfile]) -> str | None:
    """The table whose rows this one only adds columns to: its own key points there, almost always."""
    if len(table.key) != 1:
        return None
    for reference in table.references:
        if reference.column != table.key[0] or reference.selector or reference.table == table.name:
            continue
        main = tables[reference.table]
        if reference.key != (main.key[0] if len(main.key) == 1 else "") or reference.share < 0.9:
            continue
        back = any(r.column == main.key[0] and r.table == table.name for r in main.references)
        if table.rows <= main.rows * 1.02 and (not back or len(table.columns) < len(main.columns)):
            return main.name
    return None


def _is_link(table: TableProfile) -> bool:
    pointing = {
        r.column for r in table.references if not column_meaning(r.column).core & {"owner", "created_by", "modified_by"}
    }
    if len(pointing) < 2:
        return False
    selectors = {r.selector for r in table.references if r.selector}
    own = [c for c in table.columns if c not in pointing and c not in selectors and c not in table.key and not _meta(c)]
    texts = [c for c in own if table.columns[c].distinct > 60]
    return len(own) <= 4 and not texts


def _meta(column: str) -> bool:
    meaning = column_meaning(column)
    return bool(meaning.core & _META) or words(column) in (["id"], ["date", "modified"])


def _relation(
    name: str, found: Survey, roles: dict[str, Role], side_of: dict[str, str], quote: Callable[[str], str]
) -> Relation:
    table = found.tables[name]
    columns = [Origin(c, name, p) for c, p in table.columns.items()]
    taken = set(table.columns)
    joins: list[Join] = []
    references = list(table.references)
    for index, side in enumerate(s for s, main in side_of.items() if main == name):
        alias, extra = f"s{index + 1}", found.tables[side]
        key = extra.key[0]
        link = next(r for r in extra.references if r.column == key)
        on = f"LEFT JOIN {quote(side)} {alias} ON {alias}.{quote(key)} = m.{quote(link.key)}"
        joins.append(Join(side, alias, on, optional=False))
        for column, profile in extra.columns.items():
            if column == key:
                continue
            as_name = column if column not in taken else f"{side}_{column}"
            taken.add(as_name)
            columns.append(Origin(as_name, side, profile, through=side))
            references += [replace(r, column=as_name) for r in extra.references if r.column == column]
    if roles[name] is Role.LINK:
        return _link_relation(name, found, columns, references, quote)
    for make in (_contact_points, _parents, _lists, _labels):
        for join, extras, pointing in make(name, found, roles, taken, quote):
            joins.append(
                replace(join, alias=f"j{len(joins) + 1}", sql=join.sql.replace("{alias}", f"j{len(joins) + 1}"))
            )
            columns += extras
            references += pointing
            taken |= {e.name for e in extras}
    return Relation(name, tuple(columns), tuple(joins), tuple(references))


def _link_relation(
    name: str, found: Survey, columns: list[Origin], references: list[Reference], quote: Callable[[str], str]
) -> Relation:
    """A link with the columns of the contact points that it points at."""
    joins: list[Join] = []
    taken = {c.name for c in columns}
    for reference in references:
        if reference.selector or not _holds_contact_points(found.tables[reference.table]):
            continue
        alias = f"p{len(joins) + 1}"
        on = f"LEFT JOIN {quote(reference.table)} {alias} ON {alias}.{quote(reference.key)} = m.{quote(reference.column)}"
        joins.append(Join(reference.table, alias, on, optional=False))
        for column, profile in found.tables[reference.table].columns.items():
            if column == reference.key:
                continue
            as_name = column if column not in taken else f"{reference.table}_{column}"
            taken.add(as_name)
            columns.append(Origin(as_name, reference.table, profile, through=reference.table))
    return Relation(name, tuple(columns), tuple(joins), tuple(references))


def _holds_contact_points(table: TableProfile) -> bool:
    """True where a table holds addresses of one kind, e-mail or other, and little else."""
    named = bool(table_meaning(table.name).core & _CONTACT_POINTS)
    shown = any(p.trait("email") > 0.8 for p in table.columns.values())
    return named and (shown or len(table.columns) <= 20)


_Extra = tuple[Join, list[Origin], list[Reference]]


def _contact_points(
    name: str, found: Survey, roles: dict[str, Role], taken: set[str], quote: Callable[[str], str]
) -> Iterator[_Extra]:
    """Addresses in tables of their own, reached through a link: the primary one, the least of several."""
    for link, back, target in _links_of(name, found, roles):
        held = found.tables[target.table]
        if not _holds_contact_points(held):
            continue
        through = f"{link.name}>{target.table}"
        origins, selected = [], []
        for column, profile in held.columns.items():
            if column == target.key or _meta(column):
                continue
            as_name = column if column not in taken else f"{target.table}_{column}"
            # flags (opted out, invalid) are kept where any of the addresses carries them
            aggregate = "MAX" if profile.trait("boolean") == 1 else "MIN"
            selected.append(f"{aggregate}(a.{quote(column)}) AS {quote(as_name)}")
            origins.append(Origin(as_name, target.table, profile, through=through, aggregate=aggregate))
        rows = (
            f"{quote(link.name)} l JOIN {quote(target.table)} a ON a.{quote(target.key)} = l.{quote(target.column)}"
            + _conditions(link, back, quote)
        )
        yield Join(through, "", _grouped(name, back, selected, rows, quote), optional=True), origins, []


def _parents(
    name: str, found: Survey, roles: dict[str, Role], taken: set[str], quote: Callable[[str], str]
) -> Iterator[_Extra]:
    """A parent kept in a link table though nearly every row has one: the link adds a reference."""
    for link, back, target in _links_of(name, found, roles):
        if _holds_contact_points(found.tables[target.table]) or back.selector or target.column in taken:
            continue
        if not _mostly_one(found, link, back):
            continue
        through = f"{link.name}>{target.table}"
        selected = [f"MIN(l.{quote(target.column)}) AS {quote(target.column)}"]
        rows = quote(link.name) + " l" + _conditions(link, back, quote)
        origin = Origin(target.column, link.name, link.columns[target.column], through=through, aggregate="MIN")
        yield Join(through, "", _grouped(name, back, selected, rows, quote), optional=True), [origin], [target]


def _mostly_one(found: Survey, link: TableProfile, back: Reference) -> bool:
    """True where nearly every row has one link that counts: those that were deleted, or were the second choice, do
    not. Where all count, the server's own figures are taken, over all rows."""
    profile = link.columns[back.column]
    flags = list(_counted(link))
    if not flags:
        return profile.filled > 0 and profile.distinct >= 0.9 * profile.filled
    rows = found.samples[link.name].select([back.column, *(column for column, _ in flags)]).to_pylist()
    keys = [row[back.column] for row in rows if row[back.column] and all(row[c] in words for c, words in flags)]
    return bool(keys) and len(set(keys)) >= 0.9 * len(keys)


def _lists(
    name: str, found: Survey, roles: dict[str, Role], taken: set[str], quote: Callable[[str], str]
) -> Iterator[_Extra]:
    """Small tables of codes and names (currencies, countries) that a column points at."""
    for reference in found.tables[name].references:
        table = found.tables[reference.table]
        if reference.selector or reference.table == name or table.rows > 500 or len(table.columns) > 10:
            continue
        if table_meaning(table.name).core & {"user", "owner", "person"} or table.references:
            continue
        if any(p.trait("email") > 0.5 or p.trait("phone") > 0.5 for p in table.columns.values()):
            continue  # records of their own, no list
        origins = []
        for column, profile in table.columns.items():
            if column == reference.key or _meta(column):
                continue
            as_name = column if column not in taken else f"{table.name}_{column}"
            if as_name not in taken:
                origins.append(
                    Origin(
                        as_name, table.name, profile, through=f"{reference.column}>{table.name}", found=reference.share
                    )
                )
        sql = (
            f"LEFT JOIN {quote(table.name)} {{alias}} ON {{alias}}.{quote(reference.key)} = m.{quote(reference.column)}"
        )
        yield Join(f"{reference.column}>{table.name}", "", sql, optional=True), origins, []


def _labels(
    name: str, found: Survey, roles: dict[str, Role], taken: set[str], quote: Callable[[str], str]
) -> Iterator[_Extra]:
    """The labels of numbered choices."""
    for each in code_lists(name, found):
        label = f"{each.column}_label"
        if label in taken:
            continue
        through, inner = f"{each.column}>{each.table}", labels_sql(each, name, label, quote)
        sql = f"LEFT JOIN ({inner}) {{alias}} ON {{alias}}.{quote(f'of_{name}')} = m.{quote(each.column)}"
        origin = Origin(label, each.table, each.profile, through=through, aggregate="MIN", says=each.column)
        yield Join(through, "", sql, optional=True), [origin], []


def _links_of(name: str, found: Survey, roles: dict[str, Role]) -> Iterator[tuple[TableProfile, Reference, Reference]]:
    """Each link of `name`: the link, its reference to `name`, and each reference to another table."""
    for link, role in roles.items():
        if role is not Role.LINK:
            continue
        table = found.tables[link]
        back = next((r for r in table.references if r.table == name), None)
        if back is None:
            continue
        for target in table.references:
            if target.table != name and target.column != back.column and not target.selector:
                yield table, back, target


def _conditions(link: TableProfile, back: Reference, quote: Callable[[str], str]) -> str:
    """The link's rows that count: of this kind, not deleted, the primary ones. Quoted digits suit every server."""
    parts = []
    if back.selector:
        parts.append(f"l.{quote(back.selector)} = " + "'" + back.selected.replace("'", "''") + "'")
    parts += [f"l.{quote(column)} = '{'0' if words == _NO else '1'}'" for column, words in _counted(link)]
    return f" WHERE {' AND '.join(parts)}" if parts else ""


_NO, _YES = frozenset({"0", "false", "f"}), frozenset({"1", "true", "t"})


def _counted(link: TableProfile) -> Iterator[tuple[str, frozenset[str]]]:
    """The link's flags of its rows that count, each with the words that it then holds in a sample."""
    for column, profile in link.columns.items():
        meaning = column_meaning(column)
        if profile.trait("boolean") != 1 or profile.distinct > 2:
            continue
        if "deleted" in meaning.core:
            yield column, _NO
        elif "primary" in (meaning.qualifiers | meaning.core):
            yield column, _YES


def _grouped(name: str, back: Reference, selected: list[str], rows: str, quote: Callable[[str], str]) -> str:
    """A join that is unique on the main table's key, whatever the link holds."""
    of = quote(f"of_{name}")
    columns = ", ".join([f"l.{quote(back.column)} AS {of}", *selected])
    inner = f"SELECT {columns} FROM {rows} GROUP BY l.{quote(back.column)}"
    return f"LEFT JOIN ({inner}) {{alias}} ON {{alias}}.{of} = m.{quote(back.key)}"


def beliefs(tables: Mapping[str, TableProfile], structure: Structure) -> list[BeliefHeld]:
    """What is held true of how the source hangs together, with its evidence, for the log."""
    out = []
    for name, role in structure.roles.items():
        evidence: dict[str, object] = {"rows": tables[name].rows}
        if name in structure.side_of:
            evidence["adds_to"] = structure.side_of[name]
        out.append(BeliefHeld(name, f"is of the kind {role.value}", evidence, 0.95))
        for r in tables[name].references:
            claim = f"points at {r.table}" + (f" where {r.selector} is {r.selected}" if r.selector else "")
            told: dict[str, object] = {"found_there": round(r.share, 3), "known_by": r.known_by}
            out.append(BeliefHeld(f"{name}.{r.column}", claim, told, round(min(0.99, r.share), 3)))
    return out
