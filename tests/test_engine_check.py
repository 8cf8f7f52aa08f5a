"""The check of a plan against two systems: the order, what waits, what is refused - before any row moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connectors.dsn import Dsn, open_source
from connectors.postgres import PostgresTarget
from connectors.protocols import Catalogue, Column, Kind, Source, Table, UniqueKey
from engine.check import CheckedPlan, check_plan
from engine.load import load
from engine.plan import parse_plan
from engine.prepare import try_queries
from engine.preview import preview
from engine.verify import verify
from sample_data.servers import Database, MariadbServer, PostgresServer
from tests.engine_jobs import EngineJob, sqlite_source
from workspace.errors import ExpressionError, PlanError, UsageError
from workspace.paths import JobPaths

TEXT = {"type": "text", "kind": Kind.TEXT}
INT = {"type": "integer", "kind": Kind.INTEGER, "bits": 32}
UUID = {"type": "uuid", "kind": Kind.UUID}


def table(name: str, id_: dict[str, Any], *columns: Column, key: tuple[str, ...] = ("id",), **more: Any) -> Table:
    unique = (UniqueKey(f"{name}_pkey", key, key, primary=True),) if key else ()
    return Table(name, (Column("id", nullable=False, **id_), *columns), primary_key=key, unique_keys=unique, **more)


def column(name: str, kind: dict[str, Any] = TEXT, **more: Any) -> Column:
    return Column(name, **{**kind, **more})


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Source]:
    script = "; ".join(
        f"CREATE TABLE {name}(id int primary key, a text, b text, c text, photo blob)" for name in ("s", "t", "u", "v")
    )
    source = open_source(sqlite_source(tmp_path_factory.mktemp("legacy") / "legacy.db", script))
    yield source
    source.close()


def checked(source: Source, plan: str, *tables: Table) -> CheckedPlan:
    return check_plan(parse_plan(plan), source, Catalogue("postgres", {t.name: t for t in tables}))


def entity(name: str, *fields: str, more: str = "") -> str:
    return f"  {name}: {{from: {name}, to: {name}, key: id{more}, fields: {{{', '.join(fields)}}}}}\n"


def refs(*names: str, nullable: bool = True) -> list[Column]:
    return [column(f"{name}_id", INT, nullable=nullable) for name in names]


def order(plan: CheckedPlan) -> list[str]:
    return [e.name for e in plan.entities]


def waiting(plan: CheckedPlan) -> dict[str, list[str]]:
    return {e.name: [f.column.name for f in e.deferred] for e in plan.entities if e.deferred}


def test_references_first(source: Source) -> None:
    plan = (
        "entities:\n"
        + entity("s", "t_id: {from: a, ref: t}", "u_id: {from: b, ref: u}")
        + entity("t", "u_id: {from: a, ref: u}")
        + entity("u")
    )
    found = checked(source, plan, table("s", INT, *refs("t", "u")), table("t", INT, *refs("u")), table("u", INT))
    assert order(found) == ["u", "t", "s"]
    assert waiting(found) == {}
    assert found.entity("s").references == ("t", "u")
    assert found.entity("s").written == ("id", "t_id", "u_id")


def test_the_plan_s_own_order_where_nothing_else_tells(source: Source) -> None:
    plan = "entities:\n" + entity("v") + entity("s") + entity("t", more=", after: [u]") + entity("u")
    assert order(checked(source, plan, *(table(name, INT) for name in "stuv"))) == ["v", "s", "u", "t"]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12, unique=True))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_circles_of_nullable_references_open(source: Source, edges: list[tuple[int, int]]) -> None:
    """Every entity comes once; a reference waits if and only if its rows are loaded later, or are its own."""
    names = ["e0", "e1", "e2", "e3", "e4"]
    pointed = {name: [names[b] for a, b in edges if names[a] == name] for name in names}
    plan = "entities:\n" + "".join(
        f"  {name}: {{from: s, to: {name}, key: id, fields: {{{', '.join(f'{o}_id: {{from: a, ref: {o}, missing: null}}' for o in others)}}}}}\n"
        for name, others in pointed.items()
    )  # fmt: skip
    found = checked(source, plan, *(table(name, INT, *refs(*others)) for name, others in pointed.items()))
    place = {name: n for n, name in enumerate(order(found))}
    assert sorted(place) == names
    later = {name: [f"{o}_id" for o in others if place[o] >= place[name]] for name, others in pointed.items()}
    assert waiting(found) == {name: columns for name, columns in later.items() if columns}


def test_a_circle_opens_at_the_nullable_side(source: Source) -> None:
    plan = (
        "entities:\n" + entity("s", "t_id: {from: a, ref: t}") + entity("t", "s_id: {from: a, ref: s, missing: 'null'}")
    )
    found = checked(source, plan, table("s", INT, *refs("t", nullable=False)), table("t", INT, *refs("s")))
    assert (order(found), waiting(found)) == (["t", "s"], {"t": ["s_id"]})


def test_columns_that_nobody_speaks_of(source: Source) -> None:
    """A column added to the source since the plan was made is told, and no reason to stop."""
    plan = (
        "entities:\n  s: {from: s, to: s, key: id, where: B = 'x', fields: {x: {sql: lower(A)}}, unmapped: {c: empty}}"
    )
    assert checked(source, plan, table("s", INT, column("x"))).entities[0].unaccounted == ("photo",)


REFUSED = [
    ("{from: s, to: s, key: id, id: uuid5}", "`id: uuid5` and id is integer", "entities.s.id", {}),
    ("{from: s, to: s, key: id, id: sequence}", "id has no sequence", "entities.s.id", {}),
    ("{from: s, to: s, key: [id, a]}", "the source key has several columns", "entities.s.id", {}),
    ("{from: s, to: s, key: []}", "the source key has no column", "entities.s.id", {}),
    ("{from: s, to: s, key: id, id: none}", "the primary key's column 'id' has no field", "entities.s.id", {}),
    ("{from: s, to: s, key: id, fields: {id: {from: a}}}", "id is the id, which `id: keep` fills", "entities.s.fields.id", {}),
    ("{from: s, to: s, key: id, fields: {g: {from: a}}}", "g is generated by the target", "entities.s.fields.g", {}),
    ("{from: s, to: s, key: id, fields: {x: {from: a, ref: people}}}", "no entity 'people'", "entities.s.fields.x.ref", {}),
    ("{from: s, to: s, key: id, after: [people]}", "no entity 'people'", "entities.s.after", {}),
    ("{from: s, to: s, key: id, fields: {x: {from: photo}}}", "binary cannot go to x (text)", "entities.s.fields.x", {}),
    ("{from: s, to: s, key: id, fields: {x: {sql: 'a || photo'}}}", "photo is binary, not text", "entities.s.fields.x, position 6", {}),
    ("{from: s, to: s, key: id, where: a, fields: {x: {sql: a}}}", "where: is not a condition", "entities.s.where", {}),
    ("{from: s, to: s, key: id, where: a and b, fields: {x: {sql: a}}}", "", "", {"fine": True}),
    ("{from: s, to: s, key: id, where: lower(a), fields: {x: {sql: a}}}", "where: is not a condition", "entities.s.where", {}),
    ("{from: s, to: s, key: id, where: '(select 1)', fields: {x: {sql: a}}}", "a subquery is not allowed", "entities.s.where, position 9", {}),
    ("{from: s, to: s, key: id, where: '', fields: {x: {sql: a}}}", "", "", {"fine": True}),
    ("{from: s, to: keyless, key: id}", "the target's keyless has no primary key", "entities.s.id", {}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "what", "where", "more"), REFUSED, ids=[r[0] for r in REFUSED])
def test_refused(text: str, what: str, where: str, more: dict[str, Any], source: Source, tmp_path: Path) -> None:
    tables = table("s", INT, column("x"), column("g", generated=True)), table("keyless", INT, key=())
    paths = JobPaths(tmp_path, "job").create()
    if "fine" in more:
        try_queries(paths, checked(source, f"entities:\n  s: {text}", *tables))
        return
    with pytest.raises(PlanError) as caught:
        try_queries(paths, checked(source, f"entities:\n  s: {text}", *tables))
    assert what in caught.value.what
    assert caught.value.where == where
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "sql",
    [
        "regexp_replace(a, '(', 'x')", "regexp_extract(a, '(x)', 50)", "cast(a as decimal(60, 2))", "strptime(a, '%Q')", "replace(a, 'x')", "substring(a)",
        "boolean(a) + 1", "cast(a as date) > 5", "chr(55296)",
    ],
)  # fmt: skip
def test_what_duckdb_refuses_shows_before_a_row_is_read(sql: str, source: Source, tmp_path: Path) -> None:
    plan = f'entities:\n  s: {{from: s, to: s, key: id, fields: {{x: {{from: a}}, y: {{sql: "{sql}"}}}}}}'
    found = checked(source, plan, table("s", INT, column("x"), column("y")))
    with pytest.raises(ExpressionError) as caught:
        try_queries(JobPaths(tmp_path, "job").create(), found)
    assert caught.value.where == "entities.s.fields.y"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["../../etc", "a/b", "..", ".hidden", "", "a\nb", "x" * 101, "part-*", "a[b]", "-rf"])
def test_names_of_entities_are_names_of_folders(name: str, source: Source) -> None:
    plan = parse_plan("entities:\n" + entity("s"))
    renamed = plan.model_copy(update={"entities": {name: plan.entities["s"]}})
    with pytest.raises(PlanError, match="can't be an entity's name"):
        check_plan(renamed, source, Catalogue("postgres", {"s": table("s", INT)}))


@pytest.mark.parametrize("name", ["Contacts & Leads"[:8], "crm.people", "Verträge", "_x", "a-b c"])
def test_names_that_may_be(name: str, source: Source) -> None:
    plan = parse_plan("entities:\n" + entity("s"))
    renamed = plan.model_copy(update={"entities": {name: plan.entities["s"]}})
    assert order(check_plan(renamed, source, Catalogue("postgres", {"s": table("s", INT)}))) == [name]


def test_no_entities(source: Source) -> None:
    with pytest.raises(PlanError, match="no entities"):
        checked(source, "entities: {}")


# -- on servers ------------------------------------------------------------------------------------

PLAN = "entities:\n  t: {from: t, to: t, key: id, MORE fields: {a: {from: a}}}"


@pytest.fixture
def reader(postgres: PostgresServer, postgres_database: Database) -> Iterator[str]:
    """The DSN of a user who may connect and nothing else; `t` is there."""
    postgres_database.run(
        "CREATE TABLE t(id int primary key, a text, boss int REFERENCES t); CREATE ROLE reader LOGIN PASSWORD 'r'; GRANT USAGE ON SCHEMA public TO reader"
    )
    yield postgres.dsn(postgres_database.name, "reader", "r")
    postgres_database.run("DROP OWNED BY reader; DROP ROLE reader")


def refused_job(job: EngineJob) -> UsageError:
    with pytest.raises(UsageError) as caught, job.running() as ctx:
        load(ctx)
    assert caught.value.exit_code == 2
    return caught.value


def test_a_source_table_the_user_may_not_read(
    reader: str, postgres_database: Database, mariadb: MariadbServer, mariadb_database: Database, tmp_path: Path
) -> None:
    error = refused_job(EngineJob(str(tmp_path), "job", PLAN.replace("MORE", ""), reader, postgres_database.socket_dsn))
    assert "permission denied for table t" in error.what
    assert "GRANT SELECT" in error.advice
    mariadb_database.run(
        f"CREATE TABLE t(id int primary key, a text); CREATE TABLE u(id int); CREATE USER nobody IDENTIFIED BY 'n'; GRANT SELECT ON {mariadb_database.name}.u TO nobody"
    )
    nobody = mariadb.dsn(mariadb_database.name, "nobody", "n")
    error = refused_job(EngineJob(str(tmp_path), "job", PLAN.replace("MORE", ""), nobody, postgres_database.socket_dsn))
    assert "SELECT command denied to user 'nobody'" in error.what
    assert "GRANT SELECT" in error.advice
    mariadb_database.run("DROP USER nobody")


def test_a_target_the_user_may_not_write(reader: str, postgres_database: Database, tmp_path: Path) -> None:
    """Each privilege that the plan will need is asked for before any row moves, UPDATE among them."""
    legacy = sqlite_source(tmp_path / "legacy.db", "CREATE TABLE t(id int primary key, a text, boss int)")
    self_reference = PLAN.replace("{a: {from: a}}", "{boss: {from: boss, ref: t, missing: 'null'}}")
    job = EngineJob(str(tmp_path), "job", PLAN.replace("MORE", ""), legacy, reader)
    assert "no privilege to insert or select on the target's t" in refused_job(job).what
    postgres_database.run("GRANT SELECT, INSERT ON t TO reader")
    for plan in (PLAN.replace("MORE", "write: upsert,"), self_reference.replace("MORE", "")):
        assert (
            "no privilege to update on the target's t"
            in refused_job(EngineJob(str(tmp_path), "job", plan, legacy, reader)).what
        )
    error = refused_job(job)
    assert "may not make the schema packhorse" in error.what
    assert f"GRANT CREATE ON DATABASE {postgres_database.name} TO reader" in error.advice
    postgres_database.run(f"GRANT CREATE ON DATABASE {postgres_database.name} TO reader")
    job.load()


def test_a_folder_of_any_name(postgres_database: Database, tmp_path: Path) -> None:
    """Signs in the job's path that mean something in a pattern mean nothing here."""
    postgres_database.run("CREATE TABLE t(id int primary key, a text UNIQUE)")
    folder = tmp_path / "it's [a-z] *? {x,y} ünï"
    folder.mkdir()
    legacy = sqlite_source(
        tmp_path / "legacy.db",
        "CREATE TABLE t(id int primary key, a text); INSERT INTO t VALUES (1, 'x'), (2, 'x'), (3, 'y')",
    )
    with EngineJob(
        str(folder), "job", PLAN.replace("MORE", "where: id > 0,"), legacy, postgres_database.socket_dsn, batch_rows=2
    ).running() as ctx:
        assert preview(ctx).entities[0].load == 2
        assert load(ctx).inserted == 2
        assert verify(ctx).ok


def test_an_empty_catalogue_is_told(postgres_database: Database) -> None:
    target = PostgresTarget(Dsn.parse(postgres_database.socket_dsn))
    try:
        assert target.catalogue().tables == {}
    finally:
        target.close()
