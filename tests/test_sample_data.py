"""The sample: repeatable, each kind of mess in it, and every value of it recoverable."""

from __future__ import annotations

import html
import re
import sqlite3
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import ftfy
import numpy as np
import phonenumbers
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sample_data import (
    CLOUD_SQL,
    FORMS,
    World,
    clock,
    mess,
    words,
    write_clean_lines,
    write_sample,
    write_truth,
)
from sample_data.draw import Draw, Lane, Lanes
from sample_data.legacy import source_batches
from sample_data.names import COUNTRIES, FAMILY, GIVEN
from sample_data.phones import BLOCKS, WAYS, numbers
from sample_data.places import CITIES, REGIONS, STREETS
from sample_data.servers import Database
from sample_data.tables import SOURCE_TABLES
from sample_data.world import TROUBLES, Trouble

SMALLEST = 200
KINDS = {table.name: table.columns for table in SOURCE_TABLES}


def whole(world: World, piece: int = 25_000) -> dict[str, pa.Table]:
    """All legacy tables, rows in key order."""
    parts: dict[str, list[pa.Table]] = {}
    for name, batch in source_batches(world, piece):
        parts.setdefault(name, []).append(batch)
    order = {n: [(c, "ascending") for c in p[0].column_names[:2]] for n, p in parts.items()}
    return {n: pa.concat_tables(p).combine_chunks().sort_by(order[n]) for n, p in parts.items()}


@pytest.fixture(scope="module")
def sqlite_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sample") / "legacy.db"
    write_sample("sqlite", path, 2000)
    return path


# Repeatable


def test_size_and_seed_give_the_same_bytes(tmp_path: Path) -> None:
    for name, seed in (("one", 7), ("two", 7), ("other", 8)):
        write_sample("sqlite", tmp_path / name, SMALLEST, seed)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert (tmp_path / "one").read_bytes() != (tmp_path / "other").read_bytes()


def test_rows_do_not_depend_on_the_size_of_a_piece() -> None:
    world = World(700, 3, "sqlite")
    assert whole(world) == whole(world, 97)


def test_lanes_hold_exact_numbers_and_partners_find_each_other() -> None:
    lanes = Lanes(Draw(1), "x", 997, [Lane("one", 0.1), Lane("pair", 0.0, 3, True), Lane("rare", 0.0)])
    index = np.arange(997)
    assert [int(lanes.has(index, n).sum()) for n in ("one", "pair", "rare")] == [100, 4, 2]
    pair = index[lanes.has(index, "pair")]
    assert (lanes.partner(lanes.partner(pair, "pair"), "pair") == pair).all()
    assert sorted(lanes.partner(pair, "pair")) == sorted(pair)
    assert int(lanes.leads(pair, "pair").sum()) == 2
    with pytest.raises(ValueError, match="too few"):
        Lanes(Draw(1), "x", 3, [Lane("one", 0.1, 4)])


@pytest.mark.parametrize(("contacts", "form"), [(199, "sqlite"), (2000, "oracle"), (10**9, "csv")])
def test_unknown_forms_and_sizes_are_refused(contacts: int, form: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"contacts|form"):
        write_sample(form, tmp_path / "x", contacts)
    assert not list(tmp_path.iterdir())


def test_some_tables_alone_are_the_same_as_among_all(tmp_path: Path) -> None:
    facts = write_sample("sqlite", tmp_path / "some", SMALLEST, only=("users", "accounts", "contacts"))
    write_sample("sqlite", tmp_path / "all", SMALLEST)
    rows = []
    for name in ("some", "all"):
        with sqlite3.connect(tmp_path / name) as connection:
            rows.append(connection.execute("SELECT * FROM contacts ORDER BY id").fetchall())
            counts = connection.execute("SELECT count(*) FROM leads").fetchone()
            assert (counts[0] > 0) == (name == "all")
    assert rows[0] == rows[1]
    assert "leads" not in facts.rows
    assert facts.rows["contacts_cstm"] > 0
    with pytest.raises(ValueError, match="no such table: contact"):
        write_sample("sqlite", tmp_path / "none", SMALLEST, only=("contact",))
    assert not (tmp_path / "none").exists()


# What is made can be undone


def test_telephone_numbers_are_valid_and_every_way_names_the_same_one() -> None:
    draw, index = Draw(5), np.arange(6000)
    for line in ("mobile", "office"):
        country = index % len(COUNTRIES)
        made = numbers(draw, line, index, COUNTRIES, country, line)
        told = made.e164().to_pylist()
        ways = [made.write(np.full(len(index), way)).to_pylist() for way in range(len(WAYS))]
        for row, text in enumerate(told):
            region = COUNTRIES[country[row]]
            number = phonenumbers.parse(text)
            assert phonenumbers.is_valid_number(number), text
            assert phonenumbers.region_code_for_number(number) == region, text
            for written in {way[row] for way in ways}:
                again = phonenumbers.parse(written, region)
                assert phonenumbers.format_number(again, phonenumbers.PhoneNumberFormat.E164) == text, written
    assert {block.country for block in BLOCKS} == set(COUNTRIES)


TEXTS = sorted(
    {*GIVEN.names, *FAMILY.names, *CITIES.values, *REGIONS.values, *STREETS.values, *words.SENTENCES, *words.SUBJECTS}
    | {*words.JOB_TITLES, *words.COMPANY_BRANCHES, *words.CASE_SUBJECTS, *words.DEPARTMENTS, *words.PLACES_TO_MEET}
)


def test_clean_texts_are_left_alone_by_repairs() -> None:
    assert [t for t in TEXTS if ftfy.fix_encoding(t) != t or html.unescape(t) != t or t.strip() != t] == []


def test_misread_texts_can_be_told_and_put_right() -> None:
    clean = pa.array([t for t in TEXTS if t not in words.SENTENCES])
    fits = [bool(re.match(mess._SAFE, t)) for t in clean.to_pylist()]
    some = clean.filter(pa.array(fits))
    dirty = mess.misread(some)
    assert len(some) > 60
    for wanted, got in zip(some.to_pylist(), dirty.to_pylist(), strict=True):
        assert got == wanted.encode().decode("cp1252")
        assert got != wanted
        assert ftfy.fix_encoding(got) == wanted


def test_escaped_texts_come_back_in_one_step_or_two() -> None:
    clean = pa.array(TEXTS)
    once = mess.escaped(clean).to_pylist()
    assert [html.unescape(t) for t in once] == TEXTS
    assert sum(a != b for a, b in zip(once, TEXTS, strict=True)) > 40


def test_wall_clock_tells_the_instant() -> None:
    zone = ZoneInfo("America/New_York")
    moments = clock.moments(Draw(2), "x", np.arange(5000), 2009, 2023)
    near = clock.clear(np.array([int(datetime(2019, 11, 3, 5, m, tzinfo=UTC).timestamp()) for m in range(60)]))
    for second, text in zip(
        [*moments, *near],
        [*clock.new_york_text(moments).to_pylist(), *clock.new_york_text(near).to_pylist()],
        strict=True,
    ):
        local = datetime.fromisoformat(text).replace(tzinfo=zone)
        assert local.timestamp() == local.replace(fold=1).timestamp() == second


def test_no_time_lies_in_an_hour_that_the_wall_clock_skips() -> None:
    zone, hours = ZoneInfo("America/New_York"), Counter[int]()
    for form in ("mariadb", "postgresql"):
        for name, rows in whole(World(2000, 7, form)).items():
            for column, kind in KINDS[name].items():
                for text in rows[column].to_pylist() if kind == "datetime" else ():
                    if text and text != "0000-00-00 00:00:00":
                        local = datetime.fromisoformat(text).replace(tzinfo=zone)
                        assert local.astimezone(UTC).astimezone(zone).replace(fold=0) == local, (name, column, text)
                        hours[local.hour] += 1
    assert hours[2] > 4 * hours[12]  # the nightly run


def test_the_nightly_run_comes_after_what_it_touches() -> None:
    draw, index = Draw(2), np.arange(5000)
    before = clock.moments(draw, "x", index, 2009, 2023)
    after = clock.by_night(draw, "x", index, before)
    moved = after != before
    assert abs(moved.mean() - clock.NIGHTLY) < 0.03
    assert ((after - before)[moved] > 0).all()
    assert ((after - before)[moved] < 32 * 3600).all()
    hours = Counter(t[11:13] for t in clock.new_york_text(after[moved]).to_pylist())
    assert hours["02"] > 0.99 * moved.sum()


def test_settings_name_the_zone_and_hold_no_secret(sqlite_file: Path) -> None:
    with sqlite3.connect(sqlite_file) as connection:
        rows = dict(connection.execute("SELECT name, value FROM config"))
    assert rows["default_timezone"] == "America/New_York"
    assert rows["smtp_pass"] == ""
    assert len(rows) >= 12


def test_values_fit_their_columns_and_character_sets() -> None:
    tables = whole(World(2000, 7, "mariadb"))
    for table in SOURCE_TABLES:
        rows = tables[table.name]
        assert rows.column_names == list(table.columns)
        for column, kind in table.columns.items():
            values = [v for v in rows[column].to_pylist() if v is not None]
            limit = {"id": 36, "ref": 36, "date": 10}.get(kind) or (int(kind[4:]) if kind[:4] == "str:" else 10**6)
            assert max(map(len, values), default=0) <= limit, (table.name, column)
            if table.latin1:
                assert all(v.encode("cp1252") for v in values if v)


# Mess

MESS = {
    "entities": "select count(*) from accounts where name like '%&amp; %' or name like '%&#039;%'",
    "entities twice over": "select count(*) from accounts where name like '%&amp;amp;%' or name like '%&amp;#039;%'",
    "entities in names": "select count(*) from contacts where last_name like '%&#039;%'",
    "mojibake": "select count(*) from contacts where last_name like '%Ã%'",
    "mojibake in cities": "select count(*) from accounts where billing_address_city like '%Ã%'",
    "zero date": "select count(*) from contacts where birthdate = '0000-00-00'",
    "half date": "select count(*) from contacts where birthdate = '1970-00-13'",
    "impossible date": "select count(*) from contacts where birthdate = '1981-02-30'",
    "zero moment": "select count(*) from contacts where date_entered = '0000-00-00 00:00:00'",
    "odd booleans": "select count(distinct newsletter_c) - 2 from contacts_cstm",
    "nul bytes": "select count(*) from notes where instr(description, char(0)) > 0",
    "beyond an integer": "select count(*) from contacts_cstm where score_c > 2147483647",
    "same e-mail in another case": "select count(*) from email_addresses a join email_addresses b "
    "on lower(a.email_address) = lower(b.email_address) and a.email_address <> b.email_address and a.id < b.id",
    "blank": "select count(*) from contacts where title = ''",
    "null": "select count(*) from contacts where title is null",
    "blanks around": "select count(*) from contacts where last_name <> trim(last_name)",
    "carets": "select count(*) from contacts_cstm where interests_c like '^%^,^%^'",
    "hashes": "select count(*) from contacts_cstm where interests_c like '% |##| %'",
    "semicolons": "select count(*) from contacts_cstm where interests_c like '%;%'",
    "control characters": "select count(*) from contacts_cstm where instr(interests_c, char(1)) > 0",
    "spreadsheet dates": "select count(*) from contacts_cstm where contract_date_c glob '[34][0-9][0-9][0-9][0-9]'",
    "amounts in German": "select count(*) from contacts_cstm where credit_limit_c glob '*.[0-9][0-9][0-9],[0-9][0-9]'",
    "amounts with apostrophes": "select count(*) from contacts_cstm where credit_limit_c like '%''%'",
    "amounts in words": "select count(*) from contacts_cstm where credit_limit_c in ('see contract', 'tbd', 'n.n.')",
    "orphans": "select count(*) from accounts_contacts where account_id not in (select id from accounts)",
    "notes on nothing": "select count(*) from notes where parent_type = 'Contacts' and parent_id not in (select id from contacts)",
    "own parent": "select count(*) from accounts where parent_id = id",
    "circles": "select count(*) from accounts a join accounts b on a.parent_id = b.id and b.parent_id = a.id and a.id < b.id",
    "parents above parents": "select count(*) from accounts a join accounts b on a.parent_id = b.id join accounts c on b.parent_id = c.id",
    "deleted": "select count(*) from contacts where deleted = 1",
    "no side row": "select count(*) from contacts where id not in (select id_c from contacts_cstm)",
    "empty website": "select count(*) from accounts where website = 'http://'",
    "telephone by 00": "select count(*) from contacts where phone_work like '00%'",
    "bracketed zero": "select count(*) from contacts where phone_work like '%(0)%'",
    "too long": "select count(*) from cases where length(name) > 120",
    "spellings of an industry": "select count(distinct industry) - 60 from accounts",
    "spellings of a country": "select count(distinct primary_address_country) - 50 from contacts",
    "two links": "select count(*) from opportunities_contacts a join opportunities_contacts b "
    "on a.contact_id = b.contact_id and a.opportunity_id = b.opportunity_id and a.id < b.id",
    "scripts": "select count(*) from contacts where last_name glob '*[一-龯]*' or last_name glob '*[Ͱ-Ͽ]*'",
}


@pytest.mark.parametrize("kind", MESS)
def test_each_kind_of_mess_is_there(kind: str, sqlite_file: Path) -> None:
    with sqlite3.connect(sqlite_file) as connection:
        assert connection.execute(MESS[kind]).fetchone()[0] > 0


@pytest.mark.parametrize(
    ("contacts", "seed", "form"),
    [
        (2000, 7, "sqlite"),
        *((SMALLEST, 7, form) for form in FORMS),
        *((SMALLEST, seed, "sqlite") for seed in range(12)),
    ],
)
def test_each_trouble_ends_in_quarantine_at_any_size(contacts: int, seed: int, form: str, tmp_path: Path) -> None:
    world = World(contacts, seed, form)
    write_truth(world, tmp_path)
    rows = pq.read_table(tmp_path / "quarantine.parquet").to_pylist()
    found = Counter(
        (r["entity"].replace("opportunity_contacts", "opportunities_contacts"), r["field"], r["code"]) for r in rows
    )
    for table, lanes in TROUBLES.items():
        wanted = Counter((table, t.field, t.code) for t in lanes if isinstance(t, Trouble) and world.holds(t.name))
        for place, kinds in wanted.items():
            assert found[place] >= kinds, place


def test_forms_leave_out_only_what_they_cannot_hold() -> None:
    tables = {form: whole(World(700, 7, form)) for form in FORMS}
    assert tables["sqlite"] == tables["mariadb"]
    for form in ("postgresql", "csv"):
        for name, rows in tables["sqlite"].items():
            other = tables[form][name]
            for column in rows.column_names:
                for one, two in zip(rows[column].to_pylist(), other[column].to_pylist(), strict=True):
                    if one != two:
                        assert "\x00" in (one or "") or (form == "postgresql" and one == "0000-00-00 00:00:00"), (
                            name,
                            column,
                        )
    every = [v for t in tables["postgresql"].values() for c in t.columns for v in c.to_pylist()]
    assert "0000-00-00 00:00:00" not in every
    assert not any("\x00" in v for v in every if v)


# Servers


def test_clean_rows_enter_the_cloud_schema_raw(postgres_database: Database, tmp_path: Path) -> None:
    postgres_database.run(CLOUD_SQL.read_text(encoding="utf-8"))
    world = World(SMALLEST, 7, "mariadb")
    steps = (("users", "members", ()), ("accounts", "companies", ("primary_contact_id",)), ("contacts", "people", ()))
    with psycopg.connect(postgres_database.socket_dsn) as connection:
        for entity, table, later in steps:
            columns = write_clean_lines(world, entity, tmp_path / "lines", later)
            assert entity != "contacts" or len(columns) >= 25
            with connection.cursor().copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy:
                copy.write((tmp_path / "lines").read_bytes())
        got = connection.execute("SELECT count(*) FROM people").fetchone()
    counts = write_truth(world, tmp_path / "truth")
    assert got == (counts["contacts"].loaded,)
    with pytest.raises(ValueError, match="only the target gives"):
        write_clean_lines(world, "campaigns", tmp_path / "lines")


def test_mariadb_holds_just_what_was_made(mariadb_database: Database) -> None:
    facts = write_sample("mariadb", mariadb_database.socket_dsn, SMALLEST)
    tables = whole(World(SMALLEST, 7, "mariadb"))
    for name, rows in tables.items():
        columns = ", ".join(
            f"`{c}`+0" if KINDS[name][c] in ("bit", "double") else f"CAST(`{c}` AS CHAR)" for c in rows.column_names
        )
        got = mariadb_database.rows(f"SELECT {columns} FROM `{name}` ORDER BY 1")
        wanted = list(zip(*(_as_sent(name, c, rows[c].to_pylist()) for c in rows.column_names), strict=True))
        if name == "config":  # no key to be in the order of
            got, wanted = sorted(got), sorted(wanted)
        assert [tuple(r) for r in got] == wanted, name
        assert facts.rows[name] == len(got)
    charsets = dict(
        mariadb_database.rows(
            "SELECT table_name, substring_index(table_collation, '_', 1) FROM information_schema.tables WHERE table_schema = database()"
        )
    )
    assert charsets["cases"] == "latin1"
    assert charsets["contacts"] == "utf8mb4"


def _as_sent(table: str, column: str, values: list[str | None]) -> list[object]:
    if KINDS[table][column] == "bit":
        return [None if v is None else int(v) for v in values]
    if KINDS[table][column] == "double":
        return [None if v is None else float(v) for v in values]
    return list(values)


def test_csv_tells_blank_from_null(tmp_path: Path) -> None:
    facts = write_sample("csv", tmp_path, SMALLEST)
    assert {p.stem for p in tmp_path.iterdir()} == set(facts.rows) == set(KINDS)

    convert = pa.csv.ConvertOptions(
        column_types={c: pa.string() for c in KINDS["contacts"]},
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    got = pa.csv.read_csv(tmp_path / "contacts.csv", convert_options=convert).sort_by("id")
    assert got.combine_chunks() == whole(World(SMALLEST, 7, "csv"))["contacts"]
