"""How well duplicates are found: the sample's, of which it is known who is who, and small tables of pairs.

The model counts what agrees by chance in the rows it is given; nothing of it is fitted to the sample. So two seeds.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from bench.duplicates import PairScore, score_pairs
from engine.clusters import clusters
from engine.likeness import Likeness, Pair
from engine.merge_plan import HowAlike
from engine.preview import preview
from sample_data.duplicates import PLAN, TARGET_SQL, Truth, write_duplicates
from sample_data.servers import Database, PostgresServer
from tests.engine_jobs import EngineJob


@pytest.mark.parametrize("seed", [7, 11])
def test_duplicates_of_the_sample(
    seed: int, postgres: PostgresServer, postgres_database: Database, tmp_path: Path
) -> None:
    truth = write_duplicates(tmp_path / "legacy.db", 1500, seed)
    postgres_database.run(TARGET_SQL)
    job = EngineJob(
        str(tmp_path), "job", PLAN.read_text(), f"sqlite:///{tmp_path}/legacy.db", postgres_database.socket_dsn,
        batch_rows=500,
    )  # fmt: skip
    outcome = job.load()
    assert job.verified().ok
    with postgres.connect(postgres_database.name) as connection:
        for entity, who in (("people", truth.people), ("companies", truth.companies)):
            homes = dict(
                connection.execute(
                    "SELECT old_id, new_id FROM packhorse.crosswalk x JOIN packhorse.entity e ON e.id = x.entity_id WHERE e.name = %s",
                    [entity],
                ).fetchall()
            )
            score = score_pairs(homes, who)
            assert score.right > 20, entity
            assert score.f1 >= 0.95, (entity, score)
            assert wrongly_one(homes, who, truth) == {}
        merged = connection.execute("SELECT sum(merged)::int FROM packhorse.ledger").fetchone()
        assert merged == (outcome.merged,)


def wrongly_one(homes: dict[str, str], who: dict[str, int], truth: Truth) -> dict[str, int]:
    """By kind, how many that only look alike became one."""
    found: dict[str, int] = {}
    by_home: dict[str, set[int]] = {}
    for key, home in homes.items():
        by_home.setdefault(home, set()).add(who[key])
    kinds = {"branches"} if who is truth.companies else set(truth.alike) - {"branches"}
    for kind in kinds:
        assert len(truth.alike[kind]) >= 5, kind
        wrong = sum(
            1 for people in by_home.values() for pair in combinations(sorted(people), 2) if pair in truth.alike[kind]
        )
        if wrong:
            found[kind] = wrong
    return found


def test_a_preview_lists_what_a_load_merges(postgres_database: Database, tmp_path: Path) -> None:
    write_duplicates(tmp_path / "legacy.db", 400, 5)
    postgres_database.run(TARGET_SQL)
    job = EngineJob(
        str(tmp_path), "job", PLAN.read_text(), f"sqlite:///{tmp_path}/legacy.db", postgres_database.socket_dsn
    )
    with job.running() as ctx:
        shown = {each.entity: each for each in preview(ctx).entities}
    people = shown["people"]
    assert people.merged > 20
    assert people.read == people.load + people.merged + people.quarantined
    assert len(people.duplicates) == min(20, people.duplicates_total)
    first = people.duplicates[0]
    assert [each.sure for each in people.duplicates] == sorted(each.sure for each in people.duplicates)
    assert len(first.rows) > 1
    assert first.becomes["family_name"] in {row["family_name"] for row in first.rows.values()}
    assert not postgres_database.rows("SELECT 1 FROM pg_namespace WHERE nspname = 'packhorse'")
    assert job.load().merged == sum(each.merged for each in shown.values())


def test_pairs_are_scored_by_who_they_are() -> None:
    who = {"a": 1, "b": 1, "c": 1, "d": 2, "e": 3}
    assert score_pairs({"a": "x", "b": "x", "c": "y", "d": "y", "e": "z"}, who) == PairScore(1, 2, 3)
    assert score_pairs({"a": "x"}, who) == PairScore(0, 0, 3)
    assert PairScore(1, 2, 4).precision == 0.5
    assert PairScore(1, 2, 4).recall == 0.25
    assert PairScore(0, 0, 0).f1 == 1.0


# Each value against each other: they agree to some degree, or differ, or say nothing (None).
AGREE: list[tuple[HowAlike, str | None, str | None, bool | None]] = [
    ("name", "José", "JOSE", True),
    ("name", "J.", "John", True),
    ("name", "Ann", "Anna", True),
    ("name", "Katherine", "Kathrine", True),
    ("name", "Mary", "Martha", False),
    ("name", "Lee", "", None),
    ("name", "Smith", "Smith Jr.", False),
    ("name", "Smith, Jr", "Smith jr.", True),
    ("name", "Silva Filho", "Silva Neto", False),
    ("name", "王", "李", False),
    ("email", "A@x.example", "a@x.example ", True),
    ("email", "ann@x.example", "ann@y.example", True),
    ("email", "ann@x.example", "bob@x.example", False),
    ("phone", "+49 30 1234567", "+49301234567", True),
    ("phone", "+49301234567", "1234567", True),
    ("phone", "+49301234567", "+49301234568", False),
    ("date", "1980-05-04", "1980-04-05", True),
    ("date", "1980-05-04", "1981-05-04", True),
    ("date", "1980-05-04", "1950-05-04 00:00:00", True),
    ("date", "1980-05-04", "1953-05-04", False),
    ("date", "1980-05-04", None, None),
    ("text", "Haupt-Straße 5", "hauptstrasse 5", True),
    ("text", "Main Street 5", "Oak Avenue 70", False),
    ("exact", "a", "A", False),
    ("exact", "12345", "12345", True),
]  # fmt: skip


@pytest.mark.parametrize(("how", "left", "right", "agree"), AGREE)
def test_when_two_values_are_different(how: HowAlike, left: str | None, right: str | None, agree: bool | None) -> None:
    likeness = over(
        [{"v": left, "k": "1"}, {"v": right, "k": "1"}], {"v": how}, apart=["v"], same=[["k"]], block=[["k"]]
    )
    assert likeness.apart([(0, 1)]) == ({(0, 1)} if agree is False else set())
    assert [(p.left, p.right) for p in likeness.pairs(0.9)] == ([] if agree is False else [(0, 1)])


def over(rows: list[dict[str, Any]], by: dict[str, HowAlike], **rules: Any) -> Likeness:
    duck = duckdb.connect()
    table = pa.table({"_ph_n": list(range(len(rows))), **{c: [row[c] for row in rows] for c in rows[0]}})
    duck.register("given", table)
    return Likeness(duck, "given", by, rules.get("apart", []), rules.get("same", []), rules.get("block", []))


def test_a_value_that_very_many_share_says_nothing() -> None:
    rows = [{"email": "none@example.com", "name": f"n{i // 2}"} for i in range(120)]
    likeness = over(rows, {}, same=[["email"]])
    assert likeness.pairs(0.9) == []
    assert likeness.left_out == 1
    assert len(over(rows, {}, same=[["email", "name"]]).pairs(0.9)) == 60
    blocked = over(rows, {"name": "name", "email": "email"}, block=[["email"]])
    assert blocked.pairs(0.5) == []
    assert blocked.left_out == 1


def test_the_same_rows_give_the_same_pairs_to_the_last_digit() -> None:
    rows = [
        {"name": f"Ann Bell{i // 2}", "mail": f"m{i // (2 + i % 5)}@x.example", "phone": f"+1{i // 2:08d}"}
        for i in range(300)
    ]
    by: dict[str, HowAlike] = {"name": "name", "mail": "email", "phone": "phone"}
    one, other = (over(rows, by, block=[["mail"], ["phone"]]).pairs(0.05) for _ in range(2))
    assert one == other
    assert len(one) > 10


CLUSTERS: list[tuple[str, list[Pair], set[tuple[int, int]], list[tuple[int, ...]]]] = [
    ("none", [], set(), []),
    ("two", [Pair(3, 8, 0.99)], set(), [(3, 8)]),
    ("a chain is one", [Pair(1, 2, 0.99), Pair(2, 3, 0.98), Pair(3, 9, 0.97)], set(), [(1, 2, 3, 9)]),
    ("two clusters", [Pair(5, 6, 1.0), Pair(1, 9, 0.96)], set(), [(1, 9), (5, 6)]),
    ("a row between two goes to the surer", [Pair(2, 3, 0.99), Pair(1, 2, 0.98)], {(1, 3)}, [(2, 3)]),
    ("and takes others with it", [Pair(2, 3, 0.99), Pair(1, 2, 0.98), Pair(1, 4, 0.97)], {(1, 3)}, [(1, 4), (2, 3)]),
    ("unless they must stay apart", [Pair(2, 3, 0.99), Pair(3, 4, 0.98), Pair(1, 4, 0.97)], {(1, 2)}, [(2, 3, 4)]),
    ("too many are no cluster", [Pair(n, n + 1, 1.0) for n in range(101)] + [Pair(500, 501, 1.0)], set(), [(500, 501)]),
]


@pytest.mark.parametrize(
    ("pairs", "forbidden", "wanted"), [each[1:] for each in CLUSTERS], ids=[each[0] for each in CLUSTERS]
)
def test_clusters(pairs: list[Pair], forbidden: set[tuple[int, int]], wanted: list[tuple[int, ...]]) -> None:
    assert clusters(pairs, lambda asked: forbidden & set(asked)) == wanted
