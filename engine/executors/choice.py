"""Which executor a person chose, checked before anything moves."""

from __future__ import annotations

import importlib.metadata
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectors.dsn import Dsn, keeps_no_secret
from engine.executors.place import Place, secret_in, shown
from workspace.errors import ConnectError, UsageError
from workspace.paths import JobPaths

if TYPE_CHECKING:
    from engine.executors.dask_cluster import DaskCluster
    from engine.executors.task import Executor

INLINE = "inline"
_LOCAL = re.compile(r"local:([1-9][0-9]{0,2})")
_DASK = re.compile(r"dask(\+tls)?://[^/@\s]+:[0-9]+/?")


@dataclass(frozen=True, repr=False)
class Choice:
    """`name` as it was given: `inline`, `local:N` or `dask://HOST:PORT`; the stage place's URL, or "" for the job's own
    folder; the target's DSN as given."""

    name: str = INLINE
    place: str = ""
    target: str = ""

    @classmethod
    def of(cls, name: str, place: str, target: str) -> Choice:
        """The choice, if it is one. UsageError where it isn't, or where a secret would have to travel."""
        chosen = cls(name, place, target)
        if secret_in(place):
            raise UsageError(
                "a typed password in the stage place would have to travel to the workers", where=shown(place),
                advice="say ${NAME} in its place, and set NAME here and where the workers run",
            )  # fmt: skip
        if name == INLINE:
            if place:
                raise UsageError(
                    "--stage is for workers elsewhere", where=shown(place), advice="add --executor dask://HOST:PORT"
                )
            return chosen
        if not _LOCAL.fullmatch(name) and not _DASK.fullmatch(name):
            raise UsageError(
                f"no executor {name[:100]!r}", advice="use inline, local:N, dask://HOST:PORT or dask+tls://HOST:PORT"
            )
        if _DASK.fullmatch(name) and not keeps_no_secret(target):
            raise UsageError(
                "a typed password would have to travel to the workers", where=Dsn.parse(target).masked,
                advice="say ${NAME} in its place, and set NAME here and where the workers run",
            )  # fmt: skip
        return chosen

    @property
    def inline(self) -> bool:
        """True where this process loads by itself."""
        return self.name == INLINE

    def check(self, paths: JobPaths, schema: str) -> None:
        """Sees that there are workers, and that each has what it needs. ConnectError or UsageError where not; nothing
        has moved then, and nothing is left."""
        if self.inline:
            return
        place = Place(paths.folder, self.place, f"check-{secrets.token_hex(6)}")
        probe = paths.temp / "probe"
        probe.touch()
        try:
            name = place.put(probe)
            if _DASK.fullmatch(self.name):
                with _cluster(self.name) as cluster:
                    self._greet(cluster, paths, schema, place, name)
        finally:
            place.clear()
            probe.unlink()

    def _greet(self, cluster: DaskCluster, paths: JobPaths, schema: str, place: Place, name: str) -> None:
        from engine.executors.welcome import Asked

        version, identity = importlib.metadata.version("packhorse"), Dsn.parse(self.target).identity
        asked = Asked(version, str(paths.folder), self.place, place.run, name, self.target, schema, identity)
        said = cluster.greet(asked)
        if not said:
            raise ConnectError("the Dask cluster has no worker", where=self.name, advice="start some: `dask worker`")
        for worker, answer in said.items():
            if answer.wrong:
                raise ConnectError(f"a worker can't take part: {answer.wrong}", where=worker, advice=answer.advice)

    @contextmanager
    def opened(self) -> Iterator[Executor]:
        """The executor at work. Not for `inline`, which is none. ConnectError."""
        local = _LOCAL.fullmatch(self.name)
        if local is None:
            with _cluster(self.name) as cluster:
                yield cluster
            return
        from engine.executors.processes import Processes

        processes = Processes(int(local[1]))
        try:
            yield processes
        finally:
            processes.close()


@contextmanager
def _cluster(address: str) -> Iterator[DaskCluster]:
    from engine.executors.dask_cluster import DaskCluster

    cluster = DaskCluster(address)
    try:
        yield cluster
    finally:
        cluster.close()
