"""`import packhorse`: load a plan, preview, run; killed, stopped and called again; what it raises; that it never prints."""

from __future__ import annotations

import dataclasses
import signal
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import packhorse
from sample_data.servers import Database
from tests.cli_runner import environment
from tests.test_cli_jobs import PLAN as WITHOUT_SYSTEMS
from tests.test_cli_jobs import TARGET
from workspace.log import Workspace
from workspace.paths import JobPaths
from workspace.state import state_at

PLAN = WITHOUT_SYSTEMS.replace("version: 1\n", "version: 1\nsource: ${LEGACY}\ntarget: ${CLOUD}\n")
SCRIPT = """\
import packhorse
done = packhorse.run(packhorse.load_plan("plan.yaml"), job="move", tolerate=10)
print(done.moved, done.read, done.loaded, done.merged, done.excluded, done.quarantined)
"""
IN_ALL = (640, 576, 0, 60, 4)  # read, loaded, merged, excluded, quarantined


@dataclass(frozen=True)
class Place:
    """A folder with a legacy CRM and a plan, and a target."""

    folder: Path
    database: Database

    @property
    def plan(self) -> packhorse.Plan:
        return packhorse.load_plan(self.folder / "plan.yaml")

    def run(self, *, tolerate: float = 10) -> packhorse.Outcome:
        return packhorse.run(self.plan, job="move", folder=self.folder, tolerate=tolerate)

    def script(self, **env: str) -> subprocess.CompletedProcess[str]:
        """The script in a process of its own."""
        more = {"LEGACY": f"sqlite:///{self.folder}/legacy.db", "CLOUD": self.database.socket_dsn, **env}
        return subprocess.run(
            [sys.executable, "-c", SCRIPT], cwd=self.folder, env=environment(self.folder, more), text=True,
            capture_output=True, timeout=120, check=False,
        )  # fmt: skip

    def people(self) -> int:
        return int(self.database.rows("SELECT count(*) FROM people")[0][0])

    def ended(self) -> str | None:
        with Workspace.open(JobPaths(self.folder, "move")) as workspace:
            return state_at(workspace).progress.outcome


@pytest.fixture
def place(tmp_path: Path, postgres_database: Database, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path / "data-home"))
    monkeypatch.setenv("LEGACY", f"sqlite:///{tmp_path}/legacy.db")
    monkeypatch.setenv("CLOUD", postgres_database.socket_dsn)
    postgres_database.run(TARGET)
    with sqlite3.connect(tmp_path / "legacy.db") as legacy:
        legacy.execute("CREATE TABLE accounts (id INTEGER PRIMARY KEY, name TEXT)")
        legacy.execute(
            "CREATE TABLE contacts (id INTEGER PRIMARY KEY, name TEXT, mail TEXT, account_id INT, deleted INT, notes TEXT)"
        )
        legacy.executemany("INSERT INTO accounts VALUES (?, ?)", [(i, f"Firm {i}") for i in range(40)])
        legacy.executemany(
            "INSERT INTO contacts VALUES (?, ?, ?, ?, ?, ?)",
            [(i, f" Person {i}", f"P{i}@Example.com", i % 45, int(i % 10 == 9), None) for i in range(600)],
        )
        legacy.execute("UPDATE contacts SET mail = 'nobody at home' WHERE id IN (1, 2, 3)")
        legacy.execute("UPDATE contacts SET name = 'Mallory' WHERE id = 4")
    legacy.close()
    (tmp_path / "plan.yaml").write_text(PLAN)
    return Place(tmp_path, postgres_database)


def counts(done: packhorse.Outcome) -> tuple[int, ...]:
    return (done.read, done.loaded, done.merged, done.excluded, done.quarantined)


def test_load_preview_and_run(place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    plan = place.plan
    assert (plan.version, plan.source, [entity.name for entity in plan.entities]) == (
        1,
        "${LEGACY}",
        ["accounts", "contacts"],
    )
    assert plan.entities[1] == packhorse.PlannedEntity(
        "contacts", "contacts", "people", ("full_name", "email", "company_id")
    )

    shown = packhorse.preview(plan, job="move", folder=place.folder)
    contacts = shown.entities[1]
    assert (contacts.read, contacts.load, contacts.excluded, contacts.quarantined) == (600, 537, 60, 3)
    assert contacts.clusters[0].count == 3
    assert place.people() == 0
    assert not place.database.rows("SELECT 1 FROM pg_namespace WHERE nspname = 'packhorse'")

    with sqlite3.connect(place.folder / "legacy.db") as legacy:  # the source was read, by the preview
        legacy.execute("INSERT INTO accounts VALUES (99, 'Late')")
    legacy.close()
    steps: list[packhorse.Step] = []
    done = packhorse.run(plan, job="move", folder=place.folder, tolerate=10, progress=steps.append)
    assert (done.job, done.moved, counts(done)) == ("move", True, IN_ALL)
    assert [entity.entity for entity in done.entities] == ["accounts", "contacts"]
    assert place.people() == 536
    assert {"load", "verify"} <= {step.phase for step in steps}
    assert capfd.readouterr() == ("", "")


def test_what_is_returned_is_plain_and_frozen(place: Place) -> None:
    plan = place.plan
    shown = packhorse.preview(plan, job="move", folder=place.folder)
    done = place.run()
    for value in (plan, plan.entities[0], shown, shown.entities[0], shown.entities[0].rows[0], done, done.entities[0]):
        assert dataclasses.is_dataclass(value)
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, dataclasses.fields(value)[0].name, None)


@pytest.mark.parametrize("fault", ["in copy:2", "before commit:2", "after commit:2", "in verify"])
def test_killed_it_goes_on_when_called_again(place: Place, fault: str) -> None:
    killed = place.script(PACKHORSE_FAULT=fault)
    assert killed.returncode == -signal.SIGKILL, killed
    again = place.script()
    assert again.returncode == 0, again
    assert again.stdout.split()[1:] == list(map(str, IN_ALL))
    assert place.database.rows("SELECT count(*), count(DISTINCT full_name) FROM people") == [(536, 536)]
    assert place.script().stdout.split() == ["False", *map(str, IN_ALL)]


def test_stopped_it_says_so_and_goes_on(place: Place) -> None:
    seen: list[str] = []

    def stop() -> bool:
        return "load" in seen

    with pytest.raises(packhorse.InterruptedJobError):
        packhorse.run(
            place.plan,
            job="move",
            folder=place.folder,
            tolerate=10,
            progress=lambda step: seen.append(step.phase),
            stop=stop,
        )
    assert place.people() < 536
    assert place.ended() == "interrupted"
    assert counts(place.run()) == IN_ALL


def test_what_was_loaded_is_what_runs(place: Place) -> None:
    plan = place.plan
    (place.folder / "plan.yaml").unlink()
    assert counts(packhorse.run(plan, job="move", folder=place.folder, tolerate=10)) == IN_ALL


def test_a_preview_of_a_job_that_is_done_leaves_it_done(place: Place) -> None:
    place.run()
    shown = packhorse.preview(place.plan, job="move", folder=place.folder)
    assert [(each.load, each.unchanged) for each in shown.entities] == [(0, 40), (1, 536)]
    assert place.ended() == "done"


def test_more_in_quarantine_than_tolerated_is_no_outcome(place: Place) -> None:
    with pytest.raises(packhorse.QuarantinedTooManyError) as caught:
        place.run(tolerate=3)
    assert caught.value.code == "PH-603"
    assert "4 of 640 rows" in caught.value.what
    assert any("contacts: email" in line for line in caught.value.details)
    assert counts(place.run(tolerate=4)) == IN_ALL


def test_rows_that_somebody_changed_are_no_outcome(place: Place) -> None:
    place.run()
    place.database.run("UPDATE people SET full_name = 'Somebody' WHERE full_name = 'Person 7'")
    with pytest.raises(packhorse.JobFailedError) as caught:
        place.run()
    assert any(line.startswith("contacts: ") for line in caught.value.details)
    place.database.run("UPDATE people SET full_name = 'Person 7' WHERE full_name = 'Somebody'")
    assert counts(place.run()) == IN_ALL


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (("from: accounts\n", "from: acounts\n"), packhorse.CatalogueError),
        (("trim(name)", "now()"), packhorse.PlanError),
        (("source: ${LEGACY}\n", ""), packhorse.UsageError),
        (("${LEGACY}", "sqlite:///nowhere.db"), packhorse.ConnectError),
        (("${LEGACY}", "${NOBODY}"), packhorse.DsnError),
    ],
)
def test_what_is_wrong_is_raised_before_anything_moves(
    place: Place, change: tuple[str, str], kind: type[packhorse.PackhorseError]
) -> None:
    assert change[0] in PLAN
    (place.folder / "plan.yaml").write_text(PLAN.replace(*change))
    for call in (packhorse.preview, packhorse.run):
        with pytest.raises(kind) as caught:
            call(place.plan, job="move", folder=place.folder)
        assert caught.value.exit_code == 2
    assert place.people() == 0


def test_a_file_that_is_no_plan(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text("entities: {a: {fro: b}}")
    with pytest.raises(packhorse.PlanError, match=r"plan\.yaml:1:12"):
        packhorse.load_plan(tmp_path / "plan.yaml")
    with pytest.raises(packhorse.PlanError, match="no such plan"):
        packhorse.load_plan(str(tmp_path / "none.yaml"))


def test_two_dsns_given_go_before_those_of_the_plan(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = f"sqlite:///{place.folder}/legacy.db", place.database.socket_dsn
    monkeypatch.delenv("LEGACY")
    monkeypatch.delenv("CLOUD")
    done = packhorse.run(place.plan, job="move", source=source, target=target, folder=place.folder, tolerate=10)
    assert counts(done) == IN_ALL
