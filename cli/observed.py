"""Verbs that work on a job while nobody looks: options that tell others of it, the same on each.

None of them changes what the verb does or how it ends; what can't be told is a note on stderr.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import typer

from cli.options import here
from cli.signals import INTERRUPTED
from cli.views.output import on_stderr
from workspace.errors import PackhorseError
from workspace.listening import listening
from workspace.log import Entry
from workspace.paths import JobPaths, find_job

On = Annotated[
    list[str] | None,
    typer.Option(
        "--on",
        metavar="done,question,failure=URL|COMMAND",
        help="When the command ends so, POST a JSON object to a URL or give it to a command on its stdin; more than once"
        " for several.",
    ),
]
LogFile = Annotated[
    str | None,
    typer.Option(
        "--log-file",
        metavar="FILE",
        help="Append a JSON line for each event of the job, as it is recorded; no record values stand in it.",
    ),
]
_MAKE_JOBS = ("run", "rehearse")
_OPTIONS = {"on": On, "log_file": LogFile}


def observed(verb: Callable[..., int]) -> Callable[..., int]:
    """The verb with the options of this module after its own."""

    @functools.wraps(verb)
    def observing(on: list[str] | None, log_file: str | None, **arguments: Any) -> int:
        with _told(verb.__name__, on or [], log_file, arguments.get("job")) as end:
            end.code = verb(**arguments)
        return end.code

    own = inspect.signature(verb, eval_str=True)
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in _OPTIONS.items()
    ]
    observing.__signature__ = own.replace(parameters=[*own.parameters.values(), *more])  # type: ignore[attr-defined]
    return observing


class End:
    """How a command ended: its exit code, and the error where there was one; and the job that it worked on, once known."""

    def __init__(self, verb: str, job: str | None) -> None:
        self.verb, self.job = verb, job
        self.code = 0
        self.error: BaseException | None = None
        self.paths: JobPaths | None = None
        if job is not None or verb not in _MAKE_JOBS:
            with contextlib.suppress(PackhorseError):
                self.paths = find_job(here(), job)
                self.job = self.paths.job

    def __call__(self, paths: JobPaths, entries: Sequence[Entry]) -> None:
        """Learns of the job from what it records."""
        self.paths, self.job = paths, paths.job


@contextlib.contextmanager
def _told(verb: str, on: list[str], log_file: str | None, job: str | None) -> Iterator[End]:
    end = End(verb, job)
    with contextlib.ExitStack() as stack:
        stack.enter_context(listening(end))
        goals = []
        if on:
            from cli.goals import goals_of

            goals = goals_of(on)
        log = None
        if log_file is not None:
            from cli.log_file import LogFile as Log

            log = stack.enter_context(contextlib.closing(Log(log_file)))
            stack.enter_context(listening(log))
        try:
            yield end
        except BaseException as error:
            end.error = error
            end.code = (
                error.exit_code
                if isinstance(error, PackhorseError)
                else INTERRUPTED
                if isinstance(error, KeyboardInterrupt)
                else 1
            )
            raise
        finally:
            if log is not None:
                log.end(end.code, end.error)
                if log.trouble:
                    on_stderr().print(f"note: the log file lacks lines: {log.trouble}")
            if goals:
                from cli.notice import give_notice

                for trouble in give_notice(end, goals):
                    on_stderr().print(f"note: {trouble}")
