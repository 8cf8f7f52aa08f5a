"""Runs in dlt's own environment, so nothing of ours can be imported: MariaDB to tables that dlt makes.

Of its backends connectorx was the fastest that took the rows; of its files CSV (Parquet goes by ADBC, slower).
"""

from __future__ import annotations

import json
import os

import dlt
from dlt.sources.sql_database import sql_table

_BATCH = 50_000


def main() -> None:
    """Copies the tables that the environment names. Raises what dlt raises where a load job failed."""
    given = json.loads(os.environ["PACKHORSE_BENCH"])
    source = given["source"].replace("mysql://", "mysql+pymysql://")
    tables = [
        sql_table(
            source,
            table=name,
            backend="connectorx",
            chunk_size=_BATCH,
            reflection_level="full",
            backend_kwargs={"return_type": "arrow_stream", "batch_size": _BATCH},
        )
        for name in given["tables"]
    ]
    pipeline = dlt.pipeline(
        "bench",
        destination=dlt.destinations.postgres(given["target"]),
        dataset_name=given["dataset"],
        pipelines_dir=given["folder"],
    )
    done = pipeline.run(tables, write_disposition="replace", loader_file_format="csv")
    done.raise_on_failed_jobs()


if __name__ == "__main__":
    main()
