"""What jobs before taught of columns: found by signature, by names nearly the same, and no further."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.alike import alike
from agent.remembered import Remembered
from connectors.protocols import Column, Kind, Table
from workspace.experience_store import ExperienceStore
from workspace.signature import match_signature

PEOPLE = Table("people", (Column("mobile", "text", Kind.TEXT), Column("fax", "text", Kind.TEXT)), ("id",))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ExperienceStore]:
    with ExperienceStore.open(tmp_path / "experience.db") as found:
        yield found


def _met(store: ExperienceStore, *names: str, column: str = "mobile", main: str = "contacts") -> dict[str, str]:
    """By column, whether it is taken for right or wrong, and how sure, in tenths."""
    wanted = PEOPLE.column(column)
    assert wanted is not None
    found = Remembered(store, main).of(PEOPLE, wanted, names)
    return {name: f"{'wrong' if met.against else 'right'} {met.share:.2f}" for name, met in found.items()}


def _learn(store: ExperienceStore, column: str, remedy: str, held: bool = True) -> None:
    store.record("match", match_signature("contacts", column), remedy, held)


def test_a_column_is_met_under_its_name_and_nearly_its_name(store: ExperienceStore) -> None:
    _learn(store, "phone_mobile", "people.mobile")
    assert _met(store, "PhoneMobile", "city") == {"PhoneMobile": "right 0.95"}
    assert _met(store, "c_phone_mobile", "city") == {"c_phone_mobile": "right 0.91"}
    assert _met(store, "phn_mbl", "city") == {"phn_mbl": "right 0.91"}
    assert _met(store, "mobile_phone", "city") == {"mobile_phone": "right 0.90"}
    assert _met(store, "city", "phone") == {}
    assert _met(store, "phone_mobile", column="fax") == {}


def test_a_table_of_another_name_tells_less(store: ExperienceStore) -> None:
    _learn(store, "phone_mobile", "people.mobile")
    assert _met(store, "phone_mobile", main="zzz") == {"phone_mobile": "right 0.76"}


def test_a_name_that_is_like_two_columns_teaches_nothing_of_either(store: ExperienceStore) -> None:
    _learn(store, "phone", "people.mobile")
    assert _met(store, "phone_q", "phone_zz") == {}
    assert _met(store, "phone_zz") == {"phone_zz": "right 0.91"}
    assert _met(store, "phone", "phone_zz") == {"phone": "right 0.95"}


def test_what_was_wrong_is_wrong_again_and_keeps_no_other_from_being_met(store: ExperienceStore) -> None:
    _learn(store, "phone", "people.mobile")
    _learn(store, "phone_home", "not people.mobile")
    assert _met(store, "phone_home", "c_phone") == {"phone_home": "wrong 0.95", "c_phone": "right 0.91"}


def test_one_failure_halves_what_a_lesson_is_worth(store: ExperienceStore) -> None:
    _learn(store, "phone", "people.mobile")
    _learn(store, "phone", "people.mobile", held=False)
    assert _met(store, "phone") == {"phone": "right 0.51"}


def test_without_a_store_nothing_is_met() -> None:
    assert Remembered(None, "contacts").of(PEOPLE, PEOPLE.columns[0], ["mobile"]) == {}


@pytest.mark.parametrize(
    ("a", "b", "least", "most"),
    [
        ("deal_stage", "deal_stage", 1, 1),
        ("dealstage", "dlstg", 0.96, 0.96),
        ("tel", "t_tel", 0.96, 0.96),
        ("tel", "hotel", 0, 0),
        ("first_name", "name_first", 0.95, 0.95),
        ("first_name", "last_name", 0, 0),
        ("phone", "phone_home", 0, 0),
        ("phone_mobile", "phone", 0, 0),
        ("phone", "phone_zz", 0.96, 0.96),
        ("created_at", "updated_at", 0, 0),
        ("at", "t", 0, 0),
    ],
)
def test_how_alike_names_are(a: str, b: str, least: float, most: float) -> None:
    assert least <= alike(a, b) <= most
    assert alike(b, a) == alike(a, b)
