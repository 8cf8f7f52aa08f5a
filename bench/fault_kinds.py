"""Kinds of fault that strike a job at a named place, and what to look at once its process has ended.

The job runs in a process of its own and waits at the place until the fault, made from outside, has struck. Never
strikes another process or database than those it is given.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil
import psycopg
from psycopg import sql

import engine.faults
from sample_data.servers import Database, PostgresServer
from workspace.errors import PackhorseError

LOADER = "loader"
"""The role that a job logs in as: no superuser, so that a server's limits are its too."""
_SECONDS = 60
"""Within which every process must end."""
CHILDREN = multiprocessing.get_context("forkserver")


@dataclass
class Struck:
    """What a fault may strike: a job's process, its target, the small disk that its folder is on if it is."""

    server: PostgresServer
    database: Database
    pid: int
    disk: Path | None = None
    ended: threading.Event = field(default_factory=threading.Event)
    later: list[Callable[[], None]] = field(default_factory=list)
    """What is to be done once the process has ended."""

    def beside(self, act: Callable[[], None]) -> None:
        """Does it in a thread, which is waited for in the end."""
        thread = threading.Thread(target=act, daemon=True)
        thread.start()
        self.later.append(lambda: thread.join(_SECONDS))

    def until(self, seen: Callable[[], object]) -> bool:
        """Waits until it is seen; False where the process ended before that."""
        while not seen():
            if self.ended.wait(0.005):
                return False
        return True

    def connect(self) -> psycopg.Connection[Any]:
        """The superuser's connection to the target, whom no timeout ends and no deadlock chooses."""
        connection = self.server.connect(self.database.name)
        connection.execute("SET lock_timeout = 0; SET statement_timeout = 0; SET deadlock_timeout = '1h'")
        return connection


@dataclass(frozen=True)
class Kind:
    """A kind of fault. `heals`: retrying cures it, so the process that meets it must get through by itself.
    `settings` are the target database's."""

    name: str
    strike: Callable[[Struck], None]
    heals: bool = True
    settings: tuple[str, ...] = ()
    needs: str = ""
    """`disk`: a small disk of the job's own; `workers`: processes that transform."""


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code (-9 for a kill, 2 for an error that is told in one line), what it said,
    whether it was struck."""

    code: int
    said: str
    struck: bool
    passed: dict[str, int]
    """How often it passed each place, where it came to its end."""


def run_child(
    work: Callable[[], None], place: str = "", nth: int = 1, strike: Callable[[int], None] | None = None
) -> Ended:
    """Does the work in a process of its own, which waits at the place, the nth time it passes it, for
    `strike(pid)`. AssertionError where it, or a process of its own, doesn't end."""
    here, there = CHILDREN.Pipe()
    child = CHILDREN.Process(target=_child, args=(work, place, nth, there))
    child.start()
    there.close()
    assert child.pid is not None
    said, struck, passed = "", False, {}
    theirs: set[psutil.Process] = set()
    deadline = time.monotonic() + _SECONDS
    while here.poll(max(0.0, deadline - time.monotonic())):
        try:
            what, text = here.recv()
        except (EOFError, OSError):
            break
        if what == "said":
            said = text
            continue
        if what == "passed":
            passed = text
            continue
        struck = True
        with suppress(psutil.NoSuchProcess):
            theirs |= set(psutil.Process(child.pid).children())
        assert strike is not None
        strike(child.pid)
        with suppress(OSError):
            here.send(None)
    child.join(max(0.0, deadline - time.monotonic()))
    if child.exitcode is None:
        child.kill()
        child.join()
        raise AssertionError(f"the process hangs; struck: {struck}; said: {said}")
    _, alive = psutil.wait_procs(list(theirs), timeout=30)
    assert not alive, f"processes outlive their job: {alive}"
    return Ended(child.exitcode, said, struck, passed)


def _child(work: Callable[[], None], place: str, nth: int, pipe: Connection[Any, Any]) -> None:
    lock = threading.Lock()
    passed: Counter[str] = Counter()

    def hook(name: str) -> None:
        with lock:
            passed[name] += 1
            if name != place or passed[name] != nth:
                return
        pipe.send(("at", name))
        pipe.recv()

    engine.faults.hook = hook
    try:
        work()
        pipe.send(("passed", dict(passed)))
    except PackhorseError as error:
        pipe.send(("said", f"{type(error).__name__}: {error}"))
        sys.exit(2)
    except BaseException:
        pipe.send(("said", traceback.format_exc()))
        sys.exit(1)


# -- the kinds ------------------------------------------------------------------------------------


def _kill(s: Struck) -> None:
    os.kill(s.pid, signal.SIGKILL)


def _lose(s: Struck) -> None:
    s.server.rows(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{s.database.name}' AND usename = '{LOADER}'"
    )


def _restart(s: Struck) -> None:
    s.server.kill()
    s.server.start()


def _fill(s: Struck) -> None:
    assert s.disk is not None
    filler = s.disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(b"\0" * 4096)
    s.later.append(filler.unlink)


def _kill_workers(s: Struck) -> None:
    for process in psutil.Process(s.pid).children():
        if "engine.workers" in process.cmdline():
            process.kill()


def _held_back(s: Struck) -> None:
    """Another session locks what it can of the tables, until a statement of ours has waited for it too long."""
    other = s.connect()
    _lock_all(other)

    def release() -> None:
        with other, s.server.connect(s.database.name) as looker:
            if s.until(lambda: _waiting(looker)):
                too_long = _waiting(looker)
                s.until(lambda: not set(too_long) & set(_waiting(looker)))
            other.execute("ROLLBACK")

    s.beside(release)


def _deadlock(s: Struck) -> None:
    """Another session locks what it can of the tables, then waits for the ledger, which we may hold."""
    other = s.connect()
    _lock_all(other, but="ledger")
    done = threading.Event()

    def wait() -> None:
        # a cleanup may have taken it out
        with other, suppress(psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
            other.execute("LOCK TABLE packhorse.ledger IN ACCESS EXCLUSIVE MODE")
        done.set()

    s.beside(wait)
    with s.server.connect(s.database.name) as looker:
        s.until(lambda: done.is_set() or _waiting(looker, user="postgres"))


def _lock_all(other: psycopg.Connection[Any], but: str = "") -> None:
    tables = other.execute(
        "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.relkind = 'r' AND n.nspname IN ('public', 'packhorse') AND c.relname <> %s ORDER BY 2", [but]
    ).fetchall()  # fmt: skip
    other.execute("BEGIN")
    for name in tables:
        other.execute("SAVEPOINT one")
        try:
            other.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE NOWAIT").format(sql.Identifier(*name)))
        except psycopg.errors.LockNotAvailable:
            other.execute("ROLLBACK TO one")


def _waiting(looker: psycopg.Connection[Any], user: str = LOADER) -> list[int]:
    """The backends that wait for a lock in this database."""
    return [
        pid
        for (pid,) in looker.execute(
            "SELECT DISTINCT a.pid FROM pg_locks l JOIN pg_stat_activity a USING (pid) "
            "WHERE NOT l.granted AND a.usename = %s AND a.datname = current_database()", [user]
        )
    ]  # fmt: skip


def _refuse_once(s: Struck) -> None:
    """The next statement that writes the customer's rows fails to serialise."""
    s.database.run("SELECT setval('fault.refusals', 1, false)")


def _use_up_connections(s: Struck) -> None:
    """The connection is lost, and for a while there is no other to be had."""
    s.database.run(f"ALTER DATABASE {s.database.name} CONNECTION LIMIT 0")
    before = s.server.log.count("too many connections")
    _lose(s)

    def give() -> None:
        s.until(lambda: s.server.log.count("too many connections") > before)
        s.database.run(f"ALTER DATABASE {s.database.name} CONNECTION LIMIT -1")

    s.beside(give)


KINDS = (
    Kind("killed", _kill, heals=False),
    Kind("connection lost", _lose),
    Kind("server restarted", _restart),
    Kind("disk full", _fill, heals=False, needs="disk"),
    Kind("lock timeout", _held_back, settings=("lock_timeout = '150ms'",)),
    Kind("statement timeout", _held_back, settings=("statement_timeout = '1s'",)),
    Kind("deadlock", _deadlock, settings=("deadlock_timeout = '50ms'",)),
    Kind("serialisation", _refuse_once),
    Kind("no connection left", _use_up_connections),
    Kind("workers killed", _kill_workers, heals=False, needs="workers"),
)

_REFUSALS = """
CREATE SCHEMA fault;
CREATE SEQUENCE fault.refusals;
SELECT nextval('fault.refusals');
CREATE FUNCTION fault.refuse() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF NOT (SELECT is_called FROM fault.refusals) THEN
    PERFORM nextval('fault.refusals');
    RAISE EXCEPTION 'could not serialize access due to concurrent update' USING ERRCODE = '40001';
  END IF;
  RETURN NULL;
END $$;
"""


def target_for(server: PostgresServer, script: str) -> Database:
    """A database of the loader's, made by the script; its tables can refuse to serialise."""
    if not server.rows(f"SELECT 1 FROM pg_roles WHERE rolname = '{LOADER}'"):
        server.run(f"CREATE ROLE {LOADER} LOGIN")
    database = server.new_database()
    server.run(f"ALTER DATABASE {database.name} OWNER TO {LOADER}")
    database.run(f"SET ROLE {LOADER}; {script}; RESET ROLE; {_REFUSALS}")
    for (table,) in database.rows("SELECT format('%I', relname) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"):  # fmt: skip
        database.run(
            f"CREATE TRIGGER refuse BEFORE INSERT OR UPDATE OR DELETE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION fault.refuse()"
        )
    return database


def dsn_of(database: Database) -> str:
    """How the loader logs in."""
    return database.socket_dsn.replace("//postgres@", f"//{LOADER}@", 1)


def struck_child(
    work: Callable[[], None],
    kind: Kind,
    place: str,
    nth: int,
    server: PostgresServer,
    database: Database,
    disk: Path | None,
) -> Ended:
    """Does the work with the fault at the place; what was held back or filled up is free again after."""
    for setting in kind.settings:
        server.run(f"ALTER DATABASE {database.name} SET {setting}")
    struck: list[Struck] = []

    def strike(pid: int) -> None:
        struck.append(Struck(server, database, pid, disk))
        kind.strike(struck[0])

    try:
        return run_child(work, place, nth, strike)
    finally:
        for each in struck:
            each.ended.set()
            for act in reversed(each.later):
                act()
        for setting in kind.settings:
            server.run(f"ALTER DATABASE {database.name} RESET {setting.split()[0]}")
