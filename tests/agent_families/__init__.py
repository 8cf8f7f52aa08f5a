"""Pairs of systems that were made up by hand, each of another family, with the right answers beside the fields.

A family is a text: source tables with the kind of each column, target tables with `= Table.column` (nothing
after `=`: no source column is right). Values are drawn by a seeded generator; none is a real person's.
"""

from __future__ import annotations

import random
import sqlite3
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from connectors.protocols import Catalogue, Column, ForeignKey, Kind, Table, UniqueKey

HERE = Path(__file__).parent
FIRST = [
    "Ana",
    "Bo",
    "Carla",
    "Deniz",
    "Erik",
    "Fatima",
    "Georg",
    "Hana",
    "Ivan",
    "Jürgen",
    "Kenji",
    "Lena",
    "Marek",
    "Nadia",
    "Olga",
    "Pedro",
    "Rosa",
    "Sven",
    "Tomás",
    "Ute",
]
LAST = [
    "Alvarez",
    "Bauer",
    "Chen",
    "Dubois",
    "Eriksen",
    "Fischer",
    "Garcia",
    "Hoffmann",
    "Ivanova",
    "Jensen",
    "Kowalski",
    "Lopez",
    "Meier",
    "Nowak",
    "Olsen",
    "Petit",
    "Rossi",
    "Schmidt",
]
CITIES = [
    "Berlin",
    "Madrid",
    "Lyon",
    "Porto",
    "Gdańsk",
    "Utrecht",
    "Leeds",
    "Boston",
    "Graz",
    "Torino",
    "Osaka",
    "Köln",
]
COUNTRIES = ["Germany", "Spain", "France", "Portugal", "Poland", "Netherlands", "USA", "Austria", "Italy"]
JOBS = ["Head of Sales", "Buyer", "CEO", "Engineer", "Accountant", "Project Manager", "Assistant"]
WORDS = [
    "needs",
    "offer",
    "after",
    "the",
    "fair",
    "please",
    "call",
    "again",
    "about",
    "contract",
    "renewal",
    "old",
    "machine",
    "second",
    "visit",
]
_KINDS = {
    "uuid": Kind.UUID, "bigint": Kind.INTEGER, "int": Kind.INTEGER, "text": Kind.TEXT, "numeric": Kind.DECIMAL,
    "bool": Kind.BOOLEAN, "date": Kind.DATE, "timestamptz": Kind.INSTANT, "enum": Kind.ENUM,
}  # fmt: skip
_DECLARED = {
    "serial": "INTEGER", "int": "INTEGER", "bool": "TINYINT", "money": "DECIMAL(12,2)", "date": "DATE",
    "datetime": "DATETIME", "text": "TEXT", "ref": "", "side": "INTEGER",
}  # fmt: skip


@dataclass
class Family:
    """One pair: source tables (name -> rows, columns), the target's catalogue, and gold (target field -> sources)."""

    name: str
    source: dict[str, tuple[int, dict[str, str]]] = field(default_factory=dict)
    target: Catalogue = field(default_factory=lambda: Catalogue("postgres"))
    gold: dict[tuple[str, str], tuple[str, tuple[str, ...]] | None] = field(default_factory=dict)

    def write(self, path: Path, seed: int = 5) -> None:
        """Writes the source as a SQLite file."""
        draw = random.Random(f"{self.name}{seed}")
        connection = sqlite3.connect(path)
        keys = {t: self._keys(t, draw) for t in self.source}
        for table, (rows, columns) in self.source.items():
            first = next(iter(columns))
            types = [f'"{c}" {self._declared(k)}{" PRIMARY KEY" if c == first else ""}' for c, k in columns.items()]
            connection.execute(f'CREATE TABLE "{table}" ({", ".join(types)})')
            marks = ", ".join("?" * len(columns))
            for index in range(rows):
                values = [
                    keys[table][index] if c == first else _value(k, index, draw, keys) for c, k in columns.items()
                ]
                connection.execute(f'INSERT INTO "{table}" VALUES ({marks})', values)
        connection.commit()
        connection.close()

    def _keys(self, table: str, draw: random.Random) -> list[object]:
        rows, columns = self.source[table]
        kind = next(iter(columns.values()))
        if kind.startswith("side:"):
            return list(range(101, 101 + rows))
        if kind == "serial":
            return list(range(101, 101 + rows))
        if kind == "code":
            return [f"{100_000 + 7 * i}" for i in range(rows)]
        return [str(uuid.UUID(int=draw.getrandbits(128), version=4)) for _ in range(rows)]

    def _declared(self, kind: str) -> str:
        head, _, rest = kind.partition(":")
        if head == "ref":
            return self._declared(next(iter(self.source[rest][1].values())))
        return _DECLARED.get(head) or "VARCHAR(100)"


def load(name: str) -> Family:
    """The family in `name.txt`."""
    family, part, table = Family(name), "", ""
    targets: dict[str, list[str]] = {}
    for line in (HERE / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line in ("SOURCE", "TARGET"):
            part = line
        elif not line.startswith(" "):
            table, *rows = line.split()
            if part == "SOURCE":
                family.source[table] = (int(rows[0]), {})
            else:
                targets[table] = []
        elif part == "SOURCE":
            column, kind = line.strip().split(" ", 1)
            family.source[table][1][column] = kind
        else:
            targets[table].append(line.strip())
    family.target = Catalogue("postgres", {t: _table(t, lines, family) for t, lines in targets.items()})
    return family


def names() -> list[str]:
    """All families."""
    return sorted(p.stem for p in HERE.glob("*.txt"))


def _table(name: str, lines: list[str], family: Family) -> Table:
    columns, foreign, primary = [], [], []
    for line in lines:
        head, _, gold = line.partition("=")
        column, type_, *rest = head.split()
        required = type_.endswith("!")
        base, _, labels = type_.rstrip("!").partition(":")
        key = "pk" in rest
        columns.append(
            Column(
                column,
                base,
                _KINDS[base],
                nullable=not (required or key),
                labels=tuple(labels.split("|")) if labels else (),
            )
        )
        primary += [column] if key else []
        foreign += [ForeignKey(f"{name}_{column}", (column,), r[2:], ("id",)) for r in rest if r.startswith("->")]
        if "=" in line:
            source = gold.strip()
            table, _, names_ = source.partition(".")
            family.gold[name, column] = (table, tuple(names_.split("+"))) if source else None
    unique = (UniqueKey(f"{name}_pkey", tuple(primary), tuple(primary), primary=True),)
    return Table(name, tuple(columns), tuple(primary), tuple(foreign), unique)


def _value(kind: str, index: int, draw: random.Random, keys: dict[str, list[object]]) -> object:
    head, _, rest = kind.partition(":")
    first, last = draw.choice(FIRST), draw.choice(LAST)
    if head == "ref":
        return draw.choice(keys[rest]) if draw.random() > 0.1 else None
    if head == "pick":
        return draw.choice(rest.split("|"))
    if head == "int":
        low, _, high = rest.partition(":")
        return draw.randint(int(low), int(high))
    if head != "bool" and draw.random() < 0.08:
        return None
    made = {
        "first": first, "last": last, "name": f"{first} {last}", "login": f"{first[0]}{last}".lower() + str(index),
        "email": f"{first}.{last}{index}@firm{index % 9}.example".lower().encode("ascii", "ignore").decode(),
        "company": f"{last} {draw.choice(['GmbH', 'SA', 'Ltd', 'Inc', 'BV'])}", "phone": f"+49 {draw.randint(30, 999)} {draw.randint(10**5, 10**7)}",
        "street": f"{last}straße {draw.randint(1, 99)}", "city": draw.choice(CITIES), "zip": str(draw.randint(10000, 99999)),
        "country": draw.choice(COUNTRIES), "job": draw.choice(JOBS), "bool": int(draw.random() < 0.2),
        "date": f"{draw.randint(1950, 2020)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}",
        "datetime": f"{draw.randint(2009, 2023)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02} {draw.randint(0, 23):02}:{draw.randint(0, 59):02}:11",
        "money": f"{draw.randint(100, 10**6)}.{draw.randint(0, 99):02}", "url": f"www.{last}{index}.example".lower(),
        "text": " ".join(draw.choices(WORDS, k=draw.randint(3, 9))) + f" {index}", "code": f"X{draw.randint(10**5, 10**6)}",
        "flagx": "X" if draw.random() < 0.1 else "", "null": None,
    }  # fmt: skip
    return made[head]
