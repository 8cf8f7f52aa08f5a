"""dlt's sql_database source into its postgres destination, set up as its own advice on speed says."""

from __future__ import annotations

import json
import os
from pathlib import Path

from bench.peers.contender import Contender, Started
from bench.peers.environment import installed, versions
from bench.systems import Systems
from sample_data.servers import Database

_REQUIREMENTS = ("dlt[postgres,sql_database]==1.31.0", "connectorx==0.4.6", "pyarrow>=20", "pymysql>=1.1")
_SCRIPT = Path(__file__).with_name("in_dlt.py")
_DATASET = "copied"
# Files of some size, so that workers share them; uncompressed, which made its normalising eight times as fast.
_SETTINGS = {
    "RUNTIME__DLTHUB_TELEMETRY": "false",
    "SOURCES__DATA_WRITER__FILE_MAX_ITEMS": "50000",
    "NORMALIZE__DATA_WRITER__FILE_MAX_ITEMS": "50000",
    "NORMALIZE__DATA_WRITER__DISABLE_COMPRESSION": "true",
    "NORMALIZE__WORKERS": str(os.cpu_count() or 1),
    "LOAD__WORKERS": str(max(4, os.cpu_count() or 1)),
}


def _python() -> Path:
    return installed("dlt", _REQUIREMENTS)


def _start(systems: Systems, target: Database, folder: Path) -> Started:
    given = {
        "source": systems.reader_dsn,
        "target": systems.writer_dsn(target),
        "tables": [f"clean_{table.name}" for table in systems.clean],
        "dataset": _DATASET,
        "folder": str(folder),
    }
    return Started([str(_python()), "-P", str(_SCRIPT)], {**_SETTINGS, "PACKHORSE_BENCH": json.dumps(given)})


DLT = Contender(
    name="dlt",
    did="copies clean rows, into a DDL of its own",
    how="connectorx backend, Arrow, CSV files, COPY, with workers; its tables are all text, without keys, indexes or "
    "checks; it records the load",
    prepare=lambda: versions(_python(), ["dlt", "connectorx", "pyarrow", "sqlalchemy", "pymysql"]),
    start=_start,
    place=f"{_DATASET}.clean_",
)
