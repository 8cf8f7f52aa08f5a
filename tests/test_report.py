"""`migrate report`: one file that a customer can sign. The page is opened in a real Chromium: it fetches nothing, its
links and filters work, no record value does anything in it, and axe finds nothing that keeps a reader out.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from openpyxl import load_workbook
from playwright.sync_api import Browser, Page, sync_playwright

from sample_data.servers import Database, PostgresServer
from tests.cli_runner import migrate_here
from tests.engine_jobs import sqlite_source
from tests.test_cli_jobs import Job

SOURCE = """
CREATE TABLE firms (id TEXT PRIMARY KEY, name TEXT, kind TEXT, fax TEXT, deleted INTEGER);
CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, mail TEXT, born TEXT, firm TEXT);
INSERT INTO firms VALUES ('a', ' Acme ', 'Client', NULL, 0), ('b', 'Bolt', 'Odd', NULL, 0), ('c', 'Cold', 'Client', NULL, 1);
INSERT INTO people VALUES (1, 'Ana Lee', 'ANA@Example.com', '1984-02-29', 'a'), (2, '=1+1 ', 'bo@example.com', '0000-00-00', 'a'),
  (3, '<img src=x onerror="document.title=1">', 'x@example.com', NULL, NULL), (4, '</script><script>document.title=2</script>  ', NULL, NULL, NULL);
"""
TARGET = """
CREATE TABLE firms (id text PRIMARY KEY, name text, kind text);
CREATE TABLE people (id bigint PRIMARY KEY, name text, mail text, born date, firm_id text REFERENCES firms);
"""
PLAN = """\
version: 1
entities:
  firms:
    {from: firms, to: firms, key: id, where: deleted = 0, fields: {name: {sql: trim(name)}, kind: {from: kind, map: kinds}},
     unmapped: {fax: no counterpart in the target}}
  people:
    {from: people, to: people, key: id,
     fields: {name: {sql: "trim(name) || '!'"}, mail: {sql: lower(mail)}, born: {from: born}, firm_id: {from: firm, ref: firms, missing: 'null'}}}
value_maps:
  kinds: {Client: customer}
"""
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")


@pytest.fixture
def job(tmp_path: Path, postgres: PostgresServer, postgres_database: Database, monkeypatch: pytest.MonkeyPatch) -> Job:
    """Loaded and verified: of two firms one is in quarantine, one is excluded; a person's birth date is none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data-home"))
    postgres_database.run(TARGET)
    (tmp_path / "plan.yaml").write_text(PLAN)
    made = Job(tmp_path, sqlite_source(tmp_path / "legacy.db", SOURCE), postgres_database, postgres)
    assert made.run("--yes", "--tolerate", "5").code == 0
    return made


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium: apt install chromium")
    with sync_playwright() as playwright:
        # as root Chromium runs without a sandbox only; what it opens here is our own file
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


def opened(browser: Browser, file: Path) -> tuple[Page, list[str]]:
    """The page, and what went wrong or was fetched while it opened: nothing, it is hoped."""
    page, amiss = browser.new_page(), []
    page.on("console", lambda message: amiss.append(message.text))
    page.on("pageerror", lambda error: amiss.append(str(error)))
    page.on("request", lambda request: amiss.append(request.url) if request.url != file.as_uri() else None)
    page.on("dialog", lambda dialog: amiss.append(dialog.message))
    page.goto(file.as_uri())
    return page, amiss


def test_the_page_works_in_a_browser_and_needs_nothing_else(job: Job, browser: Browser) -> None:
    made = migrate_here("report", "j", "--show-values")
    assert made.code == 0, made
    file = job.folder / "j-report.html"
    assert made.out.splitlines()[0].startswith("j: Reconciled: every row that was read has an outcome, verified ")
    assert file.stat().st_mode & 0o077 == 0
    page, amiss = opened(browser, file)
    # record values are text: had one become markup, it would have run or asked for its picture
    assert page.locator("td", has_text='<img src=x onerror="document.title=1">').count() >= 1
    assert page.locator("img").count() == 0
    assert page.title() == "Migration report: j"
    for link in page.locator("nav a").all():
        assert page.locator(link.get_attribute("href") or "none").count() == 1
    assert page.locator("figure svg").count() == 2  # the plan was given: no decisions to draw
    lines = page.locator("#changes-table tbody tr:visible")
    all_lines = lines.count()
    form = page.locator("form[data-for=changes-table]")
    form.locator("select").select_option("firms")
    assert 0 < lines.count() < all_lines
    assert {row.text_content() for row in page.locator("#changes-table tbody tr:visible td:first-child").all()} == {
        "firms"
    }
    form.locator("select").select_option("")
    form.locator("input").fill("LOWER(MAIL)")
    assert lines.count() == 1
    assert form.locator("output").text_content() == f"1 of {all_lines} lines"
    assert len(page.pdf()) > 20_000
    page.keyboard.press("Tab")  # the first thing a keyboard reaches leads past the navigation
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert amiss == []


def test_it_tells_what_was_carried_changed_and_left(job: Job) -> None:
    told = migrate_here("report", "j", "--json").json
    assert told["file"] is None
    assert told["reconciled"] is True
    assert not (job.folder / "j-report.html").exists()
    firms, people = told["entities"]
    counts = ("read", "inserted", "merged", "excluded", "quarantined")
    assert [firms[name] for name in counts] == [3, 1, 0, 1, 1]
    assert [people[name] for name in counts] == [4, 4, 0, 0, 0]
    assert firms["excluded_by"] == {"not deleted = 0": 1}
    assert firms["left_behind"] == {"fax": "no counterpart in the target"}
    assert [(c["entity"], c["field"], c["rows"]) for c in told["clusters"]] == [("firms", "kind", 1)]
    changes = {(c["entity"], c["column"]): c for c in told["changes"]}
    assert set(changes) == {
        ("firms", "name"),
        ("firms", "kind"),
        ("people", "name"),
        ("people", "mail"),
        ("people", "born"),
    }
    mail = changes["people", "mail"]
    assert (mail["looked_at"], mail["rows"], mail["expression"]) == (4, 1, "lower(mail)")
    assert mail["kinds"] == [{"rows": 1, "before": "AAA@Aaaaaaa.aaa", "after": "aaa@aaaaaaa.aaa"}]
    assert changes["people", "born"]["kinds"] == [{"rows": 1, "before": "9999-99-99", "after": None}]
    assert changes["people", "name"]["rows"] == 4
    assert changes["firms", "name"]["looked_at"] == 1  # neither the excluded nor the one in quarantine


def test_values_are_masked_everywhere_unless_they_are_asked_for(job: Job) -> None:
    for name in ("r.html", "r.md", "r.xlsx"):
        assert migrate_here("report", "j", "-o", name).code == 0
    book = load_workbook("r.xlsx")
    cells = " ".join(str(cell.value) for sheet in book for row in sheet.iter_rows() for cell in row)
    texts = {"r.html": Path("r.html").read_text(), "r.md": Path("r.md").read_text(), "r.xlsx": cells}
    for name, text in texts.items():
        for value in ("Ana", "ana@", "Acme", "onerror"):
            assert value not in text, name
        assert "lower(mail)" in text.replace("\\", ""), name
    assert migrate_here("report", "j", "-o", "r.md", "--show-values").code == 0
    shown = Path("r.md").read_text()
    assert "ANA@Example.com" in shown
    assert "<img" not in shown
    assert "&lt;img" in shown
    sums = {row[0].value: [cell.value for cell in row[2:7]] for row in book["Reconciliation"].iter_rows(min_row=2)}
    assert sums["all"] == [7, 5, 0, 1, 1]


def test_a_cell_is_never_a_formula(job: Job) -> None:
    assert migrate_here("report", "j", "-o", "k.xlsx", "--show-values").code == 0
    cells = [cell for row in load_workbook("k.xlsx")["Values changed"].iter_rows() for cell in row]
    formulas = [cell for cell in cells if cell.value in ("=1+1 ", "=1+1!")]
    assert len(formulas) == 2
    assert {cell.data_type for cell in formulas} == {"s"}


def test_the_verdict_is_what_the_log_says(job: Job) -> None:
    job.target.run("UPDATE people SET name = 'tampered' WHERE id = 1")
    assert migrate_here("verify", "j").code == 1
    told = migrate_here("report", "j", "-o", "r.html", "--json").json
    assert (told["reconciled"], told["verification"]["ok"]) == (False, False)
    assert "people: " in told["verification"]["problems"][0]
    page = Path("r.html").read_text()
    assert "NOT reconciled: the verification of " in page
    job.target.run("UPDATE people SET name = 'Ana Lee!' WHERE id = 1")
    assert migrate_here("verify", "j").code == 0
    assert migrate_here("report", "j", "--json", "--no-examples").json["verification"]["ok"]
    assert migrate_here("undo", "j", "--yes").code == 0
    undone = migrate_here("report", "j", "--no-examples")
    assert undone.out.startswith("j: Taken back: ")


def test_it_is_written_without_either_system(job: Job) -> None:
    gone = ("--source", "sqlite:///gone.db", "--target", "postgresql://nobody@127.0.0.1:1/none")
    told = migrate_here("report", "j", "--no-examples", "--json", *gone).json
    assert told["changes"] is None
    assert told["why_no_changes"]
    assert [each["read"] for each in told["entities"]] == [3, 4]
    migrate_here("report", "j", *gone).refused("PH-103", "gone.db")  # examples do ask them


def test_a_file_of_another_kind_is_refused(job: Job) -> None:
    migrate_here("report", "j", "-o", "r.docx").refused("PH-101", "r.docx", ".html, .md or .xlsx")
    assert not Path("r.docx").exists()
    migrate_here("report", "j", "-o", "nowhere/r.html").refused("PH-101", "no such folder", "-o")
    Path("folder.html").mkdir()
    migrate_here("report", "j", "-o", "folder.html").refused("PH-101", "a folder of that name", "-o")
