"""Which two systems a verb works with: the DSNs given now, else those that the job or the plan names.

A workspace keeps DSNs masked, so a password that was typed must be given again; `${NAME}` and DSNs without a
password need nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from workspace.belief import Belief
from workspace.errors import UsageError
from workspace.log import Workspace
from workspace.paths import JobPaths
from workspace.state import state_at

if TYPE_CHECKING:  # the drivers are heavy: loaded by the verbs that need them
    from connectors.protocols import Source
    from connectors.target import Target

GivenSource = Annotated[
    str | None,
    typer.Option(
        "--source", metavar="DSN", envvar="PACKHORSE_SOURCE", help="The source, where the job's DSN had a password."
    ),
]
GivenTarget = Annotated[
    str | None,
    typer.Option(
        "--target", metavar="DSN", envvar="PACKHORSE_TARGET", help="The target, where the job's DSN had a password."
    ),
]


def by_ssh(source: str, source_ssh: str | None, target: str, target_ssh: str | None) -> tuple[str, str]:
    """Both DSNs as given, each led through the host to go through where one is named. DsnError."""
    from connectors.dsn import through

    return through(source, source_ssh), through(target, target_ssh)


def job_dsn(side: str, given: str | None, belief: Belief) -> str:
    """The DSN of a job's `side` (source or target). UsageError where its password would be needed."""
    if given:
        return given
    recorded = str(belief.options.get(f"{side}_dsn") or getattr(belief, side))
    if not recorded or "***" in recorded:
        raise UsageError(
            f"the password of the job's {side} is not kept",
            where=recorded,
            advice=f"give the DSN again: --{side} DSN, or in the environment as PACKHORSE_{side.upper()}",
        )
    return recorded


def given_again(paths: JobPaths, side: Literal["source", "target"], given: str | None, way: str | None) -> str | None:
    """The DSN of a job's `side` as given again, led through the host to go through where one is named; where only the
    host is, the job's own DSN. None where neither is given. DsnError; UsageError where the password would be needed."""
    from connectors.dsn import through

    if not way:
        return given
    if given is None:
        with Workspace.open(paths) as workspace:
            given = job_dsn(side, None, state_at(workspace).belief)
    return through(given, way)


@contextmanager
def job_target(given: str | None, belief: Belief) -> Iterator[Target]:
    """A job's target, connected, with the schema that the job's records are in; closed at the end of the block.
    UsageError where its password would be needed, or where the job was cleaned up; DsnError, ConnectError."""
    from connectors.dsn import open_target

    belief.refuse_cleaned_up()
    system = open_target(job_dsn("target", given, belief), belief.options.get("ledger_schema"))
    try:
        yield system
    finally:
        system.close()


@contextmanager
def opened(source: str, target: str, schema: str | None = None) -> Iterator[tuple[Source, Target]]:
    """Both systems, connected, with our records in the target's `schema` (None: the usual one); closed at the end of
    the block. DsnError, ConnectError."""
    from connectors.dsn import open_source, open_target

    from_system = open_source(source)
    try:
        to_system = open_target(target, schema)
        try:
            yield from_system, to_system
        finally:
            to_system.close()
    finally:
        from_system.close()
