"""connectorx reads into Arrow, pyarrow writes CSV, COPY takes it: the fast path that a script would take."""

from __future__ import annotations

import json
from pathlib import Path

from bench.peers.contender import Contender, Started
from bench.peers.environment import installed, versions
from bench.systems import Systems
from sample_data.servers import Database

_REQUIREMENTS = ("connectorx==0.4.6", "pyarrow>=20", "psycopg[binary]>=3.2,<4")
_SCRIPT = Path(__file__).with_name("in_connectorx.py")


def _python() -> Path:
    return installed("connectorx", _REQUIREMENTS)


def _start(systems: Systems, target: Database, folder: Path) -> Started:
    tables = {table.name: table.columns for table in systems.clean}
    given = {"source": systems.reader_dsn, "target": systems.writer_dsn(target), "tables": tables}
    return Started([str(_python()), "-P", str(_SCRIPT)], {"PACKHORSE_BENCH": json.dumps(given)})


CONNECTORX = Contender(
    name="connectorx",
    did="copies clean rows",
    how="read_sql as a stream of Arrow, pyarrow's CSV, COPY, one table after another in one transaction",
    prepare=lambda: versions(_python(), ["connectorx", "pyarrow", "psycopg"]),
    start=_start,
)
