"""Which rows of a job can be taken back, and what keeps the others: a table in the target's session, made by SQL alone.

A row is kept where it isn't what the job left any more, where a later job wrote it too, or where a row that stays
refers to it. Nothing of the customer's is written here, and no row passes through this process but those shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from psycopg import sql

from connectors.postgres_referrers import Referrer, read_referrers
from connectors.postgres_rows import found_row, held_value, name_of, same_row
from connectors.postgres_undo import PostgresUndone
from connectors.records import KeptRow, LoadedEntity, SlowKey
from workspace.errors import CatalogueError

ROWS = sql.Identifier("pg_temp", "packhorse_undo")
"""A row of it, called u, is a row that the job wrote. `act` is what taking it back means: delete what it inserted,
restore what an upsert replaced (`held`), return a row to the earlier job that it was of (`held`, where it was
changed), refer (give back the references alone), unmerge (forget that it was merged into another's row), or later
(nothing: a later job owns it now). `reason` is NULL where that can be done; `round` counts the rounds in which reasons spread along foreign keys."""

CHANGED = "changed in the target since"
GONE = "gone from the target"
UNKEPT = "what it held before was not kept by the version that loaded it"

_CREATE = """
DROP TABLE IF EXISTS pg_temp.packhorse_undo;
CREATE TEMP TABLE packhorse_undo (
    n bigint GENERATED ALWAYS AS IDENTITY, entity_id int NOT NULL, batch int NOT NULL, old_id text NOT NULL,
    new_id text NOT NULL, act text NOT NULL, held jsonb, reason text, round int NOT NULL DEFAULT 0)
"""
_INDEX = """
CREATE INDEX ON pg_temp.packhorse_undo (entity_id, batch, n);
CREATE INDEX ON pg_temp.packhorse_undo (round) WHERE round > 0;
ANALYZE pg_temp.packhorse_undo
"""
_LATER = """
(SELECT 'the job ' || j.name || ' wrote it later' FROM {schema}.held_before l JOIN {schema}.job j ON j.id = l.job_id
  WHERE l.entity_id = x.entity_id AND l.old_id = x.old_id AND l.job_id <> {job} AND l.n > coalesce(b.n, 0) ORDER BY l.n LIMIT 1)
"""
_OWN = """
INSERT INTO {rows} (entity_id, batch, old_id, new_id, act, held, reason)
SELECT x.entity_id, x.batch, x.old_id, x.new_id,
       CASE WHEN x.merged THEN 'unmerge' WHEN b.n IS NOT NULL THEN 'return' WHEN x.replaced IS NOT NULL THEN 'restore' ELSE 'delete' END,
       CASE WHEN b.n IS NOT NULL THEN b.held ELSE x.replaced END,
       coalesce({later}, CASE
         WHEN x.merged THEN NULL
         WHEN b.n IS NOT NULL AND b.held IS NULL THEN NULL
         WHEN NOT ({present}) THEN CASE WHEN b.n IS NOT NULL OR x.replaced IS NOT NULL THEN {gone} END
         WHEN ({hash})::uuid IS DISTINCT FROM x.target_hash OR ({reference})::uuid IS DISTINCT FROM x.reference_hash THEN {changed}
         WHEN b.n IS NULL AND x.replaced IS NULL AND x.batch = ANY({unkept}) THEN {unkept_reason} END)
  FROM {schema}.crosswalk x LEFT JOIN {table} t ON {join}
  LEFT JOIN {schema}.held_before b ON (b.entity_id, b.old_id, b.job_id, b.step) = (x.entity_id, x.old_id, {job}, 1)
 WHERE x.entity_id = {entity} AND x.job_id = {job} {only} ORDER BY x.batch
"""
_REFERRING = """
INSERT INTO {rows} (entity_id, batch, old_id, new_id, act, held, reason)
SELECT x.entity_id, b.batch, x.old_id, x.new_id, 'refer', b.held,
       coalesce({later}, CASE WHEN NOT ({present}) THEN {gone}
         WHEN ({reference})::uuid IS DISTINCT FROM x.reference_hash THEN {changed} END)
  FROM {schema}.held_before b JOIN {schema}.crosswalk x ON (x.entity_id, x.old_id) = (b.entity_id, b.old_id)
  LEFT JOIN {table} t ON {join}
 WHERE b.job_id = {job} AND b.entity_id = {entity} AND b.step = 2 AND x.job_id <> {job} {only} ORDER BY b.batch
"""
_WRITTEN_LATER = """
INSERT INTO {rows} (entity_id, batch, old_id, new_id, act, reason)
SELECT x.entity_id, b.owner_batch, x.old_id, x.new_id, 'later', 'the job ' || j.name || ' wrote it later'
  FROM {schema}.held_before b JOIN {schema}.crosswalk x ON (x.entity_id, x.old_id) = (b.entity_id, b.old_id)
  JOIN {schema}.job j ON j.id = b.job_id
 WHERE b.owner_job = {job} AND b.entity_id = {entity} AND b.step = 1 AND b.job_id <> {job} AND x.job_id <> {job} {only}
"""
_HELD_BY_OTHERS = """
UPDATE {rows} u SET reason = 'the job ' || j.name || ' holds it too'
  FROM {schema}.entity e JOIN {schema}.crosswalk y ON y.entity_id = e.id JOIN {schema}.job j ON j.id = y.job_id
 WHERE u.entity_id = {entity} AND u.reason IS NULL AND e.target_table = {to} AND e.id <> {entity} AND y.new_id = u.new_id
   AND y.job_id <> {job} AND u.act <> 'unmerge' AND (u.act = 'delete' OR y.job_id > {job})
"""
_MERGED_INTO = """
UPDATE {rows} u SET reason = 'other rows were merged into it' FROM {schema}.crosswalk y
 WHERE u.entity_id = {entity} AND u.reason IS NULL AND u.act = 'delete' AND y.entity_id = {entity} AND y.merged
   AND y.new_id = u.new_id AND NOT EXISTS (SELECT 1 FROM {rows} g WHERE g.entity_id = {entity} AND g.act = 'unmerge'
                                              AND g.old_id = y.old_id)
"""
_RECHECK = """
UPDATE {rows} u SET reason = CASE WHEN {present} OR u.act <> 'delete' THEN {changed} END
  FROM {schema}.crosswalk x LEFT JOIN {table} t ON {join}
 WHERE u.entity_id = {entity} AND u.batch = {batch} AND u.reason IS NULL AND u.act = ANY({acts})
   AND (x.entity_id, x.old_id) = (u.entity_id, u.old_id) AND NOT (u.act = 'return' AND u.held IS NULL)
   AND (({hash})::uuid IS DISTINCT FROM x.target_hash AND u.act <> 'refer' OR ({reference})::uuid IS DISTINCT FROM x.reference_hash)
"""


class PostgresUndoRows:
    """The rows of one job, or of one batch of it, in one session. Lost with the session: `find` makes it again."""

    def __init__(self, target: PostgresUndone, entities: Sequence[LoadedEntity], only: tuple[str, int] | None) -> None:
        """The job must be known to the target, and its entities. `only`: (entity, batch)."""
        self.target = target
        self.only = only
        self.entities = [e for e in entities if target.knows_entity(e.name)]
        self.referrers = {e.name: read_referrers(target, e.table) for e in self.entities}
        self.slow = tuple(
            SlowKey(name, (key.schema, key.relation), key.columns)
            for name, keys in self.referrers.items()
            for key in keys
            if not key.indexed
        )
        self._refuse_unreadable()

    def find(self) -> None:
        """Lists what the job wrote, with a reason for each row that has to stay."""
        self._run(sql.SQL(_CREATE))
        for entity in self.entities:
            if self.only is None or self.only[0] == entity.name:
                found = self._found(entity)
                for template, column in (
                    (_OWN, "x.batch"),
                    (_REFERRING, "b.batch"),
                    (_WRITTEN_LATER, "b.owner_batch"),
                ):
                    self._run(sql.SQL(template).format(only=self._only(column), **found))
        self._run(sql.SQL(_INDEX))
        for entity in self.entities:
            self._run(sql.SQL(_MERGED_INTO).format(**self._names(entity)))
            self._run(sql.SQL(_HELD_BY_OTHERS).format(to=sql.Literal(entity.to), **self._names(entity)))
        if sum(self._run(self._referred(e, key)) for e in self.entities for key in self.referrers[e.name]):
            self._spread()

    def going(self) -> dict[tuple[str, int], int]:
        """How many rows can be taken back, by entity and batch; batches without any are left out."""
        rows = self.target.read(
            sql.SQL("SELECT entity_id, batch, count(*) FROM {} WHERE reason IS NULL GROUP BY 1, 2").format(ROWS)
        )
        names = {self.target.entity_id(e.name): e.name for e in self.entities}
        return {(names[entity], batch): int(count) for entity, batch, count in rows}

    def counts(self) -> list[tuple[str, str, str | None, int]]:
        """Rows by entity, act and reason (None: can be taken back)."""
        rows = self.target.read(
            sql.SQL("SELECT entity_id, act, reason, count(*) FROM {} GROUP BY 1, 2, 3 ORDER BY 1, 2, 4 DESC, 3").format(
                ROWS
            )
        )
        names = {self.target.entity_id(e.name): e.name for e in self.entities}
        return [(names[entity], act, reason, int(count)) for entity, act, reason, count in rows]

    def kept(self, most: int) -> list[KeptRow]:
        """The first `most` rows that stay."""
        names = {self.target.entity_id(e.name): e.name for e in self.entities}
        rows = self.target.read(
            sql.SQL("SELECT entity_id, old_id, new_id, reason FROM {} WHERE reason IS NOT NULL ORDER BY n LIMIT {}").format(
                ROWS, sql.Literal(most)
            )
        )  # fmt: skip
        return [KeptRow(names[e], tuple(old.split("\x1f")), new, reason) for e, old, new, reason in rows]

    def lock(self, entity: str, batch: int) -> None:
        """Locks a batch's rows until the transaction ends: nobody changes them or refers to them anew."""
        found = self.loaded(entity)
        self._run(
            sql.SQL(
                "SELECT count(*) FROM (SELECT 1 FROM {table} t JOIN {rows} u ON {same} WHERE u.entity_id = {entity} "
                "AND u.batch = {batch} AND u.reason IS NULL FOR UPDATE OF t) locked"
            ).format(same=same_row(found.identity), batch=sql.Literal(batch), **self._names(found))
        )

    def recheck(self, entity: LoadedEntity, batch: int, acts: Sequence[str], *, going: bool) -> None:
        """Gives a reason to rows of a locked batch that must stay after all; with `going`, to those too that a row
        outside the batch refers to by now."""
        found = self._found(entity)
        self._run(sql.SQL(_RECHECK).format(batch=sql.Literal(batch), acts=sql.Literal(list(acts)), **found))
        keys = self.referrers[entity.name] if going else []
        while sum(self._run(self._referred(entity, key, batch)) for key in keys):
            pass

    def numbers(self, entity: LoadedEntity, batch: int) -> tuple[int, int]:
        """The lowest and highest number (n) of a batch's rows; (0, 0) where it has none."""
        found = self.target.read(
            sql.SQL("SELECT coalesce(min(n), 0), coalesce(max(n), 0) FROM {} WHERE (entity_id, batch) = ({}, {})").format(
                ROWS, self._id(entity), sql.Literal(batch)
            )
        )  # fmt: skip
        return found[0][0], found[0][1]

    def loaded(self, entity: str) -> LoadedEntity:
        """The entity of that name; KeyError when there is none."""
        return next(e for e in self.entities if e.name == entity)

    def keep(self, reasons: dict[int, str]) -> None:
        """Lets rows stay, by their number; for few."""
        for n, reason in reasons.items():
            self._run(
                sql.SQL("UPDATE {} SET reason = {} WHERE n = {}").format(ROWS, sql.Literal(reason), sql.Literal(n))
            )

    def staying(self, entity: str, batch: int, step: int) -> int:
        """How many rows of a batch stay: of the second step, those whose references alone were the job's."""
        acts = sql.SQL("act = 'refer'" if step == 2 else "act <> 'refer'")
        found = self.target.read(
            sql.SQL("SELECT count(*) FROM {} WHERE (entity_id, batch) = ({}, {}) AND reason IS NOT NULL AND {}").format(
                ROWS, self._id(self.loaded(entity)), sql.Literal(batch), acts
            )
        )
        return int(found[0][0])

    # -- foreign keys -----------------------------------------------------------------------------

    def _spread(self) -> None:
        """A row that stays keeps the rows that it refers to, and those the ones that they refer to."""
        at = 1
        while sum(self._run(statement) for statement in self._next_round(at)):
            at += 1

    def _next_round(self, at: int) -> Iterator[sql.Composed]:
        for entity in self.entities:
            for key in self.referrers[entity.name]:
                for other in self._of_table(key):
                    yield self._update_referred(entity, key, at + 1, sql.SQL(
                        "EXISTS (SELECT 1 FROM {rows} g WHERE g.entity_id = {other} AND g.round = {at} AND {same})"
                    ).format(rows=ROWS, other=self._id(other), at=sql.Literal(at), same=same_row(other.identity, "f", "g")))  # fmt: skip

    def _referred(self, entity: LoadedEntity, key: Referrer, batch: int | None = None) -> sql.Composed:
        """Keeps the rows that something refers to which doesn't go itself; within a batch, go with it."""
        others = [other for other in self._of_table(key) if batch is None or other.name == entity.name]
        stays: list[sql.Composable] = [sql.SQL("true")]
        for other in others:
            within = sql.SQL("") if batch is None else sql.SQL("AND g.batch = {}").format(sql.Literal(batch))
            stays.append(
                sql.SQL(
                    "NOT EXISTS (SELECT 1 FROM {rows} g WHERE g.entity_id = {other} AND g.reason IS NULL {within} AND {same} "
                    "AND (g.act = 'delete' OR {released}))"
                ).format(
                    rows=ROWS, other=self._id(other), within=within, same=same_row(other.identity, "f", "g"),
                    released=_lets_go(other, key),
                )
            )  # fmt: skip
        return self._update_referred(entity, key, 1, sql.SQL(" AND ").join(stays), batch)

    def _update_referred(
        self, entity: LoadedEntity, key: Referrer, round_: int, stays: sql.Composable, batch: int | None = None
    ) -> sql.Composed:
        joined = sql.SQL(" AND ").join(
            sql.SQL("f.{} = t.{}").format(sql.Identifier(c), sql.Identifier(r))
            for c, r in zip(key.columns, key.referred_columns, strict=True)
        )
        within = sql.SQL("") if batch is None else sql.SQL("AND u.batch = {}").format(sql.Literal(batch))
        return sql.SQL(
            "UPDATE {rows} u SET reason = {reason}, round = {round} FROM {table} t JOIN {referring} f ON {joined} "
            "WHERE u.entity_id = {entity} AND u.reason IS NULL {within} AND {same} AND (u.act = 'delete' OR {changes}) AND {stays}"
        ).format(
            reason=sql.Literal(f"a row of {key.schema}.{key.relation} refers to it"), round=sql.Literal(round_),
            referring=key.name, joined=joined, within=within, same=same_row(entity.identity), changes=_changes(entity, key),
            stays=stays, **self._names(entity),
        )  # fmt: skip

    def _of_table(self, key: Referrer) -> list[LoadedEntity]:
        """The entities that were loaded into the table that the key belongs to."""
        return [e for e in self.entities if (e.table.schema, e.table.relation) == (key.schema, key.relation)]

    def _refuse_unreadable(self) -> None:
        for entity in self.entities:
            if entity.table.row_security:
                raise CatalogueError(
                    f"row-level security may hide rows of {entity.to} from this user", where=self.target.dsn,
                    advice="take the job back as the table's owner, or a user with BYPASSRLS",
                )  # fmt: skip
            for key in self.referrers[entity.name]:
                if not key.readable:
                    name = f"{key.schema}.{key.relation}"
                    raise CatalogueError(
                        f"can't see which rows of {name} refer to {entity.to} ({key.constraint})", where=self.target.dsn,
                        advice=f"GRANT SELECT ON {name} TO the user of the target DSN",
                    )  # fmt: skip

    # -- SQL --------------------------------------------------------------------------------------

    def _run(self, statement: sql.SQL | sql.Composed) -> int:
        return self.target.execute(statement)

    def _id(self, entity: LoadedEntity) -> sql.Literal:
        return sql.Literal(self.target.entity_id(entity.name))

    def _only(self, column: str) -> sql.Composed:
        if self.only is None:
            return sql.Composed([])
        return sql.SQL("AND {} = {}").format(sql.SQL(column), sql.Literal(self.only[1]))

    def _names(self, entity: LoadedEntity) -> dict[str, sql.Composable]:
        return {
            "rows": ROWS,
            "schema": sql.Identifier(self.target.schema),
            "table": name_of(entity.table),
            "entity": self._id(entity),
            "job": sql.Literal(self.target.job_id),
        }

    def _found(self, entity: LoadedEntity) -> dict[str, sql.Composable]:
        found = found_row(entity)
        job = sql.Literal(self.target.job_id)
        later = sql.SQL(_LATER).format(schema=sql.Identifier(self.target.schema), job=job)
        return {
            **self._names(entity),
            "present": found.present,
            "hash": found.hash,
            "reference": found.reference,
            "join": same_row(entity.identity, "t", "x"),
            "later": later,
            "gone": sql.Literal(GONE),
            "changed": sql.Literal(CHANGED),
            "unkept": sql.Literal(self.target.unkept_batches(entity.name)),
            "unkept_reason": sql.Literal(UNKEPT),
        }


def _lets_go(entity: LoadedEntity, key: Referrer) -> sql.Composable:
    """True where restoring the listed row g makes its table's row f refer to something else than now."""
    columns = {c.name: c for c in entity.restored}
    if not set(key.columns) <= set(columns):
        return sql.SQL("false")
    differ = sql.SQL(" OR ").join(
        sql.SQL("{} IS DISTINCT FROM f.{}").format(held_value(columns[c], sql.Identifier("g", "held")), sql.Identifier(c))
        for c in key.columns
    )  # fmt: skip
    return sql.SQL("(g.held IS NOT NULL AND ({}))").format(differ)


def _changes(entity: LoadedEntity, key: Referrer) -> sql.Composed:
    """True where restoring the listed row u changes what the key refers to in its table's row t."""
    columns = [c for c in entity.restored if c.name in key.referred_columns]
    differ = [
        sql.SQL("{} IS DISTINCT FROM t.{}").format(held_value(c, sql.Identifier("u", "held")), sql.Identifier(c.name))
        for c in columns
    ]
    return sql.SQL("(u.held IS NOT NULL AND ({}))").format(sql.SQL(" OR ").join([*differ, sql.SQL("false")]))
