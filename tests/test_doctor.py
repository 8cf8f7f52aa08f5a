"""What `migrate doctor` says of servers that stand badly: each fault is made in a real server, and the same line is well
without it.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cli.standing
import connectors.condition
from sample_data.servers import Database, MariadbServer, PostgresServer
from tests.cli_runner import migrate_here
from tests.engine_jobs import sqlite_source

SOURCE = "CREATE TABLE contacts(id integer primary key, name text);"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a small source, and nothing tried that takes long."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data-home"))
    sqlite_source(tmp_path / "legacy.db", SOURCE)
    monkeypatch.setattr("cli.checks.llama_build", lambda: cli.standing.Check("llama.cpp", "ok", "not looked at"))


def lines(*given: str) -> dict[str, list[dict[str, str]]]:
    """What doctor says, by the name of the line."""
    said = migrate_here("doctor", *given, "--model", "none", "--json")
    assert set(said.json) == {"ok", "checks"}
    found: dict[str, list[dict[str, str]]] = {}
    for each in said.json["checks"]:
        assert set(each) == {"name", "state", "found", "advice"}
        assert (each["state"] == "ok") == (not each["advice"]), each
        found.setdefault(each["name"], []).append(each)
    assert said.json["ok"] == (said.code == 0)
    return found


def only(found: dict[str, list[dict[str, str]]], name: str) -> tuple[str, str]:
    """The state of the one line of that name, and what it says."""
    (line,) = found[name]
    return line["state"], f"{line['found']} -> {line['advice']}"


def test_all_is_well_with_a_good_pair(postgres_database: Database) -> None:
    postgres_database.run(
        "CREATE TABLE a(id int primary key); CREATE TABLE b(id int primary key, a_id int REFERENCES a);"
        "CREATE INDEX ON b (a_id)"
    )
    found = lines("sqlite:///legacy.db", postgres_database.socket_dsn)
    names = ("source version", "source encoding", "source size", "target version", "target clock", "target encoding")
    assert {name: only(found, name)[0] for name in names} == dict.fromkeys(names, "ok")
    assert not {"target index", "target trigger", "target replica", "source replica", "target writable"} & set(found)
    assert only(found, "compiler")[0] == "ok"


def test_a_target_of_an_old_encoding(postgres: PostgresServer, postgres_database: Database) -> None:
    name = f"{postgres_database.name}_latin"
    postgres.run(f"CREATE DATABASE {name} ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    try:
        found = lines("sqlite:///legacy.db", postgres.socket_dsn(name))
        state, said = only(found, "target encoding")
        assert (state, "LATIN1, C" in said, "go to quarantine" in said) == ("warn", True, True), said
        assert only(lines(postgres.socket_dsn(name)), "source encoding")[0] == "ok"
    finally:
        postgres.run(f"DROP DATABASE {name} WITH (FORCE)")


def test_triggers_and_keys_without_an_index(postgres_database: Database) -> None:
    postgres_database.run("""
        CREATE TABLE companies(id int, country text, PRIMARY KEY (id, country));
        CREATE TABLE people(id int primary key, boss int REFERENCES people, company int, country text,
          FOREIGN KEY (company, country) REFERENCES companies);
        CREATE TABLE notes(id int primary key, person int REFERENCES people, other int REFERENCES people);
        CREATE INDEX ON notes (other) WHERE other > 5; CREATE INDEX ON notes (id, person);
        CREATE TABLE calls(id int primary key, company int, country text, person int REFERENCES people,
          FOREIGN KEY (company, country) REFERENCES companies);
        CREATE INDEX ON calls (country, company, id); CREATE INDEX ON calls (person, id);
        CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
        CREATE TRIGGER stamp BEFORE INSERT ON notes FOR EACH ROW EXECUTE FUNCTION nothing()""")
    found = lines("sqlite:///legacy.db", postgres_database.socket_dsn)
    said = [line["found"].partition(" refers")[0] for line in found["target index"]]
    assert said == ["notes (other)", "notes (person)", "people (boss)", "people (company, country)"]
    assert {line["state"] for line in found["target index"]} == {"warn"}
    assert "CREATE INDEX ... ON people (boss)" in found["target index"][2]["advice"]
    state, said_of = only(found, "target trigger")
    assert (state, "notes: stamp" in said_of, "undo" in said_of) == ("warn", True, True), said_of
    Path("plan.yaml").write_text("entities: {c: {from: contacts, to: people, key: id, id: keep, fields: {}}}")
    of_plan = lines("sqlite:///legacy.db", postgres_database.socket_dsn, "--plan", "plan.yaml")
    assert len(of_plan["target index"]) == 2
    assert "target trigger" not in of_plan


def test_keys_without_an_index_in_sqlite(tmp_path: Path) -> None:
    sqlite_source(
        tmp_path / "cloud.db",
        "CREATE TABLE a(id integer primary key); CREATE TABLE b(id integer primary key, a int REFERENCES a, o int REFERENCES a);"
        "CREATE INDEX i ON b (o); CREATE TABLE c(id integer primary key REFERENCES a);"
        "CREATE TRIGGER t AFTER INSERT ON b BEGIN SELECT 1; END",
    )
    found = lines("sqlite:///legacy.db", "sqlite:///cloud.db")
    assert only(found, "target index")[1].startswith("b (a) refers")
    assert only(found, "target trigger")[1].startswith("b: t")


@pytest.mark.parametrize(
    ("ahead", "state", "word"), [(0.0, "ok", "within"), (9.0, "warn", "behind"), (-9.0, "warn", "ahead")]
)
def test_a_clock_that_differs(
    ahead: float, state: str, word: str, postgres_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is our own that is moved: the server's is the machine's."""
    ours = time.time
    monkeypatch.setattr(connectors.condition.time, "time", lambda: ours() + ahead)
    found = lines(postgres_database.socket_dsn, postgres_database.socket_dsn)
    for side in ("source", "target"):
        got, said = only(found, f"{side} clock")
        assert (got, word in said) == (state, True), said
        assert ("9.0 s" in said) == bool(ahead), said


@pytest.mark.parametrize(("share", "state"), [(3.0, "ok"), (1.5, "warn"), (0.5, "fail")])
def test_a_disk_too_small_for_the_stage(share: float, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    size = Path("legacy.db").stat().st_size
    full = shutil.disk_usage(".")
    monkeypatch.setattr(cli.standing.psutil, "disk_usage", lambda path: full._replace(free=int(size * share)))
    monkeypatch.setattr("cli.checks.disk", lambda folder: cli.standing.Check("disk", "ok", ""))
    assert only(lines("sqlite:///legacy.db"), "source size")[0] == state


def test_a_folder_of_files_has_a_size(tmp_path: Path) -> None:
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "contacts.csv").write_text("id,name\n" + "1,Ann\n" * 500_000)
    state, said = only(lines("export"), "source size")
    assert (state, "it holds 2.9 MiB" in said) == ("ok", True), said


def test_mariadb_tables_of_another_encoding(mariadb_database: Database) -> None:
    mariadb_database.run(
        "CREATE TABLE good(id int primary key, name varchar(20)) CHARACTER SET utf8mb4;"
        "CREATE TABLE old(id int primary key, name varchar(20)) CHARACTER SET utf8mb3;"
        "CREATE TABLE older(id int primary key, name varchar(20)) CHARACTER SET latin1"
    )
    state, said = only(lines("sqlite:///legacy.db", mariadb_database.socket_dsn), "target encoding")
    assert state == "warn"
    assert "old (utf8mb3), older (latin1)" in said
    assert "good" not in said
    mariadb_database.run("CREATE TRIGGER stamp BEFORE INSERT ON good FOR EACH ROW SET NEW.name = upper(NEW.name)")
    assert only(lines("sqlite:///legacy.db", mariadb_database.socket_dsn), "target trigger")[1].startswith(
        "good: stamp"
    )
    found = lines(mariadb_database.socket_dsn)
    assert only(found, "source encoding")[0] == "ok"
    assert only(found, "source clock")[0] == "ok"
    assert only(found, "source version")[1].startswith("MariaDB 1")
    assert "source replica" not in found


def test_mariadb_that_copies_and_takes_no_rows(mariadb_to_crash: MariadbServer) -> None:
    database = mariadb_to_crash.new_database()
    database.run("CREATE TABLE t(id int primary key)")
    database.run("CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=1, MASTER_USER='x'; SET GLOBAL read_only = 1")
    try:
        state, said = only(lines(database.socket_dsn), "source replica")
        assert (state, "reading No, applying No" in said) == ("warn", True), said
        found = lines("sqlite:///legacy.db", database.socket_dsn)
        assert only(found, "target writable")[0] == "fail"
    finally:
        database.run("SET GLOBAL read_only = 0; RESET SLAVE ALL")
    assert "source replica" not in lines(database.socket_dsn)


class Copied(PostgresServer):
    """A server that others may copy."""

    def _command(self) -> list[str]:
        return [
            {"wal_level=minimal": "wal_level=replica", "max_wal_senders=0": "max_wal_senders=4"}.get(o, o)
            for o in super()._command()
        ]


@pytest.fixture
def pair() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """A server, and one that copies it an hour late."""
    main, copy = Copied(), Copied()
    try:
        main.stop()
        copy.stop()
        for each in copy.data.iterdir():
            shutil.rmtree(each) if each.is_dir() else each.unlink()
        shutil.copytree(main.data, copy.data, dirs_exist_ok=True)
        (copy.data / "standby.signal").touch()
        with (copy.data / "postgresql.auto.conf").open("a") as file:
            file.write(
                f"primary_conninfo = 'host={main.socket_folder} port={main.port} user=postgres'\nrecovery_min_apply_delay = '1h'\n"
            )
        _as_owner(main, copy)
        main.start()
        copy.start()
        yield main, copy
    finally:
        copy.remove()
        main.remove()


def _as_owner(main: PostgresServer, copy: PostgresServer) -> None:
    owner = main.data.stat()
    for each in (copy.data, *copy.data.rglob("*")):
        shutil.chown(each, owner.st_uid, owner.st_gid)


def test_postgresql_that_copies_another_and_lags(
    pair: tuple[PostgresServer, PostgresServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    main, copy = pair
    main.run("CREATE TABLE t(id int primary key); CHECKPOINT")
    _until(lambda: copy.rows("SELECT pg_last_wal_receive_lsn() > pg_last_wal_replay_lsn()") == [(True,)])
    state, said = only(lines(copy.socket_dsn()), "source replica")
    assert (state, "copies another server" in said) == ("warn", True), said  # it has brought in no transaction yet
    found = lines("sqlite:///legacy.db", copy.socket_dsn())
    assert only(found, "target writable")[0] == "fail"
    copy.run("ALTER SYSTEM SET recovery_min_apply_delay = 0")
    copy.run("SELECT pg_reload_conf()")
    _until(lambda: copy.rows("SELECT to_regclass('t')::text") == [("t",)])
    assert only(lines(copy.socket_dsn()), "source replica")[0] == "ok"  # all is there, so it doesn't lag
    copy.run("SELECT pg_wal_replay_pause()")
    main.run("CREATE TABLE u(id int primary key)")
    _until(lambda: copy.rows("SELECT pg_last_wal_receive_lsn() > pg_last_wal_replay_lsn()") == [(True,)])
    monkeypatch.setattr(cli.standing, "LAG_SECONDS", 0.0)
    state, said = only(lines(copy.socket_dsn()), "source replica")
    assert (state, "s behind" in said, "not read" in said) == ("warn", True, True), said
    assert "source replica" not in lines(main.socket_dsn())


def _until(true: Any) -> None:
    for _ in range(100):
        if true():
            return
        time.sleep(0.1)
    raise AssertionError("it never came to that")
