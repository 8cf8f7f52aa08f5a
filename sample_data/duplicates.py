"""People and companies that were entered more than once, and others that only look like it; the truth tells them apart.

Twins share family name, birth date, address and home telephone; a father and a son share both names and the
household; colleagues share a mailbox and an office; branches share a company's name. Each of them may be entered
twice as well. Kept apart from the rest of the sample, whose unique keys leave no room for shared mailboxes.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from . import clock
from .clean_shared import from_pool
from .columns import fill_masks, numbers_text
from .draw import Draw, Index
from .names import COUNTRIES, FAMILY, GIVEN
from .phones import numbers
from .places import CITIES, POSTAL_MASKS, STREETS, WEIGHTS
from .words import COMPANY_BRANCHES, COMPANY_FORMS, COMPANY_WORDS
from .world import World

Row = dict[str, str | None]
Alike = dict[str, set[tuple[int, int]]]

_PEOPLE = ("id", "first_name", "last_name", "email", "mobile", "home_phone", "birthdate", "street", "city",
           "postal_code", "country", "opted_out", "newsletter", "entered", "company")  # fmt: skip
_COMPANIES = ("id", "name", "website", "email", "phone", "street", "city", "postal_code", "country", "entered")

PLAN = Path(__file__).parent / "duplicates_plan.yaml"
"""The plan that merges them."""

TARGET_SQL = """
CREATE TABLE companies(id uuid PRIMARY KEY, name text NOT NULL, website text, email text, phone text, street text,
  city text, postal_code text, country text, created_at timestamp);
CREATE TABLE people(id uuid PRIMARY KEY, given_name text, family_name text NOT NULL, email text, mobile text,
  home_phone text, birthday date, street text, city text, postal_code text, country text, email_opt_out boolean,
  newsletter boolean, company_id uuid REFERENCES companies, created_at timestamp);
"""
"""The tables that the records go to."""


@dataclass(frozen=True)
class Truth:
    """Who each row is: the number of the person or company, by the row's key. `alike` are pairs of numbers, the lower
    first, of those that are two and look like one: `twins`, `father and son`, `mailbox`, and of companies `branches`."""

    people: dict[str, int]
    companies: dict[str, int]
    alike: Alike


def write_duplicates(path: Path, rows: int, seed: int) -> Truth:
    """A new SQLite file with the tables `contacts`, about `rows` people of whom one in ten is entered again, and
    `accounts`, a quarter as many; what is true of them. The same size and seed give the same rows."""
    world = World(max(rows, 200), seed, "sqlite")
    alike: Alike = {}
    companies, which = _companies(world, rows // 4, alike)
    people, who = _people(world, rows, [row["id"] for row in companies], alike)
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    for table, columns, all_rows in (("accounts", _COMPANIES, companies), ("contacts", _PEOPLE, people)):
        connection.execute(f"CREATE TABLE {table} ({', '.join(f'{c} TEXT' for c in columns)}, PRIMARY KEY (id))")
        marks = ", ".join(f":{c}" for c in columns)
        connection.executemany(f"INSERT INTO {table} VALUES ({marks})", all_rows)
    connection.commit()
    connection.close()
    return Truth(who, which, alike)


class _Luck:
    """Draws for numbered things, one value a call."""

    def __init__(self, draw: Draw, stream: str, count: int) -> None:
        self._draw, self._stream, self._index = draw, stream, np.arange(count)
        self._known: dict[str, np.ndarray] = {}

    def of(self, what: str, n: int) -> float:
        """A number from 0 up to 1."""
        if what not in self._known:
            self._known[what] = (self._draw.bits(f"{self._stream}/{what}", self._index) >> np.uint64(11)) / 2.0**53
        return float(self._known[what][n])

    def one_of(self, what: str, n: int, count: int) -> int:
        """A whole number below `count`."""
        return int(self.of(what, n) * count)


def _addresses(world: World, stream: str, index: Index, country: Index) -> list[Row]:
    city = from_pool(world, f"{stream}/city", index, country, CITIES)
    street = from_pool(world, f"{stream}/street", index, country, STREETS)
    postal = fill_masks(POSTAL_MASKS.values, city, world.draw.bits(f"{stream}/postal", index)).to_pylist()
    house = numbers_text(1 + world.draw.below(f"{stream}/house", index, 240)).to_pylist()
    return [
        {
            "street": f"{STREETS.values[s]} {h}", "city": CITIES.values[c], "postal_code": p,
            "country": COUNTRIES[int(k)],
        }
        for c, s, p, h, k in zip(city, street, postal, house, country, strict=True)
    ]  # fmt: skip


def _countries(world: World, stream: str, index: Index) -> Index:
    return world.draw.pick(f"{stream}/country", index, WEIGHTS)


def _key(number: int) -> str:
    """Keys don't tell the order in which rows were entered."""
    return f"{(number * 7_919 + 104_729) % 15_485_863:08d}"


def _keyed(rows: list[tuple[int, Row]]) -> tuple[list[Row], dict[str, int]]:
    found: list[Row] = []
    truth: dict[str, int] = {}
    for number, (who, row) in enumerate(rows):
        key = _key(number)
        truth[key] = who
        found.append({"id": key, **row})
    return found, truth


# -- people ---------------------------------------------------------------------------------------


def _people(world: World, rows: int, companies: list[str | None], alike: Alike) -> tuple[list[Row], dict[str, int]]:
    count = rows * 9 // 10
    clean = _clean_people(world, count, alike)
    luck = _Luck(world.draw, "entered/people", count)
    entered: list[tuple[int, Row]] = []
    for n, person in enumerate(clean):
        person["company"] = companies[luck.one_of("company", n, len(companies))] if companies else None
        entered.append((n, person))
    again = [n for n in range(count) if luck.of("again", n) < 0.095]
    third = [n for n in again if luck.of("third", n) < 0.12]
    spare = _addresses(world, "entered/moved", np.arange(count), _countries(world, "dup/people", np.arange(count)))
    for turn, chosen in enumerate((again, third)):
        entered += [
            (n, _entered_again(clean[n], spare[n], _Luck(world.draw, f"again{turn}", count), n)) for n in chosen
        ]
    return _keyed(entered)


def _clean_people(world: World, count: int, alike: Alike) -> list[Row]:
    draw, index = world.draw, np.arange(count)
    country = _countries(world, "dup/people", index)
    given = from_pool(world, "dup/given", index, country, GIVEN)
    family = from_pool(world, "dup/family", index, country, FAMILY)
    where = _addresses(world, "dup/home", index, country)
    mobile = numbers(draw, "dup/mobile", index, COUNTRIES, country, "mobile").e164().to_pylist()
    home = numbers(draw, "dup/home", index, COUNTRIES, country, "office").e164().to_pylist()
    born = clock.days(draw, "dup/born", index, 1940, 2003)
    entered = clock.utc_text(clock.moments(draw, "dup/entered", index, 2009, 2023)).to_pylist()
    luck = _Luck(draw, "clean/people", count)
    rows: list[Row] = []
    for n in range(count):
        letters = f"{GIVEN.letters[given[n]]}.{FAMILY.letters[family[n]]}"
        mail = f"{letters}{n}@{('mail.example.org', 'post.example.net', 'example.com')[n % 3]}"
        rows.append(
            {
                "first_name": GIVEN.names[given[n]], "last_name": FAMILY.names[family[n]],
                "email": mail if luck.of("email", n) < 0.85 else None,
                "mobile": mobile[n] if luck.of("mobile", n) < 0.75 else None,
                "home_phone": home[n] if luck.of("home", n) < 0.5 else None,
                "birthdate": _date(int(born[n])) if luck.of("born", n) < 0.7 else None,
                **where[n],
                "opted_out": "1" if luck.of("out", n) < 0.12 else "0",
                "newsletter": "1" if luck.of("letter", n) < 0.4 else "0",
                "entered": entered[n][:19],
            }
        )  # fmt: skip
    _make_alike(rows, luck, [int(day) for day in born], home, alike)
    return rows


def _make_alike(rows: list[Row], luck: _Luck, born: list[int], home: list[str], alike: Alike) -> None:
    """Makes neighbours into twins, fathers and sons, and colleagues with one mailbox."""
    n = 0
    while n + 5 < len(rows):
        kind, one = luck.of("kind", n), rows[n]
        household = {name: one[name] for name in ("last_name", "street", "city", "postal_code", "country")}
        household["home_phone"] = one["home_phone"] or home[n]
        if kind < 0.012:
            one |= {**household, "birthdate": _date(born[n])}
            rows[n + 1] |= {**household, "birthdate": _date(born[n])}
            if luck.of("family mail", n) < 0.4:
                rows[n + 1]["email"] = one["email"]
            if rows[n + 1]["first_name"] == one["first_name"]:
                rows[n + 1]["first_name"] = "Alex" if one["first_name"] != "Alex" else "Robin"
            alike.setdefault("twins", set()).add((n, n + 1))
            n += 2
        elif kind < 0.024:
            one |= household
            son = rows[n + 1]
            son |= {**household, "first_name": one["first_name"]}
            if luck.of("junior", n) < 0.6:
                son["last_name"] = f"{one['last_name']} Jr."
            else:
                one["birthdate"] = _date(born[n] - 12_000)
                son["birthdate"] = _date(born[n] - 12_000 + 7_500 + luck.one_of("age", n, 5_000))
            if one["email"] and son["email"]:
                shared = luck.of("family mail", n) < 0.3
                son["email"] = one["email"] if shared else one["email"].replace("@", "2@")
            alike.setdefault("father and son", set()).add((n, n + 1))
            n += 2
        elif kind < 0.036:
            colleagues = rows[n : n + 2 + luck.one_of("colleagues", n, 4)]
            office = {name: one[name] for name in ("street", "city", "postal_code", "country")}
            office |= {"email": f"office@team{n}.example.com", "home_phone": home[n]}
            for colleague in colleagues:
                colleague |= office
            alike.setdefault("mailbox", set()).update(combinations(range(n, n + len(colleagues)), 2))
            n += len(colleagues)
        else:
            n += 1


def _entered_again(person: Row, moved: Row, luck: _Luck, n: int) -> Row:
    """The person as somebody else wrote them down: most of it, some wrongly, some newer."""
    row = dict(person)
    first, last = person["first_name"] or "", person["last_name"] or ""
    given = luck.of("given", n)
    if given < 0.13:
        row["first_name"] = _mistyped(first, luck.of("letter", n))
    elif given < 0.21 and first:
        row["first_name"] = f"{first[0]}."
    if luck.of("family", n) < 0.1 and not last.endswith("Jr."):
        row["last_name"] = _mistyped(last, luck.of("last letter", n))
    for name, gone, other in (("email", 0.2, 0.12), ("mobile", 0.2, 0.1), ("home_phone", 0.3, 0.05)):
        chance = luck.of(name, n)
        if chance < gone:
            row[name] = None
        elif chance < gone + other and row[name] is not None and not (row[name] or "").startswith("office@"):
            row[name] = (
                f"{(first or last)[:1].lower()}{n}@new.example.net" if name == "email" else _other(row[name] or "")
            )
    born = luck.of("birthdate", n)
    if born < 0.2:
        row["birthdate"] = None
    elif born < 0.25 and row["birthdate"] is not None:
        row["birthdate"] = _misdated(row["birthdate"])
    home = luck.of("home", n)
    if home < 0.1:
        row |= {name: moved[name] for name in ("street", "city", "postal_code")}
    elif home < 0.22:
        row |= {"street": None, "postal_code": None}
    row["opted_out"] = "1" if luck.of("out", n) < 0.15 else "0"
    row["newsletter"] = "1" if luck.of("letter again", n) < 0.4 else "0"
    entered = person["entered"] or ""
    row["entered"] = f"{int(entered[:4]) + 1}{entered[4:8]}{1 + luck.one_of('day', n, 27):02d}{entered[10:]}"
    return row


def _mistyped(name: str, chance: float) -> str:
    """A name with two letters in the wrong order, one left out, or one twice."""
    if len(name) < 4:
        return name
    at = 1 + int(chance * 1_000) % (len(name) - 2)
    if chance < 0.4:
        return name[:at] + name[at + 1] + name[at] + name[at + 2 :]
    return name[:at] + name[at + 1 :] if chance < 0.75 else name[:at] + name[at] + name[at:]


def _other(number: str) -> str:
    """Another telephone number of the same shape."""
    return number[:-4] + f"{(int(number[-4:]) * 7 + 1_234) % 10_000:04d}"


def _misdated(day: str) -> str:
    """A date with day and month exchanged, or else the year's last digit wrong."""
    year, month, number = day.split("-")
    if int(number) <= 12 and number != month:
        return f"{year}-{number}-{month}"
    return f"{year[:3]}{(int(year[3]) + 1) % 10}-{month}-{'28' if month == '02' else number}"


def _date(day: int) -> str:
    return str(clock.date_text(np.array([day]))[0].as_py())


# -- companies ------------------------------------------------------------------------------------


def _companies(world: World, rows: int, alike: Alike) -> tuple[list[Row], dict[str, int]]:
    count = rows * 9 // 10
    clean = _clean_companies(world, count, alike)
    luck = _Luck(world.draw, "entered/companies", count)
    entered: list[tuple[int, Row]] = list(enumerate(clean))
    for n in range(count):
        if luck.of("again", n) < 0.1:
            entered.append((n, _company_again(clean[n], luck, n)))
    return _keyed(entered)


def _clean_companies(world: World, count: int, alike: Alike) -> list[Row]:
    draw, index = world.draw, np.arange(count)
    country = _countries(world, "dup/companies", index)
    where = _addresses(world, "dup/office", index, country)
    phone = numbers(draw, "dup/phone", index, COUNTRIES, country, "office").e164().to_pylist()
    entered: list[str] = clock.utc_text(clock.moments(draw, "dup/founded", index, 2009, 2020)).to_pylist()
    luck = _Luck(draw, "clean/companies", count)
    rows: list[Row] = []
    head = 0
    for n in range(count):
        branch = n > 0 and n - head < 4 and luck.of("branch", n) < 0.12
        if branch:
            alike.setdefault("branches", set()).update((m, n) for m in range(head, n))
        else:
            head = n
            words = [COMPANY_WORDS[luck.one_of("word", n, len(COMPANY_WORDS))]]
            words += [COMPANY_WORDS[luck.one_of("second", n, len(COMPANY_WORDS))]] * (luck.of("two", n) < 0.6)
            words += [COMPANY_BRANCHES[luck.one_of("trade", n, len(COMPANY_BRANCHES))]]
            name = " ".join([*words, COMPANY_FORMS[luck.one_of("form", n, len(COMPANY_FORMS))]])
            site = "".join(c for c in "".join(words).lower() if c.isascii() and c.isalpha())
            domain = f"{site}{n % 89}.example.com"
            shared: Row = {
                "name": name, "website": f"www.{domain}" if luck.of("site", n) < 0.7 else None,
                "email": f"info@{domain}" if luck.of("email", n) < 0.6 else None,
            }  # fmt: skip
        rows.append(
            {**shared, "phone": phone[n] if luck.of("phone", n) < 0.8 else None, **where[n], "entered": entered[n][:19]}
        )
    return rows


def _company_again(company: Row, luck: _Luck, n: int) -> Row:
    row = dict(company)
    name = company["name"] or ""
    spelling = luck.of("spelling", n)
    if spelling < 0.25:
        row["name"] = name.rsplit(" ", 1)[0]
    elif spelling < 0.45:
        row["name"] = name.upper()
    elif spelling < 0.6:
        row["name"] = _mistyped(name, luck.of("letter", n))
    for column, gone in (("website", 0.25), ("email", 0.3), ("phone", 0.2), ("postal_code", 0.1)):
        if luck.of(column, n) < gone:
            row[column] = None
    street = row["street"] or ""
    if luck.of("street", n) < 0.15:
        row["street"] = street.replace("straße", "str.").replace("Street", "St").replace("Avenida", "Av.")
    entered = company["entered"] or ""
    row["entered"] = f"{int(entered[:4]) + 2}{entered[4:]}"
    return row


def pairs(truth: dict[str, int]) -> set[tuple[str, str]]:
    """All pairs of keys that are one, the lower key first."""
    rows: dict[int, list[str]] = {}
    for key, who in sorted(truth.items()):
        rows.setdefault(who, []).append(key)
    return {(a, b) for keys in rows.values() for n, a in enumerate(keys) for b in keys[n + 1 :]}
