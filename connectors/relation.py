"""What a plan reads `from`: a table's name, or a SELECT in the source's dialect as a derived table."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from workspace.errors import CatalogueError

_SELECT = re.compile(r"\s*(?:(?:--[^\n]*\n|/\*.*?\*/)\s*)*\(*\s*(select|with)\b", re.IGNORECASE | re.DOTALL)


def is_select(relation: str) -> bool:
    """True where `relation` is a SELECT and not a table's name."""
    return bool(_SELECT.match(relation))


def from_clause(relation: str, dialect: str, table: Callable[[str], str]) -> str:
    """What stands after FROM: `table(relation)`, or the SELECT in brackets under a name of its own.

    CatalogueError for a SELECT that is more than one statement, or would close the bracket around it.
    """
    return f"(\n{one_select(relation, dialect)}\n) AS the_selection" if is_select(relation) else table(relation)


def one_select(relation: str, dialect: str) -> str:
    """The SELECT without a last semicolon and what follows it. CatalogueError where it is not one statement."""
    try:
        tokens = sqlglot.tokenize(relation, read=dialect)
    except SqlglotError as error:
        raise CatalogueError(f"the SELECT cannot be read: {str(error)[:200]}", where=relation[:80]) from None
    depth = 0
    for place, token in enumerate(tokens):
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if token.token_type is TokenType.SEMICOLON and place == len(tokens) - 1:
            return relation[: token.start]
        if depth < 0 or token.token_type is TokenType.SEMICOLON:
            raise CatalogueError(
                "the SELECT is not one statement", where=relation[:80], advice="`from` holds one SELECT"
            )
    return relation


def where_lacking(columns: Sequence[str], quote: Callable[[str], str]) -> str:
    """The WHERE that holds for rows in which one of the columns is NULL; nothing where none are named."""
    return f" WHERE {' OR '.join(f'{quote(column)} IS NULL' for column in columns)}" if columns else ""


def not_before(column: str, value: str) -> str:
    """The condition that a column, in SQL, is at least a value, or NULL."""
    return f"({column} >= {value} OR {column} IS NULL)"


def about(relation: str, dialect: str) -> str:
    """What has about as many rows as a relation, and is counted sooner: a SELECT's first table, where all that is
    joined to it is there to add columns; else the relation itself."""
    if not is_select(relation):
        return relation
    try:
        tree = sqlglot.parse_one(relation, read=dialect)
    except SqlglotError:
        return relation
    first = tree.args.get("from_")
    joins = tree.args.get("joins") or []
    plain = {"expressions", "from_", "joins"} >= {name for name, part in tree.args.items() if part}
    if not (
        isinstance(tree, exp.Select) and plain and first and isinstance(first.this, exp.Table)
        and all(join.side == "LEFT" for join in joins) and not tree.find(exp.AggFunc)
    ):  # fmt: skip
        return relation
    return f"SELECT 1 AS one FROM {first.this.sql(dialect)}"


def after_key(key: Sequence[str], place: Sequence[str]) -> str:
    """The condition that a row comes after a key: one comparison, or one of rows for a composite key.

    `key` are the key's columns in SQL, `place` the literals (or numbered placeholders) that they are held
    against. The first column also stands alone, since not every server finds the range in a row comparison.
    """
    if len(key) == 1:
        return f"{key[0]} > {place[0]}"
    return f"{key[0]} >= {place[0]} AND ({', '.join(key)}) > ({', '.join(place)})"
