"""Bad input: one clear line, the right exit code, nothing moved, never a traceback."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sample_data.servers import Database, PostgresServer
from tests.cli_runner import Result, migrate, migrate_here
from workspace.errors import errors_by_code
from workspace.events import JobStarted
from workspace.lock import JobLock
from workspace.log import Workspace
from workspace.paths import JobPaths

PLAN = """\
version: 1
entities:
  contacts:
    from: contacts
    to: people
    key: id
    id: keep
    fields:
      name: {sql: "trim(name)"}
      email: {sql: "email(mail)", otherwise: 'null'}
"""
TARGET = """
CREATE TABLE people (id bigint PRIMARY KEY, name text NOT NULL, email text);
CREATE VIEW everyone AS SELECT * FROM people;
"""


@dataclass(frozen=True)
class Systems:
    """A source, a target, and a folder to run commands in."""

    folder: Path
    source: str
    target: Database

    def check(self, plan: str = PLAN, source: str | None = None, target: str | None = None) -> Result:
        (self.folder / "plan.yaml").write_text(plan)
        given = ["--source", source or self.source, "--target", target or self.target.dsn]
        return migrate_here("plan", "check", "plan.yaml", *given)


@pytest.fixture
def systems(tmp_path: Path, postgres_database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Systems]:
    monkeypatch.chdir(tmp_path)
    postgres_database.run(TARGET)
    legacy = tmp_path / "legacy.db"
    with sqlite3.connect(legacy) as connection:
        connection.execute("CREATE TABLE contacts (id INTEGER PRIMARY KEY, name TEXT, mail TEXT)")
        connection.executemany("INSERT INTO contacts VALUES (?, ?, ?)", [(i, f"n{i}", f"{i}@x.com") for i in range(9)])
    connection.close()
    yield Systems(tmp_path, f"sqlite:///{legacy}", postgres_database)
    # nothing moved, nothing made: not even our own schema
    assert postgres_database.rows("SELECT count(*) FROM people") == [(0,)]
    assert postgres_database.rows("SELECT count(*) FROM pg_namespace WHERE nspname = 'packhorse'") == [(0,)]


def test_a_good_plan_passes(systems: Systems) -> None:
    result = systems.check()
    assert result.code == 0, result
    assert "the plan can be executed" in result.out


PLANS: list[tuple[str, Callable[[str], str], str, tuple[str, ...]]] = [
    ("bad yaml", lambda p: p.replace("    to: people", "    to: [people"), "PH-201", ("plan.yaml:", "YAML")),
    ("a tab", lambda p: p.replace("    to: people", "\tto: people"), "PH-201", ("plan.yaml:5",)),
    ("no mapping", lambda _: "- a\n- b\n", "PH-201", ("plan.yaml:1:1",)),
    ("empty", lambda _: "", "PH-201", ("plan.yaml",)),
    ("no entities", lambda _: "version: 1\nentities: {}\n", "PH-201", ("entities",)),
    ("unknown key", lambda p: p.replace("    key: id", "    kee: id\n    key: id"), "PH-201", ("kee", "plan.yaml:6:5")),
    ("missing key", lambda p: p.replace("    key: id\n", ""), "PH-201", ("key",)),
    ("two origins", lambda p: p.replace('{sql: "trim(name)"}', '{sql: "trim(name)", from: name}'), "PH-201", ("exactly one",)),
    ("wrong word", lambda p: p.replace("id: keep", "id: keeep"), "PH-201", ("plan.yaml:7",)),
    ("unknown source table", lambda p: p.replace("from: contacts", "from: contcats"), "PH-104", ("contcats",)),
    ("unknown key column", lambda p: p.replace("key: id", "key: idd"), "PH-201", ("idd",)),
    ("unknown source column", lambda p: p.replace("trim(name)", "trim(nmae)"), "PH-202", ("nmae",)),
    ("unknown target column", lambda p: p.replace("      name:", "      nmae:"), "PH-201", ("nmae",)),
    ("unknown target table", lambda p: p.replace("to: people", "to: peple"), "PH-201", ("peple",)),
    ("a view", lambda p: p.replace("to: people", "to: everyone"), "PH-201", ("everyone",)),
    ("unknown function", lambda p: p.replace("trim(name)", "frobnicate(name)"), "PH-202", ("frobnicate",)),
    ("a file function", lambda p: p.replace("trim(name)", "read_text('/etc/passwd')"), "PH-202", ("read_text",)),
    ("bad sql", lambda p: p.replace("trim(name)", "trim((name"), "PH-202", ("contacts",)),
    ("two statements", lambda p: p.replace("trim(name)", "name; drop table people"), "PH-202", ("contacts",)),
    ("a subquery", lambda p: p.replace("trim(name)", "(select max(name) from contacts)"), "PH-202", ("contacts",)),
    ("an aggregate", lambda p: p.replace("trim(name)", "max(name)"), "PH-202", ("contacts",)),
    ("a window", lambda p: p.replace("trim(name)", "row_number() over ()"), "PH-202", ("contacts",)),
    ("unknown ref", lambda p: p.replace('{sql: "trim(name)"}', "{from: name, ref: companies}"), "PH-201", ("companies",)),
    ("unknown map", lambda p: p.replace('{sql: "trim(name)"}', "{from: name, map: cities}"), "PH-201", ("cities",)),
    ("required field missing", lambda p: p.replace('      name: {sql: "trim(name)"}\n', ""), "PH-201", ("name",)),
    ("bad where", lambda p: p.replace("    key: id", "    where: \"deleted = 0\"\n    key: id"), "PH-202", ("deleted",)),
    ("control characters", lambda p: p.replace("trim(name)", "trim(\x1b[31mname)"), "PH-201", ()),
]  # fmt: skip


@pytest.mark.parametrize(("change", "code", "words"), [each[1:] for each in PLANS], ids=[each[0] for each in PLANS])
def test_plans(systems: Systems, change: Callable[[str], str], code: str, words: tuple[str, ...]) -> None:
    changed = change(PLAN)
    assert changed != PLAN
    result = systems.check(changed)
    result.refused(code, *words)
    assert "\x1b" not in result.err


def test_a_plan_that_is_not_there_or_no_text(systems: Systems) -> None:
    migrate("plan", "check", "no.yaml", cwd=systems.folder).refused("PH-201", "no.yaml")
    migrate_here("plan", "check", ".").refused("PH-201")
    (systems.folder / "binary.yaml").write_bytes(bytes(range(256)))
    migrate_here("plan", "check", "binary.yaml").refused("PH-201")


def test_a_plan_without_systems(systems: Systems) -> None:
    (systems.folder / "plan.yaml").write_text(PLAN)
    migrate("plan", "check", "plan.yaml", cwd=systems.folder).refused("PH-101", "--source")
    (systems.folder / "plan.yaml").write_text("source: ${NO_SUCH_DSN}\ntarget: ${NO_SUCH_DSN}\n" + PLAN)
    migrate_here("plan", "check", "plan.yaml").refused("PH-102", "NO_SUCH_DSN")


@pytest.mark.parametrize(
    ("dsn", "code", "words"),
    [
        ("oracle://me@h/db", "PH-102", ("oracle",)),
        ("not-there", "PH-102", ("not-there",)),
        ("mysql://me:pw@h", "PH-102", ("database",)),
        ("${NOT_SET}", "PH-102", ("NOT_SET",)),
        ("sqlite:///no/such/file.db", "PH-103", ("file.db",)),
        ("postgresql://me:hunter2@no-such-host.invalid/db", "PH-103", ("no-such-host.invalid",)),
        ("postgresql://me:hunter2@127.0.0.1:1/db", "PH-103", ("127.0.0.1",)),
        ("mysql://me:hunter2@127.0.0.1:1/db", "PH-103", ("127.0.0.1",)),
    ],
)
def test_sources(systems: Systems, dsn: str, code: str, words: tuple[str, ...]) -> None:
    result = systems.check(source=dsn)
    result.refused(code, *words)
    assert "hunter2" not in result.err


@pytest.mark.parametrize(
    ("dsn", "code"), [(".", "PH-102"), ("nowhere://x", "PH-102"), ("sqlite:///not-there.db", "PH-103")]
)
def test_what_cannot_be_a_target(systems: Systems, dsn: str, code: str) -> None:
    systems.check(target=dsn).refused(code)


def test_a_wrong_password(systems: Systems, postgres: PostgresServer) -> None:
    wrong = postgres.dsn(systems.target.name, password="hunter2")
    for result in (systems.check(target=wrong), systems.check(source=wrong)):
        result.refused("PH-103", "password")
        assert "hunter2" not in result.err


def test_a_missing_database(systems: Systems, postgres: PostgresServer) -> None:
    systems.check(target=postgres.dsn("no_such_db")).refused("PH-103", "no_such_db")


def test_no_privilege(systems: Systems, postgres: PostgresServer) -> None:
    role = f"nobody_{systems.target.name}"
    systems.target.run(f"CREATE ROLE {role} LOGIN PASSWORD 'pw'")
    try:
        systems.check(target=postgres.dsn(systems.target.name, user=role, password="pw")).refused("PH-104", "people")
    finally:
        systems.target.run(f"DROP ROLE {role}")


def test_an_empty_source(systems: Systems) -> None:
    empty = systems.folder / "empty.db"
    sqlite3.connect(empty).execute("CREATE TABLE t (a)").connection.execute("DROP TABLE t").connection.close()
    systems.check(source=f"sqlite:///{empty}").refused("PH-104")
    folder = systems.folder / "nothing"
    folder.mkdir()
    systems.check(source=str(folder)).refused("PH-104")


def test_a_source_that_is_no_database(systems: Systems) -> None:
    (systems.folder / "text.db").write_text("this is no database " * 100)
    systems.check(source=f"sqlite:///{systems.folder / 'text.db'}").refused("PH-103")


@pytest.mark.parametrize(
    "verb", [("status",), ("inspect",), ("quarantine", "list"), ("quarantine", "show"), ("answer",)]
)
def test_no_such_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: tuple[str, ...]) -> None:
    monkeypatch.chdir(tmp_path)
    migrate(*verb, cwd=tmp_path).refused("PH-401", "no job")
    migrate_here(*verb, "nobody").refused("PH-401")
    migrate_here(*verb, "../../etc").refused("PH-401", "name")
    migrate_here(*verb, "\x1b[31m").refused("PH-401", "name")


@pytest.mark.parametrize("verb", [("status",), ("inspect",), ("quarantine", "list"), ("answer",)])
def test_a_workspace_of_a_newer_version_or_damaged(tmp_path: Path, verb: tuple[str, ...]) -> None:
    paths = _job(tmp_path)
    with sqlite3.connect(paths.database) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    migrate(*verb, cwd=tmp_path).refused("PH-401", "newer")
    for file in paths.folder.glob("workspace.db*"):
        file.unlink()
    paths.database.write_bytes(b"\x00garbage" * 4096)
    migrate(*verb, cwd=tmp_path).refused("PH-401")


def test_a_job_that_another_process_runs_takes_no_answers(tmp_path: Path) -> None:
    with JobLock(_job(tmp_path)):
        migrate("answer", "--set", "q=1", cwd=tmp_path).refused("PH-402", "process")


@pytest.mark.parametrize(
    "arguments",
    [
        ("frobnicate",), ("status", "a", "b"), ("inspect", "--at", "x"), ("inspect", "--diff", "1"), ("plan",),
        ("plan", "check"), ("quarantine", "show", "--limit", "0"), ("inspect", "--nope"), ("init", "no/such/folder/p.yaml"),
    ],
)  # fmt: skip
def test_wrong_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]) -> None:
    monkeypatch.chdir(tmp_path)
    migrate_here(*arguments).refused("PH-101")


def test_wrong_use_as_a_person_meets_it(tmp_path: Path) -> None:
    migrate("frobnicate", cwd=tmp_path).refused("PH-101", "frobnicate", "migrate --help")


def test_inspect_refuses_positions_and_types_that_are_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _job(tmp_path)
    migrate_here("inspect", "--at", "400").refused("PH-401", "400")
    migrate_here("inspect", "--at", "-1").refused("PH-401", "-1")
    migrate_here("inspect", "--log", "--type", "nope").refused("PH-101", "nope")
    migrate_here("inspect", "--log", "--diff", "0", "1").refused("PH-101")


def test_what_is_unexpected_is_one_line_and_a_traceback_only_with_debug(tmp_path: Path) -> None:
    trap = "import cli.jobs, cli.app, sys; cli.jobs.list_jobs = lambda base: 1 / 0\nsys.argv[0] = 'migrate'\ncli.app.main()"
    for extra, shown in (((), False), (("--debug",), True)):
        done = subprocess.run(
            [sys.executable, "-c", trap, "jobs", *extra], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert ("Traceback" in done.stderr) is shown
        if not shown:
            assert "error PH-100: unexpected ZeroDivisionError" in done.stderr
            assert "--debug" in done.stderr


HEAVY = {
    "duckdb", "numpy", "pyarrow", "pandas", "llama_cpp", "sqlglot", "sqlalchemy", "psycopg", "MySQLdb", "splink", "phonenumbers",
    "dask", "distributed", "ruamel", "httpx", "huggingface_hub",
}  # fmt: skip


def test_the_command_loads_no_heavy_library_before_a_verb_needs_it() -> None:
    script = "import sys; from cli.app import run; run(['--version']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stderr.split()}
    assert "typer" in loaded
    assert not loaded & HEAVY


def _job(folder: Path) -> JobPaths:
    paths = JobPaths(folder, "job")
    with Workspace.open(paths, write=True) as workspace:
        workspace.record(JobStarted(job="job", source="sqlite:///x.db", target="postgresql://me@h/db"))
    return paths


def test_each_code_is_explained_and_raised_somewhere(tmp_path: Path) -> None:
    root = Path(__file__).parent.parent
    rooms = ("cli", "bench", "agent", "engine", "connectors", "workspace")
    code = "\n".join(file.read_text() for room in rooms for file in (root / room).rglob("*.py"))
    for number, kind in errors_by_code().items():
        told = migrate_here("explain", number.removeprefix("PH-"), "--json").json
        assert told["code"] == number
        assert told["exit_code"] == kind.exit_code
        assert told["meaning"].endswith(".")
        assert told["remedy"]
        # a code that nothing raises is a promise that nobody keeps
        assert number == "PH-100" or re.search(rf"(raise |\(|return |= ){kind.__name__}\(", code), number
    commands = set(re.findall(r"`migrate ([a-z]+)", " ".join(kind.remedy for kind in errors_by_code().values())))
    for command in commands:
        assert migrate_here(command, "--help").code == 0, command
    migrate_here("explain", "7").refused("PH-101", "there is no error '7'")
