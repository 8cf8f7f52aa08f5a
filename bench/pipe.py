"""Our load beside the raw pipe, in one run: `python -m bench.pipe --contacts 1000000` (`make bench`).

The legacy CRM stands in MariaDB. We carry users, campaigns, accounts and contacts over by the gold plan:
every transform, references, ledger, crosswalk and hashes on. Then the rows that entered, already clean,
go from MariaDB tables through `mariadb --quick` into `psql COPY`, into the same DDL. Both are timed by the
wall; the ratio is what counts, since machines differ and are noisy.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from connectors.dsn import Dsn, open_source, open_target
from engine.check import check_plan
from engine.context import Context
from engine.functions.register import seconds_spent
from engine.load import load
from engine.plan import Plan, load_plan
from engine.verify import verify
from sample_data import CLOUD_SQL, GOLD_PLAN, World
from sample_data.form_mariadb import write_mariadb
from sample_data.legacy import source_batches
from sample_data.servers import MariadbServer, PostgresServer
from workspace.log import Workspace
from workspace.paths import JobPaths

ENTITIES = ("users", "campaigns", "accounts", "contacts")
_TABLES = ("users", "campaigns", "accounts", "accounts_cstm", "contacts", "contacts_cstm", "email_addresses",
           "email_addr_bean_rel", "accounts_contacts", "currencies")  # fmt: skip
_SOURCE, _TARGET = "PACKHORSE_BENCH_SOURCE", "PACKHORSE_BENCH_TARGET"
_PIPED = ("members", "campaigns", "companies", "people")


def main() -> int:
    """Prints the table and, with --json, one object; 0 when both went through and verify agrees."""
    arguments = _arguments()
    if arguments.child:
        return _load_child(arguments.child, os.environ[_SOURCE], os.environ[_TARGET])
    folder = Path(tempfile.mkdtemp(prefix="packhorse-pipe-"))
    mariadb, postgres = MariadbServer(folder / "my"), PostgresServer(folder / "pg")
    try:
        return _compare(arguments, folder, mariadb, postgres)
    finally:
        mariadb.stop()
        postgres.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.pipe")
    parser.add_argument("--contacts", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", type=Path, help="write the result to this file too")
    parser.add_argument("--child", metavar="FOLDER", help=argparse.SUPPRESS)
    return parser.parse_args()


def _compare(arguments: argparse.Namespace, folder: Path, mariadb: MariadbServer, postgres: PostgresServer) -> int:
    # the sample's keys come in no order: with a small buffer pool, filling the tables is all waiting
    mariadb.run("SET GLOBAL innodb_buffer_pool_size = 4 * 1024 * 1024 * 1024")
    legacy = mariadb.new_database()
    started = time.monotonic()
    world = World(arguments.contacts, arguments.seed, "mariadb")
    write_mariadb(legacy.dsn, _wanted(source_batches(world)))
    _say(f"the legacy CRM: {arguments.contacts:,} contacts in {time.monotonic() - started:.0f} s")
    ours, piped = postgres.new_database(), postgres.new_database()
    for database in (ours, piped):
        with psycopg.connect(database.dsn, autocommit=True) as connection:
            connection.execute(CLOUD_SQL.read_text(encoding="utf-8"))
    child = subprocess.run(
        [sys.executable, "-m", "bench.pipe", "--child", str(folder / "job")],
        env={**os.environ, _SOURCE: legacy.dsn, _TARGET: ours.dsn},  # a password has no place among arguments
        stdout=subprocess.PIPE,
        check=True,
    )
    packhorse: dict[str, Any] = json.loads(child.stdout)
    _say(f"packhorse: {packhorse['seconds']:.1f} s")
    rows = _clean_tables(folder, mariadb, legacy, ours.dsn)
    pipe = _pipe(mariadb, postgres, legacy, piped.dsn)
    _say(f"pipe: {pipe['seconds']:.1f} s")
    result = {
        "contacts": arguments.contacts,
        "rows_piped": rows,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "servers": [mariadb.rows("SELECT version()")[0][0], postgres.rows("SHOW server_version")[0][0]],
        "packhorse": packhorse,
        "pipe": pipe,
        "ratio": round(packhorse["seconds"] / pipe["seconds"], 2),
    }
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    _print(result)
    return 0 if packhorse["verified"] else 1


def _wanted(batches: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    return ((table, batch) for table, batch in batches if table in _TABLES)


def _plan() -> Plan:
    """The gold plan's four entities; what refers to others is left out."""
    gold = load_plan(GOLD_PLAN)
    entities = {}
    for name in ENTITIES:
        entity = gold.entities[name]
        fields = {column: f for column, f in entity.fields.items() if f.ref is None or f.ref in ENTITIES}
        entities[name] = entity.model_copy(update={"fields": fields})
    return gold.model_copy(update={"entities": entities})


def _load_child(folder: str, source_dsn: str, target_dsn: str) -> int:
    started = time.monotonic()
    Path(folder).mkdir()
    paths = JobPaths(Path(folder), "bench").create()
    source, target = open_source(source_dsn), open_target(target_dsn)
    checked = check_plan(_plan(), source, target.catalogue())
    with Workspace.open(paths, write=True) as workspace:
        ctx = Context(paths, workspace, source, target, checked, Dsn.parse(source_dsn).identity)
        outcome = load(ctx)
        seconds = time.monotonic() - started
        usage = resource.getrusage(resource.RUSAGE_SELF)
        functions = seconds_spent()
        verified = verify(ctx, ask_source=False)
    print(
        json.dumps(
            {
                "seconds": round(seconds, 2), "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 2),
                "peak_mb": round(usage.ru_maxrss / 1024), "read": outcome.read, "loaded": outcome.inserted,
                "excluded": outcome.excluded, "quarantined": outcome.quarantined,
                "rows_per_second": round(outcome.read / seconds),
                "function_seconds": {name: round(s, 2) for name, s in sorted(functions.items(), key=lambda i: -i[1])},
                "verified": verified.ok,
            }
        )
    )  # fmt: skip
    return 0


def _clean_tables(folder: Path, mariadb: MariadbServer, legacy: Any, ours: str) -> int:
    """Puts what entered our target into MariaDB tables, each value in COPY's own text form."""
    total = 0
    for table in _PIPED:
        path = folder / f"{table}.tsv"
        with psycopg.connect(ours) as connection, path.open("wb") as out:
            names = [r[0] for r in connection.execute(f"SELECT * FROM {table} LIMIT 0").description or ()]
            # companies point at people that the pipe brings after them
            listed = ", ".join("NULL" if n == "primary_contact_id" else f'"{n}"' for n in names)
            with connection.cursor().copy(f"COPY (SELECT {listed} FROM {table}) TO STDOUT") as copy:
                for block in copy:
                    out.write(block)
        columns = ", ".join(f"`{n}` text" for n in names)
        mariadb.run(f"CREATE TABLE clean_{table} ({columns}) ENGINE=InnoDB CHARACTER SET utf8mb4", legacy.name)
        # ESCAPED BY '' keeps COPY's own escapes as they are, \N included
        mariadb.run(
            f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE clean_{table} CHARACTER SET utf8mb4 FIELDS TERMINATED BY '\\t' ESCAPED BY ''",
            legacy.name,
        )
        total += int(mariadb.rows(f"SELECT count(*) FROM clean_{table}", legacy.name)[0][0])
        path.unlink()
    return total


def _pipe(mariadb: MariadbServer, postgres: PostgresServer, legacy: Any, target: str) -> dict[str, Any]:
    psql = shutil.which("psql") or str(postgres.binaries / "psql")
    read = f"mariadb --no-defaults --socket={mariadb.socket} --user=root --quick --batch --raw --skip-column-names --default-character-set=utf8mb4 {legacy.name}"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    for table in _PIPED:
        command = f"set -o pipefail; {read} -e 'SELECT * FROM clean_{table}' | {psql} -qX '{target}' -c 'COPY {table} FROM STDIN'"
        subprocess.run(["bash", "-c", command], check=True)
    seconds = time.monotonic() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": round(seconds, 2), "cpu_seconds": round(cpu, 2)}


def _print(result: dict[str, Any]) -> None:
    ours, pipe = result["packhorse"], result["pipe"]
    share = sum(ours["function_seconds"].values())
    print(f"{result['contacts']:,} contacts; {result['machine']}; {', '.join(result['servers'])}")
    print(f"{'':12} {'wall s':>8} {'CPU s':>8} {'peak MB':>8} {'rows/s':>9}  what it did")
    print(
        f"{'pipe':12} {pipe['seconds']:>8.1f} {pipe['cpu_seconds']:>8.1f} {'':>8} {result['rows_piped'] / pipe['seconds']:>9,.0f}  copies clean rows, checks nothing"
    )
    print(
        f"{'packhorse':12} {ours['seconds']:>8.1f} {ours['cpu_seconds']:>8.1f} {ours['peak_mb']:>8} {ours['rows_per_second']:>9,}  "
        f"reads, stages, transforms, settles, loads {ours['loaded']:,} of {ours['read']:,}; verified: {ours['verified']}"
    )
    print(f"ratio to the pipe: {result['ratio']}")
    print(
        f"domain functions: {share:.1f} s of Python, {share / ours['seconds']:.0%} of the wall: "
        + ", ".join(f"{n} {s:.1f}" for n, s in list(ours["function_seconds"].items())[:6])
    )


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
