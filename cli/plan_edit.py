"""`migrate plan edit`: a plan in the person's own editor, checked when it is saved, kept when they agree."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from cli.drafted import commented
from cli.editor import editor
from cli.options import here
from cli.person import at_hand
from cli.plan_agreed import Draft, agreed, nothing_kept
from cli.plan_schema import schema_line
from cli.systems import GivenSource, GivenTarget, job_dsn, opened
from cli.views.errors import show_error
from cli.views.output import on_stderr, on_stdout
from workspace.disk import disk_errors
from workspace.errors import PackhorseError, UsageError
from workspace.lock import JobLock
from workspace.log import Workspace
from workspace.paths import JobPaths, find_job
from workspace.state import state_at

if TYPE_CHECKING:
    from engine.edited_plan import EditedPlan
    from engine.plan import Plan

Edited = Annotated[
    str | None,
    typer.Argument(
        metavar="[JOB|FILE]", help="A job, whose plan gets a new version, or a plan's file; the newest job."
    ),
]


def edit(plan: Edited = None, source: GivenSource = None, target: GivenTarget = None) -> int:
    """Open a plan in your editor ($VISUAL or $EDITOR), a job's or a file. What you save is checked as by `plan check`; then it
    shows what differs, and asks before it keeps it: as the next version of the job's plan, or in the file.

    A job's plan is shown with what each field rests on. `migrate resume` goes on with the new version; where it says
    something else of fields of rows that are loaded, these are driven again. While the editor is open, nothing else can
    write to the job.
    """
    if not (at_hand() and sys.stdout.isatty()):
        raise UsageError(
            "there is no terminal to open an editor on",
            advice="edit a file; `migrate plan check FILE` checks it, `migrate run --plan FILE` goes by it",
        )
    editor()  # told before anything is opened
    file = Path(plan) if plan is not None else None
    if file is not None and (file.suffix in (".yaml", ".yml") or len(file.parts) > 1):
        return _edit_file(file, source, target)
    return _edit_job(find_job(here(), plan), source, target)


def _edit_job(paths: JobPaths, source: str | None, target: str | None) -> int:
    from agent.plan_edits import answers
    from engine.edited_plan import check_edited, keep_edited
    from engine.plan import parse_plan

    with JobLock(paths), Workspace.open(paths, write=True) as workspace:
        state = state_at(workspace)
        belief = state.belief
        if not belief.plan:
            raise UsageError(f"job {paths.job!r} has no plan yet", advice=f"migrate resume {paths.job} drafts one")
        state.refuse_purged()
        belief.refuse_cleaned_up()
        last = parse_plan(belief.plan, f"plan version {belief.plan_version} of {paths.job}")
        dsns = job_dsn("source", source, belief), job_dsn("target", target, belief)
        found: list[EditedPlan] = []

        def check(changed: Plan) -> list[str]:
            with opened(*dsns, belief.options.get("ledger_schema")) as (from_system, to_system):
                found[:] = [check_edited(paths, workspace, changed, from_system, to_system.catalogue())]
            return [
                f"{name}: {rows:,} rows are loaded; migrate resume {paths.job} drives them again"
                for name, rows in found[0].redriven.items()
            ] + [f"{name}: those that its `where` holds back now leave the target" for name in found[0].narrowed]

        draft = Draft(paths.plans / "being-edited.yaml", _job_text(paths, workspace, last), last)
        text = agreed(draft, check, f"keep it as version {last.version + 1} of {paths.job}'s plan?")
        if text is None:
            return nothing_kept(draft)
        kept = keep_edited(paths, workspace, found[0], text)
        if answered := answers(workspace, last, kept):
            workspace.record(*answered)
        draft.file.unlink(missing_ok=True)
        on_stdout().print(
            f"{paths.job}: kept as plan version {kept.version}; to go on by it: migrate resume {paths.job}"
        )
    return 0


def _edit_file(file: Path, source: str | None, target: str | None) -> int:
    from engine.check import check_plan
    from engine.plan import load_plan
    from engine.prepare import try_queries

    text = file.read_text(encoding="utf-8-sig") if file.exists() else ""
    try:
        last = load_plan(file)
    except PackhorseError as error:
        if not text:
            raise
        show_error(on_stderr(), error.code, error.what, error.where, error.advice)
        last = None

    def check(changed: Plan) -> list[str]:
        sides = source or changed.source, target or changed.target
        if not all(sides):
            return ["it names no source or no target, so it was held against neither"]
        with opened(*sides) as (from_system, to_system), TemporaryDirectory(prefix="packhorse-") as folder:
            checked = check_plan(changed, from_system, to_system.catalogue())
            try_queries(JobPaths(Path(folder), "check").create(), checked)
        return []

    draft = Draft(file.with_name(f".{file.name}.being-edited.yaml"), text, last)
    made = agreed(draft, check, f"write it to {file}?")
    if made is None:
        return nothing_kept(draft)
    with disk_errors():
        draft.file.chmod(file.stat().st_mode & 0o777)
        draft.file.replace(file)
    on_stdout().print(f"wrote {file}")
    return 0


def _job_text(paths: JobPaths, workspace: Workspace, last: Plan) -> str:
    """The job's plan as a person edits it: their own text of it where they wrote it, else with what it rests on."""
    from agent.questions import open_questions
    from engine.field_evidence import field_evidence

    belief = state_at(workspace).belief
    if belief.plan_versions[-1].by == "person":
        return belief.plan
    title = f"Version {last.version} of the plan of {paths.job}"
    text = commented(last, title, paths.job, open_questions(workspace), field_evidence(workspace, last))
    return schema_line(paths.plans / "being-edited.yaml") + text
