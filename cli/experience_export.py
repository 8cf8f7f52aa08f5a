"""What a job decided, and experience, as files for somebody else: of their owner alone until they hand them on."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from cli.options import here
from cli.views.output import on_stderr
from workspace.errors import UsageError
from workspace.log import Workspace
from workspace.paths import find_job
from workspace.trajectories import trajectories


def export_steps(output: Path | None, job: str | None, with_values: bool) -> int:
    """The decisions of a job as JSON lines."""
    paths = find_job(here(), job)
    with Workspace.open(paths) as workspace:
        found = list(trajectories(workspace, paths.job, with_values=with_values))
    document = "".join(json.dumps(step, ensure_ascii=False) + "\n" for step in found)
    if output is None:
        sys.stdout.write(document)
    else:
        write_owned(output, document)
    on_stderr().print(f"{len(found):,} decisions of {paths.job} go out")
    return 0


def write_owned(output: Path, document: str) -> None:
    """A file of the owner's alone, until they hand it on."""
    try:
        with os.fdopen(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
            os.fchmod(out.fileno(), 0o600)  # of one that was there
            out.write(document)
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", where=str(output)) from None
