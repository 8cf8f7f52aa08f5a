"""`packhorse.toml`: found, checked whole with file and line, and below the command line and the environment."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.main import get_command

from cli import defaults
from cli.verbs import app
from tests.cli_runner import Result, migrate, migrate_here
from workspace.errors import UsageError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACKHORSE_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def with_file(folder: Path, text: str, *arguments: str) -> Result:
    (folder / "packhorse.toml").write_text(text, encoding="utf-8")
    return migrate_here(*(arguments or ("jobs",)))


WRONG = [
    ("an unknown option", "[run]\nautonomi = 0.9\n", "packhorse.toml:2", "did you mean 'autonomy'"),
    ("an unknown verb", "# mine\n\n[rnu]\nyes = true\n", "packhorse.toml:3", "did you mean 'run'"),
    ("an unknown verb of a group", "[plan.drat]\nzone = 'UTC'\n", "packhorse.toml:1", "did you mean 'draft'"),
    ("the option's name in Python", "[run]\nledger_schema = 'x'\n", "packhorse.toml:2", "did you mean 'ledger-schema'"),
    ("a verb that is no table", "run = 1\n", "packhorse.toml:1", "write [run]"),
    ("an option above all tables", "autonomy = 0.9\n", "packhorse.toml:1", "no verb 'autonomy'"),
    ("out of range", "[run]\nyes = true\n# how sure\nautonomy = 1.5\n", "packhorse.toml:4", "less than or equal to 1"),
    ("no number", "[rehearse]\nautonomy = 'high'\n", "packhorse.toml:2", "number"),
    ("none of the choices", "[sync]\ndeletes = 'drop'\n", "packhorse.toml:2", "keep"),
    ("a check of the verb's own", "[experience.list]\nkind = 'x'\n", "packhorse.toml:2", "no kind 'x'"),
    ("a text for a flag", "[run]\nyes = 'yes'\n", "packhorse.toml:2", "true or false"),
    ("a flag for a text", "[run]\nmodel = true\n", "packhorse.toml:2", "a text or a number"),
    ("a list for one value", "[run]\nmodel = [\n 'a',\n]\n", "packhorse.toml:2", "a text or a number"),
    ("a table for a value", "[run.model]\nname = 'x'\n", "packhorse.toml:1", "a text or a number"),
    ("in line", "[jobs]\njson = true\n[run]\nzone = '''\nUTC'''\nautonomi = 1\n", "packhorse.toml:6", "autonomi"),
    ("no TOML", "[run]\nautonomy 0.9\n", "packhorse.toml:2:10", "no TOML"),
    ("the end", "[run]\nautonomy =", "packhorse.toml", "no TOML"),
    ("a key twice", "[run]\nyes = true\nyes = true\n", "packhorse.toml:3:11", "no TOML"),
    ("not about a verb", "[run]\nhelp = true\n", "packhorse.toml:2", "no option of migrate run 'help'"),
    ("nested deeply", "[run]\nzone = " + "[" * 5000 + "]" * 5000, "packhorse.toml", ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "where", "said"), [each[1:] for each in WRONG], ids=[each[0] for each in WRONG])
def test_a_file_that_is_wrong_is_refused_by_every_verb(folder: Path, text: str, where: str, said: str) -> None:
    result = with_file(folder, text)
    result.refused("PH-101", said)
    assert f"  at: {where}\n" in result.err, result.err


@pytest.mark.parametrize(
    "dsn", ["mysql://me:hunter2@h/db", "postgresql://h/db?password=hunter2", "https://me:hunter2@h/hook?token=hunter2"]
)
def test_a_password_is_refused_in_one_line_and_not_repeated(folder: Path, dsn: str) -> None:
    result = with_file(folder, f'[resume]\nsource = "{dsn}"\n')
    result.refused("PH-101", "a password may not stand", "packhorse.toml:2", "${NAME}")
    assert "hunter2" not in result.err
    assert with_file(folder, f'[resume]\nsource = "{dsn.replace("hunter2", "${NAME}")}"\n').code == 0


def test_help_is_given_whatever_the_file_says(folder: Path) -> None:
    assert with_file(folder, "[x", "run", "--help").code == 0
    assert with_file(folder, "[x", "--version").code == 0
    with_file(folder, "[x", "doctor").refused("PH-101", "packhorse.toml")


def test_a_file_that_is_no_text_or_too_large(folder: Path) -> None:
    (folder / "packhorse.toml").write_bytes(b"\xff\xfe\x00")
    migrate_here("jobs").refused("PH-101", "UTF-8")
    (folder / "packhorse.toml").write_bytes(b"#" * (1 << 20) + b"\n")
    migrate_here("jobs").refused("PH-101", "megabyte")
    (folder / "packhorse.toml").unlink()
    (folder / "packhorse.toml").mkdir()
    migrate_here("jobs").refused("PH-101", "can't read")


def test_a_file_that_others_may_write_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "packhorse.toml").write_text("[jobs]\njson = true\n")
    (folder / "packhorse.toml").chmod(0o666)
    migrate_here("jobs").refused("PH-101", "another user", "chmod o-w")
    (folder / "packhorse.toml").chmod(0o644)
    assert migrate_here("jobs").json == {"jobs": []}
    monkeypatch.setattr(os, "geteuid", lambda: (folder / "packhorse.toml").stat().st_uid + 1)
    if os.getuid() == 0:
        assert migrate_here("jobs").json == {"jobs": []}, "root's own may be read by all"
        os.chown(folder / "packhorse.toml", 4711, -1)
    migrate_here("jobs").refused("PH-101", "another user")


def test_the_working_directory_comes_first_then_the_users_own(folder: Path) -> None:
    own = folder / "config"
    own.mkdir(parents=True)
    (own / "packhorse.toml").write_text("[jobs]\njson = true\n")
    assert migrate_here("jobs").json == {"jobs": []}
    assert not with_file(folder, "").out.startswith("{"), "one file is in use, never two"
    (folder / "packhorse.toml").unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PACKHORSE_DEFAULTS", os.devnull)
        assert not migrate_here("jobs").out.startswith("{")
        patch.setenv("PACKHORSE_DEFAULTS", "not-there.toml")
        migrate_here("jobs").refused("PH-101", "not-there.toml")


def test_doctor_says_which_file_is_in_use(folder: Path) -> None:
    def found() -> str:
        checks = migrate("doctor", "--model", "none", "--json", cwd=folder).json["checks"]
        return next(each["found"] for each in checks if each["name"] == "defaults")

    assert "config-home/packhorse.toml" in found()
    (folder / "packhorse.toml").write_text("")
    assert found() == str(folder / "packhorse.toml")


def autonomy(folder: Path, *options: str, env: dict[str, str] | None = None) -> float:
    """The autonomy that a job began with."""
    job = f"j{len(list(folder.glob('.packhorse/jobs/*')))}"
    migrate("run", "legacy.db", "cloud.db", "--job", job, "--dry-run", *options, cwd=folder, env=env)
    log = migrate("inspect", job, "--log", "--type", "job_started", "--json", cwd=folder).json
    return float(json.loads(json.dumps(log))["events"][0]["options"]["autonomy"])


def test_command_line_then_environment_then_file_then_default(folder: Path) -> None:
    from sqlite3 import connect

    for name in ("legacy.db", "cloud.db"):
        with connect(folder / name) as connection:
            connection.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)")
    common = ["--model", "none"]
    environment = {"PACKHORSE_RUN_AUTONOMY": "0.7"}
    places = '[run]\nsource = "sqlite:///legacy.db"\ntarget = "sqlite:///cloud.db"\nautonomy = 0.8\n'
    assert autonomy(folder, *common) == 0.9
    (folder / "packhorse.toml").write_text(places)
    assert autonomy(folder, *common) == 0.8
    assert autonomy(folder, *common, env=environment) == 0.7
    assert autonomy(folder, *common, "--autonomy", "0.6", env=environment) == 0.6


def test_every_option_of_every_verb_may_stand_in_it() -> None:
    """Two spellings of one key would hide each other, and an option without a long name could not be set."""
    todo = [get_command(app)]
    verbs = 0
    while todo:
        command = todo.pop()
        todo += getattr(command, "commands", {}).values()
        wanted = [each for each in command.params if not getattr(each, "is_eager", False)]
        keys = [key for each in wanted for key in defaults._keys(each)]
        assert len(keys) == len(set(keys)) >= len([each for each in wanted if each.name != "help"]), command.name
        verbs += not hasattr(command, "commands")
    assert verbs > 30


def test_a_value_of_the_environment_is_checked_too(folder: Path) -> None:
    result = migrate("run", "a", "b", cwd=folder, env={"PACKHORSE_RUN_AUTONOMY": "much"})
    result.refused("PH-101", "--autonomy")
    with pytest.raises(UsageError):
        defaults._text(folder / "nothing")
