"""`migrate plan edit`, on a terminal with a small script for an editor: what is saved is checked, shown, asked about, and
what a job goes by from then on.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pexpect
import pytest

from agent.plan_edits import with_edits
from engine.plan import Plan, parse_plan
from engine.plan_place import line_of, with_version
from tests.cli_runner import MIGRATE, environment, migrate_here
from tests.plain_job import write_job
from workspace.events import BatchCommitted
from workspace.lock import JobLock
from workspace.log import Workspace
from workspace.paths import JobPaths

SOURCE = """
CREATE TABLE contacts (id INTEGER PRIMARY KEY, last_name TEXT, email_address TEXT, deleted INTEGER);
INSERT INTO contacts VALUES (1, 'Lee', 'lee@example.com', 0), (2, 'Ray', 'ray@example.com', 0), (3, 'Ng', 'ng@example.com', 1);
"""
TARGET = "CREATE TABLE people (id INTEGER PRIMARY KEY, last_name TEXT, email TEXT, rating INTEGER);"
PLAN = """\
version: 1
source: sqlite:///legacy.db
target: sqlite:///cloud.db
entities:
  contacts:
    from: contacts
    to: people
    key: id
    where: deleted = 0
    fields:
      last_name: {from: last_name}
      email: {sql: lower(email_address)}  # the address
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data-home"))
    write_job(tmp_path, SOURCE, TARGET, PLAN)
    return tmp_path


def people() -> list[tuple[object, ...]]:
    connection = sqlite3.connect("cloud.db")
    found = connection.execute("SELECT id, last_name, email, rating FROM people ORDER BY id").fetchall()
    connection.close()
    return found


def editing(folder: Path, script: str, *arguments: str, variable: str = "EDITOR") -> pexpect.spawn:
    """`migrate plan edit` with an editor that runs the script on its last argument."""
    tool = folder / "the editor"
    tool.write_text(f'#!/bin/bash\nfor FILE; do :; done\nprintf "%s\\n" "$@" >> {folder}/called\n{script}\n')
    tool.chmod(0o755)
    env = environment(
        folder, {"TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "150", variable: f"'{tool}' --wait '; touch harm'"}
    )
    return pexpect.spawn(
        MIGRATE,
        ["plan", "edit", *arguments],
        cwd=str(folder),
        env=env,
        timeout=60,
        encoding="utf-8",
        dimensions=(40, 150),
    )


def ended(child: pexpect.spawn) -> int | None:
    child.expect(pexpect.EOF)
    child.close()
    return child.exitstatus


def loaded(*more: str) -> None:
    run = migrate_here(
        "run", "sqlite:///legacy.db", "sqlite:///cloud.db", "--plan", "plan.yaml", "--job", "j", "--yes", *more
    )
    assert run.code == 0, run


def test_a_jobs_plan_is_edited_and_resume_goes_by_it(folder: Path) -> None:
    loaded("--dry-run")
    child = editing(
        folder, """sed -i 's/lower(email_address)/upper(email_address)/; s/^entities:/# mine\\nentities:/' "$FILE" """
    )
    child.expect("~ entities.contacts.fields.email.sql: lower\\(email_address\\) -> upper\\(email_address\\)")
    child.expect("version 2 of j's plan")
    child.sendline("y")
    assert ended(child) == 0
    called = (folder / "called").read_text().splitlines()
    assert called[:2] == ["--wait", "; touch harm"]  # words of the variable, and no shell that reads them
    assert not (folder / "harm").exists()
    kept = (folder / ".packhorse/jobs/j/plans/plan-2.yaml").read_text()
    assert "# mine\nentities:" in kept
    assert "version: 2\n" in kept
    assert migrate_here("resume", "j", "--yes").code == 0
    assert people() == [(1, "Lee", "LEE@EXAMPLE.COM", None), (2, "Ray", "RAY@EXAMPLE.COM", None)]
    assert (folder / ".packhorse/jobs/j/plans/plan-2.yaml").read_text() == kept
    # edited again, it begins with what the person wrote
    child = editing(folder, 'grep -c "# mine" "$FILE" > seen', "j", variable="VISUAL")
    child.expect("nothing was changed")
    assert ended(child) == 0
    assert (folder / "seen").read_text() == "1\n"


def test_an_error_is_shown_with_its_line_and_edited_again(folder: Path) -> None:
    loaded("--dry-run")
    script = """
    if ! grep -q nonsense "$FILE"; then sed -i 's/lower(email_address)/nonsense(email_address)/' "$FILE"
    elif ! grep -q 'to: {' "$FILE"; then sed -i 's/to: people/to: {/' "$FILE"
    else sed -i 's/to: {/to: people/; s/nonsense/trim/' "$FILE"; fi"""
    child = editing(folder, script, "j")
    child.expect("error PH-\\d+:.*nonsense")
    child.expect("at: being-edited.yaml:\\d+: entities.contacts.fields.email")
    child.sendline("y")
    child.expect("error PH-\\d+:.*not valid YAML")
    child.expect("being-edited.yaml:\\d+:\\d+")
    child.sendline("")
    child.expect("lower\\(email_address\\) -> trim\\(email_address\\)")
    child.sendline("n")
    child.expect("nothing was kept; what you typed lies in")
    assert ended(child) == 130
    migrate_here("plan", "diff", "1", "2", "--job", "j").refused("PH-201", "no plan version 2")


def test_rows_that_are_loaded_are_driven_again(folder: Path) -> None:
    loaded()
    assert people()[0] == (1, "Lee", "lee@example.com", None)
    script = """sed -i 's/lower(email_address)"/upper(email_address)"/; s/^    fields:/    fields:\\n      rating: {default: 3}/' "$FILE" """
    child = editing(folder, script, "j")
    child.expect("contacts: 2 rows are loaded; migrate resume j drives them again")
    child.sendline("y")
    assert ended(child) == 0
    assert people()[0] == (1, "Lee", "lee@example.com", None)
    resumed = migrate_here("resume", "j", "--yes")
    assert resumed.code == 0, resumed
    assert people() == [(1, "Lee", "LEE@EXAMPLE.COM", 3), (2, "Ray", "RAY@EXAMPLE.COM", 3)]
    assert migrate_here("verify", "j").code == 0


def test_rows_that_an_edited_where_holds_back_leave(folder: Path) -> None:
    loaded()
    child = editing(folder, "sed -i 's/where: deleted = 0/where: id > 1/' \"$FILE\" ", "j")
    child.expect("contacts: 2 rows are loaded; migrate resume j drives them again")
    child.expect("contacts: those that its `where` holds back now leave the target")
    child.sendline("y")
    assert ended(child) == 0
    resumed = migrate_here("resume", "j", "--yes")
    assert resumed.code == 0, resumed
    assert people() == [(2, "Ray", "ray@example.com", None), (3, "Ng", "ng@example.com", None)]
    assert migrate_here("verify", "j").code == 0


def test_an_edit_of_a_drafted_plan_stays_when_it_is_drafted_again(folder: Path) -> None:
    connection = sqlite3.connect("legacy.db")
    connection.execute("UPDATE contacts SET email_address = 'no mail' WHERE id = 2")
    connection.commit()
    connection.close()
    systems = "sqlite:///legacy.db", "sqlite:///cloud.db"
    assert migrate_here("plan", "draft", *systems, "--job", "j", "--model", "none", "-o", "d.yaml").code == 0
    assert "# ask: email" in Path("d.yaml").read_text()
    script = """grep -c '# by rule' "$FILE" > seen; grep -c '# ask: email' "$FILE" >> seen
    sed -i "s/^    fields:/    fields:\\n      email: {sql: email(email_address), otherwise: 'null'}/; /email_address: left out/d; /unmapped:/d" "$FILE"
    sed -i 's/^      last_name: .*/      last_name: {sql: upper(last_name)}  # loud/' "$FILE" """
    child = editing(folder, script, "j")
    child.expect("entities.contacts.fields.email")
    child.sendline("y")
    assert ended(child) == 0
    assert (folder / "seen").read_text().split()[1] == "1"
    assert migrate_here("answer", "j", "--json").json["questions"] == []  # what the edit says needs no answer
    resumed = migrate_here("resume", "j", "--yes")
    assert resumed.code == 0, resumed
    assert [row[1:3] for row in people()] == [("LEE", "lee@example.com"), ("RAY", None)]
    told = migrate_here("plan", "explain", "contacts.email", "--job", "j", "--json").json
    assert told["says"] == {"sql": "email(email_address)", "otherwise": "null"}


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("s/key: id/key: last_name/", "rows of contacts are loaded, and its `key` is another"),
        ("/^      email:/d", "the plan lacks email, which rows that are loaded have"),
    ],
)
def test_what_loaded_rows_depend_on_stays(folder: Path, script: str, said: str) -> None:
    loaded()
    child = editing(folder, f"""sed -i '{script}' "$FILE" """, "j")
    child.expect(said)
    child.sendline("n")
    assert ended(child) == 130


def test_while_rows_move_their_plan_is_frozen(folder: Path) -> None:
    loaded("--dry-run")
    with Workspace.open(JobPaths(folder, "j"), write=True) as workspace:
        workspace.record(BatchCommitted("contacts", 1, 1, 1, read=3, inserted=2, excluded=1))
    child = editing(folder, """sed -i 's/lower(email_address)/upper(email_address)/' "$FILE" """, "j")
    child.expect("rows of contacts have begun to move, and the job isn't loaded to its end")
    child.expect("end the load by the plan as it is \\(migrate resume j\\), then edit")
    child.sendline("n")
    assert ended(child) == 130
    # what says nothing else of rows is free, such as why a column is left behind
    child = editing(
        folder, """sed -i 's/^    fields:/    unmapped: {deleted: told by where}\\n    fields:/' "$FILE" """, "j"
    )
    child.expect("version 2 of j's plan")
    child.sendline("y")
    assert ended(child) == 0


def test_a_file_keeps_its_comments(folder: Path) -> None:
    child = editing(folder, """sed -i 's/lower(email/upper(email/' "$FILE" """, "plan.yaml")
    child.expect("lower\\(email_address\\) -> upper\\(email_address\\)")
    child.sendline("y")
    child.expect("wrote plan.yaml")
    assert ended(child) == 0
    assert (folder / "plan.yaml").read_text() == PLAN.replace("lower(email", "upper(email")
    child = editing(folder, "exit 3", "plan.yaml")
    child.expect("error PH-101:.*the editor ended with 3")
    assert ended(child) == 2


def test_it_is_refused_where_it_cannot_be(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded("--dry-run")
    migrate_here("plan", "edit", "j").refused("PH-101", "no terminal to open an editor on")
    with JobLock(JobPaths(folder, "j")):
        child = editing(folder, "true", "j")
        child.expect("error PH-\\d+:.*job 'j' is being run by process")
        assert ended(child) != 0
    env = environment(folder, {"TERM": "xterm", "NO_COLOR": "1", "VISUAL": "no-such-editor"})
    child = pexpect.spawn(MIGRATE, ["plan", "edit", "j"], cwd=str(folder), env=env, timeout=60, encoding="utf-8")
    child.expect("VISUAL names no program: no-such-editor")
    assert ended(child) == 2


def test_an_edit_stays_over_what_is_drafted_again() -> None:
    def plan(fields: str, more: str = "") -> Plan:
        return parse_plan(f"entities: {{a: {{from: t, to: u, key: id, fields: {{{fields}}}}}{more}}}")

    edit = (
        plan("x: {from: x}, y: {from: y}"),
        plan("x: {sql: upper(x)}, z: {from: z}", ", c: {from: t, to: w, key: id}"),
    )
    drafted = plan("x: {from: x}, y: {from: y}, q: {from: q}", ", b: {from: t, to: v, key: id}")
    found = with_edits(drafted, [edit])
    assert list(found.entities) == ["a", "b", "c"]
    assert {name: field.expression for name, field in found.entities["a"].fields.items()} == {
        "x": "upper(x)", "q": '"q"', "z": '"z"'
    }  # fmt: skip
    assert with_edits(edit[0], [edit]) == edit[1]
    assert list(with_edits(edit[0], [edit]).entities["a"].fields) == ["x", "z"]
    waits = parse_plan("entities: {b: {from: t, to: v, key: id}}")
    assert list(with_edits(waits, [(edit[0], plan("x: {default: 1}"))]).entities) == ["b"]


@pytest.mark.parametrize(
    "text",
    [
        "version: 1  # one\nentities: {a: {from: t, to: u, key: id}}  # all\n",
        "# head\nentities:\n  a: {from: t, to: u, key: id}\n",
        "{version: 1, entities: {a: {from: t, to: u, key: id}}}",
        "\ufeffversion: 1\nentities: {a: {from: t, to: u, key: id}}\n",
        "version: !!int 1\nentities: {a: {from: t, to: u, key: id}}\n",
    ],
)
def test_a_version_is_exchanged_and_all_else_stays(text: str) -> None:
    plan = parse_plan(text.removeprefix("\ufeff")).model_copy(update={"version": 12})
    made = with_version(text, plan)
    assert parse_plan(made) == plan
    if "!!" not in text and "{version" not in text:
        assert made.replace("version: 12\n", "").replace("12", "1").split() == (
            text.removeprefix("\ufeff").replace("version: 1\n", "").split()
        )


def test_a_place_has_a_line() -> None:
    text = "entities:\n  a.b:\n    fields:\n      c: {from: x}\n"
    assert [line_of(text, where) for where in ("entities", "entities.a.b", "entities.a.b.fields.c.sql")] == [1, 2, 4]
    assert line_of(text, "nothing") is None
    assert line_of("a: [", "a") is None
