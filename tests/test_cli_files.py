"""Exports as the source of a whole job: a folder of JSONL, of XLSX, of both, with a file that can't be read among them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from tests.cli_runner import migrate_here
from tests.test_cli_jobs import Job, job

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
