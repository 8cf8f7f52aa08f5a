"""How both servers stand, as lines of `migrate doctor`: versions, clocks, encodings, copies that lag, disk for the stage,
and what of the target's tables slows or surprises a load."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from agent.models.check import Check
from workspace.errors import PackhorseError

if TYPE_CHECKING:
    from connectors.condition import Condition
    from connectors.protocols import Catalogue

CLOCK_SECONDS = 2.0
LAG_SECONDS = 60.0
_GIB = 2**30
_MOST = 5
_TESTED = {
    "PostgreSQL": ((15, 0), (19, 0)),
    "MariaDB": ((10, 11), (12, 0)),
    "MySQL": ((8, 0), (9, 0)),
    "SQLite": ((3, 37), (4, 0)),
}
"""From and before which version; what lies outside may well work."""


def source_standing(dsn: str, folder: Path) -> list[Check]:
    """The lines of a source, with the room that its stage needs in `folder`."""
    found = _condition(dsn)
    if found is None:
        return []
    room = _room(found, folder)
    return [*_of_server("source", found), *([room] if room else [])]


def target_standing(dsn: str, tables: Collection[str] | None) -> list[Check]:
    """The lines of a target; of its tables those named, or (None) all."""
    from connectors.dsn import open_target

    found = _condition(dsn)
    if found is None:
        return []
    lines = list(_of_server("target", found))
    with suppress(PackhorseError):  # a line of its own told of that
        system = open_target(dsn)
        try:
            lines += _of_tables(found, system.catalogue(), tables)
        finally:
            system.close()
    return lines


def _condition(dsn: str) -> Condition | None:
    """None of a system that can't be opened to read: another line told of that."""
    from connectors.condition import condition
    from connectors.dsn import Dsn, open_source

    with suppress(PackhorseError):
        system = open_source(dsn)
        try:
            return condition(system, Dsn.parse(dsn))
        finally:
            system.close()
    return None


def _of_server(side: str, found: Condition) -> Iterator[Check]:
    if found.version:
        yield _version(side, found)
    if found.clock is not None:
        yield _clock(side, found)
    if found.encoding:
        yield _encoding(side, found)
    if found.replica:
        yield _replica(side, found)
    if side == "target" and found.read_only:
        yield Check(
            "target writable", "fail", "the server takes no rows: it is a copy of another, or set to read only",
            "name the server that it copies, or turn read_only off",
        )  # fmt: skip


def _version(side: str, found: Condition) -> Check:
    first, end = _TESTED[found.product]
    said = f"{found.product} {'.'.join(map(str, found.version))}"
    name = f"{side} version"
    if side == "source" and found.product != "PostgreSQL" and found.version < first:
        return Check(name, "ok", f"{said}: older than those we test, to read from")
    if found.version < first:
        return Check(
            name, "warn", f"{said} is older than {'.'.join(map(str, first))}, the oldest that is tested",
            "rehearse the job first, or upgrade the server",
        )  # fmt: skip
    if found.version >= end:
        return Check(name, "warn", f"{said} is newer than those that are tested", "rehearse the job first")
    return Check(name, "ok", said)


def _clock(side: str, found: Condition) -> Check:
    assert found.clock is not None
    off = abs(found.clock)
    said = f"{off:.1f} s {'ahead of' if found.clock > 0 else 'behind'} this machine's, give or take {found.clock_give:.1f} s"
    if off - found.clock_give > CLOCK_SECONDS:
        return Check(
            f"{side} clock", "warn", said,
            "set both by NTP: watermarks of `migrate sync`, times in the log and in the target go by them",
        )  # fmt: skip
    return Check(f"{side} clock", "ok", f"within {max(0.1, off + found.clock_give):.1f} s of this machine's")


def _encoding(side: str, found: Condition) -> Check:
    name = f"{side} encoding"
    said = f"{found.encoding}, {found.collation}" if found.collation else found.encoding
    if found.odd_tables:
        shown = ", ".join(f"{table} ({charset})" for table, charset in list(found.odd_tables.items())[:_MOST])
        more = len(found.odd_tables) - _MOST
        said += f"; otherwise in {shown}" + (f" and {more} more tables" if more > 0 else "")
    if side == "source":
        if found.encoding == "SQL_ASCII":
            return Check(
                name,
                "warn",
                said,
                "the server checks no text: bytes that are no UTF-8 end the reading; say client_encoding in the DSN",
            )
        return Check(name, "ok", said)
    if found.odd_tables or found.encoding.upper().replace("-", "") not in ("UTF8", "UTF8MB4", "UTF16LE", "UTF16BE"):
        advice = "rows with characters that it lacks (emoji, other scripts) go to quarantine"
        mend = (
            "ALTER TABLE ... CONVERT TO CHARACTER SET utf8mb4"
            if found.product in ("MariaDB", "MySQL")
            else "a database of ENCODING 'UTF8' has them all"
        )
        return Check(name, "warn", said, f"{advice}: {mend}")
    return Check(name, "ok", said)


def _replica(side: str, found: Condition) -> Check:
    name = f"{side} replica"
    if found.replica != "runs" or found.lag is None:
        return Check(
            name, "warn", f"it copies another server, and nobody can say how far behind it is: {found.replica}",
            "see to its replication, or read from the server that it copies",
        )  # fmt: skip
    said = f"it copies another server and is {found.lag:,.0f} s behind"
    if found.lag > LAG_SECONDS:
        return Check(
            name,
            "warn",
            said,
            "what was entered since is not read: wait until it has caught up, or sync after the cut-over",
        )
    return Check(name, "ok", said)


def _room(found: Condition, folder: Path) -> Check | None:
    """Stage and transformed parts take about what the source holds, each."""
    if found.bytes is None:
        return None
    free = psutil.disk_usage(str(folder)).free
    said = f"it holds {_size(found.bytes)}, and {_size(free)} are free for the job's folder in {folder}"
    if free < found.bytes:
        advice = "a stage of it needs as much again: free some, or call migrate in a folder on a larger disk"
        return Check("source size", "fail", said, advice)
    if free < 2 * found.bytes:
        return Check("source size", "warn", said, "stage and transformed parts may need twice what the source holds")
    return Check("source size", "ok", said)


def _of_tables(found: Condition, catalogue: Catalogue, tables: Collection[str] | None) -> Iterator[Check]:
    there = [table for table in catalogue.tables.values() if not table.view]
    wanted = [table for table in there if tables is None or table.name in tables]
    for table in wanted:
        triggers = table.triggers or found.triggers.get(table.name, ())
        if triggers:
            yield Check(
                "target trigger", "warn", f"{table.name}: {', '.join(triggers)}",
                "it runs for each row: it may be slow, refuse rows, or write what `migrate undo` doesn't take back;"
                " ask its owner, and rehearse",
            )  # fmt: skip
    names = {t.name for t in wanted}
    for name, columns in found.unindexed:
        if name in names:
            yield Check(
                "target index", "warn", f"{name} ({', '.join(columns)}) refers to rows and has no index",
                f"each row that is taken back or deleted reads the whole table: CREATE INDEX ... ON {name} ({', '.join(columns)})",
            )  # fmt: skip


def _size(value: int) -> str:
    return f"{value / _GIB:.1f} GiB" if value >= _GIB else f"{value / 2**20:.1f} MiB"
