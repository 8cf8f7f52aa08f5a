"""Verbs that work on a job while nobody looks: options that tell others of it, the same on each.

None of them changes what the verb does or how it ends; what can't be told is a note on stderr.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Protocol

import typer

from cli.options import here
from cli.signals import INTERRUPTED
from cli.views.output import on_stderr
from workspace.errors import PackhorseError, UsageError
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
Otel = Annotated[
    bool,
    typer.Option(
        "--otel",
        help="Send OpenTelemetry traces of the job to OTEL_EXPORTER_OTLP_ENDPOINT; naming one there asks for them too."
        " Needs packhorse[otel].",
    ),
]
_MAKE_JOBS = ("run", "rehearse")
_OPTIONS: dict[str, tuple[Any, Any]] = {"on": (On, None), "log_file": (LogFile, None), "otel": (Otel, False)}


def observed(verb: Callable[..., int]) -> Callable[..., int]:
    """The verb with the options of this module after its own."""

    @functools.wraps(verb)
    def observing(on: list[str] | None, log_file: str | None, otel: bool, **arguments: Any) -> int:
        with _told(verb.__name__, on or [], log_file, otel, arguments.get("job")) as end:
            end.code = verb(**arguments)
        return end.code

    own = inspect.signature(verb, eval_str=True)
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in _OPTIONS.items()
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


class _Teller(Protocol):
    """Tells of the job while it runs: a listener that learns of the end too."""

    def __call__(self, paths: JobPaths, entries: Sequence[Entry]) -> None: ...

    def end(self, code: int, error: BaseException | None) -> None: ...

    def close(self) -> None: ...


@contextlib.contextmanager
def _told(verb: str, on: list[str], log_file: str | None, otel: bool, job: str | None) -> Iterator[End]:
    end = End(verb, job)
    with contextlib.ExitStack() as stack:
        stack.enter_context(listening(end))
        goals = []
        if on:
            from cli.goals import goals_of

            goals = goals_of(on)
        tellers = _tellers(verb, log_file, otel)
        for teller in tellers:
            stack.enter_context(contextlib.closing(teller))
            stack.enter_context(listening(teller))
        try:
            yield end
        except BaseException as error:
            end.error, end.code = error, _code(error)
            raise
        finally:
            for teller in tellers:
                teller.end(end.code, end.error)
                if trouble := getattr(teller, "trouble", ""):
                    on_stderr().print(f"note: the log file lacks lines: {trouble}")
            if goals:
                from cli.notice import give_notice

                for trouble in give_notice(end, goals):
                    on_stderr().print(f"note: {trouble}")


def _tellers(verb: str, log_file: str | None, otel: bool) -> list[_Teller]:
    """Those that were asked for. UsageError where one can't tell."""
    found: list[_Teller] = []
    if log_file is not None:
        from cli.log_file import LogFile as Log

        found.append(Log(log_file))
    if otel or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        try:
            from cli.traces import Traces

            found.append(Traces(verb))
        except ImportError:
            if otel:
                raise UsageError(
                    "traces need OpenTelemetry, which is not installed", where="--otel",
                    advice="pip install 'packhorse[otel]'",
                ) from None  # fmt: skip
    return found


def _code(error: BaseException) -> int:
    if isinstance(error, PackhorseError):
        return error.exit_code
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
