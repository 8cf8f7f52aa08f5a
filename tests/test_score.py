"""The scorer sees each kind of difference, and a load of the gold plan has none, from every form of the source."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.dumps import take_dumps
from bench.score import Score, entity_names, score, score_plan
from connectors.dsn import Dsn, open_source, open_target
from engine.check import check_plan
from engine.context import Context
from engine.load import load
from engine.plan import Plan, load_plan, parse_plan
from sample_data import CLOUD_SQL, GOLD_PLAN, World, write_sample, write_truth
from sample_data.servers import Database, MariadbServer, PostgresServer
from sample_data.tables import SOURCE_TABLES
from workspace.log import Workspace
from workspace.paths import JobPaths

SCHEMA = {table.name: list(table.columns) for table in SOURCE_TABLES}
CONTACTS = 400


def carry_over(form: str, where: str, target: Database, folder: Path) -> Path:
    """Writes a sample and its truth, loads the gold plan, and gives the truth's folder."""
    write_sample(form, where, CONTACTS)
    write_truth(World(CONTACTS, 7, form), folder / "truth")
    target.run(CLOUD_SQL.read_text(encoding="utf-8"))
    dsn = f"sqlite:///{where}" if form == "sqlite" else where
    source, sink = open_source(dsn), open_target(target.socket_dsn)
    try:
        checked = check_plan(load_plan(GOLD_PLAN), source, sink.catalogue())
        paths = JobPaths(folder, "job")
        paths.create()
        with Workspace.open(paths, write=True) as workspace:
            load(Context(paths, workspace, source, sink, checked, Dsn.parse(dsn).identity, batch_rows=150))
    finally:
        source.close()
        sink.close()
    return folder / "truth"


@pytest.fixture(scope="module")
def loaded(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Database, Path]]:
    """A target that the SQLite form was carried over to, and the truth about it."""
    folder = tmp_path_factory.mktemp("loaded")
    database = postgres.new_database()
    yield database, carry_over("sqlite", str(folder / "legacy.db"), database, folder)
    postgres.drop(database)


@pytest.fixture
def tampered(postgres: PostgresServer, loaded: tuple[Database, Path]) -> Iterator[tuple[Database, Path]]:
    """A copy of it, to change."""
    copy = postgres.new_name()
    postgres.run(f"CREATE DATABASE {copy} TEMPLATE {loaded[0].name}")
    database = Database(postgres, copy)
    yield database, loaded[1]
    postgres.drop(database)


def test_gold_plan_from_sqlite_is_all_right(loaded: tuple[Database, Path]) -> None:
    found = score(loaded[0].socket_dsn, loaded[1])
    assert found.perfect, found.report()
    assert found.field_accuracy == 1
    assert sum(e.wanted for e in found.entities) > 1500
    assert {r.code for r in found.reasons} >= {
        *(
            "cast",
            "check",
            "foreign_key",
            "function",
            "length",
            "map",
            "range",
            "reference",
            "required",
            "trigger",
            "unique",
        )
    }


def test_gold_plan_from_postgresql_is_all_right(
    postgres: PostgresServer, postgres_database: Database, tmp_path: Path
) -> None:
    source = postgres.new_database()
    truth = carry_over("postgresql", source.socket_dsn, postgres_database, tmp_path)
    found = score(postgres_database.socket_dsn, truth)
    postgres.drop(source)
    assert found.perfect, found.report()


def test_gold_plan_from_mariadb_is_all_right(
    mariadb: MariadbServer, postgres_database: Database, tmp_path: Path
) -> None:
    mariadb.run("CREATE DATABASE scored")
    truth = carry_over("mariadb", mariadb.socket_dsn("scored"), postgres_database, tmp_path)
    found = score(postgres_database.socket_dsn, truth)
    assert found.perfect, found.report()


def test_gold_plan_from_csv_is_all_right(postgres_database: Database, tmp_path: Path) -> None:
    truth = carry_over("csv", str(tmp_path / "csv"), postgres_database, tmp_path)
    found = score(postgres_database.socket_dsn, truth)
    assert found.perfect, found.report()


def field_sums(found: Score, entity: str, name: str) -> tuple[int, int, int]:
    one = next(f for e in found.entities if e.entity == entity for f in e.fields if f.field == name)
    return one.wrong, one.missing, one.extra


@pytest.mark.parametrize(
    ("change", "entity", "field", "sums"),
    [
        ("UPDATE people SET city = city || '!' WHERE city IS NOT NULL", "contacts", "city", "wrong"),
        ("UPDATE people SET city = 'Nowhere' WHERE city IS NULL", "contacts", "city", "extra"),
        ("UPDATE people SET mobile = NULL WHERE mobile IS NOT NULL", "contacts", "mobile", "missing"),
        ("UPDATE people SET given_name = '' WHERE given_name IS NULL", "contacts", "given_name", "extra"),
        ("UPDATE people SET created_at = created_at + interval '1 hour'", "contacts", "created_at", "wrong"),
        ("UPDATE people SET interests = '{}' WHERE interests <> '{}'", "contacts", "interests", "wrong"),
        ("UPDATE deals SET amount = amount + 0.01", "opportunities", "amount", "wrong"),
        ("UPDATE leads SET campaign_id = NULL WHERE campaign_id IS NOT NULL", "leads", "campaign_id", "missing"),
        (
            "UPDATE leads SET campaign_id = (SELECT max(id) FROM campaigns) WHERE campaign_id < (SELECT max(id) FROM campaigns)",
            *("leads", "campaign_id", "wrong"),
        ),
        (
            "UPDATE companies SET parent_id = id WHERE parent_id IS NOT NULL AND parent_id <> id",
            "accounts",
            "parent_id",
            "wrong",
        ),
    ],
)
def test_a_changed_value_is_seen(
    change: str, entity: str, field: str, sums: str, tampered: tuple[Database, Path]
) -> None:
    database, truth = tampered
    with database.server.connect(database.name) as connection:
        rows = connection.execute(change.encode()).rowcount
    assert rows > 0
    found = score(database.socket_dsn, truth)
    wanted = {"wrong": (rows, 0, 0), "missing": (0, rows, 0), "extra": (0, 0, rows)}[sums]
    assert field_sums(found, entity, field) == wanted, found.report()
    assert [(e.entity, f.field) for e in found.entities for f in e.fields if not f.perfect] == [(entity, field)]
    assert not found.perfect
    assert f"{field}: " in found.report()


def test_rows_gone_and_rows_too_many_are_seen(tampered: tuple[Database, Path]) -> None:
    database, truth = tampered
    database.run("DELETE FROM notes WHERE id IN (SELECT id FROM notes LIMIT 3)")
    database.run(
        "INSERT INTO activities (id, kind, subject, state, created_at) VALUES (gen_random_uuid(), 'task', 'x', 'done', now())"
    )
    found = score(database.socket_dsn, truth)
    sums = {e.entity: (e.wanted - e.found, e.surplus) for e in found.entities if not e.perfect}
    assert sums == {"notes": (3, 0), "calls": (0, 1)}


def test_two_rows_that_changed_places_in_the_crosswalk_are_seen(tampered: tuple[Database, Path]) -> None:
    database, truth = tampered
    database.run(
        "WITH two AS (SELECT x.entity_id, x.old_id, x.new_id, row_number() OVER (ORDER BY old_id) AS n FROM packhorse.crosswalk x "
        "JOIN packhorse.entity e ON e.id = x.entity_id WHERE e.name = 'users' LIMIT 2) "
        "UPDATE packhorse.crosswalk x SET new_id = b.new_id FROM two a JOIN two b ON a.n <> b.n "
        "WHERE x.entity_id = a.entity_id AND x.old_id = a.old_id"
    )
    found = score(database.socket_dsn, truth)
    assert field_sums(found, "users", "login") == (2, 0, 0)


def test_quarantine_that_differs_is_seen(tampered: tuple[Database, Path]) -> None:
    database, truth = tampered
    database.run("UPDATE packhorse.quarantine SET code = 'map' WHERE code = 'range'")
    database.run("DELETE FROM packhorse.quarantine WHERE code = 'cast'")
    database.run("UPDATE packhorse.quarantine SET field = 'about' WHERE field = 'mobile'")
    found = score(database.socket_dsn, truth)
    reasons = {r.code: r for r in found.reasons}
    assert reasons["cast"].recall == 0
    assert (reasons["range"].found, reasons["range"].recall) == (0, 0)
    assert reasons["map"].precision < 1
    assert reasons["map"].recall == 1
    said = {(wanted, got) for _, _, wanted, got in found.misplaced}
    assert ("range engagement", "map engagement") in said
    assert ("cast birthday", "no quarantine") in said
    assert ("function mobile", "function about") in said


def test_entities_called_otherwise_in_the_plan_are_scored(tampered: tuple[Database, Path]) -> None:
    database, truth = tampered
    database.run("UPDATE packhorse.entity SET name = 'persons' WHERE name = 'contacts'")
    found = score(database.socket_dsn, truth, {"contacts": "persons"})
    assert found.perfect, found.report()
    lost = {e.entity: e.found for e in score(database.socket_dsn, truth).entities}
    assert lost["contacts"] == 0


def test_rows_in_a_table_where_none_of_their_source_rows_should_be_are_counted(tampered: tuple[Database, Path]) -> None:
    database, truth = tampered
    assert score(database.socket_dsn, truth).strayed == 0
    database.run(
        "WITH made AS (INSERT INTO activities (id, kind, subject, state, created_at) VALUES (gen_random_uuid(), 'task', 'x', 'done', "
        "now()), (gen_random_uuid(), 'task', 'y', 'done', now()) RETURNING id, subject) INSERT INTO packhorse.crosswalk "
        "SELECT x.* FROM made, LATERAL (SELECT (jsonb_populate_record(x, jsonb_build_object('old_id', 'stray ' || made.subject, "
        "'new_id', made.id))).* FROM packhorse.crosswalk x JOIN packhorse.entity e ON e.id = x.entity_id WHERE e.name = 'calls' LIMIT 1) x"
    )
    found = score(database.socket_dsn, truth)
    assert found.strayed == 2
    assert not found.perfect
    database.run("UPDATE packhorse.entity SET name = 'nobody' WHERE name = 'contacts'")  # of no entity of the truth
    contacts = next(e.wanted for e in found.entities if e.entity == "contacts")
    assert score(database.socket_dsn, truth).strayed == 2 + contacts


def test_sums_of_the_ledger_are_held_against_the_truth(tampered: tuple[Database, Path]) -> None:
    database, truth = tampered
    database.run(
        "UPDATE packhorse.ledger SET read = read - 1 WHERE entity_id = (SELECT id FROM packhorse.entity WHERE name = 'notes') AND batch = "
        "(SELECT min(batch) FROM packhorse.ledger)"
    )
    assert [line[:13] for line in score(database.socket_dsn, truth).counts] == ["notes: read 3"]


def test_a_target_without_our_schema_is_scored_by_foretold_ids(tampered: tuple[Database, Path], tmp_path: Path) -> None:
    database, truth = tampered
    database.run("DROP SCHEMA packhorse CASCADE")
    found = score(take_dumps(database.socket_dsn, tmp_path / "dumps"), truth)
    wrong = {e.entity for e in found.entities if not e.perfect}
    assert wrong == {"campaigns", "leads", "opportunities"}  # ids of a sequence can't be foretold
    shutil.rmtree(tmp_path / "dumps")


GOLD = load_plan(GOLD_PLAN)


def edited(*changes: tuple[str, str]) -> Plan:
    text = GOLD_PLAN.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return parse_plan(text)


def test_gold_plan_agrees_with_itself() -> None:
    found = score_plan(GOLD, GOLD, SCHEMA)
    assert (found.f1, found.silent_errors, found.near, found.open, found.missing) == (1, 0, (), (), ())
    fields = sum(len(e.fields) for e in GOLD.entities.values())
    assert len(found.right) == fields + 2 * len(GOLD.entities)  # keys and wheres count too
    assert entity_names(GOLD, GOLD) == {name: name for name in GOLD.entities}


@pytest.mark.parametrize(
    ("old", "new", "outcome"),
    [
        ("phone(phone_mobile, primary_address_country)", "phone(phone_home, primary_address_country)", "wrong"),
        ("phone(phone_mobile, primary_address_country)", "phone(phone_mobile)", "near"),
        ("trim(mojibake(html_text(last_name)))", "trim(last_name)", "right"),
        ("split_part(mojibake(html_text(full_name)), ',', 2)", "split_part(full_name, ',', 1)", "wrong"),
        ("{sql: \"local_time(date_entered, 'America/New_York')\"}", "{from: date_entered}", "wrong"),
        ("local_time(date_entered, 'America/New_York')", "local_time(date_entered, 'Europe/Berlin')", "wrong"),
        (
            "{from: parent_id, ref: accounts, missing: 'null'}",
            "{from: parent_id, ref: users, missing: 'null'}",
            "wrong",
        ),
        ('"Auto": automotive', '"Auto": retail', "wrong"),
        ('    "Auto": automotive\n', "", "right"),
        ("duration_hours as integer), 0) * 60", "duration_hours as integer), 0) * 24", "wrong"),
        ("when parent_type = 'Leads'", "when parent_type = 'Cases'", "wrong"),
        ("boolean(newsletter_c)", "boolean(erp_sync)", "wrong"),
        ("kind:             {default: call}", "kind:             {default: task}", "wrong"),
        ("        mobile:             {sql:".strip(), "avatar_url:             {sql:", "extra"),
        ("WHERE r.bean_module = 'Contacts'", "", "right"),
    ],
)
def test_a_changed_mapping_is_seen(old: str, new: str, outcome: str) -> None:
    found = score_plan(edited((old, new)), GOLD, SCHEMA)
    sums = {name: len(getattr(found, name)) for name in ("near", "wrong", "extra", "missing")}
    wanted = {"right": {}, "near": {"near": 1}, "wrong": {"wrong": 1}, "extra": {"extra": 1, "missing": 1}}[outcome]
    assert sums == {"near": 0, "wrong": 0, "extra": 0, "missing": 0, **wanted}, found.report()
    assert found.silent_errors == (outcome in ("wrong", "extra"))


def test_a_field_left_out_is_missing_or_open() -> None:
    plan = edited(("      birthday:           {from: birthdate}\n", ""))
    assert score_plan(plan, GOLD, SCHEMA).missing == (("contacts", "people", "birthday"),)
    found = score_plan(plan, GOLD, SCHEMA, [("people", "birthday")])
    assert (found.open, found.missing, found.silent_errors) == ((("contacts", "people", "birthday"),), (), 0)
    assert found.f1 < 1


def test_a_missing_filter_is_seen() -> None:
    plan = edited(("    to: people\n    where: \"deleted = '0'\"\n", "    to: people\n"))
    assert score_plan(plan, GOLD, SCHEMA).missing == (("contacts", "people", "(where)"),)


def test_columns_are_followed_through_joined_selects() -> None:
    plan = edited(
        (
            "LEFT JOIN accounts_contacts ac ON",
            "LEFT JOIN (SELECT k.contact_id, k.account_id, k.deleted FROM accounts_contacts k) ac ON",
        )
    )
    assert score_plan(plan, GOLD, SCHEMA).f1 == 1


def test_entities_called_otherwise_are_found() -> None:
    text = (
        GOLD_PLAN.read_text(encoding="utf-8")
        .replace("\n  contacts:\n", "\n  persons:\n")
        .replace("ref: contacts", "ref: persons")
    )
    plan = parse_plan(text)
    assert entity_names(plan, GOLD)["contacts"] == "persons"
    assert score_plan(plan, GOLD, SCHEMA).f1 == 1
