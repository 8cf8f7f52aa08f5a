"""How alike the rows of an entity are: which pairs a plan's `by` says are one, each with how sure that is.

The model is Fellegi and Sunter's, as splink runs it in DuckDB. How often two rows of different people agree by chance
is counted in the rows themselves; how often two rows of one person agree is fixed here, so that the same plan judges
alike in each job. Reads and writes nothing but tables of the DuckDB connection that it is given.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from engine.merge_plan import HowAlike
from engine.transform import execute

MOST_ALIKE = 100
"""Rows that share a value: more of them share a default value, and aren't held against each other for it."""

_SAMPLED = 1_000
"""Rows of which each is held against each other to count what agrees by chance: half a million pairs."""

_GENERATION = r"(^| )(jr|jun|junior|sr|sen|senior|ii|iii|iv|filho|neto)$"


@dataclass(frozen=True)
class _Level:
    """One degree of agreement of two values `l` and `r`; `m` is its share among pairs that are one."""

    condition: str
    m: float


# Shares as they come about where people type what they are told: most values agree, few are spelt otherwise, and what
# changes in a life (addresses, numbers) differs more often than what doesn't (names, the day of birth).
_LEVELS: dict[HowAlike, tuple[_Level, ...]] = {
    "exact": (_Level("{l} = {r}", 0.88),),
    "name": (
        _Level("{l} = {r}", 0.80),
        _Level("{lg} = {rg} AND jaro_winkler_similarity({lb}, {rb}) >= 0.9", 0.10),
        _Level("{lg} = {rg} AND (starts_with({lb}, {rb}) OR starts_with({rb}, {lb}))", 0.07),
    ),
    "email": (
        _Level("{l} = {r}", 0.75),
        _Level("split_part({l}, '@', 1) = split_part({r}, '@', 1)", 0.07),
    ),
    "phone": (
        _Level("{l} = {r}", 0.75),
        _Level("right({l}, 7) = right({r}, 7)", 0.05),
    ),
    "date": (
        _Level("{l} = {r}", 0.92),
        _Level(
            "levenshtein({l}, {r}) = 1 OR left({l}, 4) = left({r}, 4) AND right({l}, 2) = substr({r}, 6, 2) "
            "AND right({r}, 2) = substr({l}, 6, 2)",
            0.06,
        ),
    ),
    "text": (
        _Level("{l} = {r}", 0.70),
        _Level("jaro_winkler_similarity({l}, {r}) >= 0.92", 0.12),
        _Level("jaro_winkler_similarity({l}, {r}) >= 0.8", 0.06),
    ),
}


@dataclass(frozen=True)
class Pair:
    """Two rows by number, `left` the lower, and how sure it is that they are one, from 0 to 1."""

    left: int
    right: int
    sure: float


class Likeness:
    """Holds the rows of one table against each other. The table `rows` has _ph_n BIGINT, unique, and text columns."""

    def __init__(
        self,
        duck: duckdb.DuckDBPyConnection,
        rows: str,
        by: Mapping[str, HowAlike],
        apart: Sequence[str],
        same: Sequence[Sequence[str]],
        block: Sequence[Sequence[str]],
    ) -> None:
        """`by` gives the kind of each column that is compared; the columns of `apart`, `same` and `block` that aren't
        among them are compared as they are. `rows` are how many there are; after
        `pairs`, `left_out` is how many values were too common to
        go by."""
        self._duck, self._by, self._apart, self._same, self._block = duck, dict(by), apart, same, block
        self.rows = self.left_out = 0
        all_columns = dict.fromkeys([*by, *apart, *(c for each in (*same, *block) for c in each)])
        self._kinds: dict[str, HowAlike] = {c: self._by.get(c, "exact") for c in all_columns}
        self._names = {c: f"f{i}" for i, c in enumerate(all_columns)}
        self._prepare(rows)

    def pairs(self, threshold: float) -> list[Pair]:
        """The pairs that are one: those of a `same` rule are sure, the others as sure as `threshold` at least. No pair
        has values that differ in a column of `apart`. In order of sureness, then of the rows."""
        found: dict[tuple[int, int], float] = {}
        if self._by and self._block and self.rows > 1:
            found = {(a, b): p for a, b, p in self._scored(threshold, self.rows)}
        found |= dict.fromkeys(self._surely_same(), 1.0)
        apart = self.apart(found)
        pairs = [Pair(a, b, p) for (a, b), p in found.items() if (a, b) not in apart]
        return sorted(pairs, key=lambda pair: (-pair.sure, pair.left, pair.right))

    def apart(self, pairs: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
        """Those of the pairs whose values differ in a column of `apart`, and not by a slip of the pen."""
        listed = sorted(pairs)
        if not self._apart or not listed:
            return set()
        differ = " OR ".join(f"coalesce(NOT ({self._agree(c)}), false)" for c in self._apart)
        columns = sorted({name for c in self._apart for name in self._columns(c)})
        sides = ", ".join(f"{side}.{name} AS {name}_{side}" for name in columns for side in ("l", "r"))
        execute(self._duck, "CREATE OR REPLACE TEMP TABLE likeness_pairs (a BIGINT, b BIGINT)")
        for start in range(0, len(listed), 5_000):
            values = ", ".join(f"({a}, {b})" for a, b in listed[start : start + 5_000])
            execute(self._duck, f"INSERT INTO likeness_pairs VALUES {values}")
        return set(
            execute(
                self._duck,
                f"SELECT a, b FROM (SELECT p.a, p.b, {sides} FROM likeness_pairs p JOIN likeness l ON l.n = p.a "
                f"JOIN likeness r ON r.n = p.b) WHERE {differ}",
            )
        )

    # -- the rows ---------------------------------------------------------------------------------

    def _prepare(self, rows: str) -> None:
        """Makes the table `likeness`: n, the columns as they are compared, and a column a block."""
        columns = [f"{sql} AS {name}" for c in self._names for name, sql in self._normal(c)]
        execute(
            self._duck,
            f"CREATE OR REPLACE TEMP TABLE likeness_rows AS SELECT _ph_n AS n, {', '.join(columns)} FROM {rows}",
        )
        blocks = [f"{self._together(each)} AS b{i}" for i, each in enumerate(self._block)]
        capped = [
            f"CASE WHEN count(*) OVER (PARTITION BY b{i}) <= {MOST_ALIKE} THEN b{i} END AS b{i}"
            for i in range(len(blocks))
        ]
        execute(
            self._duck,
            f"CREATE OR REPLACE TEMP TABLE likeness AS SELECT * REPLACE ({', '.join(capped)}) FROM "
            f"(SELECT *, {', '.join(blocks)} FROM likeness_rows) ORDER BY n"
            if blocks
            else "CREATE OR REPLACE TEMP TABLE likeness AS SELECT * FROM likeness_rows ORDER BY n",
        )
        self.rows = execute(self._duck, "SELECT count(*) FROM likeness")[0][0]
        self.left_out = sum(self._too_common(self._together(each), "likeness_rows") for each in self._block)
        execute(self._duck, "DROP TABLE likeness_rows")

    def _too_common(self, value: str, table: str) -> int:
        """How many values more than MOST_ALIKE rows have."""
        found = execute(
            self._duck,
            f"SELECT count(*) FROM (SELECT {value} AS k FROM {table} WHERE k IS NOT NULL GROUP BY k HAVING count(*) > {MOST_ALIKE})",
        )
        return int(found[0][0])

    def _together(self, columns: Sequence[str]) -> str:
        """The text of several columns at once, NULL where one is."""
        return " || chr(31) || ".join(self._names[c] for c in columns)

    def _normal(self, column: str) -> list[tuple[str, str]]:
        """The columns that a value becomes, and their SQL over the table of rows."""
        name, kind = self._names[column], self._kinds[column]
        given = '"' + column.replace('"', '""') + '"'
        words = rf"trim(regexp_replace(strip_accents(lower({given})), '[^\p{{L}}\p{{N}}]+', ' ', 'g'))"
        if kind == "name":
            generation = rf"regexp_extract({words}, '{_GENERATION}', 2)"
            base = rf"regexp_replace({words}, '{_GENERATION}', '')"
            return [(name, f"nullif({words}, '')"), (f"{name}g", generation), (f"{name}b", f"nullif({base}, '')")]
        text = {
            "email": f"lower(trim({given}))",
            "phone": f"regexp_replace({given}, '[^0-9]', '', 'g')",
            "date": f"left(trim({given}), 10)",
            "text": words,
        }.get(kind, f"CAST({given} AS VARCHAR)")
        return [(name, f"nullif({text}, '')")]

    def _columns(self, column: str) -> list[str]:
        return [name for name, _ in self._normal(column)]

    def _filled(self, column: str, level: _Level) -> str:
        name = self._names[column]
        return level.condition.format(
            l=f"{name}_l", r=f"{name}_r", lg=f"{name}g_l", rg=f"{name}g_r", lb=f"{name}b_l", rb=f"{name}b_r"
        )

    def _agree(self, column: str) -> str:
        """True where two values agree to some degree, NULL where one is missing."""
        levels = " OR ".join(f"({self._filled(column, level)})" for level in _LEVELS[self._kinds[column]])
        name = self._names[column]
        return f"CASE WHEN {name}_l IS NOT NULL AND {name}_r IS NOT NULL THEN {levels} END"

    # -- the pairs --------------------------------------------------------------------------------

    def _surely_same(self) -> list[tuple[int, int]]:
        """Pairs with equal values in all columns of a `same` rule."""
        found: list[tuple[int, int]] = []
        for columns in self._same:
            together = self._together(columns)
            found += execute(
                self._duck,
                f"WITH k AS (SELECT n, {together} AS k FROM likeness WHERE {together} IS NOT NULL "
                f"QUALIFY count(*) OVER (PARTITION BY {together}) BETWEEN 2 AND {MOST_ALIKE}) "
                f"SELECT l.n, r.n FROM k l JOIN k r ON l.k = r.k AND l.n < r.n",
            )
            self.left_out += self._too_common(together, "likeness")
        return found

    def _scored(self, threshold: float, count: int) -> list[tuple[int, int, float]]:
        """Pairs of one block that the model takes for one, `left` the lower."""
        # Imported here: it takes half a second, and few plans merge.
        from splink import DuckDBAPI, Linker, SettingsCreator
        from splink.comparison_level_library import CustomLevel
        from splink.comparison_library import CustomComparison

        chance = self._by_chance(count)
        comparisons: list[Any] = []
        for column, kind in self._by.items():
            name, levels = self._names[column], _LEVELS[kind]
            rest = 1 - sum(level.m for level in levels)
            made: list[Any] = [CustomLevel(f"{name}_l IS NULL OR {name}_r IS NULL").configure(is_null_level=True)]
            for i, level in enumerate(levels):
                option: dict[str, Any] = (
                    {"tf_adjustment_column": name, "tf_minimum_u_value": 1 / count} if i == 0 else {}
                )
                made.append(
                    CustomLevel(self._filled(column, level)).configure(
                        m_probability=level.m, u_probability=chance[column][i], **option
                    )
                )
            made.append(CustomLevel("ELSE").configure(m_probability=rest, u_probability=chance[column][-1]))
            comparisons.append(CustomComparison(made, name))
        settings = SettingsCreator(
            link_type="dedupe_only",
            unique_id_column_name="n",
            # one row in ten is entered again: of count * (count - 1) / 2 pairs, count / 10 are one
            probability_two_random_records_match=min(0.2 / (count - 1), 0.5),
            blocking_rules_to_generate_predictions=[
                {"blocking_rule": f"l.b{i} = r.b{i}", "sql_dialect": "duckdb"} for i in range(len(self._block))
            ],
            comparisons=comparisons,
            retain_matching_columns=False,
        )
        api = DuckDBAPI(self._duck)
        logging.getLogger("splink").setLevel(logging.ERROR)
        linker = Linker(api.register("likeness"), settings, log_level=None)
        scored = linker.inference.predict(threshold_match_probability=threshold, warning_mode="never")
        pairs = execute(
            self._duck, f"SELECT least(n_l, n_r), greatest(n_l, n_r), match_probability FROM {scored.physical_name}"
        )
        api.delete_tables_created_by_splink_from_db()  # type: ignore[no-untyped-call]
        return [(int(a), int(b), float(p)) for a, b, p in pairs]

    def _by_chance(self, count: int) -> dict[str, list[float]]:
        """By column, how often two rows agree to each degree that aren't one; the last is how often they don't. Equal
        values are counted over all rows, other degrees over the pairs of a sample, which is the same each time."""
        sampled = f"(SELECT * FROM likeness ORDER BY hash(n), n LIMIT {_SAMPLED})"
        columns = sorted({name for c in self._by for name in self._columns(c)})
        sides = ", ".join(f"{side}.{name} AS {name}_{side}" for name in columns for side in ("l", "r"))
        counts: list[str] = []
        for column, kind in self._by.items():
            cases = " ".join(f"WHEN {self._filled(column, level)} THEN {i}" for i, level in enumerate(_LEVELS[kind]))
            degree = f"CASE {cases} ELSE {len(_LEVELS[kind])} END"
            both = f"{self._names[column]}_l IS NOT NULL AND {self._names[column]}_r IS NOT NULL"
            counts += [f"count(*) FILTER (WHERE {both} AND {degree} = {i})" for i in range(len(_LEVELS[kind]) + 1)]
        found = list(
            execute(
                self._duck,
                f"WITH s AS MATERIALIZED {sampled} SELECT {', '.join(counts)} FROM "
                f"(SELECT {sides} FROM s l JOIN s r ON l.n < r.n)",
            )[0]
        )
        chance: dict[str, list[float]] = {}
        for column, kind in self._by.items():
            some = [found.pop(0) for _ in range(len(_LEVELS[kind]) + 1)]
            all_pairs = sum(some) + len(some)
            shares = [(n + 1) / all_pairs for n in some]
            shares[0] = self._equal_by_chance(self._names[column], count)
            rest = 1 - shares[0]
            others = sum(shares[1:])
            chance[column] = [shares[0], *(share * rest / others for share in shares[1:])]
        return chance

    def _equal_by_chance(self, name: str, count: int) -> float:
        ((same, filled),) = execute(
            self._duck,
            f"SELECT coalesce(sum(c * (c - 1)), 0), coalesce(sum(c), 0) FROM "
            f"(SELECT count(*) AS c FROM likeness WHERE {name} IS NOT NULL GROUP BY {name})",
        )
        return min(max(float(same) / max(float(filled) * (float(filled) - 1), 1.0), 1 / count / 10), 0.5)
