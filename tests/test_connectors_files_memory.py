"""What files take in memory: as much for many rows as for few; and what can't be done with little is done with more."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from connectors import file_store
from connectors.dsn import open_source

MEASURE = """
import resource, sys
from connectors.dsn import open_source
source = open_source(sys.argv[1])
rows = sum(page.rows.num_rows for page in source.pages("t", ("id",), after=None, size=20_000))
source.close()
print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def write(folder: Path, rows: int, form: str) -> Path:
    folder.mkdir()
    with (folder / f"t.{form}").open("w") as file:
        file.write("id,name,email,city,note,size\n" if form == "csv" else "")
        for i in range(rows):
            row = (
                i * 7919 % rows,
                f"Person {i}",
                f"person{i}@example.com",
                f"City {i % 977}",
                f"said {i * 31} things " * 3,
                i / 2,
            )
            named = zip(("id", "name", "email", "city", "note", "size"), row, strict=True)
            file.write((",".join(map(str, row)) if form == "csv" else json.dumps(dict(named))) + "\n")
    return folder


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_ten_times_the_rows_take_no_more_memory(tmp_path: Path, form: str) -> None:
    taken = {}
    for rows in (60_000, 600_000):
        folder = write(tmp_path / str(rows), rows, form)
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, str(folder)], capture_output=True, text=True, check=True,
            cwd=Path(__file__).parent.parent,
        )  # fmt: skip
        read, taken[rows] = map(int, done.stdout.split())
        assert read == rows
    assert taken[600_000] < 1.25 * taken[60_000], taken  # 2.4 times as much before


def test_what_little_memory_isnt_enough_for_is_done_with_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_store, "_LEAST_MEMORY", 7)
    monkeypatch.setattr(file_store, "_MEMORY_A_COLUMN", 0)
    rows = 200_000
    folder = write(tmp_path / "many", rows, "csv")
    grown = []
    grow = file_store.FileStore._grow
    monkeypatch.setattr(file_store.FileStore, "_grow", lambda store: grown.append(grow(store)) or grown[-1])
    with closing(open_source(str(folder))) as source:
        found = [
            v
            for page in source.pages("t", ("id",), after=None, size=20_000)
            for v in page.rows.column("id").to_pylist()
        ]
        assert grown == [True]
        assert found == sorted(map(str, range(rows)))
        assert source.count("t") == rows
        assert source.query("SELECT count(DISTINCT email) FROM t") == [(rows,)]
    assert grown == [True]


def test_a_wide_table_and_a_long_line(tmp_path: Path) -> None:
    wide, rows = 300, 20_000
    with (tmp_path / "t.csv").open("w") as file:
        file.write(",".join(f"c{n}" for n in range(wide)) + "\n")
        for i in range(rows):
            file.write(",".join(f"{i} {n}" for n in range(wide)) + "\n")
    (tmp_path / "u.csv").write_text("id,text\n" + "".join(f"{i},{'x' * 5_000_000}\n" for i in range(9)))
    with closing(open_source(str(tmp_path))) as source:
        assert source.count("t") == rows
        pages = source.pages("t", ("c0",), after=None, size=5_000)
        assert sum(page.rows.num_rows for page in pages) == rows
        assert [len(v) for page in source.pages("u", ("id",), after=None, size=3) for v in page.rows.column("text").to_pylist()] == [5_000_000] * 9  # fmt: skip
