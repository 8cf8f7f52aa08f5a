"""Domain functions as DuckDB functions: called once a distinct value, joined back as Arrow.

`phone(a, b)` in a plan is `ph_phone_2(a, b)` in the engine's SQL. Nothing here knows what a function does,
and nothing raises: what a function did not foresee becomes the reason of the values concerned.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache, lru_cache
from inspect import Parameter, Signature
from typing import TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from duckdb.func import FunctionNullHandling, PythonUDFType

from engine.functions import FUNCTIONS
from engine.functions.protocol import DomainFunction, Outcome, Reason

_FAILED = Reason("function failed")

_REMEMBERED = 2**15  # outcomes a function; some 10 MB of texts of usual length
_WORTH_REMEMBERING = 256  # characters of an argument; longer ones would make the memory unbounded

_NATIVE = {"BOOLEAN": pa.bool_(), "VARCHAR[]": pa.list_(pa.string())}

_spent: dict[str, float] = {}

Column: TypeAlias = "pa.Array | pa.ChunkedArray"


def seconds_spent() -> dict[str, float]:
    """CPU seconds of this process in each domain function so far, by name."""
    return dict(_spent)


def udf_name(name: str, arguments: int) -> str:
    """What DuckDB knows a function of a plan by, when called with so many arguments."""
    return f"ph_{name}_{arguments}"


def arities(function: DomainFunction) -> range:
    """The numbers of arguments that a function may be called with."""
    most = len(function.parameters)
    return range(most - function.optional, most + 1)


def value_type(function: DomainFunction) -> str:
    """The DuckDB type of `v`: BOOLEAN and VARCHAR[] as they are; else VARCHAR, which casts to `returns` whole."""
    return function.returns if function.returns in _NATIVE else "VARCHAR"


def register(connection: duckdb.DuckDBPyConnection) -> None:
    """Makes every domain function known to a connection and its cursors, once for each number of arguments.

    `ph_<name>_<n>` takes n VARCHAR and gives STRUCT(v, r VARCHAR, soft BOOLEAN): the value, of `value_type`,
    or NULL; the reason's code or NULL; whether the reason is soft. Never NULL itself, never an exception.
    """
    for function in FUNCTIONS.values():
        outcome = duckdb.struct_type(
            {"v": duckdb.dtype(value_type(function)), "r": duckdb.sqltypes.VARCHAR, "soft": duckdb.sqltypes.BOOLEAN}
        )
        for arity in arities(function):
            connection.create_function(
                udf_name(function.name, arity),
                vectorised(function, arity),
                [duckdb.sqltypes.VARCHAR] * arity,
                outcome,
                type=PythonUDFType.ARROW,
                null_handling=FunctionNullHandling.SPECIAL,
            )


def vectorised(function: DomainFunction, arity: int) -> Callable[..., pa.StructArray]:
    """The function over `arity` Arrow columns of text: same length in, structs of v, r and soft out."""
    call = _remembering(function.call)
    value = _NATIVE.get(function.returns, pa.string())

    def over(*columns: Column) -> pa.StructArray:
        started = time.thread_time()
        try:
            return outcomes(*columns)
        finally:
            _spent[function.name] = _spent.get(function.name, 0.0) + time.thread_time() - started

    def outcomes(*columns: Column) -> pa.StructArray:
        distinct, indices = _distinct([_whole(column) for column in columns])
        longest = sum(pc.max(pc.binary_length(texts)).as_py() or 0 for texts in distinct)
        structs = _structs(_outcomes(call, [_texts(texts) for texts in distinct], longest), value)
        return structs if indices is None else structs.take(indices)

    # DuckDB counts the parameters that a function declares.
    declared = [Parameter(name, Parameter.POSITIONAL_ONLY) for name in function.parameters[:arity]]
    over.__signature__ = Signature(declared)  # type: ignore[attr-defined]
    return over


@cache
def _remembering(call: Callable[..., Outcome]) -> Callable[..., Outcome]:
    """The function with the outcomes of its latest arguments kept, over all chunks and connections."""
    return lru_cache(maxsize=_REMEMBERED)(call)


def _whole(column: Column) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _texts(values: pa.Array) -> list[str | None]:
    texts: list[str | None] = values.to_numpy(zero_copy_only=False).tolist()  # several times as fast as to_pylist
    return texts


def _distinct(columns: list[pa.Array]) -> tuple[list[pa.Array], pa.Array | None]:
    """The columns of the different rows, and for each row the place of its like; None where all differ."""
    encoded = [column.dictionary_encode(null_encoding="encode") for column in columns]
    places = encoded[0].indices
    several = len(encoded[0].dictionary)
    for e in encoded[1:]:
        if len(e.dictionary) > 1:  # else it tells no rows apart
            both = pc.add(pc.multiply(places.cast(pa.int64()), len(e.dictionary)), e.indices.cast(pa.int64()))
            places = both.dictionary_encode()
            several = len(places.dictionary)
            places = places.indices
    if several == len(columns[0]):
        return columns, None
    if len(columns) == 1:
        return [encoded[0].dictionary], places
    rows = pc.index_in(pa.array(range(several), places.type), places)  # where each of them stands first
    return [column.take(rows) for column in columns], places


def _outcomes(call: Callable[..., Outcome], columns: list[list[str | None]], longest: int) -> list[Outcome]:
    if longest <= _WORTH_REMEMBERING:
        try:
            return list(map(call, *columns))
        except Exception:  # of one value; which one, the slow way tells
            pass
    outcomes: list[Outcome] = []
    for arguments in zip(*columns, strict=True):
        short = sum(map(len, filter(None, arguments))) <= _WORTH_REMEMBERING
        try:
            outcomes.append(call(*arguments) if short else call.__wrapped__(*arguments))  # type: ignore[attr-defined]
        except Exception:
            outcomes.append((None, _FAILED))
    return outcomes


def _structs(outcomes: list[Outcome], value: pa.DataType) -> pa.StructArray:
    reasons = [reason for _, reason in outcomes]
    values = pa.array([v for v, _ in outcomes], value)
    if any(reasons):
        codes = pa.array([None if r is None else r.code for r in reasons], pa.string())
        soft = pa.array([r is not None and r.soft for r in reasons], pa.bool_())
    else:
        codes = pa.nulls(len(outcomes), pa.string())
        soft = pa.repeat(pa.scalar(False), len(outcomes))
    return pa.StructArray.from_arrays([values, codes, soft], names=["v", "r", "soft"])
