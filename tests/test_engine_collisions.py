"""Collisions settled part by part: the same losers as by a plain walk over all rows, however they are cut into parts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connectors.protocols import Column, Kind, Table, UniqueKey
from engine.check import CheckedEntity, CheckedField
from engine.collisions import Losers, Settler
from engine.plan import EntityPlan, FieldPlan
from engine.query import LOADED

KEYS = st.one_of(st.none(), st.sampled_from(["a", "A", "b", "c", "d", "é", ""]))
ROWS = st.lists(st.tuples(st.sampled_from("klmnopq"), KEYS, KEYS, st.integers(0, 2)), max_size=40)


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


def entity(keyed: bool) -> CheckedEntity:
    columns = tuple(Column(name, "text", Kind.TEXT) for name in ("id", "email", "code"))
    keys = (
        UniqueKey("one_mail", ("lower(email)",), ("email",)),
        UniqueKey("one_code", ("code",), ("code",), nulls_distinct=False),
    )
    source = Table("s", columns, primary_key=("id",) if keyed else ())
    plan = EntityPlan.model_validate({"from": "s", "to": "t", "key": "id", "id": "none", "fields": {}})
    fields = tuple(
        CheckedField(column, FieldPlan.model_validate({"from": column.name}), False, "") for column in columns[1:]
    )
    return CheckedEntity("t", plan, source, Table("t", columns, unique_keys=keys), None, fields, ())


def reckoned(rows: list[tuple[str, str | None, str | None, int]], keyed: bool) -> dict[int, str]:
    """The losers by number, each with the key it lost by: whoever comes first has the key, if it enters itself."""
    taken: dict[tuple[str, str | None], int] = {}
    lost: dict[int, str] = {}
    for n, (key, mail, code, outcome) in enumerate(rows):
        if outcome != LOADED:
            continue
        if not keyed and ("source key", key) in taken:
            lost[n] = "source key"
            continue
        taken.setdefault(("source key", key), n)
        own = [("one_mail", mail.lower())] if mail is not None else []
        own.append(("one_code", code))  # type: ignore[arg-type]
        clash = next((name for name, value in own if (name, value) in taken), None)
        if clash:
            lost[n] = clash
        else:
            taken |= dict.fromkeys(own, n)
    return lost


@given(ROWS, st.sets(st.integers(1, 39)), st.booleans(), st.integers(1, 4))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_parts_settle_as_the_whole(
    duck: duckdb.DuckDBPyConnection,
    tmp_path: Path,
    rows: list[tuple[str, str | None, str | None, int]],
    cuts: set[int],
    keyed: bool,
    together: int,
) -> None:
    settler = Settler(duck, entity(keyed), tmp_path, {})
    table = pa.table(
        {
            "_ph_n": pa.array(range(len(rows)), pa.int64()),
            "_ph_key": pa.array([r[0] for r in rows], pa.string()),
            "_ph_id": pa.nulls(len(rows), pa.string()),
            "_ph_outcome": pa.array([r[3] for r in rows], pa.int32()),
            "email": pa.array([r[1] for r in rows], pa.string()),
            "code": pa.array([r[2] for r in rows], pa.string()),
        }
    )
    found: dict[int, str] = {}
    edges = [0, *sorted(c for c in cuts if c < len(rows)), len(rows)]
    parts = []
    for part, (start, end) in enumerate(pairwise(edges)):
        out = tmp_path / f"part-{part}.parquet"
        pq.write_table(table.slice(start, end - start), out)
        parts.append((part, out, end - start))
    lost: list[Losers | None] = []
    while parts:
        lost += settler.settle_all(parts[:together])
        del parts[:together]
    for losers in lost:
        if losers:
            written = pq.read_table(losers.path)
            assert written.num_rows == losers.count > 0
            found |= dict(zip(written["_ph_n"].to_pylist(), written["index"].to_pylist(), strict=True))
    assert found == reckoned(rows, keyed)
