"""The cases of cases/*.yaml, from each kind of source a case knows into a real PostgreSQL.

Each is previewed (nothing may be written), loaded, verified, loaded again (nothing may move) and carried by
a new job (nothing may change). docs of the format: the head of cases/dates.yaml.
"""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from ruamel.yaml import YAML

from connectors.protocols import Source
from engine.context import Context
from engine.load import LoadOutcome, load
from engine.preview import Preview, preview
from engine.quarantine import quarantined_rows
from engine.verify import verify
from sample_data.servers import PostgresServer
from tests.engine_jobs import EngineJob, csv_source, records, sqlite_source, whole_target
from workspace.errors import PackhorseError

FILES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))
KNOWN = {
    "name", "about", "source", "target", "plan", "batch_rows", "want", "quarantine", "changes", "counts",
    "unforeseen", "verified", "refused",
}  # fmt: skip


def _cases() -> list[tuple[str, dict[str, Any]]]:
    found = []
    for file in FILES:
        for case in YAML(typ="safe").load(file.read_text(encoding="utf-8")):
            assert set(case) <= KNOWN, f"{file.name}: {case.get('name')}: {set(case) - KNOWN}"
            found.append((file.stem, case))
    return found


CASES = _cases()
EVERY = [
    pytest.param(case, source, number == 0, id=f"{stem}-{case['name']}-{source}")
    for stem, case in CASES
    for number, source in enumerate(name for names in case["source"] for name in names.split())
]


def test_each_case_has_a_name_of_its_own() -> None:
    names = [f"{stem}-{case['name']}" for stem, case in CASES]
    assert sorted(set(names)) == sorted(names)


@pytest.fixture
def job(request: pytest.FixtureRequest, tmp_path: Path, postgres: PostgresServer) -> Any:
    """The case's job over the source under test; its databases go when the test ends."""
    case, source = request.node.callspec.params["case"], request.node.callspec.params["source"]
    script = next(text for names, text in case["source"].items() if source in names.split())
    databases = []
    if source == "sqlite":
        dsn = sqlite_source(tmp_path / "legacy.db", script)
    elif source == "csv":
        dsn = csv_source(tmp_path / "legacy", script)
    else:
        server = postgres if source == "postgres" else request.getfixturevalue("mariadb")
        legacy = server.new_database()
        databases.append(legacy)
        legacy.run(f"SET sql_mode = ''; {script}" if source == "mysql" else script)
        dsn = legacy.socket_dsn
    cloud = postgres.new_database()
    databases.append(cloud)
    cloud.run(case["target"])
    yield EngineJob(str(tmp_path), "job", case["plan"], dsn, cloud.socket_dsn, case.get("batch_rows", 50_000)), cloud
    for database in databases:
        database.server.drop(database)


@pytest.mark.parametrize(("case", "source", "full"), EVERY)
def test_case(case: dict[str, Any], source: str, full: bool, job: Any, postgres: PostgresServer) -> None:
    """`full` for a case's first source only; the others show that the source's values arrive alike."""
    engine_job, cloud = job
    with postgres.connect(cloud.name) as connection:
        before = whole_target(connection)
        if "refused" in case:
            _refused(case["refused"], engine_job)
            assert whole_target(connection) == before
            return
        with engine_job.running() as ctx:
            foreseen = preview(ctx) if full else None
            assert whole_target(connection) == before
            outcome = load(ctx)
            _holds(case, connection)
            _in_quarantine(case, ctx)
            _counted(case, ctx, outcome, foreseen)
            _verified(case, ctx)
            if full:
                after = whole_target(connection)
                again = load(ctx)
                assert not again.moved
                assert (again.read, again.quarantined) == (outcome.read, outcome.quarantined)
                assert _ours_but_the_lease(whole_target(connection)) == _ours_but_the_lease(after)
        if full:
            _a_new_job_changes_nothing(case, engine_job, connection, outcome)


def _refused(wanted: dict[str, Any], job: EngineJob) -> None:
    with pytest.raises(PackhorseError) as caught, job.running():
        pass
    error = caught.value
    assert error.exit_code == 2
    assert "\n" not in str(error) + error.advice
    for name, text in wanted.items():
        assert text in getattr(error, name), f"{name}: {getattr(error, name)}"


def _holds(case: dict[str, Any], connection: psycopg.Connection[Any]) -> None:
    for table, wanted in case["want"].items():
        statement = table if " " in table else f'SELECT * FROM "{table}" ORDER BY 1'
        rows = [[_plain(value) for value in row] for row in connection.execute(statement.encode())]
        assert rows == wanted, table


def _plain(value: Any) -> Any:
    """A value as a case writes it down."""
    if isinstance(value, datetime | date | time | UUID):
        return str(value)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() and value.as_tuple().exponent == 0 else str(value)
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def _in_quarantine(case: dict[str, Any], ctx: Context) -> None:
    wanted = {
        (entity, str(key)): values
        for entity, rows in case.get("quarantine", {}).items()
        for key, values in rows.items()
    }
    found = {}
    for row in quarantined_rows(ctx.target, ctx.paths.job):
        name = (row.entity, "|".join(row.key))
        assert name not in found, f"{name} twice"
        values = [row.code, row.field, row.signature, row.detail]
        found[name] = values[: len(wanted.get(name, values))]
    assert found == wanted


def _counted(case: dict[str, Any], ctx: Context, outcome: LoadOutcome, foreseen: Preview | None) -> None:
    quarantined = sum(len(rows) for rows in case.get("quarantine", {}).values())
    assert outcome.read == outcome.inserted + outcome.updated + outcome.unchanged + outcome.excluded + quarantined
    assert outcome.quarantined == quarantined
    assert outcome.moved == (outcome.read > 0)
    for name, count in case.get("counts", {}).items():
        assert getattr(outcome, name) == count, name
    wanted = {entity: case.get("changes", {}).get(entity, {}) for entity in outcome.changes}
    assert outcome.changes == wanted
    if foreseen is None:
        return
    assert sum(e.read for e in foreseen.entities) == outcome.read
    assert sum(e.excluded for e in foreseen.entities) == outcome.excluded
    assert sum(e.load for e in foreseen.entities) == outcome.inserted + outcome.updated + case.get("unforeseen", 0)
    assert sum(e.quarantined for e in foreseen.entities) == quarantined - case.get("unforeseen", 0)
    for entity in foreseen.entities:
        later = tuple(f"{column}: " for column in entity.deferred)
        first = {name: n for name, n in wanted[entity.entity].items() if not (later and name.startswith(later))}
        assert entity.changes == first


def _verified(case: dict[str, Any], ctx: Context) -> None:
    result = verify(ctx)
    problems = [line for entity in result.entities for line in entity.problems]
    assert problems == case.get("verified", [])
    assert result.ok == (not problems)


def _ours_but_the_lease(held: dict[str, str]) -> dict[str, str]:
    """Without the row that says which process has the job since when, the numbers it drew for that, and the
    traces of temporary tables in the catalogue."""
    drawn = ("packhorse.job", "packhorse.job_id_seq", "packhorse.entity_id_seq")
    return {name: rows for name, rows in held.items() if name not in drawn and "." in name}


def _a_new_job_changes_nothing(
    case: dict[str, Any], job: EngineJob, connection: psycopg.Connection[Any], first: LoadOutcome
) -> None:
    held = records(connection)
    with job.named("next").running(try_first=False) as ctx:
        outcome = load(ctx)
        assert (outcome.inserted, outcome.updated) == (0, 0)
        assert outcome.unchanged == first.inserted + first.updated
        assert (outcome.excluded, outcome.quarantined) == (first.excluded, first.quarantined)
        assert records(connection) == held
        _in_quarantine(case, ctx)
        _verified(case, ctx)


def test_a_source_is_only_read() -> None:
    """The protocol has no verb that writes; what a source class adds must not either."""
    assert not [name for name in dir(Source) if name.startswith(("write", "insert", "update", "delete", "execute"))]
