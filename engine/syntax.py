"""An expression of a plan as a tree of SQL syntax, and the names that stand in it; nothing is compiled or allowed here."""

from __future__ import annotations

import logging

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError

from workspace.errors import ExpressionError

# What sqlglot can't read is refused here, in our own words.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


def parse_expression(text: str, where: str) -> exp.Expr:
    """The tree of one scalar expression. ExpressionError with the position where it doesn't parse."""
    try:
        trees = sqlglot.parse(text, read="duckdb")
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        position = first.get("col") or len(text)
        near = str(first.get("highlight") or "").strip()
        raise ExpressionError(
            f"the expression does not parse{f' near {near!r}' if near else ''}",
            where=f"{where}, position {position}",
            advice="an expression is a SQL scalar over the source row, such as lower(trim(email))",
        ) from None
    except TokenError:
        raise ExpressionError("the expression has an unclosed quote", where=where) from None
    except RecursionError:
        raise too_deep(where) from None
    except (SqlglotError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        # sqlglot's builders trip over calls of known functions with arguments they don't expect
        raise ExpressionError(
            "the expression does not parse", where=where, advice="docs/reference/functions.md shows each function"
        ) from None
    if len(trees) != 1 or trees[0] is None:
        raise ExpressionError("wants exactly one expression", where=where, advice="no semicolons, no empty text")
    return trees[0]


def too_deep(where: str) -> ExpressionError:
    """What refuses an expression that nests beyond what can be walked."""
    return ExpressionError(
        "the expression is nested too deeply", where=where, advice="use a value map, or a SELECT in `from:`"
    )


def columns_of(text: str, where: str = "expression") -> list[str]:
    """The column names an expression draws on, in order of appearance, as written."""
    tree = parse_expression(text, where)
    return list(dict.fromkeys(c.name for c in tree.find_all(exp.Column)))


def functions_of(text: str, where: str = "expression") -> set[str]:
    """The functions an expression calls, in lower case."""
    tree = parse_expression(text, where)
    return {f.name.lower() if isinstance(f, exp.Anonymous) else f.sql_name().lower() for f in tree.find_all(exp.Func)}
