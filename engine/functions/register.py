"""Domain functions as DuckDB functions: called once a distinct value, joined back as Arrow.

`phone(a, b)` in a plan is `ph_phone_2(a, b)` in the engine's SQL. Nothing here knows what a function does,
and nothing raises: what a function did not foresee becomes the reason of the values concerned.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from inspect import Parameter, Signature
from typing import TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from duckdb.func import FunctionNullHandling, PythonUDFType

from engine.functions import FUNCTIONS
from engine.functions.protocol import DomainFunction, Outcome, Reason

FAILED = Reason("function failed")

_REMEMBERED = 2**15  # outcomes a function; some 10 MB of texts of usual length
_WORTH_REMEMBERING = 256  # characters of an argument; longer ones would make the memory unbounded

_WORTH_PLANNING = 32  # rows; fewer are sooner asked for one by one
_WORTH_ENCODING = 256  # rows; Arrow takes longer to make few of them distinct than Python does

_NATIVE = {"BOOLEAN": pa.bool_(), "VARCHAR[]": pa.list_(pa.string())}

_spent: dict[str, float] = {}

Column: TypeAlias = "pa.Array | pa.ChunkedArray"


def seconds_spent() -> dict[str, float]:
    """CPU seconds in each domain function so far, by name: this process's, and those added."""
    return dict(_spent)


def add_seconds(spent: Mapping[str, float]) -> None:
    """Counts in what another process spent for this one."""
    for name, seconds in spent.items():
        _spent[name] = _spent.get(name, 0.0) + seconds


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
    plain = function.columns
    value = _NATIVE.get(function.returns, pa.string())

    def over(*columns: Column) -> pa.StructArray:
        started = time.thread_time()
        try:
            return outcomes(*columns)
        finally:
            _spent[function.name] = _spent.get(function.name, 0.0) + time.thread_time() - started

    def outcomes(*columns: Column) -> pa.StructArray:
        whole = [_whole(column) for column in columns]
        if plain is None or len(whole[0]) < _WORTH_PLANNING:
            return asked(whole)
        try:
            values, left = plain(*whole)
        except Exception:  # of one value; which one, `call` tells
            return asked(whole)
        return _merged(values, left, asked([column.filter(left) for column in whole]) if left.true_count else None)

    def asked(columns: list[pa.Array]) -> pa.StructArray:
        if len(columns[0]) < _WORTH_ENCODING:
            return _structs(_few(call, columns), value)
        distinct, indices = _distinct(columns)
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
    return [_outcome(call, arguments) for arguments in zip(*columns, strict=True)]


def _few(call: Callable[..., Outcome], columns: list[pa.Array]) -> list[Outcome]:
    texts = [column.to_pylist() for column in columns]
    longest = sum(max(map(len, filter(None, column)), default=0) for column in texts)
    if longest <= _WORTH_REMEMBERING:  # `call` remembers: it's as good as making the rows distinct
        return _outcomes(call, texts, longest)
    rows = list(zip(*texts, strict=True))
    told = {row: _outcome(call, row) for row in dict.fromkeys(rows)}
    return [told[row] for row in rows]


def _outcome(call: Callable[..., Outcome], arguments: tuple[str | None, ...]) -> Outcome:
    short = sum(map(len, filter(None, arguments))) <= _WORTH_REMEMBERING
    try:
        return call(*arguments) if short else call.__wrapped__(*arguments)  # type: ignore[attr-defined]
    except Exception:
        return None, FAILED


def _merged(values: pa.Array, left: pa.Array, asked: pa.StructArray | None) -> pa.StructArray:
    """The values of a column and the outcomes of the rows that were left, which `asked` has in their order."""
    codes, soft = _no_reasons(len(values))
    if asked is not None:
        values = pc.replace_with_mask(values, left, asked.field("v"))
        if asked.field("r").null_count < len(asked):
            codes = pc.replace_with_mask(codes, left, asked.field("r"))
            soft = pc.replace_with_mask(soft, left, asked.field("soft"))
    return pa.StructArray.from_arrays([values, codes, soft], names=["v", "r", "soft"])


def _no_reasons(rows: int) -> tuple[pa.Array, pa.Array]:
    return pa.nulls(rows, pa.string()), pa.repeat(pa.scalar(False), rows)


def _structs(outcomes: list[Outcome], value: pa.DataType) -> pa.StructArray:
    reasons = [reason for _, reason in outcomes]
    values = pa.array([v for v, _ in outcomes], value)
    if any(reasons):
        codes = pa.array([None if r is None else r.code for r in reasons], pa.string())
        soft = pa.array([r is not None and r.soft for r in reasons], pa.bool_())
    else:
        codes, soft = _no_reasons(len(outcomes))
    return pa.StructArray.from_arrays([values, codes, soft], names=["v", "r", "soft"])
