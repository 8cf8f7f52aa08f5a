"""Our own schema in a PostgreSQL target: jobs, entities, the ledger, the crosswalk, quarantine.

Changed only by adding a step to STEPS; a step never changes once released.
"""

from __future__ import annotations

from workspace.errors import UsageError

SCHEMA = "packhorse"
"""Its name where none was chosen."""

LONGEST = 63
"""Bytes of a name in PostgreSQL; a longer one would be cut without a word."""


def checked_name(name: str) -> str:
    """The name, where a schema of the target can have it. UsageError says why not."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        size = 0
    why = ""
    if not size or "\0" in name:
        why = "is no text that a schema can be called"
    elif size > LONGEST:
        why = f"has {size} bytes, and a schema's name at most {LONGEST}"
    elif name.lower().startswith("pg_") or name == "information_schema":
        why = "is a name that PostgreSQL keeps for itself"
    if why:
        raise UsageError(f"{name[:LONGEST]!r} {why}", where="--ledger-schema", advice="choose another name")
    return name


def _create(schema: str) -> tuple[str, ...]:
    return (
        f"""CREATE TABLE {schema}.job (
            id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            name text NOT NULL UNIQUE,
            source text NOT NULL,
            host text, pid int, since timestamptz)""",
        f"""CREATE TABLE {schema}.entity (
            id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            source text NOT NULL, name text NOT NULL, target_table text NOT NULL,
            UNIQUE (source, name, target_table))""",
        f"""CREATE TABLE {schema}.ledger (
            job_id int NOT NULL REFERENCES {schema}.job, entity_id int NOT NULL REFERENCES {schema}.entity,
            batch int NOT NULL, step smallint NOT NULL,
            key_low text NOT NULL, key_high text NOT NULL, plan_version int NOT NULL,
            read int NOT NULL, inserted int NOT NULL, updated int NOT NULL, unchanged int NOT NULL,
            merged int NOT NULL, excluded int NOT NULL, quarantined int NOT NULL, checksum numeric NOT NULL,
            committed_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (job_id, entity_id, batch, step))""",
        f"""CREATE TABLE {schema}.crosswalk (
            entity_id int NOT NULL, job_id int NOT NULL, batch int NOT NULL,
            old_id text NOT NULL, new_id text NOT NULL,
            source_hash uuid NOT NULL, target_hash uuid NOT NULL, reference_hash uuid, replaced jsonb,
            PRIMARY KEY (entity_id, old_id))""",
        f"""CREATE TABLE {schema}.quarantine (
            job_id int NOT NULL, entity_id int NOT NULL, batch int NOT NULL, row bigint NOT NULL, key text NOT NULL,
            field text NOT NULL, code text NOT NULL, signature text NOT NULL, detail text NOT NULL,
            raw json NOT NULL, status text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'dropped')),
            PRIMARY KEY (job_id, entity_id, row))""",
    )


def _undo(schema: str) -> tuple[str, ...]:
    """What `migrate undo` needs: what a job's updates wrote over, and which batches were taken back.

    `keeps_before` is false for batches that were loaded when updates kept nothing. A row of `held_before` is one
    update of a row that another job owned: what it held (NULL where nothing of it was written), and its
    crosswalk row then; `n` counts up as they are written.
    """
    return (
        f"""ALTER TABLE {schema}.ledger
            ADD COLUMN keeps_before boolean NOT NULL DEFAULT false,
            ADD COLUMN undone_at timestamptz,
            ADD COLUMN undone_deleted int NOT NULL DEFAULT 0,
            ADD COLUMN undone_restored int NOT NULL DEFAULT 0,
            ADD COLUMN undone_refused int NOT NULL DEFAULT 0""",
        f"""CREATE TABLE {schema}.held_before (
            n bigint GENERATED ALWAYS AS IDENTITY,
            entity_id int NOT NULL, old_id text NOT NULL, job_id int NOT NULL, batch int NOT NULL, step smallint NOT NULL,
            held jsonb, owner_job int NOT NULL, owner_batch int NOT NULL,
            source_hash uuid NOT NULL, target_hash uuid NOT NULL, reference_hash uuid,
            PRIMARY KEY (entity_id, old_id, job_id, step))""",
    )


def _retry(schema: str) -> tuple[str, ...]:
    """What `migrate quarantine retry` needs. A batch that is retried has further rows in the ledger: an odd step
    from 3 on for rows that left the quarantine (read 0, quarantined below 0), the step after it for the references
    filled in them. Each such row is noted here once, with the values that a person edited (binary as hexadecimal
    digits)."""
    return (
        f"""CREATE TABLE {schema}.retried (
            job_id int NOT NULL, entity_id int NOT NULL, batch int NOT NULL, step smallint NOT NULL, row bigint NOT NULL,
            plan_version int NOT NULL, excluded boolean NOT NULL, edited json,
            PRIMARY KEY (job_id, entity_id, row))""",
    )


def _sync(schema: str) -> tuple[str, ...]:
    """What `migrate sync` needs. A row of `superseded` is a row of the stage that one of the same source key took the
    place of, or that the source has no longer: `batch` is the one that did so, `of_batch` the row's own, `outcome`
    what had become of it. `synced` holds a batch's counts that the ledger has no column for. A row of `kept` is a row
    of the target that a person edited and a sync left so, wholly or in some fields: what it held then, by checksum. Rows of
    `marked` got the deletion marker from a sync."""
    return (
        f"""CREATE TABLE {schema}.superseded (
            job_id int NOT NULL, entity_id int NOT NULL, batch int NOT NULL, of_batch int NOT NULL, row bigint NOT NULL,
            outcome text NOT NULL CHECK (outcome IN ('loaded', 'excluded', 'quarantined')),
            PRIMARY KEY (job_id, entity_id, row))""",
        f"""CREATE TABLE {schema}.synced (
            job_id int NOT NULL, entity_id int NOT NULL, batch int NOT NULL,
            kept int NOT NULL, asked int NOT NULL, deleted int NOT NULL, marked int NOT NULL, stayed int NOT NULL,
            PRIMARY KEY (job_id, entity_id, batch))""",
        f"""CREATE TABLE {schema}.kept (
            job_id int NOT NULL, entity_id int NOT NULL, batch int NOT NULL, old_id text NOT NULL, new_id text NOT NULL,
            fields text NOT NULL, asked boolean NOT NULL, edited_hash uuid, PRIMARY KEY (job_id, entity_id, old_id))""",
        f"""CREATE TABLE {schema}.marked (
            job_id int NOT NULL, entity_id int NOT NULL, old_id text NOT NULL, PRIMARY KEY (job_id, entity_id, old_id))""",
    )


def _merge(schema: str) -> tuple[str, ...]:
    """What duplicates need: a row of the crosswalk whose source row was merged into another's target row, which
    `new_id` names; it has no target row of its own."""
    return (f"ALTER TABLE {schema}.crosswalk ADD COLUMN merged boolean NOT NULL DEFAULT false",)


def _match(schema: str) -> tuple[str, ...]:
    """What matching needs: how many of a batch's rows are one with a row that the target held before; NULL where the plan
    matches none."""
    return (f"ALTER TABLE {schema}.ledger ADD COLUMN matched int",)


STEPS = (_create, _undo, _retry, _sync, _merge, _match)
"""What makes the schema, in order; its version is how many have been done."""

TABLES = (
    "ledger", "quarantine", "held_before", "retried", "superseded", "synced", "kept", "marked", "crosswalk", "entity", "job",
)  # fmt: skip
"""The tables that STEPS make, those that refer to others first."""
