"""Splitting a batch down to the rows that the target refuses: every other row enters, however many are refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from connectors.protocols import RowsRefusedError
from engine.load import load
from engine.quarantine import quarantined_rows
from engine.refusing import load_refusing
from engine.verify import verify
from sample_data.servers import Database
from tests.engine_jobs import EngineJob, sqlite_source


@given(st.lists(st.sampled_from(["good", "named", "unnamed"]), max_size=60))
def test_every_row_is_loaded_or_refused(rows: list[str]) -> None:
    """A refused row is named by its line (a constraint) or not (a check at the statement's end); order is kept."""
    entered: list[int] = []
    refused: list[tuple[int, RowsRefusedError]] = []

    def enter(slice_: pa.Table) -> None:
        kinds = slice_["kind"].to_pylist()
        if "named" in kinds:
            raise RowsRefusedError("check", "no", line=kinds.index("named") + 1)
        if "unnamed" in kinds:
            raise RowsRefusedError("foreign_key", "no")
        entered.extend(slice_["_ph_n"].to_pylist())

    load_refusing(
        pa.table({"_ph_n": pa.array(range(len(rows)), pa.int64()), "kind": pa.array(rows, pa.string())}), enter, refused
    )
    assert entered == [n for n, kind in enumerate(rows) if kind == "good"]
    assert [n for n, _ in refused] == [n for n, kind in enumerate(rows) if kind != "good"]


@given(st.integers(-3, 9))
def test_a_line_that_is_none_of_ours(line: int) -> None:
    """A server that names a line outside of what it was sent is not followed there."""
    refused: list[tuple[int, RowsRefusedError]] = []

    def enter(slice_: pa.Table) -> None:
        raise RowsRefusedError("check", "no", line=line)

    load_refusing(pa.table({"_ph_n": pa.array(range(5), pa.int64())}), enter, refused)
    assert sorted(n for n, _ in refused) == [0, 1, 2, 3, 4]


def test_a_whole_batch_but_one(postgres_database: Database, tmp_path: Path) -> None:
    """A batch of 50,000 of which one collides, one fails a CHECK and one a foreign key loads 49,997."""
    postgres_database.run(
        "CREATE TABLE firms(id int primary key); INSERT INTO firms VALUES (1); "
        "CREATE TABLE people(id int primary key, email text, n int CHECK (n > 0), firm_id int REFERENCES firms); CREATE UNIQUE INDEX ON people (lower(email))"
    )
    legacy = sqlite_source(
        tmp_path / "legacy.db",
        "CREATE TABLE people(id integer primary key, email text, n int, firm int);"
        "WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 50000) "
        "INSERT INTO people SELECT i, CASE i WHEN 40000 THEN 'P7@x.com' ELSE 'p' || i || '@x.com' END, CASE i WHEN 123 THEN -1 ELSE i END, CASE i WHEN 49999 THEN 2 ELSE 1 END FROM s",
    )
    plan = "entities: {p: {from: people, to: people, key: id, fields: {email: {from: email}, n: {from: n}, firm_id: {from: firm}}}}"
    with EngineJob(str(tmp_path), "job", plan, legacy, postgres_database.socket_dsn).running() as ctx:
        outcome = load(ctx)
        assert (outcome.read, outcome.inserted, outcome.quarantined) == (50_000, 49_997, 3)
        assert verify(ctx).ok
        assert {(row.key[0], row.code) for row in quarantined_rows(ctx.target, "job")} == {
            ("40000", "unique"),
            ("123", "check"),
            ("49999", "foreign_key"),
        }
