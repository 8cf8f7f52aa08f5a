"""An empty copy of a target: what its own DDL makes in another server, and what is told of the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from connectors import postgres_ddl as ddl
from connectors import postgres_programs
from connectors.copy_of_target import Difference
from connectors.dsn import Dsn
from connectors.postgres import PostgresTarget
from connectors.protocols import Catalogue
from connectors.scratch import ScratchServer
from sample_data.servers import Database, PostgresServer
from workspace.errors import CatalogueError, JobFailedError, UsageError

TARGET = """
CREATE EXTENSION citext;
CREATE SCHEMA "odd ""one""; --";
CREATE TYPE "odd ""one""; --".mood AS ENUM ('it''s "fine"', 'so; so', E'back\\\\slash');
CREATE DOMAIN email AS citext CHECK (VALUE ~ '@');
CREATE TABLE statuses (code text PRIMARY KEY, word text NOT NULL, doubled text GENERATED ALWAYS AS (word || word) STORED);
INSERT INTO statuses VALUES ('a', E'act\\tive\\n"x"'), ('b', '\\N');
CREATE TABLE "odd ""one""; --"."ta'ble" (
    "i d" bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "na""me" text UNIQUE,
    mood "odd ""one""; --".mood NOT NULL, mail email, status text REFERENCES statuses,
    CHECK ("na""me" <> 'Evil'));
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN IF NEW."na""me" = 'Mallory; $x$' THEN RAISE EXCEPTION 'no %', NEW."na""me"; END IF; RETURN NEW; END $body$;
CREATE TRIGGER "tri'gger" BEFORE INSERT ON "odd ""one""; --"."ta'ble" FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE INDEX ON "odd ""one""; --"."ta'ble" (lower("na""me" COLLATE "C"));
CREATE SCHEMA packhorse;
COMMENT ON SCHEMA packhorse IS 'packhorse 1';
CREATE TABLE packhorse.ledger (id int);
"""
TABLE = '"odd ""one""; --"."ta\'ble"'


@pytest.fixture(scope="module")
def scratch(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScratchServer]:
    with ScratchServer(tmp_path_factory.mktemp("rehearsal") / "server") as server:
        yield server


@pytest.fixture
def copied(scratch: ScratchServer, postgres_database: Database) -> Iterator[Database]:
    """A target made by TARGET, whose copy `copy` makes anew in the scratch server."""
    postgres_database.run(TARGET)
    yield postgres_database
    with scratch.connect() as connection:
        connection.execute("DROP DATABASE IF EXISTS rehearsal WITH (FORCE)")


def copy(target: Database, scratch: ScratchServer, folder: Path, user: str = "postgres") -> tuple[Dsn, list[str]]:
    original = Dsn.parse(target.socket_dsn.replace("postgres@", f"{user}@"))
    place, found = ddl.make_database(original, scratch)
    found += ddl.differences_of_places(original, place)
    found += ddl.copy_schema(original, place, folder / "schema.dump", ["packhorse"])
    return place, [str(each) for each in found]


def test_a_copy_has_all_that_the_ddl_makes(copied: Database, scratch: ScratchServer, tmp_path: Path) -> None:
    place, differences = copy(copied, scratch, tmp_path)
    assert differences == []
    both = '"odd ""one""; --",public'
    there = PostgresTarget(Dsn.parse(f"{copied.socket_dsn}&schema={quote(both)}"))
    here = PostgresTarget(replace(place, parameters={**place.parameters, "schema": both}))
    try:
        wanted = there.catalogue()
        assert shapes(here.catalogue()) == shapes(wanted)
        assert here.has_schema() is False  # our own records are not a part of what is copied
    finally:
        there.close()
        here.close()
    insert = f'INSERT INTO {TABLE} ("na""me", mood, mail, status) VALUES (%s, \'so; so\', %s, %s)'
    with scratch.connect("rehearsal") as connection:
        for values, refused in (
            (("Mallory; $x$", None, None), psycopg.errors.RaiseException),
            (("Evil", None, None), psycopg.errors.CheckViolation),
            (("Ana", "nobody", None), psycopg.errors.CheckViolation),
            (("Ana", "A@b", "a"), psycopg.errors.ForeignKeyViolation),  # no row was copied yet
        ):
            with pytest.raises(refused):
                connection.execute(insert.encode(), values)
        assert ddl.copy_referred_rows(Dsn.parse(copied.socket_dsn), place, wanted, ["ta'ble"]) == []
        assert connection.execute("SELECT * FROM statuses ORDER BY 1").fetchall() == copied.rows(
            "SELECT * FROM statuses ORDER BY 1"
        )
        connection.execute(insert.encode(), ("Ana", "A@b", "a"))
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute(insert.encode(), ("Ana", None, None))


def shapes(catalogue: Catalogue) -> dict[str, tuple[object, ...]]:
    """All that a catalogue says of its tables, but for how many rows they may have."""
    return {n: (t.columns, t.foreign_keys, t.unique_keys, t.checks, t.triggers) for n, t in catalogue.tables.items()}


OLDER = Path("/usr/lib/postgresql/15/bin")
LOOSE = """
CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE people (id int PRIMARY KEY, name text COLLATE loose UNIQUE, nick text COLLATE "de-x-icu");
"""


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """The oldest PostgreSQL that can be a target, built with ICU."""
    if not (OLDER / "postgres").exists():
        pytest.skip("no PostgreSQL 15 on this machine")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PACKHORSE_POSTGRES", str(OLDER))
        server = PostgresServer()
    yield server
    server.remove()


def test_what_the_copys_server_lacks_is_told(older: PostgresServer, scratch: ScratchServer, tmp_path: Path) -> None:
    older.run("CREATE ROLE auditor")
    older.run("CREATE DATABASE cloud TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'de' LOCALE 'C.UTF-8'")
    older.run(
        "ALTER DATABASE cloud SET timezone = 'Asia/Tokyo'; ALTER ROLE postgres IN DATABASE cloud SET force_parallel_mode = 'off'"
    )
    target = Database(older, "cloud")
    target.run(LOOSE + "CREATE POLICY seen ON people TO auditor USING (id > 0)")
    place, told = copy(target, scratch, tmp_path)
    try:
        with scratch.connect("rehearsal") as connection:
            assert connection.execute("SELECT current_setting('timezone')").fetchone() == ("Asia/Tokyo",)
        here = PostgresTarget(place)
        assert [column.name for column in here.catalogue().tables["people"].columns] == ["id", "name", "nick"]
        here.close()
    finally:
        with scratch.connect() as connection:
            connection.execute("DROP DATABASE IF EXISTS rehearsal WITH (FORCE)")
    wanted = (
        "collation de of the database: ICU is not supported", "PostgreSQL's version: 18.", "collation public.loose: no ICU",
        "collation de-x-icu: no ICU", 'CREATE POLICY seen ON public.people TO auditor USING ((id > 0)): role "auditor" does not exist', "setting force_parallel_mode: ",
    )  # fmt: skip
    assert not [line for line in wanted if not any(each.startswith(line) for each in told)], told
    assert len([each for each in told if "already exists" in each]) == 0, told


def test_a_columns_option_that_older_servers_refuse_is_blanked_out(tmp_path: Path) -> None:
    before, after = b"\x01CREATE TABLE public.p (\n    id integer\n);\n", b"\n\n\x00\x08DROP TABLE public.p;\n"
    option = b'ALTER TABLE ONLY public.p ALTER COLUMN "i d" SET (n_distinct=5, pg_attver=22097232);\n'
    kept = b"ALTER TABLE ONLY public.p ALTER COLUMN id SET (n_distinct=5);\n"
    file = tmp_path / "schema.dump"
    file.write_bytes(before + option + kept + after)
    ddl._blank_out(file, ddl._LATER_OPTION)
    assert file.read_bytes() == before + b" " * len(option) + kept + after


def test_what_the_user_may_not_see_is_told(copied: Database, scratch: ScratchServer, tmp_path: Path) -> None:
    role = f"mover_{copied.name}"
    copied.run(
        f"CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA public TO {role}; GRANT SELECT ON statuses TO {role};"
        "CREATE SCHEMA hidden; CREATE TYPE hidden.mood AS ENUM ('so'); CREATE TABLE secret (id int);"
        f"CREATE TABLE people (id int PRIMARY KEY, mood hidden.mood); GRANT SELECT ON people TO {role}"
    )
    try:
        place, told = copy(copied, scratch, tmp_path, role)
        assert "schema hidden: the target's user has no USAGE on it" in told
        assert "table public.secret: the target's user has no SELECT on it" in told
        assert 'CREATE TABLE public.people: schema "hidden" does not exist' in told
        there, here = PostgresTarget(Dsn.parse(copied.socket_dsn)), PostgresTarget(place)
        differences = [Difference(*line.split(": ", 1)) for line in told]
        ddl.check_made(differences, here.catalogue(), there.catalogue(), ["statuses"])
        with pytest.raises(CatalogueError, match=r'people can.t be made .*schema "hidden" does not exist') as refused:
            ddl.check_made(differences, here.catalogue(), there.catalogue(), ["statuses", "people"])
        assert "--into DSN" in refused.value.advice
        there.close()
        here.close()
    finally:
        copied.run(f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_a_dump_that_is_too_old_is_one_line(
    copied: Database, scratch: ScratchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (OLDER / "pg_dump").exists():
        pytest.skip("no PostgreSQL 15 on this machine")
    original = Dsn.parse(copied.socket_dsn)
    place, _ = ddl.make_database(original, scratch)
    monkeypatch.setenv("PACKHORSE_POSTGRES", str(OLDER))
    with pytest.raises(JobFailedError, match=r"pg_dump is of version 15\.\d+, the server of 18") as refused:
        ddl.copy_schema(original, place, tmp_path / "schema.dump", ["packhorse"])
    assert "PACKHORSE_POSTGRES" in refused.value.advice
    monkeypatch.setenv("PACKHORSE_POSTGRES", str(tmp_path))
    with pytest.raises(JobFailedError, match="pg_dump can't be run"):
        ddl.copy_schema(original, place, tmp_path / "schema.dump", ["packhorse"])


def test_a_database_that_holds_something_is_left_alone(postgres_database: Database) -> None:
    postgres_database.run("CREATE EXTENSION hstore; CREATE TYPE mood AS ENUM ('so')")
    ddl.check_empty(Dsn.parse(postgres_database.socket_dsn))
    postgres_database.run('CREATE TABLE "Some ""thing""" (id int)')
    with pytest.raises(UsageError, match=r'not empty: it holds public\.Some "thing"'):
        ddl.check_empty(Dsn.parse(postgres_database.socket_dsn))


def test_a_password_stays_out_of_the_arguments(
    copied: Database, scratch: ScratchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    run = postgres_programs.subprocess.run

    def watched(arguments: list[str], **more: object) -> object:
        seen.append(arguments)
        return run(arguments, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(postgres_programs.subprocess, "run", watched)
    original = Dsn.parse(copied.dsn)  # by TCP, where the password is asked for
    place, _ = ddl.make_database(original, scratch)
    assert ddl.copy_schema(original, place, tmp_path / "schema.dump", ["packhorse"]) == []
    assert len(seen) == 2
    assert original.password not in " ".join(part for arguments in seen for part in arguments)
