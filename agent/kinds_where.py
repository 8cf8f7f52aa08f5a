"""The condition that is true of just the rows of one kind in a table: in the source's SQL, and as an expression of a plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agent.conversions import quoted
from agent.kinds import EMPTY, FILLED, Kinds
from connectors.protocols import Kind


def source_condition(
    kinds: Kinds, target: str, kind: Kind, dialect: str, quote: Callable[[str], str], alias: str = "m"
) -> str:
    """What is true of just the rows that go to `target`, in the source's dialect; NULL counts as not true."""
    column = f"{alias}.{quote(kinds.column)}"
    if kind is Kind.TEXT:
        text, literals = f"LOWER(TRIM({column}))", [v.lower() for v in kinds.named]
        empty = f"{column} IS NULL OR TRIM({column}) = ''"
    else:
        text, literals = (f"CAST({column} AS TEXT)" if dialect == "sqlite" else column), list(kinds.named)
        empty = f"{column} IS NULL"
    return _condition(kinds, target, text, dict(zip(kinds.named, literals, strict=True)), empty)


def stage_condition(kinds: Kinds, target: str) -> str:
    """The same as an expression of a plan, over the text that was staged."""
    column = quoted(kinds.column)
    literals = {v: v.lower() for v in kinds.named}
    return _condition(kinds, target, f"lower(trim({column}))", literals, f"coalesce(trim({column}), '') = ''")


def _condition(kinds: Kinds, target: str, text: str, literals: dict[str, str], empty: str) -> str:
    values = kinds.values(target)
    own = [literals[v] for v in values if v in literals]
    parts = [f"{text} IN ({_list(own)})"] if own else []
    if EMPTY in values:
        parts.append(f"({empty})")
    if FILLED in values:
        rest = f" AND {text} NOT IN ({_list(list(literals.values()))})" if literals else ""
        parts.append(f"(NOT ({empty}){rest})")
    return parts[0] if len(parts) == 1 else "(" + " OR ".join(parts) + ")"


def _list(values: Sequence[str]) -> str:
    return ", ".join("'" + v.replace("'", "''") + "'" for v in values)
