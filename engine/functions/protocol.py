"""What a domain function is to the engine: a Python function over one value, called once a distinct value.

The engine keeps the vectorising (distinct values, memo, Arrow) in `engine.functions.register`; a file a
kind of function holds only the conversions, as pure functions that never raise. A function whose plain
values are many and all different may answer for those a column at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

Value = str | bool | list[str] | None


@dataclass(frozen=True)
class Reason:
    """Why there is no value: a stable short code in lower case (`not an email`, `zero date`).

    `soft` reasons say that the source has its own way to write "none": a nullable column takes NULL
    and the change is counted; a required column quarantines the row.
    """

    code: str
    soft: bool = False


Outcome = tuple[Value, Reason | None]  # value and None; None and a reason; or None and None for NULL in

Answers = tuple[pa.Array, pa.Array]  # the values, null where there is none; True where `call` has to be asked


@dataclass(frozen=True)
class DomainFunction:
    """A function that a plan may call.

    `call` takes `parameters` as text or None, in order, of which the last `optional` may be left out.
    `returns` is the DuckDB type of the value: VARCHAR, BOOLEAN, DATE, TIMESTAMP, TIMESTAMPTZ, DECIMAL(38,9),
    UUID or VARCHAR[]; `call` gives a str that casts to it without loss (bool for BOOLEAN, list for VARCHAR[]).
    `unchanged_when` is a DuckDB condition over `{0}`, the only argument: where it holds, or the argument is NULL,
    the outcome is the argument itself and `call` isn't needed. Such a function gives text for text, and no reason.
    `columns` takes the same parameters as Arrow columns of text, all of one length, and answers for the rows
    that are plain: their values as `call` gives them, without a reason. The others it leaves to `call`; what
    it gives as their values does not count. Tests hold the two ways against each other.
    """

    name: str
    parameters: tuple[str, ...]
    optional: int
    returns: str
    call: Callable[..., Outcome]
    unchanged_when: str | None = None
    columns: Callable[..., Answers] | None = None

    @property
    def signature(self) -> str:
        """As docs show it: `phone(value, country?)`."""
        needed = len(self.parameters) - self.optional
        shown = [p if i < needed else f"{p}?" for i, p in enumerate(self.parameters)]
        return f"{self.name}({', '.join(shown)})"
