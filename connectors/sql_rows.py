"""SQL over a row of a customer's table in a target reached through SQLAlchemy: how a value is stored, shown and hashed.

The engine gives each value as one canonical text, and a hash over those texts. Each system's class says how it stores
such a text and how it shows what it stored as that text again; where it can't, `is_hashed` of the column says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from connectors.protocols import Column, Table
from connectors.records import LoadedEntity
from connectors.sql_session import SqlSession

Sql = sa.ColumnElement[Any]
NOTHING = "\x1e"
BETWEEN = "\x1f"


def table_of(table: Table) -> sa.TableClause:
    """A customer's table for a statement."""
    return sa.table(
        table.relation or table.name, *(sa.column(c.name) for c in table.columns), schema=table.schema or None
    )


@dataclass(frozen=True)
class FoundRow:
    """SQL over a target row (all NULL where it is gone): whether it is there, the hash of what it holds, and that of
    its deferred references (NULL where all are)."""

    present: Sql
    hash: Sql
    reference: Sql


class SqlRows(SqlSession):
    """How one system spells values."""

    def _stored(self, column: Column, text: Sql) -> Sql:
        """What the column stores for a canonical text."""
        raise NotImplementedError

    def _sought(self, column: Column, text: Sql) -> Sql:
        """The same to find a row by: of the column's own type, so that an index serves."""
        return self._stored(column, text)

    def _shown(self, column: Column, value: Sql) -> Sql:
        """The canonical text of what the column stores."""
        raise NotImplementedError

    def _digest(self, texts: Sequence[Sql]) -> Sql:
        """MD5, in hexadecimal digits, of the texts joined with U+001F; NULL counts as U+001E."""
        raise NotImplementedError

    def _split(self, text: Sql, number: int) -> Sql:
        """The part of that number, from 1, of a text whose parts are joined with U+001F."""
        raise NotImplementedError

    def _text(self, key: Sql) -> Sql:
        """A key of our own tables as text that compares with a customer's."""
        return key

    def _as_key(self, text: Sql) -> Sql:
        """Text of a customer's as it compares with a key of our own tables."""
        return text

    def _found(self, entity: LoadedEntity, t: sa.FromClause) -> FoundRow:
        """The hashes of the entity's rows, computed again from what the target holds now."""
        texts: list[Sql] = []
        for each in entity.hashed:
            value = t.c[each.column.name]
            if each.deferred:
                texts.append(sa.literal(NOTHING))
            elif each.text:
                texts.append(self._shown(each.column, value))
            else:
                texts.append(sa.case((value.is_(None), sa.null()), else_=sa.literal("~")))
        references = [t.c[column.name] for column in entity.deferred]
        reference: Sql = sa.null()
        if references:
            some = sa.or_(*(value.is_not(None) for value in references))
            shown = [self._shown(column, t.c[column.name]) for column in entity.deferred]
            reference = sa.case((some, self._digest(shown)))
        present = t.c[entity.identity[0].name].is_not(None)
        return FoundRow(present, sa.case((present, self._digest(texts))), reference)

    def _same_row(self, identity: Sequence[Column], t: sa.FromClause, new_id: Sql) -> Sql:
        """The join of a target row with a new_id, in the key's own types, so that an index of the target serves."""
        text = self._text(new_id)
        parts = [text] if len(identity) == 1 else [self._split(text, n) for n in range(1, len(identity) + 1)]
        return sa.and_(
            *(t.c[column.name] == self._sought(column, part) for column, part in zip(identity, parts, strict=True))
        )

    def _shown_id(self, identity: Sequence[Column], t: sa.FromClause) -> Sql:
        """The new_id that the crosswalk would have of a target row."""
        shown = [self._shown(column, t.c[column.name]) for column in identity]
        joined = shown[0]
        for each in shown[1:]:
            joined = joined.concat(sa.literal(BETWEEN)).concat(each)
        return joined
