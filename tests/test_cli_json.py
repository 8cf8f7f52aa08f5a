"""`--json`: what the verbs print is what the published schema says, key by key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cli.json_shapes import SHAPES, schema, schemas_text
from cli.verbs import tree
from tests.cli_runner import migrate
from tests.plain_job import write_systems

NOT_PUBLISHED = {
    "rehearse", "report", "cleanup", "purge", "eval", "dsn test", "model pull", "model check", "model bench", "experience show",
}  # fmt: skip
"""Verbs whose `--json` has no schema."""

ANY_JOB = [
    ("jobs", ["jobs"]),
    ("status", ["status", "night"]),
    ("preview", ["preview", "night"]),
    ("inspect", ["inspect", "night"]),
    ("inspect --log", ["inspect", "night", "--log"]),
    ("verify", ["verify", "night"]),
    ("sync", ["sync", "night"]),
    ("answer", ["answer", "night"]),
    ("quarantine list", ["quarantine", "list", "night"]),
    ("quarantine show", ["quarantine", "show", "night"]),
    ("quarantine retry", ["quarantine", "retry", "night"]),
    ("plan check", ["plan", "check", "plan.yaml", "--source", "sqlite:///legacy.db", "--target", "sqlite:///cloud.db"]),
    ("plan explain", ["plan", "explain", "people.name", "--job", "night"]),
    ("plan diff", ["plan", "diff", "plan.yaml", "plan.yaml"]),
    ("doctor", ["doctor", "--model", "none"]),
    ("explain", ["explain", "PH-103"]),
    ("dsn list", ["dsn", "list"]),
    ("model list", ["model", "list"]),
    ("experience list", ["experience", "list"]),
    ("quarantine drop", ["quarantine", "drop", "night", "--yes"]),
    ("resume", ["resume", "night"]),
    ("undo", ["undo", "night", "--yes"]),
    ("jobs", ["jobs"]),
]


def check(verb: str, document: Any) -> None:
    jsonschema.Draft202012Validator(schema(SHAPES[verb], more=False)).validate(document)


def test_what_each_verb_prints(tmp_path: Path) -> None:
    run = write_systems(tmp_path, rows=50, bad=2)
    seen = {"run", "run --dry-run"}
    check("run --dry-run", migrate(*run, "--dry-run", "--json", cwd=tmp_path).json)
    check("run", migrate(*run, "--json", cwd=tmp_path).json)
    (tmp_path / "config-home").mkdir(exist_ok=True)
    kept = {"system": "postgres", "host": "h", "port": 5432, "database": "crm", "user": "me"}
    (tmp_path / "config-home" / "dsns.json").write_text(json.dumps({"version": 1, "dsns": {"oldcrm": kept}}))
    for verb, words in ANY_JOB:
        printed = migrate(*words, "--json", cwd=tmp_path)
        assert printed.out, (verb, printed)
        check(verb, printed.json)
        seen.add(verb)
    assert seen == set(SHAPES)


def test_a_job_that_has_only_begun_and_one_that_cannot_be_read(tmp_path: Path) -> None:
    from workspace.events import JobStarted
    from workspace.log import Workspace
    from workspace.paths import JobPaths

    for job in ("night", "torn"):
        with Workspace.open(JobPaths(tmp_path, job), write=True) as workspace:
            workspace.record(JobStarted(job=job, source="sqlite:///a.db", target="sqlite:///b.db"))
    JobPaths(tmp_path, "torn").database.write_bytes(b"no database" * 500)
    check("status", migrate("status", "night", "--json", cwd=tmp_path).json)
    listed = migrate("jobs", "--json", cwd=tmp_path).json
    assert {job["state"] for job in listed["jobs"]} == {"stopped", "unreadable"}
    check("jobs", listed)


def reporting(command: Any, words: tuple[str, ...] = ()) -> Iterator[str]:
    for name, child in getattr(command, "commands", {}).items():
        yield from reporting(child, (*words, name))
    if any("--json" in each.opts for each in command.params):
        yield " ".join(words)


def test_every_verb_that_reports_is_thought_of() -> None:
    assert set(reporting(tree())) - NOT_PUBLISHED == {verb.partition(" --")[0] for verb in SHAPES}


def test_the_published_schema_is_one_and_lets_further_keys_through() -> None:
    document = json.loads(schemas_text())
    for verb in SHAPES:
        jsonschema.Draft202012Validator.check_schema(document["$defs"][verb])
    told = {"code": "PH-1", "meaning": "m", "remedy": "r", "exit_code": 2}
    for published, taken in ((document["$defs"]["explain"], True), (schema(SHAPES["explain"], more=False), False)):
        assert jsonschema.Draft202012Validator(published).is_valid({**told, "new": 1}) is taken
    with pytest.raises(jsonschema.ValidationError):
        check("explain", {**told, "exit_code": "2"})
