"""`migrate quarantine` as a place of work: clusters with examples, rows edited in a spreadsheet and brought back, rows
given up; and values that would steer a spreadsheet, there and back exactly."""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pexpect
import pytest
from openpyxl import load_workbook

from sample_data.servers import Database, PostgresServer
from tests.cli_runner import MIGRATE, Result, environment, migrate_here
from tests.engine_jobs import sqlite_source
from tests.test_cli_jobs import Job
from workspace.events import QuarantineRetried
from workspace.log import Workspace
from workspace.paths import JobPaths

SOURCE = """
CREATE TABLE odd (id INTEGER PRIMARY KEY, born TEXT, word TEXT, photo BLOB);
CREATE TABLE firms (id TEXT PRIMARY KEY, name TEXT, kind TEXT);
INSERT INTO firms VALUES ('a', 'Acme', 'Client'), ('b', 'Bolt', 'Odd' || char(27) || '[31m'), ('c', 'Cold', 'Odd');
"""
TARGET = """
CREATE TABLE odd (id bigint PRIMARY KEY, born date, word bytea, photo bytea);
CREATE TABLE firms (id text PRIMARY KEY, name text UNIQUE, kind text);
"""
PLAN = """\
version: 1
entities:
  firms: {from: firms, to: firms, key: id, fields: {name: {from: name}, kind: {from: kind, map: kinds}}}
  odd: {from: odd, to: odd, key: id, fields: {born: {from: born}, word: {from: word}, photo: {from: photo}}}
value_maps:
  kinds: {Client: customer}
"""
WORDS = [
    None, "", "=1+1", "+41 1", "-5", "@sum", "\tx", "\t", "'", "''", "'=1", "\\u{}", "\\u{kept}", "\\u{41}", "\\", "a\nb", "a\r\nb", "\r", "\n", "\n\na\n",
    " a ", " ", "\0", "a\0b", "\x1b[31m", "_x000D_", "x" * 32_767, "y" * 32_768, "😀" * 20_000, "\ue000\ufffe\uffff", "<&>\"'", "]]>", "#REF!", "TRUE",
    "007", "1e5", "2001-01-01", "\x85\u2028\ufeff", "a,b;c", '"', "=" * 40_000,
]  # fmt: skip


@pytest.fixture
def job(tmp_path: Path, postgres: PostgresServer, postgres_database: Database, monkeypatch: pytest.MonkeyPatch) -> Job:
    """Loaded: of `odd` every row is in quarantine for its date, of `firms` two for their kind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data-home"))
    postgres_database.run(TARGET)
    (tmp_path / "plan.yaml").write_text(PLAN)
    source = sqlite_source(tmp_path / "legacy.db", SOURCE)
    with sqlite3.connect(tmp_path / "legacy.db") as connection:
        rows = [(n, "never", word, bytes([n, 0, 255])) for n, word in enumerate(WORDS)]
        connection.executemany("INSERT INTO odd VALUES (?, ?, ?, ?)", rows)
    connection.close()
    made = Job(tmp_path, source, postgres_database, postgres)
    assert made.run("--yes").code == 3
    return made


def held(job: Job) -> dict[str, Any]:
    """Rows open and dropped, by entity, as `status` tells; verification has to agree."""
    entities = migrate_here("status", "j", "--json").json["progress"]["entities"]
    verified = migrate_here("verify", "j", "--json")
    assert verified.code == 0, verified.json
    for each in verified.json["entities"]:
        told = entities[each["entity"]]
        assert (each["loaded"], each["excluded"]) == (told["counts"]["loaded"], told["counts"]["excluded"])
        assert each["quarantined"] == told["quarantine"]["open"] + told["quarantine"]["dropped"]
        assert each["dropped"] == told["quarantine"]["dropped"]
    return {name: (e["quarantine"]["open"], e["quarantine"]["dropped"]) for name, e in entities.items()}


def edit_xlsx(file: Path, entity: str, act: Callable[[dict[str, Any]], None]) -> None:
    """Has `act` change rows of a sheet, each a dict by heading, as a person would in a spreadsheet."""
    book = load_workbook(file)
    sheet = book[entity]
    headings = [cell.value for cell in sheet[1]]
    for row in sheet.iter_rows(min_row=2):
        cells = {h: c.value for h, c in zip(headings, row, strict=True)}
        act(cells)
        for heading, cell in zip(headings, row, strict=True):
            if cell.value != cells[heading]:
                cell.value = cells[heading]
    book.save(file)


def edit_csv(file: Path, entity: str, act: Callable[[dict[str, Any]], None]) -> None:
    csv.field_size_limit(1 << 20)
    with file.open(encoding="utf-8-sig", newline="") as lines:
        rows = list(csv.DictReader(lines))
    for row in rows:
        act(row)
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, list(rows[0]), delimiter=";")  # as some spreadsheets save it
        writer.writeheader()
        writer.writerows(rows)


def test_clusters_have_counts_and_an_example_that_steers_nothing(job: Job) -> None:
    shown = migrate_here("quarantine", "list", "j")
    assert shown.code == 0
    lines = shown.out.splitlines()
    assert lines[0].split() == ["open", "dropped", "entity", "reason", "signature", "example"]
    assert lines[1].endswith("0: born never")
    assert "b: kind Odd\\x1b[31m" in lines[2]
    assert "\x1b" not in shown.out
    clusters = migrate_here("quarantine", "list", "j", "--json").json["clusters"]
    assert clusters[1] == {
        "entity": "firms", "signature": "kind: map kinds", "code": "map", "field": "kind", "count": 2, "open": 2, "dropped": 0,
        "example": {"key": ["b"], "column": "kind", "value": "Odd\x1b[31m"},
    }  # fmt: skip


@pytest.mark.parametrize("suffix", ["xlsx", "csv"])
def test_hostile_values_come_back_exactly(suffix: str, job: Job) -> None:
    file = job.folder / f"held.{suffix}"
    assert migrate_here("quarantine", "export", "j", "-o", file, "--entity", "odd").code == 0
    assert file.stat().st_mode & 0o777 == 0o600
    cells: list[str] = []

    def mend(row: dict[str, Any]) -> None:
        cells.extend(str(value) for value in row.values() if value)
        row["born"] = "2001-02-03"

    (edit_xlsx if suffix == "xlsx" else edit_csv)(file, "odd", mend)
    assert not [cell for cell in cells if cell[0] in "=+-@\t\r" or len(cell) > 32_767]
    done = migrate_here("quarantine", "retry", "j", "--from", file)
    assert done.code == 0, done
    rows = job.target.rows("SELECT id, born::text, word, photo FROM odd ORDER BY id")
    assert [row[0] for row in rows] == list(range(len(WORDS)))
    for (n, born, word, photo), wanted in zip(rows, WORDS, strict=True):
        assert word == (None if wanted is None else wanted.encode()), n
        assert (born, photo) == ("2001-02-03", bytes([n, 0, 255]))
    assert held(job) == {"firms": (2, 0), "odd": (0, 0)}
    # the log tells which fields were edited, and how often, and no value
    paths = JobPaths(job.folder, "j")
    with Workspace.open(paths) as workspace:
        (begun,) = (entry.event for entry in workspace.events(types=[QuarantineRetried]))
    assert isinstance(begun, QuarantineRetried)
    assert (begun.rows, begun.edited) == (len(WORDS), {"odd": {"born": len(WORDS)}})
    assert b"2001-02-03" not in paths.database.read_bytes()


def test_what_a_person_writes_is_what_enters(job: Job) -> None:
    """NULL and empty text, numbers typed as such, binary; and rows left as they are fail as before."""
    file = job.folder / "held.xlsx"
    assert migrate_here("quarantine", "export", "j", "-o", file).code == 0
    typed = {1: (None, "ff"), 2: ("\\u{}", "0A0b"), 3: (12, None), 4: (1.5, "\\u{}"), 5: ("'=1", "00"), 6: ("=", "00")}

    def mend(row: dict[str, Any]) -> None:
        n = int(row["key"])
        if n in typed:
            row["born"], (row["word"], row["photo"]) = "2001-02-03", typed[n]
        if n == 6:
            row["word"] = "'="

    edit_xlsx(file, "odd", mend)
    done = migrate_here("quarantine", "retry", "j", "--from", file, "--json")
    assert done.code == 0, done
    assert [(e["entity"], e["driven"], e["inserted"]) for e in done.json["entities"]] == [
        ("firms", 2, 0),
        ("odd", len(WORDS), 6),
    ]
    assert job.target.rows("SELECT word, photo FROM odd ORDER BY id") == [
        (None, b"\xff"), (b"", b"\x0a\x0b"), (b"12", None), (b"1.5", b""), (b"=1", b"\0"), (b"=", b"\0"),
    ]  # fmt: skip
    assert held(job) == {"firms": (2, 0), "odd": (len(WORDS) - 6, 0)}


def damage(**cells: object) -> Callable[[dict[str, Any]], None]:
    def act(row: dict[str, Any]) -> None:
        if row["key"] == "b":
            row.update(cells)

    return act


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (damage(key="c"), ("the key is not that of the row", "sheet firms, row 2")),
        (damage(id="x"), ("the key of a row can't be edited", "row 2, column id")),
        (damage(row="2"), ("the key is not that of the row", "row 2")),
        (damage(row="0"), ("row '0' of firms is not open in quarantine", "row 2")),
        (damage(row="x"), ("row 'x' of firms", "row 2")),
        (damage(row="2", key="c", id="c"), ("row 2 of firms is there twice", "row 3")),
        (damage(entity="nope"), ("no entity 'nope'", "row 2")),
        (damage(kind="=1+1"), ("is a formula", "row 2, column kind")),
        (damage(kind=True), ("is true or false", "row 2, column kind")),
        (damage(kind="\\u{d800}"), ("is no character", "row 2, column kind")),
    ],
)
def test_a_file_that_was_changed_otherwise_moves_nothing(
    act: Callable[[dict[str, Any]], None], words: tuple[str, ...], job: Job
) -> None:
    file = job.folder / "held.xlsx"
    assert migrate_here("quarantine", "export", "j", "-o", file).code == 0
    edit_xlsx(file, "firms", act)
    migrate_here("quarantine", "retry", "j", "--from", file).refused("PH-101", *words)
    assert job.target.rows("SELECT count(*) FROM firms") == [(1,)]
    assert migrate_here("status", "j", "--json").json["progress"]["phase"] == "done"


def test_files_that_can_not_be_read_back(job: Job) -> None:
    def retried(name: str, text: str | bytes) -> Result:
        (job.folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
        return migrate_here("quarantine", "retry", "j", "--from", name)

    head = "entity,row,key,field,reason,signature"
    retried("a.txt", "").refused("PH-101", "only .xlsx and .csv")
    retried("a.xlsx", "no zip").refused("PH-101", "not an XLSX file", "a.xlsx")
    retried("a.csv", b"\xff\xfe").refused("PH-101", "is not UTF-8")
    retried("a.csv", "id,name\n1,2\n").refused("PH-101", "the first columns are not", "a.csv, row 1")
    retried("a.csv", f"{head},nope\nfirms,1,b,,,,x\n").refused("PH-101", "firms has no column 'nope'", "row 2")
    retried("a.csv", f"{head},kind,kind\nfirms,1,b,,,,x,y\n").refused("PH-101", "'kind' is there twice", "row 1")
    retried("a.csv", f"{head}\nfirms,1,b,,,,x\n").refused("PH-101", "beyond the last heading", "row 2")
    retried("a.csv", f'{head}\nfirms,1,"b').refused("PH-101", "is not CSV")
    retried("a.csv", f"{head},photo\nodd,0,0,,,,xyz\n").refused("PH-101", "hexadecimal digits", "column photo")
    (job.folder / "a.csv").unlink()
    migrate_here("quarantine", "retry", "j", "--from", "a.csv").refused("PH-101", "cannot be read")
    migrate_here("quarantine", "retry", "j", "--from", "a.csv", "--signature", "x").refused("PH-101", "--from says")
    migrate_here("quarantine", "export", "j", "-o", "held.csv").refused("PH-101", "several entities", "--entity")
    migrate_here("quarantine", "export", "j", "-o", "held.txt").refused("PH-101", ".xlsx, .csv and .jsonl")


def test_a_plan_is_edited_and_its_rows_enter(job: Job) -> None:
    (job.folder / "plan.yaml").write_text(PLAN.replace("{Client: customer}", "{Client: customer, Odd: other}"))
    done = migrate_here("quarantine", "retry", "j", "--entity", "firms", "--plan", "plan.yaml")
    assert done.code == 0, done
    assert "firms: kind changed in plan version 2; rows loaded before keep what they have" in done.out
    assert f"j: {len(WORDS) + 1} rows open in quarantine, 0 dropped" in done.out
    assert job.target.rows("SELECT id, kind FROM firms ORDER BY 1") == [("a", "customer"), ("c", "other")]
    assert held(job) == {"firms": (1, 0), "odd": (len(WORDS), 0)}
    assert (job.folder / ".packhorse/jobs/j/plans/plan-2.yaml").exists()
    (job.folder / "plan.yaml").write_text(PLAN.replace("to: firms", "to: odd"))
    refused = migrate_here("quarantine", "retry", "j", "--plan", "plan.yaml")
    refused.refused("PH-201", "another target table", "entities.firms.to")


def test_rows_are_given_up_and_stay_counted(job: Job) -> None:
    migrate_here("quarantine", "drop", "j", "--entity", "firms").refused("PH-101", "no terminal", "--yes")
    done = migrate_here("quarantine", "drop", "j", "--entity", "firms", "--yes")
    assert (done.code, done.out) == (0, f"j: 2 rows dropped; {len(WORDS)} open in quarantine, 2 dropped\n")
    assert held(job) == {"firms": (0, 2), "odd": (len(WORDS), 0)}
    status = migrate_here("status", "j").out
    assert [line.split()[-2] for line in status.splitlines() if line.startswith(("entity", "firms", "odd"))] == [
        "dropped",
        "2",
        "0",
    ]
    assert migrate_here("quarantine", "list", "j").out.splitlines()[2].split()[:3] == ["0", "2", "firms"]

    plan = job.folder / "plan.yaml"
    plan.write_text(PLAN.replace("{Client: customer}", "{Client: customer, Odd: other}"))
    assert "no such row is open" in migrate_here("quarantine", "retry", "j", "--entity", "firms", "--plan", plan).out
    again = migrate_here("quarantine", "retry", "j", "--entity", "firms", "--dropped", "--json").json
    assert (again["entities"][0]["inserted"], again["open"], again["dropped"]) == (1, len(WORDS), 1)
    assert held(job) == {"firms": (0, 1), "odd": (len(WORDS), 0)}

    with pexpect.spawn(
        MIGRATE, ["quarantine", "drop", "j"], cwd=str(job.folder), env=environment(job.folder), encoding="utf-8", timeout=60  # type: ignore[arg-type]
    ) as person:  # fmt: skip
        person.expect(f"drop {len(WORDS)} rows")
        person.sendline("n")
        person.expect("nothing was dropped")
        person.expect(pexpect.EOF)
    assert held(job) == {"firms": (0, 1), "odd": (len(WORDS), 0)}
