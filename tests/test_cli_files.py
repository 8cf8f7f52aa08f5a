"""Exports as the source of a whole job: a folder of JSONL, of XLSX, of both, a zip, contacts in several files; with a file
that can't be read among them, killed and gone on with."""

from __future__ import annotations

import csv
import json
import signal
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from tests.cli_runner import migrate_here
from tests.engine_jobs import EngineJob
from tests.test_cli_jobs import PLAN, Job, job

__all__ = ["job"]

COLUMNS: Mapping[str, Sequence[str]] = {
    "accounts": ("id", "name"),
    "contacts": ("id", "name", "mail", "account_id", "deleted", "notes"),
}
CONTACTS = 300
Write = Callable[[Path, Sequence[str], list[tuple[Any, ...]]], None]


def rows_of(table: str) -> list[tuple[Any, ...]]:
    if table == "accounts":
        return [(str(i), f"Firm {i}") for i in range(40)]
    return [
        (str(i), f" Person {i}", "nobody" if i in (1, 2, 3) else f"P{i}@Example.com", str(i % 45), str(int(i % 10 == 9)), None)
        for i in range(CONTACTS)
    ]  # fmt: skip


def write_jsonl(path: Path, names: Sequence[str], rows: list[tuple[Any, ...]]) -> None:
    lines = (json.dumps(dict(zip(names, row, strict=True))) for row in rows)
    path.with_suffix(".jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_xlsx(path: Path, names: Sequence[str], rows: list[tuple[Any, ...]]) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (names, *rows):
        sheet.append(list(row))
    book.save(path.with_suffix(".xlsx"))


@pytest.mark.parametrize("writers", [(write_jsonl, write_jsonl), (write_xlsx, write_xlsx), (write_xlsx, write_jsonl)])
def test_a_whole_job_out_of_a_folder_of_exports(job: Job, writers: tuple[Write, Write]) -> None:
    folder = job.folder / "export"
    folder.mkdir()
    for write, (table, names) in zip(writers, COLUMNS.items(), strict=True):
        write(folder / table, names, rows_of(table))
    (folder / "broken.jsonl").write_text('{"id": 1}\nnot an object\n')
    job = replace(job, source=f"csv:///{folder}")
    ran = job.run("--yes", "--json")
    assert ran.code == 0, ran
    assert "broken.jsonl" in ran.err, "a file that is set aside is told of"
    counts = ran.json["progress"]["entities"]["contacts"]["counts"]
    assert (counts["read"], counts["inserted"], counts["excluded"], counts["quarantined"]) == (300, 267, 30, 3)
    found = job.target.rows(
        "SELECT p.full_name, p.email, c.name FROM people p LEFT JOIN companies c ON c.id = p.company_id"
    )
    assert sorted(found, key=repr) == sorted(
        [
            (name.strip(), mail.lower(), f"Firm {account}" if int(account) < 40 else None)
            for _, name, mail, account, deleted, _ in rows_of("contacts")
            if deleted == "0" and "@" in mail
        ],
        key=repr,
    )
    assert migrate_here("verify", "j").code == 0
    assert migrate_here("resume", "j").code == 0
    assert job.count("people") == 267


def test_a_job_that_reads_a_broken_file_moves_nothing(job: Job) -> None:
    folder = job.folder / "export"
    folder.mkdir()
    write_jsonl(folder / "accounts", COLUMNS["accounts"], rows_of("accounts"))
    (folder / "contacts.jsonl").write_text('{"id": 1}\nnot an object\n')
    ran = replace(job, source=f"csv:///{folder}").run("--yes")
    assert ran.code == 2, ran
    (place,) = [line for line in ran.err.splitlines() if line.startswith("  at: ")]
    assert place.startswith("  at: entities.contacts.from, ")
    assert place.endswith("contacts.jsonl:2")
    assert "Traceback" not in ran.err
    assert job.count("companies") == 0


def split_zip(folder: Path, files: int, *, twice: Sequence[int] = ()) -> Path:
    """An export of a zip, contacts in so many files; rows of the numbers `twice` are once more in the last of them."""
    names, rows = COLUMNS["contacts"], rows_of("contacts")
    with zipfile.ZipFile(folder / "export.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(files):
            some = rows[number * len(rows) // files : (number + 1) * len(rows) // files]
            some += [rows[i] for i in twice] if number == files - 1 else []
            _write_csv(folder / "part.csv", names, some)
            archive.write(folder / "part.csv", f"Data/contacts_{number + 1}.csv")
        _write_csv(folder / "part.csv", COLUMNS["accounts"], rows_of("accounts"))
        archive.write(folder / "part.csv", "Data/accounts.csv")
        archive.writestr("../broken.csv", "id\n1\n")
    (folder / "part.csv").unlink()
    return folder / "export.zip"


def _write_csv(path: Path, names: Sequence[str], rows: list[tuple[Any, ...]]) -> None:
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([names, *rows])


@pytest.mark.parametrize("place", ["", "before commit:2", "after commit:2", "after stage write", "after transform"])
def test_a_zip_with_contacts_in_several_files_killed_and_resumed(
    job: Job, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = job.folder / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    export = split_zip(job.folder, 3, twice=(5, 150))
    job = replace(job, source=f"file:///{export}?together=contacts_*")
    if place:
        process = job.started(PACKHORSE_FAULT=place)
        _, err = process.communicate(timeout=120)
        assert process.returncode == -signal.SIGKILL, err
        assert list(temporary.glob("packhorse-csv-*")), "it was killed with its copies there"
        ran = migrate_here("resume", "j", "--yes", "--json")
    else:
        ran = job.run("--yes", "--json")
    assert ran.code == 0, ran
    assert not list(temporary.glob("packhorse-csv-*")), "records were left in the folder for temporary files"
    assert "broken.csv" in ran.err
    counts = ran.json["progress"]["entities"]["contacts"]["counts"]
    assert (counts["read"], counts["inserted"], counts["excluded"], counts["quarantined"]) == (302, 267, 30, 5)
    assert job.count("people") == 267
    listed = migrate_here("quarantine", "list", "j", "--json").json["clusters"]
    assert {(cluster["code"], cluster["count"]) for cluster in listed} == {("function", 3), ("unique", 2)}
    assert migrate_here("verify", "j").code == 0
    assert migrate_here("resume", "j").code == 0
    assert job.count("people") == 267


def test_files_that_look_like_one_table_are_offered_by_doctor_and_run(job: Job) -> None:
    export = split_zip(job.folder, 2)
    said = migrate_here("doctor", str(export), job.dsn, "--model", "none")
    want = f"contacts_1, contacts_2 have the same columns: to read them as one table, name the source 'csv:///{export}?together=contacts_*'"
    assert " ".join(want.split()) in " ".join(said.out.split()), said
    refused = replace(job, source=str(export)).run("--yes")
    refused.refused("PH-104", "no file for the table contacts")
    assert "?together=contacts_*" in refused.err


@pytest.mark.parametrize("place", ["after stage write:3", "after part recorded:4", "before commit:5", "after commit:6"])
def test_rows_of_one_key_lie_in_one_batch_however_it_is_killed(job: Job, place: str) -> None:
    export = split_zip(job.folder, 3, twice=range(100, 200))  # keys are text: '100' to '199' lie beside one another
    engine = EngineJob(str(job.folder), "many", PLAN, f"file:///{export}?together=contacts_*", job.dsn, batch_rows=35)
    assert engine.load_in_child(place) == -signal.SIGKILL
    assert engine.load_in_child() == 0
    found = job.target.rows("SELECT code, count(*) FROM packhorse.quarantine GROUP BY 1 ORDER BY 1")
    assert found == [("function", 3), ("unique", 90)]
    assert job.count("people") == 267
    with engine.running() as context:
        assert context.source.count("contacts") == 400
