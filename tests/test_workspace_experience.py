from __future__ import annotations

import json
import re
import sqlite3
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from workspace.errors import WorkspaceError
from workspace.experience_store import ExperienceStore, Lesson
from workspace.signature import column_pattern, match_signature, normalise, shape, value_map_signature

SIGNATURE = "birthday: cast date: '99/99/9999'"


@pytest.fixture
def store(tmp_path: Path) -> ExperienceStore:
    return ExperienceStore.open(tmp_path / "data" / "experience.db")


def tell(store: ExperienceStore, remedy: str, *, held: int, failed: int = 0) -> None:
    for outcome in [True] * held + [False] * failed:
        store.record("failure", SIGNATURE, remedy, outcome)


def counts(store: ExperienceStore) -> dict[str, tuple[int, int]]:
    return {lesson.remedy: (lesson.tried, lesson.held) for lesson in store.lessons()}


def test_tries_and_holds_are_counted(store: ExperienceStore) -> None:
    tell(store, "otherwise: null", held=2, failed=1)
    (lesson,) = store.recall("failure", SIGNATURE)
    assert (lesson.kind, lesson.signature, lesson.remedy) == ("failure", SIGNATURE, "otherwise: null")
    assert (lesson.tried, lesson.held) == (3, 2)
    assert store.recall("match", SIGNATURE) == []
    assert store.recall("failure", "another") == []


def test_many_good_tries_rank_above_one_and_never_held_is_last(store: ExperienceStore) -> None:
    tell(store, "once", held=1)
    tell(store, "nine of ten", held=9, failed=1)
    tell(store, "never", held=0, failed=5)
    tell(store, "six of eight", held=6, failed=2)
    assert [lesson.remedy for lesson in store.recall("failure", SIGNATURE)] == [
        "nine of ten",
        "six of eight",
        "once",
        "never",
    ]


@given(st.integers(1, 500), st.data())
def test_trust_is_below_the_share_and_grows_with_tries(tried: int, data: st.DataObject) -> None:
    from datetime import UTC, datetime

    def trust(tried: int, held: int) -> float:
        return Lesson("failure", "s", "r", tried, held, datetime(2024, 1, 1, tzinfo=UTC)).trust

    held = data.draw(st.integers(0, tried))
    assert 0 <= trust(tried, held) <= held / tried + 1e-12
    assert trust(tried * 2, held * 2) >= trust(tried, held) - 1e-12
    assert trust(tried + 1, held + 1) >= trust(tried, held) - 1e-12
    assert trust(0, 0) == 0.0


@pytest.mark.parametrize(("tried", "held", "trust"), [(1, 1, 0.27), (10, 9, 0.65), (20, 20, 0.88), (5, 0, 0.0)])
def test_trust_in_numbers(tried: int, held: int, trust: float) -> None:
    from datetime import UTC, datetime

    lesson = Lesson("failure", "s", "r", tried, held, datetime(2024, 1, 1, tzinfo=UTC))
    assert lesson.trust == pytest.approx(trust, abs=0.005)


def test_lessons_outlast_the_process_in_files_for_their_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "data" / "experience.db"
    with ExperienceStore.open(file) as store:
        tell(store, "map", held=1)
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        modes = {stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()}
        assert modes == {0o600}
    with ExperienceStore.open(file) as store:
        assert counts(store) == {"map": (1, 1)}


def test_it_lies_in_the_data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "home"))
    with ExperienceStore.open() as store:
        assert store.file == tmp_path / "home" / "experience.db"


def test_processes_that_start_and_record_at_once_lose_nothing(tmp_path: Path) -> None:
    script = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from workspace.experience_store import ExperienceStore
        with ExperienceStore.open(Path(sys.argv[1])) as store:
            for n in range(20):
                store.record("failure", "s", "r", n % 2 == 0)
        """
    )
    file = tmp_path / "new" / "experience.db"
    processes = [subprocess.Popen([sys.executable, "-c", script, str(file)]) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    with ExperienceStore.open(file) as store:
        assert counts(store) == {"r": (80, 40)}


def test_forgetting(store: ExperienceStore) -> None:
    tell(store, "a", held=1)
    tell(store, "b", held=1)
    store.record("match", "contacts.email", "people.email", True)
    assert store.forget(kind="failure", signature="another", remedy="a") == 0
    assert store.forget(kind="failure", signature=SIGNATURE.upper(), remedy="a") == 1
    assert set(counts(store)) == {"b", "people.email"}
    assert store.forget(kind="match") == 1
    assert store.forget(remedy="nothing") == 0
    assert store.forget() == 1
    assert store.lessons() == []


def test_what_is_exported_can_be_taken_in_elsewhere_once(tmp_path: Path, store: ExperienceStore) -> None:
    tell(store, "map", held=2, failed=1)
    document = store.export_lessons()
    with ExperienceStore.open(tmp_path / "other.db") as other:
        tell(other, "map", held=1)
        assert other.import_lessons(document) == 1
        assert counts(other) == {"map": (4, 3)}
        assert other.import_lessons(document) == 0
        assert counts(other) == {"map": (4, 3)}
        assert store.import_lessons(other.export_lessons()) == 1  # back again: its own part doesn't double
    assert counts(store) == {"map": (4, 3)}
    tell(store, "map", held=1)
    assert counts(store) == {"map": (5, 4)}
    assert store.import_lessons(document) == 0  # older than what it holds of itself
    assert counts(store) == {"map": (5, 4)}


LESSON = {
    "origin": "x",
    "kind": "match",
    "signature": "s",
    "remedy": "r",
    "tried": 1,
    "held": 1,
    "last_seen": "2024-01-01T00:00:00Z",
}


@pytest.mark.parametrize(
    "document",
    [
        "",
        "[]",
        "{}",
        "\0",
        json.dumps({"packhorse_experience": 2, "lessons": []}),
        json.dumps({"packhorse_experience": 1, "lessons": [LESSON, {**LESSON, "held": 2}]}),
        json.dumps({"packhorse_experience": 1, "lessons": [LESSON, {**LESSON, "tried": -1}]}),
        json.dumps({"packhorse_experience": 1, "lessons": [LESSON, {**LESSON, "kind": "gossip"}]}),
        json.dumps({"packhorse_experience": 1, "lessons": [LESSON, {**LESSON, "extra": 1}]}),
        json.dumps({"packhorse_experience": 1, "lessons": [LESSON, {**LESSON, "last_seen": "soon"}]}),
    ],
)
def test_a_document_that_is_none_is_refused_whole(store: ExperienceStore, document: str) -> None:
    with pytest.raises(WorkspaceError) as caught:
        store.import_lessons(document)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    assert store.lessons() == []


def test_imported_signatures_are_normalised_too(store: ExperienceStore) -> None:
    foreign = {**LESSON, "kind": "failure", "signature": "Email: enum: 'Ana Ruiz'"}
    store.import_lessons(json.dumps({"packhorse_experience": 1, "lessons": [foreign]}))
    assert "Ruiz" not in store.export_lessons()
    assert len(store.recall("failure", "email: enum: 'Ana Ruiz'")) == 1


def test_signatures_are_found_by_likeness_the_likest_first(store: ExperienceStore) -> None:
    for column in ("phone_mobile", "c_phone_mobile", "street", "phone"):
        store.record("match", f"contacts.{column}", "people.mobile", True)
    store.record("failure", "contacts.phone_mobile", "null", True)
    store.record("match", "contacts.phone_mobile", "people.phone", False)
    found = [(each.signature, each.remedy) for each in store.near("match", "contacts.phone_mobile")]
    assert found[:2] == [("contacts.phone_mobile", "people.mobile"), ("contacts.phone_mobile", "people.phone")]
    assert [signature for signature, _ in found].index("contacts.c_phone_mobile") == 2
    assert store.near("match", "contacts.phone_mobile", most=1) == store.recall("match", "contacts.phone_mobile")
    assert store.near("match", 'x"y OR NOT z') == []
    assert store.near("match", "ab") == []
    store.forget(signature="contacts.phone_mobile", remedy="people.phone")
    assert store.near("match", "contacts.phone_mobile", most=1) == store.recall("match", "contacts.phone_mobile")
    store.forget(signature="contacts.phone_mobile")
    assert "contacts.phone_mobile" not in [each.signature for each in store.near("match", "contacts.phone_mobile")]


def test_a_store_of_the_version_before_is_searched_too(tmp_path: Path) -> None:
    file = tmp_path / "old.db"
    with ExperienceStore.open(file) as store:
        store.record("match", "contacts.phone_mobile", "people.mobile", True)
    connection = sqlite3.connect(file)
    for trigger in ("lesson_added", "lesson_removed"):
        connection.execute(f"DROP TRIGGER {trigger}")
    connection.execute("DROP TABLE lesson_text")
    connection.execute("PRAGMA user_version = 1")
    connection.close()
    with ExperienceStore.open(file) as store:
        assert [each.remedy for each in store.near("match", "contact.phone_mobile")] == ["people.mobile"]


def test_an_unknown_kind_is_refused(store: ExperienceStore) -> None:
    with pytest.raises(ValueError, match="match, value_map, failure"):
        store.record("gossip", "s", "r", True)  # type: ignore[arg-type]


def test_a_newer_store_and_another_file_are_refused(tmp_path: Path, store: ExperienceStore) -> None:
    store.close()
    connection = sqlite3.connect(store.file)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(WorkspaceError, match="this experience was written by a newer version"):
        ExperienceStore.open(store.file)
    (tmp_path / "text.db").write_text("not a database at all " * 100)
    with pytest.raises(WorkspaceError, match="experience is damaged"):
        ExperienceStore.open(tmp_path / "text.db")


@pytest.mark.parametrize(
    ("given_", "kept"),
    [
        (SIGNATURE, SIGNATURE),
        ("  Birthday:\tCAST date:  '12/31/1999' ", SIGNATURE),
        ("name: length 80: 'Ana O'Brien'", "name: length 9: 'Aaa A'Aaaaa'"),
        ('city: enum: "São \'Paulo"', 'city: enum: "Aaa \'Aaaaa"'),
        ("opted_out: not a boolean: 2", "opted_out: not a boolean: 9"),
        ("email: ana.ruiz@example.com twice", "email: aaa.aaaa@aaaaaaa.aaa twice"),
        ("cut off: 'Ana Ru", "cut off: 'Aaa Aa"),
        ("it isn't a date", "it isn't a date"),
        ("zahl: '١٢'", "zahl: '99'"),
    ],
)
def test_signatures_are_kept_without_values(given_: str, kept: str) -> None:
    assert normalise(given_) == kept


@given(st.text(max_size=400))
@example("a: '" + "B" * 150 + "' " + "C" * 60 + "'")  # the cut takes the last quote
@example("ß" * 150)  # grows in lower case
def test_normalising_twice_changes_nothing(signature: str) -> None:
    once = normalise(signature)
    assert normalise(once) == once
    assert len(once) <= 200
    assert not re.search(r"\d\d", re.sub(r"'.*|\".*|\S+@\S+|\w+://\S+", "", once))


@given(st.text(max_size=60))
def test_nothing_of_a_quoted_value_is_left_but_its_shape(value: str) -> None:
    kept = normalise(f"name: enum: '{value}'")
    left = kept.removeprefix("name: enum:")
    letters = {character for character in left if character.isalpha()}
    assert letters <= {"a", "A"}
    assert not any(character.isdigit() and character != "9" for character in left)


def test_shapes() -> None:
    assert shape("Ana 31-12\t№5") == "Aaa 99-99 №9"
    assert shape("名é") == "aa"


@pytest.mark.parametrize(
    ("column", "pattern"),
    [
        ("EmailAddress2", "email_address_9"),
        ("email_address_2", "email_address_9"),
        ("email_address1_c", "email_address_9"),
        ("Email Address 12", "email_address_9"),
        ("MobilePhone__c", "mobile_phone"),
        ("PHONE_MOBILE", "phone_mobile"),
        ("größe", "grösse"),
    ],
)
def test_columns_of_many_systems_have_one_pattern(column: str, pattern: str) -> None:
    assert column_pattern(column) == pattern
    assert column_pattern(pattern) == pattern


def test_signatures_of_matches_and_value_maps_survive_normalising() -> None:
    match = match_signature("Contacts", "EmailAddress2")
    assert match == "contacts.email_address_9"
    assert normalise(match) == match
    labels = value_map_signature("lead_status_c", ["New", "Dead"])
    assert labels == "lead_status to dead|new"
    assert normalise(labels) == labels
