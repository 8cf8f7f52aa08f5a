"""The comparing behind `bench.score`: one query an entity, in DuckDB, over dumps and the truth's Parquet files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from bench.dumps import CROSSWALK, LEDGER, QUARANTINE

_DATABASE_CODES = frozenset({"check", "foreign_key", "trigger", "unique", "database"})
"""Reasons that only the database gives; it names a constraint rather than a column."""


def _name(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True)
class Counted:
    """What one query found: rows found (`exact` where each field is right) and surplus; by field right, wrong, missing,
    extra and examples; and how many values are right that are no NULL."""

    found: int
    exact: int
    surplus: int
    values: int
    fields: dict[str, tuple[int, int, int, int]]
    examples: dict[str, list[tuple[str, str | None, str | None]]]


class Judge:
    """Holds the dumps of a target against the truth about a sample.

    `entities` is what the truth says of its entities (its `counts.json`), `names` maps them to the plan's.
    """

    def __init__(self, truth: Path, dumps: Path, entities: Mapping[str, Any], names: Mapping[str, str]) -> None:
        self.duck = duckdb.connect()
        self.truth = truth
        self.dumps = dumps
        self.entities = entities
        self.names = {entity: names.get(entity, entity) for entity in entities}
        self.keys: dict[str, list[str]] = json.loads((dumps / "keys.json").read_text(encoding="utf-8"))
        self.has_crosswalk = (dumps / f"{CROSSWALK}.csv").exists()
        self._read: set[str] = set()

    def _dump(self, name: str) -> str:
        """A dump as a table of its own, read once."""
        table = _name(f"dump {name}")
        if name not in self._read:
            self.duck.execute(f"CREATE TEMP TABLE {table} AS SELECT * FROM {self._csv(name)}")
            self._read.add(name)
        return table

    def _csv(self, name: str) -> str:
        path = _literal(str(self.dumps / f"{name}.csv"))
        return (
            f"read_csv({path}, header=true, delim=',', quote='\"', escape='\"', nullstr='\\N', "
            f"allow_quoted_nulls=false, parallel=false, auto_detect=false, columns={self._columns(name)})"
        )

    def _columns(self, name: str) -> str:
        with (self.dumps / f"{name}.csv").open(encoding="utf-8") as file:
            header = file.readline().rstrip("\n").split(",")
        return "{" + ", ".join(f"{_literal(h.strip(chr(34)))}: 'VARCHAR'" for h in header) + "}"

    def _parquet(self, entity: str) -> str:
        return f"read_parquet({_literal(str(self.truth / f'{entity}.parquet'))})"

    def _crosswalk(self, entity: str) -> str:
        """(key, id) of an entity: from the crosswalk, or as the truth foretells it."""
        facts = self.entities[entity]
        if self.has_crosswalk:
            where = f"entity = {_literal(self.names[entity])} AND target = {_literal(facts['to'])}"
            return f"(SELECT old_id AS key, new_id AS id FROM {self._dump(CROSSWALK)} WHERE {where})"
        if facts["id"] == "none":
            key = " || chr(31) || ".join(_name(column) for column in self.keys[facts["to"]])
            return f"(SELECT _key AS key, {key} AS id FROM {self._parquet(entity)})"
        if facts["id"] == "sequence":
            return "(SELECT NULL::VARCHAR AS key, NULL::VARCHAR AS id WHERE false)"
        return f"(SELECT _key AS key, _id AS id FROM {self._parquet(entity)})"

    def _wanted(self, entity: str, fields: list[str]) -> str:
        """The truth's rows, references turned into the ids that the target gave."""
        columns, joins = ["w._key"], []
        for number, column in enumerate(fields):
            pointed = self.entities[entity]["references"].get(column, "")
            if pointed not in self.entities:
                columns.append(f"w.{_name(column)}")
                continue
            value = f"w.{_name(column)}"
            if self.entities[pointed]["id"] == "uuid5":
                known = f"(SELECT t._id AS told, c.id FROM {self._parquet(pointed)} t JOIN {self._crosswalk(pointed)} c ON c.key = t._key)"
            else:
                known = f"(SELECT key AS told, id FROM {self._crosswalk(pointed)})"
            joins.append(f"LEFT JOIN {known} r{number} ON r{number}.told = {value}")
            columns.append(
                f"CASE WHEN {value} IS NOT NULL THEN coalesce(r{number}.id, 'not loaded: ' || {value}) END AS {_name(column)}"
            )
        return f"SELECT {', '.join(columns)} FROM {self._parquet(entity)} w {' '.join(joins)}"

    def entity(self, entity: str) -> Counted:
        """Compares one entity's rows."""
        to = self.entities[entity]["to"]
        described = self.duck.execute(f"DESCRIBE SELECT * FROM {self._parquet(entity)}").fetchall()
        fields = [str(row[0]) for row in described if row[0] not in ("_key", "_id")]
        identity = " || chr(31) || ".join(f"t.{_name(column)}" for column in self.keys[to])
        self.duck.execute(f"CREATE OR REPLACE TEMP TABLE wanted AS {self._wanted(entity, fields)}")
        self.duck.execute(
            f"CREATE OR REPLACE TEMP TABLE got AS SELECT c.key AS _key, t.* FROM {self._dump(to)} t "
            f"JOIN {self._crosswalk(entity)} c ON c.id = {identity}"
        )
        same = [f"w.{_name(c)} IS NOT DISTINCT FROM g.{_name(c)}" for c in fields]
        told = [f"coalesce(g._key IS NOT NULL AND w.{_name(c)} = g.{_name(c)}, false)::INT" for c in fields]
        sums = [
            "count(g._key)",
            f"count(*) FILTER ({' AND '.join(['g._key IS NOT NULL', *same])})",
            f"coalesce(sum({' + '.join(told) or '0'}), 0)",
        ]
        for column in fields:
            w, g = f"w.{_name(column)}", f"g.{_name(column)}"
            here = "g._key IS NOT NULL"
            sums += [
                f"count(*) FILTER ({here} AND {w} IS NOT DISTINCT FROM {g})",
                f"count(*) FILTER ({here} AND {w} <> {g})",
                f"count(*) FILTER (NOT ({here}) OR ({w} IS NOT NULL AND {g} IS NULL))",
                f"count(*) FILTER ({here} AND {w} IS NULL AND {g} IS NOT NULL)",
            ]
        joined = "FROM wanted w LEFT JOIN got g USING (_key)"
        row = self.duck.execute(f"SELECT {', '.join(sums)} {joined}").fetchone()
        assert row is not None
        counts = {c: tuple(row[3 + 4 * n : 7 + 4 * n]) for n, c in enumerate(fields)}
        surplus = self.duck.execute("SELECT count(*) FROM got ANTI JOIN wanted USING (_key)").fetchone()
        assert surplus is not None
        extra = surplus[0] + self._unclaimed(entity)
        return Counted(row[0], row[1], extra, int(row[2]), counts, self._examples(fields, counts, joined))

    def _examples(
        self, fields: list[str], counts: dict[str, tuple[int, ...]], joined: str
    ) -> dict[str, list[tuple[str, str | None, str | None]]]:
        found = {}
        for column in fields:
            if any(counts[column][1:]):
                w, g = f"w.{_name(column)}", f"g.{_name(column)}"
                found[column] = self.duck.execute(
                    f"SELECT _key, {w}, {g} {joined} WHERE g._key IS NOT NULL AND {w} IS DISTINCT FROM {g} ORDER BY 1 LIMIT 3"
                ).fetchall()
        return found

    def _unclaimed(self, entity: str) -> int:
        """Rows of the target's table that no entity brought; counted with the first entity of that table."""
        to = self.entities[entity]["to"]
        mine = [name for name, facts in self.entities.items() if facts["to"] == to]
        if entity != mine[0]:
            return 0
        identity = " || chr(31) || ".join(f"t.{_name(column)}" for column in self.keys[to])
        claimed = " UNION ALL ".join(f"SELECT id FROM {self._crosswalk(name)}" for name in mine)
        row = self.duck.execute(
            f"SELECT count(*) FROM {self._dump(to)} t WHERE {identity} NOT IN (SELECT id FROM ({claimed}) WHERE id IS NOT NULL)"
        ).fetchone()
        assert row is not None
        return int(row[0])

    def strayed(self) -> int:
        """Rows in a table where the truth has none of the source rows that they were made of."""
        if not self.has_crosswalk or not self.entities:
            return 0
        wanted = " UNION ALL ".join(
            f"SELECT {_literal(self.names[entity])} AS entity, {_literal(facts['to'])} AS target, _key AS old_id "
            f"FROM {self._parquet(entity)}"
            for entity, facts in self.entities.items()
        )
        row = self.duck.execute(
            "SELECT count(*) FROM (SELECT 1 FROM (SELECT c.target, c.new_id, w.old_id IS NOT NULL AS wanted "
            f"FROM {self._dump(CROSSWALK)} c LEFT JOIN ({wanted}) w USING (entity, target, old_id)) "
            "GROUP BY target, new_id HAVING NOT bool_or(wanted))"
        ).fetchone()
        assert row is not None
        return int(row[0])

    def quarantine(self) -> tuple[dict[str, tuple[int, int, int]], list[tuple[str, str, str, str]]]:
        """By code how many rows are wanted, found and both; and (entity, key, wanted, got) of those that differ."""
        wanted: dict[tuple[str, str], list[tuple[str, str]]] = {}
        path = _literal(str(self.truth / "quarantine.parquet"))
        for entity, key, column, code in self.duck.execute(f"SELECT * FROM read_parquet({path})").fetchall():
            wanted.setdefault((entity, key), []).append((column, code))
        found: dict[tuple[str, str], tuple[str, str]] = {}
        back = {plan: entity for entity, plan in self.names.items()}
        if (self.dumps / f"{QUARANTINE}.csv").exists():
            query = f"SELECT entity, key, field, code FROM {self._dump(QUARANTINE)}"
            for entity, key, column, code in self.duck.execute(query).fetchall():
                found[back.get(entity, entity), key] = (column, code)
        counts: dict[str, list[int]] = {}
        differing = []
        for place in sorted(wanted.keys() | found.keys()):
            reasons, got = wanted.get(place, []), found.get(place)
            code = got[1] if got and got[1] in {c for _, c in reasons} else reasons[0][1] if reasons else ""
            agrees = bool(got) and code == (got[1] if got else "")
            if reasons:
                counts.setdefault(code, [0, 0, 0])[0] += 1
            if got:
                counts.setdefault(got[1], [0, 0, 0])[1] += 1
                counts[got[1]][2] += agrees and bool(reasons)
            if not (agrees and reasons and got and _same_field(got, reasons)):
                said = " or ".join(f"{c} {f}" for f, c in reasons) or "no quarantine"
                differing.append((*place, said, f"{got[1]} {got[0]}" if got else "no quarantine"))
        return {code: (n[0], n[1], n[2]) for code, n in sorted(counts.items())}, differing

    def counts(self, wanted: Mapping[str, Mapping[str, int]]) -> list[str]:
        """A line for each sum of the ledger that differs from the truth's."""
        if not (self.dumps / f"{LEDGER}.csv").exists():
            return []
        rows = self.duck.execute(
            f"SELECT entity, read, excluded, quarantined, loaded FROM {self._dump(LEDGER)}"
        ).fetchall()
        got = {
            row[0]: dict(zip(("read", "excluded", "quarantined", "loaded"), map(int, row[1:]), strict=True))
            for row in rows
        }
        lines = []
        for entity, sums in wanted.items():
            have = got.get(self.names[entity], {})
            lines += [
                f"{entity}: {what} {have.get(what, 0)} rows, should be {count}"
                for what, count in sums.items()
                if have.get(what, 0) != count
            ]
        return lines


def _same_field(got: tuple[str, str], reasons: list[tuple[str, str]]) -> bool:
    """True where the column agrees, or the code is one for which the database names none."""
    return got[1] in _DATABASE_CODES or got in reasons
