"""What is asked of each worker of another machine before a job begins: its version, the stage place, the target.

Runs on the worker. Writes nothing; says nothing that holds a password.
"""

from __future__ import annotations

import importlib.metadata
import socket
from dataclasses import dataclass
from pathlib import Path

from connectors.dsn import Dsn, open_target
from engine.executors.place import Place
from workspace.errors import PackhorseError


@dataclass(frozen=True)
class Asked:
    """What a worker must have: this version; the job's folder, or the stage place with a file of that name in it;
    the target, by the DSN as given, which is to be the one of that identity, with our records in `schema`."""

    version: str
    folder: str
    place: str
    run: str
    name: str
    target: str
    schema: str
    identity: str


@dataclass(frozen=True)
class Welcome:
    """What stands in the way, and what to do; both empty where nothing does."""

    wrong: str = ""
    advice: str = ""


def welcome(asked: Asked) -> Welcome:
    """What a worker has to say."""
    here = socket.gethostname()
    version = importlib.metadata.version("packhorse")
    if version != asked.version:
        return Welcome(f"it has packhorse {version}, not {asked.version}", f"install packhorse=={asked.version} there")
    try:
        if not asked.place and not Path(asked.folder, asked.name).exists():
            return Welcome(
                f"it doesn't see the job's folder {asked.folder} ({here})",
                "name a place that all workers reach: --stage PATH or URL",
            )
        if asked.place and not Place(Path(asked.folder), asked.place, asked.run).has(asked.name):
            return Welcome(
                f"it doesn't see in the stage place what was put there from here ({here})",
                "name a place that is the same for all workers",
            )
        if Dsn.parse(asked.target).identity != asked.identity:
            return Welcome(
                "its variables name another target", "set them there to what they are here, user and password aside"
            )
        open_target(asked.target, asked.schema).close()
    except PackhorseError as error:
        return Welcome(str(error), error.advice)
    return Welcome()
