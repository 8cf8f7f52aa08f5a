"""A small job with what can go wrong in one: circular references, an id of a sequence, rows that the plan, another row
and the target refuse; and what its target and log hold after it.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from tests.engine_jobs import EngineJob, copied
from workspace.events import BatchCommitted, BatchUndone, EntityCompleted, QuarantineSeen, StageCompleted
from workspace.log import Workspace
from workspace.paths import JobPaths

SOURCE = """
CREATE TABLE accounts(id text primary key, name text, parent text);
INSERT INTO accounts VALUES ('a', 'Acme', 'e'), ('b', 'Bolt', 'a'), ('c', 'Bolt', NULL), ('d', 'Dyn', 'nope'), ('e', 'Eon', 'd');
CREATE TABLE contacts(id integer primary key, name text, account text, born text, deleted int);
INSERT INTO contacts VALUES (1, 'Ana', 'a', '1984-02-29', 0), (2, 'Bo', 'b', '0000-00-00', 0), (3, 'Cy', 'c', NULL, 0), (4, 'Di', 'e', 'never', 0),
  (5, 'Ed', NULL, '', 0), (6, 'Evil', 'a', NULL, 0), (7, 'Gil', 'a', NULL, 1);
CREATE TABLE notes(id integer primary key, contact int, text text);
INSERT INTO notes VALUES (1, 1, 'one'), (2, 2, 'two'), (3, 4, 'three'), (4, 5, NULL);
"""
TARGET = """
CREATE TABLE companies(id uuid primary key, name text UNIQUE, parent_id uuid REFERENCES companies);
CREATE TABLE people(id bigint GENERATED ALWAYS AS IDENTITY primary key, name text CHECK (name <> 'Evil'), company_id uuid REFERENCES companies, born date);
CREATE TABLE notes(id int primary key, person_id bigint REFERENCES people, text text);
INSERT INTO companies VALUES ('00000000-0000-0000-0000-000000000001', 'Dyn', NULL);
"""
PLAN = """
entities:
  notes: {from: notes, to: notes, key: id, fields: {person_id: {from: contact, ref: contacts, missing: 'null'}, text: {from: text}}}
  contacts:
    from: contacts
    to: people
    key: id
    id: sequence
    where: deleted = 0
    fields: {name: {from: name}, company_id: {from: account, ref: accounts, missing: 'null'}, born: {from: born}}
  accounts:
    from: accounts
    to: companies
    key: id
    id: uuid5
    fields: {name: {from: name}, parent_id: {from: parent, ref: accounts, missing: 'null'}}
"""

LOOKED_AT = {
    "companies": "SELECT * FROM companies",
    "people": "SELECT x.old_id, p.name, p.company_id, p.born FROM people p LEFT JOIN packhorse.crosswalk x ON x.new_id = p.id::text "
    "AND x.entity_id = (SELECT id FROM packhorse.entity WHERE name = 'contacts')",
    "notes": "SELECT n.id, x.old_id, n.text FROM notes n LEFT JOIN people p ON p.id = n.person_id "
    "LEFT JOIN packhorse.crosswalk x ON x.new_id = p.id::text AND x.entity_id = (SELECT id FROM packhorse.entity WHERE name = 'contacts')",
    "crosswalk": "SELECT e.name, x.batch, x.old_id, CASE e.name WHEN 'contacts' THEN '' ELSE x.new_id END, x.source_hash, "
    "CASE e.name WHEN 'notes' THEN NULL ELSE x.target_hash END, x.reference_hash, x.replaced FROM packhorse.crosswalk x JOIN packhorse.entity e ON e.id = x.entity_id",
    "ledger": "SELECT e.name, l.batch, l.step, key_low, key_high, plan_version, read, inserted, updated, unchanged, merged, excluded, quarantined, "
    "CASE e.name WHEN 'notes' THEN NULL ELSE checksum END FROM packhorse.ledger l JOIN packhorse.entity e ON e.id = l.entity_id",
    "quarantine": "SELECT e.name, q.batch, q.row, q.key, q.field, q.code, q.signature, q.detail, q.raw::text, q.status "
    "FROM packhorse.quarantine q JOIN packhorse.entity e ON e.id = q.entity_id",
    "sequence": "SELECT (SELECT max(id) FROM people) <= last_value FROM people_id_seq",
}  # fmt: skip


def dumps(connection: psycopg.Connection[Any]) -> dict[str, str]:
    return {name: copied(connection, sql.SQL(statement)) for name, statement in LOOKED_AT.items()}


def told(job: EngineJob) -> tuple[Counter[Any], ...]:
    """What the log tells: each batch once, the failures by signature, what was done to the end, what was taken back."""
    with Workspace.open(JobPaths(Path(job.base), job.name)) as workspace:
        events = [
            e.event for e in workspace.events(types=[BatchCommitted, QuarantineSeen, EntityCompleted, StageCompleted])
        ]
        taken = [e.event for e in workspace.events(types=[BatchUndone])]
    batches = Counter((e.entity, e.batch, e.step, e.inserted) for e in events if isinstance(e, BatchCommitted))
    seen: Counter[Any] = Counter()
    for e in events:
        if isinstance(e, QuarantineSeen):
            seen[e.entity, e.signature, e.code] += e.count
    ended = Counter((e.type, e.entity) for e in events if isinstance(e, EntityCompleted | StageCompleted))
    # a second pass may be taken back twice, the second time finding nothing to do
    undone = Counter({(e.entity, e.batch, e.step, e.deleted, e.refused) for e in taken if isinstance(e, BatchUndone)})
    return batches, seen, ended, undone
