"""`migrate answer`: the questions that wait for a person."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.options import AsJson, Job, here
from cli.person import LATER, at_hand, read_answer
from cli.views import questions as view
from cli.views.output import on_stderr, on_stdout, print_json
from workspace.errors import UsageError
from workspace.lock import JobLock
from workspace.log import Workspace
from workspace.paths import JobPaths, find_job

Given = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="QUESTION=ANSWER",
        help="Answer without being asked: a candidate's number, its answer, or none. May be repeated.",
    ),
]


def answer(job: Job = None, given: Given = None, as_json: AsJson = False) -> int:
    """Answer the questions that wait for a person: one at a time on a terminal, a list off it.

    An answer is recorded; `migrate resume` goes on with it.

    JSON: `job`, `answered` (how many now), and `questions`, those still open, a list of objects with `id`,
    `kind`, `subject`, `text`, `candidates`, `evidence`, `holds` (the entities that wait).
    """
    from agent.questions import open_questions

    paths = find_job(here(), job)
    asks = given is None and not as_json and at_hand()
    answered = 0
    if given or asks:
        with JobLock(paths), Workspace.open(paths, write=True) as workspace:
            answered = _ask_each(workspace) if given is None else _take(workspace, given)
    with Workspace.open(paths) as workspace:
        questions = open_questions(workspace)
    if as_json:
        print_json({"job": paths.job, "answered": answered, "questions": [view.document(q) for q in questions]})
    elif asks or given:
        _tell(paths, answered, len(questions))
    else:
        view.show_list(on_stdout(), paths.job, questions)
    return 0


def record_answer(paths: JobPaths, question: str, text: str) -> None:
    """Records one answer of a job that isn't running. UsageError for what is no answer; JobLockedError."""
    from agent.questions import answer_question

    with JobLock(paths), Workspace.open(paths, write=True) as workspace:
        answer_question(workspace, question, text)


def _take(workspace: Workspace, given: list[str]) -> int:
    """Records answers from the command line, all or, where one is wrong, those before it."""
    from agent.questions import answer_question

    for each in given:
        question, equals, text = each.partition("=")
        if not equals:
            raise UsageError(f"{each!r} is no QUESTION=ANSWER", advice="migrate answer lists the questions")
        answer_question(workspace, question, text)
    return len(given)


def _ask_each(workspace: Workspace) -> int:
    """Asks one question after the other; returns how many were answered."""
    from agent.questions import answer_question, open_questions

    questions, answered = open_questions(workspace), 0
    for place, question in enumerate(questions, 1):
        view.show_question(on_stderr(), question, f"{place} of {len(questions)}")
        while (text := read_answer(question)) not in (None, LATER):
            try:
                answer_question(workspace, question.id, text)
                answered += 1
                break
            except UsageError as error:
                on_stderr().print(error.what, style="yellow")
        if text == LATER:
            break
    return answered


def _tell(paths: JobPaths, answered: int, left: int) -> None:
    console = on_stdout()
    console.print(f"{answered} answered, {left} open" + (f"; migrate resume {paths.job}" if answered else ""))
