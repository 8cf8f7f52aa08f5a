"""Rows made anew from the stage and compared field by field: what checksums are not over is seen too, the line names
batch, source key and column, and what rightly differs is no fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from engine.load import load
from engine.sample import difference
from engine.verify import Verification, verify
from sample_data.servers import Database, PostgresServer
from tests.engine_jobs import EngineJob, sqlite_source
from workspace.events import PlanChanged

SOURCE = """
CREATE TABLE firms(id text primary key, name text, parent text, score text, facts text, opens text, tags text, photo blob);
INSERT INTO firms VALUES ('a', 'Acme', 'b', '1.10', '{"b": 1,  "a": 2}', '9:05', '^x^,^y^', x'00ff'), ('b', 'Bolt', NULL, NULL, NULL, NULL, NULL, NULL),
  ('c', 'Cy', 'q', '1e3', '[]', '23:59:59', '^z^', NULL), ('d', 'Dyn', 'q', 'x', NULL, NULL, NULL, NULL), ('q', 'Quo', 'a', '', NULL, NULL, NULL, NULL);
CREATE TABLE links(a text, b text, note text, primary key (a, b));
INSERT INTO links VALUES ('a', 'b', 'one'), ('a', 'c', 'two'), ('b', 'c', NULL);
"""
TARGET = """
CREATE TABLE firms(id uuid primary key, name varchar(9) CHECK (name <> 'Quo!'), parent_id uuid REFERENCES firms, score double precision, facts json,
  opens time, tags text[], photo bytea);
CREATE TABLE links(a uuid REFERENCES firms, b uuid REFERENCES firms, note text, PRIMARY KEY (a, b));
"""
PLAN = """
entities:
  firms:
    from: firms
    to: firms
    key: id
    id: uuid5
    fields: {name: {sql: "CASE WHEN name = 'Quo' THEN 'Quo!' ELSE name END"}, parent_id: {from: parent, ref: firms, missing: 'null'}, score: {from: score}, facts: {from: facts},
             opens: {from: opens}, tags: {sql: multiselect(tags)}, photo: {from: photo}}
  links:
    from: links
    to: links
    key: [a, b]
    id: none
    fields: {a: {from: a, ref: firms}, b: {from: b, ref: firms}, note: {from: note}}
"""


@pytest.fixture
def cloud(postgres: PostgresServer, postgres_database: Database) -> Iterator[psycopg.Connection[Any]]:
    postgres_database.run(TARGET)
    with postgres.connect(postgres_database.name) as connection:
        yield connection


@pytest.fixture
def job(postgres_database: Database, cloud: Any, tmp_path: Path) -> EngineJob:
    legacy = sqlite_source(tmp_path / "legacy.db", SOURCE)
    return EngineJob(str(tmp_path), "job", PLAN, legacy, postgres_database.socket_dsn, batch_rows=2)


def lines(result: Verification, entity: str) -> list[str]:
    return next(list(e.problems) for e in result.entities if e.entity == entity)


# Each: what somebody changes in the target, the entity, and the one line that no checksum gives.
TAMPERED = [
    ("UPDATE firms SET score = 1.2 WHERE name = 'Acme'", "firms", "batch 0: source key a, column score: from character 3 on it holds '2' and the stage gives '1' (3 and 3 characters in all)"),
    ("UPDATE firms SET facts = '{}' WHERE name = 'Acme'", "firms", "batch 0: source key a, column facts: from character 2 on it holds '}' and the stage gives '\"b\"' (2 and 17 characters in all)"),
    ("UPDATE firms SET opens = NULL WHERE name = 'Cy'", "firms", "batch 1: source key c, column opens: is NULL, and the stage gives a value of 8 characters"),
    ("UPDATE firms SET opens = '1:00' WHERE name = 'Bolt'", "firms", "batch 0: source key b, column opens: holds a value of 8 characters, and the stage gives NULL"),
    ("UPDATE firms SET name = 'Evil' WHERE name = 'Cy'", "firms", "batch 1: source key c, column name: from character 1 on it holds 'Evi' and the stage gives 'Cy' (4 and 2 characters in all)"),
    ("UPDATE firms SET photo = '\\x0000' WHERE name = 'Acme'", "firms", "batch 0: source key a, column photo: from character 5 on it holds '00' and the stage gives 'ff' (6 and 6 characters in all)"),
    ("UPDATE firms SET parent_id = NULL WHERE name = 'Acme'", "firms", "batch 0: source key a, column parent_id: is NULL, and the stage gives a value of 36 characters"),
    ("UPDATE links SET note = 'zwei' WHERE note = 'two'", "links", "batch 0: source key a\x1fc, column note: from character 1 on it holds 'zwe' and the stage gives 'two' (4 and 3 characters in all)"),
]  # fmt: skip


def test_each_field_that_differs_is_named(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    with job.running() as ctx:
        load(ctx)
        result = verify(ctx)
        assert result.ok, [e.problems for e in result.entities]
        assert {e.entity: (e.loaded, e.compared) for e in result.entities} == {"firms": (3, 3), "links": (3, 3)}
        for statement, entity, line in TAMPERED:
            ctx.target.begin()
            ctx.target._connection.execute(statement.encode())
            result = verify(ctx, ask_source=False)
            without = verify(ctx, ask_source=False, sample=0)
            ctx.target.rollback()
            assert line in lines(result, entity), lines(result, entity)
            assert line not in lines(without, entity)
            assert {e.compared for e in without.entities} == {0}
        assert verify(ctx).ok


def test_a_wrong_load_is_seen_though_its_checksums_hold(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    """A loader that wrote a wrong value writes its checksum too: only the stage tells."""
    with job.running() as ctx:
        load(ctx)
        cloud.execute("UPDATE firms SET name = 'Bult' WHERE name = 'Bolt'")
        hashed = "md5(concat_ws(chr(31), id, name, chr(30), chr(30), chr(30), chr(30), coalesce(tags::text, chr(30)), chr(30)))::uuid"
        cloud.execute(
            f"UPDATE packhorse.crosswalk x SET target_hash = {hashed} FROM firms t WHERE t.name = 'Bult' AND x.new_id = t.id::text"
        )
        assert verify(ctx, sample=0).ok
        found = lines(verify(ctx), "firms")
    assert found == [
        "batch 0: source key b, column name: from character 2 on it holds 'ult' and the stage gives 'olt' (4 and 4 characters in all)"
    ]


def test_the_sample_is_as_large_as_wanted_and_the_same_each_time(job: EngineJob, cloud: Any) -> None:
    with job.running() as ctx:
        load(ctx)
        cloud.execute("UPDATE firms SET score = score + 1")
        first, second = (verify(ctx, sample=2) for _ in range(2))
    assert [e.compared for e in first.entities] == [2, 2]
    assert lines(first, "firms") == lines(second, "firms")
    assert len(lines(first, "firms")) == 2


def test_what_a_retry_brought_in_is_made_anew_as_it_was(job: EngineJob, cloud: psycopg.Connection[Any]) -> None:
    """By the plan version of the retry and the values edited for it; rows that were loaded before refer to such a row
    too."""
    with job.running() as ctx:
        ctx.workspace.record(PlanChanged(1, job.plan, "file"))
        load(ctx)
        assert next(e.quarantined for e in verify(ctx).entities) == 2
    done = job.retry(edited={"firms": {3: {"score": "4.5"}}})
    assert [e.inserted for e in done.entities] == [1]
    mended = job.plan.replace("CASE WHEN name = 'Quo' THEN 'Quo!' ELSE name END", "upper(name)")
    done = job.retry(plan=mended)
    assert [e.inserted for e in done.entities] == [1]
    result = job.verified()
    assert result.ok, lines(result, "firms")
    firms = result.entities[0]
    assert (firms.loaded, firms.compared) == (5, 5)
    assert firms.notes == ()
    cloud.execute("UPDATE firms SET score = 9 WHERE name IN ('Dyn', 'QUO')")
    named = [line.split(":")[1].strip() for line in lines(job.verified(), "firms") if "column" in line]
    assert named == ["source key q, column score", "source key d, column score"]


@pytest.mark.parametrize(
    ("found", "wanted", "line"),
    [
        (None, "secret", "is NULL, and the stage gives a value of 6 characters"),
        ("secret", None, "holds a value of 6 characters, and the stage gives NULL"),
        ("ab", "abc", "from character 3 on it holds '' and the stage gives 'c' (2 and 3 characters in all)"),
        ("\x1b[2J", "x", "from character 1 on it holds '\\x1b[2' and the stage gives 'x' (4 and 1 characters in all)"),
        ("card 4111111111111111", "card 4999", "from character 7 on it holds '111' and the stage gives '999' (21 and 9 characters in all)"),
    ],
)  # fmt: skip
def test_a_difference_tells_no_whole_value(found: str | None, wanted: str | None, line: str) -> None:
    assert difference(found, wanted) == line
