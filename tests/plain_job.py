"""Two SQLite files and a plan between them: the smallest job that moves rows, for tests of what goes on around one."""

from __future__ import annotations

import sqlite3
from pathlib import Path

SECRET = "hunter2"
"""Stands in each row's name, in rows that are refused too."""

PLAN = """\
version: 1
entities:
  people:
    from: people
    to: people
    key: id
    id: keep
    fields:
      name: {sql: "trim(name)"}
      born: {sql: "cast(born as date)", otherwise: quarantine}
"""


def write_job(folder: Path, source: str, target: str, plan: str) -> None:
    """Writes `legacy.db` and `cloud.db`, each by a script, and `plan.yaml`."""
    for name, script in (("legacy.db", source), ("cloud.db", target)):
        with sqlite3.connect(folder / name) as connection:
            connection.executescript(script)
        connection.close()
    (folder / "plan.yaml").write_text(plan, encoding="utf-8")


def write_systems(folder: Path, rows: int = 20, bad: int = 0) -> list[str]:
    """Writes `legacy.db`, `cloud.db` and `plan.yaml`; returns the arguments of a `run` that needs nobody. The birthday of
    `bad` rows is none."""
    with sqlite3.connect(folder / "legacy.db") as connection:
        connection.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, born TEXT)")
        made = ((i, f"{SECRET} {i}", f"{SECRET}!" if i <= bad else "1984-02-29") for i in range(1, rows + 1))
        connection.executemany("INSERT INTO people VALUES (?, ?, ?)", made)
    connection.close()
    with sqlite3.connect(folder / "cloud.db") as connection:
        connection.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT NOT NULL, born DATE)")
    connection.close()
    (folder / "plan.yaml").write_text(PLAN, encoding="utf-8")
    return ["run", "sqlite:///legacy.db", "sqlite:///cloud.db", "--plan", "plan.yaml", "--job", "night", "--yes"]
