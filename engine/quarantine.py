"""The rows in quarantine, read back from the target: what could not be loaded, raw, and why.

Only reads. The log knows the clusters; the rows themselves are in the target alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from connectors.postgres import PostgresTarget
from connectors.postgres_schema import SCHEMA

_COLUMNS = ("entity", "key", "field", "code", "signature", "detail", "raw", "status")


@dataclass(frozen=True)
class QuarantinedRow:
    """A source row that could not be loaded: its key, what failed on which field, and all it held.

    `raw` is the row as the source sent it (binary as hexadecimal digits); `status` is open or dropped.
    """

    entity: str
    key: tuple[str, ...]
    field: str
    code: str
    signature: str
    detail: str
    raw: dict[str, Any]
    status: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {**self.__dict__, "key": list(self.key)}


def quarantined_rows(
    target: PostgresTarget, job: str, *, entity: str = "", signature: str = "", limit: int | None = None
) -> Iterator[QuarantinedRow]:
    """The job's rows in quarantine, by entity and in the order of the stage; of one entity or signature where
    given. Nothing when the target doesn't know the job. ConnectError."""
    if not target.know(job):
        return
    statement = sql.SQL(
        "SELECT e.name, q.key, q.field, q.code, q.signature, q.detail, q.raw, q.status"
        " FROM {schema}.quarantine q JOIN {schema}.entity e ON e.id = q.entity_id"
        " WHERE q.job_id = {job} {narrowed} ORDER BY e.name, q.row {limited}"
    ).format(
        schema=sql.Identifier(SCHEMA),
        job=sql.Literal(target.job_id),
        narrowed=sql.SQL(" ").join(
            sql.SQL("AND {} = {}").format(sql.SQL(column), sql.Literal(value))
            for column, value in (("e.name", entity), ("q.signature", signature))
            if value
        ),
        limited=sql.SQL("LIMIT {}").format(sql.Literal(limit)) if limit is not None else sql.SQL(""),
    )
    for batch in target.stream(statement, _COLUMNS):
        for row in batch.to_pylist():
            key = tuple((row["key"] or "").split("\x1f"))
            texts = {name: row[name] or "" for name in ("entity", "field", "code", "signature", "detail", "status")}
            yield QuarantinedRow(key=key, raw=json.loads(row["raw"]), **texts)
