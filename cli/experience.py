"""`migrate experience`: what was learnt in all jobs of this user, and what of it goes to others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, cast

import typer

from cli.experience_export import export_steps, write_owned
from cli.options import AsJson
from cli.person import at_hand
from cli.views import experience as view
from cli.views.output import on_stderr, on_stdout, print_json
from engine.known_names import near
from workspace.errors import InterruptedJobError, UsageError, WorkspaceError
from workspace.experience_store import LESSON_KINDS, ExperienceStore, LessonKind
from workspace.signature import normalise

app = typer.Typer(rich_markup_mode=None, help="What was learnt in all jobs, kept in the user's data directory.")

_LARGEST = 1 << 26  # bytes of a file to import; a lesson takes about 200


def _kind(value: str | None) -> str | None:
    if value is not None and value not in LESSON_KINDS:
        raise UsageError(f"there is no kind {value!r}{near(value, LESSON_KINDS)}", where="--kind",
                         advice=f"it is one of {', '.join(LESSON_KINDS)}")  # fmt: skip
    return value


Kind = Annotated[
    str | None,
    typer.Option("--kind", metavar="KIND", callback=_kind, help=f"Lessons of one kind: {', '.join(LESSON_KINDS)}."),
]
Limit = Annotated[int, typer.Option("--limit", min=1, metavar="N", help="At most this many lessons.")]
Signature = Annotated[
    str, typer.Argument(metavar="SIGNATURE", help="A signature of `experience list`, or a part of one.")
]
Out = Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="A JSON file; stdout without it.")]
WithValues = Annotated[
    bool,
    typer.Option(
        "--with-values", help="Value maps too: they hold words out of the lists of the systems that were moved."
    ),
]
Steps = Annotated[
    bool, typer.Option("--trajectories", help="The decisions of one job, to learn from, in the place of lessons.")
]
OfJob = Annotated[
    str | None, typer.Option("--job", metavar="NAME", help="With --trajectories: the job; the newest without it.")
]
File = Annotated[Path, typer.Argument(metavar="FILE", help="What `experience export` wrote.")]
OfSignature = Annotated[str | None, typer.Option("--signature", metavar="TEXT", help="Only lessons on this signature.")]
OfRemedy = Annotated[str | None, typer.Option("--remedy", metavar="TEXT", help="Only lessons with this remedy.")]
All = Annotated[bool, typer.Option("--all", help="Everything that was learnt.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Forget without asking; needed where there is no terminal.")]


@app.command("list")
def list_lessons(kind: Kind = None, limit: Limit = 50, as_json: AsJson = False) -> int:
    """List what was learnt, the most trusted first: which remedy was tried on which signature, and how often it held.

    Trust is the share of tries that a remedy will hold in, at the least, with 95 % certainty. JSON: `file`, `lessons`
    (how many there are) and `shown`, a list of objects with `kind`, `signature`, `remedy`, `tried`, `held`, `trust`,
    `last_seen`.
    """
    with ExperienceStore.open() as store:
        found = store.lessons(cast(LessonKind | None, kind))
        file = store.file
    if as_json:
        shown = [lesson.to_dict() for lesson in found[:limit]]
        print_json({"file": str(file), "lessons": len(found), "shown": shown})
    else:
        view.show_lessons(on_stdout(), found[:limit], len(found))
    return 0


@app.command("show")
def show(signature: Signature, kind: Kind = None, as_json: AsJson = False) -> int:
    """Show all that was tried on a signature, whole.

    JSON: `shown`, as `experience list` has it.
    """
    with ExperienceStore.open() as store:
        known = store.lessons(cast(LessonKind | None, kind))
    wanted = normalise(signature)
    found = [each for each in known if each.signature == wanted] or [each for each in known if wanted in each.signature]
    if not found:
        raise UsageError(
            f"nothing was learnt about {wanted!r}{near(wanted, {each.signature for each in known})}",
            advice="`migrate experience list` shows the signatures",
        )
    if as_json:
        print_json({"shown": [lesson.to_dict() for lesson in found]})
    else:
        view.show_whole(on_stdout(), found)
    return 0


@app.command("export")
def export(
    output: Out = None, kind: Kind = None, with_values: WithValues = False, steps: Steps = False, job: OfJob = None
) -> int:
    """Write what was learnt to a file for somebody else, and show what goes out.

    Signatures are names of tables and columns and the shapes of failures; no record's value is in them. Value maps
    stay here unless --with-values is given: they hold words out of picklists. With --trajectories it is the decisions of one
    job, a JSON object a line: what could be chosen, what was, at which price, and what a person or the engine said to it.
    """
    if steps:
        return export_steps(output, job, with_values)
    if job is not None:
        raise UsageError("lessons are of all jobs", where="--job", advice="it goes with --trajectories")
    with ExperienceStore.open() as store:
        kinds = {kind} if kind else set(LESSON_KINDS)
        if not with_values:
            if kind == "value_map":
                raise UsageError("value maps hold words of the systems that were moved", where="--kind value_map",
                                 advice="add --with-values where they may go out")  # fmt: skip
            kinds -= {"value_map"}
        going = [lesson for lesson in store.lessons() if lesson.kind in kinds]
        stays = len(store.lessons("value_map")) if not with_values and kind is None else 0
        document = store.export_lessons(kinds)
    if output is None:
        sys.stdout.write(document)
    else:
        write_owned(output, document)
    view.show_going(on_stderr(), going, stays, "" if output is None else str(output))
    return 0


@app.command("import")
def import_(file: File) -> int:
    """Take in what somebody else learnt. The same file twice changes nothing.

    Their lessons count beside yours; `experience forget` takes them out again.
    """
    try:
        if file.stat().st_size > _LARGEST:
            raise UsageError("this file is too large to be an exported experience", where=str(file))
        document = file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(file)) from None
    with ExperienceStore.open() as store:
        try:
            changed = store.import_lessons(document)
        except WorkspaceError as error:
            error.where = error.where or str(file)
            raise
    on_stdout().print(f"{changed:,} lessons are new or have moved on")
    return 0


@app.command("forget")
def forget(
    kind: Kind = None, signature: OfSignature = None, remedy: OfRemedy = None, everything: All = False, yes: Yes = False
) -> int:
    """Forget lessons: those that agree with all that is given, or all with --all. Shows them and asks once.

    What jobs decided by them stays as it is.
    """
    given = (kind, signature, remedy)
    if everything == any(each is not None for each in given):
        raise UsageError("say which lessons to forget", advice="--kind, --signature, --remedy; or --all, alone")
    with ExperienceStore.open() as store:
        wanted = None if signature is None else normalise(signature)
        found = [
            lesson
            for lesson in store.lessons(cast(LessonKind | None, kind))
            if wanted in (None, lesson.signature) and remedy in (None, lesson.remedy)
        ]
        if not found:
            on_stdout().print("no lesson is like that; nothing was forgotten")
            return 0
        if not yes:
            view.show_lessons(on_stderr(), found[:20], len(found))
            if not _agreed(len(found)):
                on_stderr().print("nothing was forgotten")
                return InterruptedJobError.exit_code
        gone = store.forget(cast(LessonKind | None, kind), signature, remedy)
    on_stdout().print(f"{gone:,} lessons were forgotten")
    return 0


def _agreed(lessons: int) -> bool:
    """Asks once. UsageError where nobody is there to ask."""
    if not at_hand():
        raise UsageError(
            "nothing was forgotten: there is no terminal to ask on", advice="say --yes where that is what you want"
        )
    on_stderr().print(f"\nforget {lessons:,} lessons? [y/N] ", end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes")
