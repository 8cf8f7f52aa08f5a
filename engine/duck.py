"""The DuckDB that runs plan expressions: in memory, locked to one job's folders.

It must never reach another file, the network or an extension, whatever an expression says.
"""

from __future__ import annotations

import duckdb

from engine.functions.register import register
from workspace.paths import JobPaths


def open_duck(paths: JobPaths, *, memory: str = "256MB", threads: int = 2) -> duckdb.DuckDBPyConnection:
    """A connection with the domain functions, allowed to read and write the job's own folders only."""
    connection = duckdb.connect(
        config={
            "memory_limit": memory,
            "threads": str(threads),
            "temp_directory": str(paths.temp),
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        }
    )
    register(connection)
    connection.execute("SET enable_progress_bar = false")  # it would be drawn over what the command shows
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET preserve_insertion_order = true")
    folders = ", ".join(
        "'" + str(folder).replace("'", "''") + "/'" for folder in (paths.stage, paths.transformed, paths.temp)
    )
    connection.execute(f"SET allowed_directories = [{folders}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection
