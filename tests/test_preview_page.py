"""`migrate preview --html`: opened in a real Chromium it fetches nothing, its filters and the keyboard work, no record
value does anything in it, and axe finds nothing that keeps a reader out.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from tests.cli_runner import migrate_here
from tests.plain_job import write_job
from tests.test_report import browser, opened

__all__ = ["browser"]

SOURCE = """
CREATE TABLE firms (id TEXT PRIMARY KEY, name TEXT, kind TEXT);
CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, mail TEXT, born TEXT, firm TEXT);
INSERT INTO firms VALUES ('a', ' Acme ', 'Client'), ('b"><img src=x onerror="document.title=3">', 'Bolt', 'Odd');
INSERT INTO people VALUES (1, 'Ana Lee', 'ANA@Example.com', '1984-02-29', 'a'), (2, 'Bo', 'bo@example.com', 'never', 'a'),
  (3, '<img src=x onerror="document.title=1">', 'x@example.com', NULL, NULL), (4, '</script><script>document.title=2</script>', NULL, NULL, NULL);
"""
TARGET = """
CREATE TABLE firms (id TEXT PRIMARY KEY, name TEXT, kind TEXT);
CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, mail TEXT, born DATE, firm_id TEXT REFERENCES firms, "odd ""<b>" TEXT);
"""
PLAN = """\
version: 1
source: sqlite:///legacy.db
target: sqlite:///cloud.db
entities:
  firms: {from: firms, to: firms, key: id, fields: {name: {sql: trim(name)}, kind: {from: kind, map: kinds}}}
  people:
    {from: people, to: people, key: id,
     fields: {name: {from: name}, mail: {sql: lower(mail)}, born: {from: born}, firm_id: {from: firm, ref: firms, missing: 'null'}, 'odd "<b>': {sql: "'<i>' || name"}}}
value_maps: {kinds: {Client: customer}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data-home"))
    write_job(tmp_path, SOURCE, TARGET, PLAN)
    return tmp_path


def test_the_page_works_in_a_browser_and_needs_nothing_else(folder: Path, browser: Browser) -> None:
    made = migrate_here("preview", "--plan", "plan.yaml", "--html", "p.html")
    assert made.code == 0, made
    assert "wrote p.html" in made.err
    assert made.out == ""
    file = folder / "p.html"
    assert file.stat().st_mode & 0o077 == 0
    page, amiss = opened(browser, file)
    assert page.title().startswith("Preview: ")
    assert page.locator("article td", has_text='<img src=x onerror="document.title=1">').count() >= 1
    assert page.locator("img, i, b").count() == 0
    shown = page.locator("article:visible")
    told = page.locator("form output")
    assert shown.count() == 6
    # rows that fail, with what fails first
    page.locator("[name=show]").select_option("quarantined")
    assert shown.count() == 2
    assert told.text_content() == "2 of 6 rows"
    assert page.locator(".reason:visible").all_text_contents()[1].startswith("born: ")
    assert page.locator("article:visible tr.failed td:nth-child(2)").all_text_contents() == ["Odd", "never"]
    # values that change
    page.locator("[name=show]").select_option("changed")
    page.locator("[name=entity]").select_option("people")
    lines = page.locator("article:visible tbody tr:visible")
    assert "ANA@Example.com" in " ".join(lines.all_text_contents())
    assert "Ana Lee→" not in " ".join(lines.all_text_contents()).replace(" ", "")
    assert all("data-changed" in (line.evaluate("e => e.outerHTML")) for line in lines.all())
    # a column, by its name in either system, whatever that is
    page.locator("[name=show]").select_option("")
    page.locator("[name=column]").select_option('odd "<b>')
    assert lines.count() == shown.count() == 4
    page.locator("[name=column]").select_option("firm")
    assert set(page.locator("article:visible tbody tr:visible td:nth-child(4)").all_text_contents()) == {"firm_id"}
    # a text
    page.locator("[name=column]").select_option("")
    page.locator("[name=text]").fill("ANA@")
    assert (shown.count(), lines.count()) == (1, 1)
    page.locator("[name=text]").fill("nobody has this")
    assert shown.count() == 0
    assert page.locator("#none").is_visible()
    page.locator("[name=text]").fill("")
    page.locator("[name=entity]").select_option("")
    assert shown.count() == 6
    # the expression, by mouse and by keyboard; Escape takes it away
    how = page.locator("article:visible code.how", has_text="lower(mail)").first
    button = how.locator("xpath=preceding-sibling::button")
    assert not how.is_visible()
    button.hover()
    assert how.is_visible()
    page.mouse.move(0, 0)
    assert not how.is_visible()
    page.locator("[name=text]").focus()
    for _ in range(40):
        page.keyboard.press("Tab")
        if how.is_visible():
            break
    assert how.is_visible()
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    page.keyboard.press("Escape")
    assert not how.is_visible()
    assert len(page.pdf()) > 10_000
    assert page.title().startswith("Preview: ")
    assert amiss == []


def test_one_entity_and_json_beside_it(folder: Path) -> None:
    made = migrate_here("preview", "--plan", "plan.yaml", "--html", "p.html", "--entity", "firms", "--json")
    assert [each["entity"] for each in made.json["entities"]] == ["firms", "people"]
    text = Path("p.html").read_text()
    assert "Acme" in text
    assert "Ana Lee" not in text


def test_a_place_that_cannot_be_is_refused_before_anything_is_read(folder: Path) -> None:
    migrate_here("preview", "--plan", "plan.yaml", "--html", "nowhere/p.html").refused(
        "PH-101", "no such folder", "--html"
    )
    assert not (folder / ".packhorse").exists()
    migrate_here("preview", "--plan", "plan.yaml", "--html", "p.html", "--entity", "nobody").refused("PH-101", "firms")
    assert not Path("p.html").exists()
