"""The sample as a PostgreSQL database, filled by COPY.

PostgreSQL has no zero timestamps and no NUL in a text, so this form has none; its date columns are text,
as after a careless move from MySQL, and hold zero and half dates.
"""

from __future__ import annotations

from collections.abc import Iterable

import psycopg
import pyarrow as pa
from psycopg import sql
from sqlalchemy.engine import make_url

from .lines import tab_lines
from .tables import SOURCE_TABLES, create_statements


def write_postgresql(url: str, batches: Iterable[tuple[str, pa.Table]]) -> None:
    """Writes the batches to the database of a URL; tables of the same names are replaced."""
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain) as connection:
        later: list[str] = []
        for table in SOURCE_TABLES:
            connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(table.name)))
            create, *indexes = create_statements(table, "postgresql")
            connection.execute(create.encode())
            later.extend(indexes)
        for name, batch in batches:
            command = sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(name))
            with connection.cursor().copy(command) as copy:
                copy.write(tab_lines(batch))
        for index in later:
            connection.execute(index.encode())
        connection.execute("ANALYZE")
