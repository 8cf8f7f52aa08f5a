"""Draws a scenario's rows and writes both sides: the old system as a SQLite file, and what should become of each row.

Nothing of the product is run: what a row should become is said by whoever draws it, from the clean value, before it is
made messy. The same seed gives the same rows.
"""

from __future__ import annotations

import csv
import json
import random
import sqlite3
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq

from bench.plan_score import base_table
from bench.scenarios import Scenario
from engine.plan import Plan
from sample_data.names import COUNTRIES, FAMILY, GIVEN, ascii_letters
from sample_data.phones import BLOCKS, Block, written
from sample_data.places import CITIES, POSTAL_MASKS, REGIONS, STREETS
from sample_data.words import COMPANY_BRANCHES, COMPANY_WORDS

Value = str | int | float | bytes | None
Key = str | int | tuple[str | int, ...]


@dataclass(frozen=True)
class Person:
    """A made-up person. `letters` is the name as an e-mail address spells it."""

    first: str
    last: str
    letters: str
    country: str


@dataclass(frozen=True)
class Place:
    """Where somebody is. `country` is the ISO code."""

    street: str
    city: str
    region: str
    postal: str
    country: str


@dataclass(frozen=True)
class Telephone:
    """A number as the truth has it and as somebody may have typed it."""

    e164: str
    typed: str


class Maker:
    """One scenario's rows, drawn and written. Use as `records.make(maker, **scenario.options)`, then `close`."""

    def __init__(self, scenario: Scenario, folder: Path, seed: int = 1) -> None:
        """`folder` gets `source.db` (and `files/`, where the form is CSV) and `truth/`; it must not hold them yet."""
        self.scenario = scenario
        self.gold: Plan = scenario.gold()
        self.draw = random.Random(f"{scenario.name} {seed}")
        self._zone = ZoneInfo(scenario.zone)
        self._truth = folder / "truth"
        self._truth.mkdir(parents=True)
        self._file, self._files = folder / "source.db", folder / "files"
        self._connection = sqlite3.connect(self._file)
        self._connection.executescript(scenario.file("source.sql").read_text(encoding="utf-8"))
        self._columns: dict[str, list[str]] = {}
        self._wanted: dict[str, list[dict[str, str | None]]] = {name: [] for name in self.gold.entities}
        self._excluded: dict[str, set[str]] = {name: set() for name in self.gold.entities}
        self._reasons: list[tuple[str, str, str, str]] = []
        self._held: dict[str, set[str]] = {name: set() for name in self.gold.entities}

    @property
    def dsn(self) -> str:
        """What a job is given as its source."""
        return str(self._files) if self.scenario.form == "csv" else f"sqlite:///{self._file}"

    # -- both sides -------------------------------------------------------------------------------

    def row(self, table: str, values: dict[str, Value]) -> None:
        """A row of the old system, by column."""
        columns = ", ".join('"' + c.replace('"', '""') + '"' for c in values)
        marks = ", ".join("?" * len(values))
        name = '"' + table.replace('"', '""') + '"'
        self._connection.execute(f"INSERT INTO {name} ({columns}) VALUES ({marks})", list(values.values()))

    def want(self, entity: str, key: Key, /, **fields: Value) -> None:
        """The row that should be there in the end, each field as PostgreSQL's text; a reference as the old key (it comes
        to nothing by itself where the row it leads to is not loaded and the gold plan says `missing: null`).

        Constants of the gold plan are filled in. KeyError for a field that the gold plan doesn't have."""
        plan = self.gold.entities[entity]
        told = _key(key)
        row: dict[str, str | None] = {"_key": told}
        if plan.id == "uuid5":
            row["_id"] = _new_id(entity, told)
        elif plan.id == "keep":
            row["_id"] = told
        if strange := fields.keys() - plan.fields.keys():
            raise KeyError(f"{entity} has no field {sorted(strange)}")
        for name, planned in plan.fields.items():
            value = planned.default if planned.constant else fields.get(name)
            row[name] = _text(value)
        self._wanted[entity].append(row)

    def exclude(self, entity: str, key: Key) -> None:
        """A row that the gold plan leaves out."""
        self._excluded[entity].add(_key(key))

    def quarantine(self, entity: str, key: Key, field: str, code: str) -> None:
        """A row that can't be loaded, for this reason. Called again for a row where another reason is right too."""
        self._held[entity].add(_key(key))
        self._reasons.append((entity, _key(key), field, code))

    def close(self) -> None:
        """Writes what is left: the old system and the truth."""
        for statement in self.scenario.statements:
            self._connection.execute(statement)
        self._connection.commit()
        self._connection.close()
        self._export()
        counts = {}
        for entity, rows in self._wanted.items():
            plan = self.gold.entities[entity]
            for column, planned in plan.fields.items():
                if planned.ref is not None:
                    for row in rows:
                        row[column] = self._led_to(planned.ref, planned.missing, row[column])
            told = ["_key", *(["_id"] if plan.id in ("uuid5", "keep") else []), *plan.fields]
            columns = {name: pa.array([row[name] for row in rows], pa.string()) for name in told}
            pq.write_table(pa.table(columns), self._truth / f"{entity}.parquet")
            held = len(self._held[entity])
            out = len(self._excluded[entity])
            read = len(rows) + out + held
            counts[entity] = {"read": read, "excluded": out, "quarantined": held, "loaded": len(rows)}
        names = ("entity", "key", "field", "code")
        held_back = {n: pa.array([reason[i] for reason in self._reasons], pa.string()) for i, n in enumerate(names)}
        pq.write_table(pa.table(held_back), self._truth / "quarantine.parquet")
        entities = {
            name: {
                "name": name, "table": base_table(plan), "to": plan.to, "id": plan.id,
                "references": {c: f.ref for c, f in plan.fields.items() if f.ref is not None},
            }
            for name, plan in self.gold.entities.items()
        }  # fmt: skip
        facts = {"scenario": self.scenario.name, "counts": counts, "entities": entities}
        (self._truth / "counts.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")

    def _export(self) -> None:
        """The tables as CSV files, where that is the form: NULL as nothing, all else quoted where it has to be."""
        if self.scenario.form != "csv":
            return
        self._files.mkdir(exist_ok=True)
        connection = sqlite3.connect(self._file)
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            rows = connection.execute('SELECT * FROM "' + name.replace('"', '""') + '"')
            with (self._files / f"{name}.csv").open("w", encoding=self.scenario.encoding, newline="") as file:
                writer = csv.writer(file, delimiter=self.scenario.delimiter)
                writer.writerow([column[0] for column in rows.description])
                writer.writerows(rows)
        connection.close()

    def _led_to(self, entity: str, missing: str, key: str | None) -> str | None:
        gone = key is not None and (key in self._held[entity] or key in self._excluded[entity])
        if key is None or (gone and missing == "null"):
            return None
        return _new_id(entity, key) if self.gold.entities[entity].id == "uuid5" else key

    def change(self, script: str) -> None:
        """What happens to the old system after it was written."""
        connection = sqlite3.connect(self._file)
        connection.executescript(script)
        connection.commit()
        connection.close()
        self._export()

    # -- what to draw -----------------------------------------------------------------------------

    def chance(self, share: float) -> bool:
        """True in this share of the calls."""
        return self.draw.random() < share

    def person(self, *countries: str) -> Person:
        """A person of one of these countries."""
        country = self.draw.choice(countries)
        at = COUNTRIES.index(country)
        first = GIVEN.start[at] + self.draw.randrange(GIVEN.size[at])
        last = FAMILY.start[at] + self.draw.randrange(FAMILY.size[at])
        letters = f"{GIVEN.letters[first]}.{FAMILY.letters[last]}"
        return Person(GIVEN.names[first], FAMILY.names[last], letters, country)

    def company(self) -> str:
        """A company's name; not always another one."""
        return f"{self.draw.choice(COMPANY_WORDS)} {self.draw.choice(COMPANY_BRANCHES)}"

    def domain(self, company: str, number: int) -> str:
        """A domain that nobody owns."""
        return f"{ascii_letters(company)}{number}.example"

    def place(self, *countries: str) -> Place:
        """A place in one of these countries."""
        country = self.draw.choice(countries)
        at = COUNTRIES.index(country)
        city = CITIES.start[at] + self.draw.randrange(CITIES.size[at])
        street = STREETS.values[STREETS.start[at] + self.draw.randrange(STREETS.size[at])]
        postal = "".join(str(self.draw.randrange(10)) if c == "#" else c for c in POSTAL_MASKS.values[city])
        house = self.draw.randint(1, 199)
        return Place(f"{street} {house}", CITIES.values[city], REGIONS.values[city], postal, country)

    def telephone(self, country: str, line: str, *ways: str) -> Telephone:
        """A number of a country, typed in one of `sample_data.phones.WAYS`. `line` is mobile or office."""
        block: Block = self.draw.choice([b for b in BLOCKS if (b.country, b.line) == (country, line)])
        head, free = self.draw.choice(block.heads)
        digits = head + "".join(str(self.draw.randrange(10)) for _ in range(free))
        return Telephone(
            _filled(written(block, "e164"), digits), _filled(written(block, self.draw.choice(ways)), digits)
        )

    def moment(self, first: int, last: int) -> datetime:
        """A moment of the office's clock between two years, to the second, on no hour that the clock skips or repeats."""
        start = datetime(first, 1, 1)
        days = (datetime(last, 12, 28) - start).days
        return start + timedelta(days=self.draw.randrange(days), seconds=self.draw.randrange(8 * 3600, 19 * 3600))

    def day(self, first: int, last: int) -> date:
        """A day between two years."""
        return self.moment(first, last).date()

    def instant(self, moment: datetime) -> str:
        """What PostgreSQL shows in UTC for a moment of the office's clock."""
        return moment.replace(tzinfo=self._zone).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S+00")

    def uuid(self) -> str:
        """A key of 36 characters."""
        return str(uuid.UUID(int=self.draw.getrandbits(128), version=4))

    def code(self, alphabet: str, length: int) -> str:
        """A key of so many characters of an alphabet."""
        return "".join(self.draw.choices(alphabet, k=length))


def _key(key: Key) -> str:
    return "\x1f".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _text(value: Value) -> str | None:
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    return None if value is None else str(value)


def _new_id(entity: str, key: str) -> str:
    return str(uuid.uuid5(uuid.uuid5(uuid.NAMESPACE_URL, f"packhorse:{entity}"), key))


def _filled(mask: str, digits: Sequence[str] | str) -> str:
    left = iter(digits)
    return "".join(next(left) if c == "#" else c for c in mask)
