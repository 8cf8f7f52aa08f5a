"""Through a host by ssh: a real sshd before real servers; the tunnel falls in mid-load, our process is killed, and what may
not reach ssh doesn't."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from cli.secrets import hide_passwords, masked
from connectors import tunnel as tunnels
from connectors.dsn import Dsn, keeps_no_secret, open_source, open_target, reach, through
from connectors.postgres_programs import run_program
from sample_data.servers import Database, NotInstalledError, PostgresServer
from tests.cli_runner import MIGRATE, Result, environment, migrate_here
from tests.ssh_host import SshHost
from tests.test_cli_jobs import PLAN, TARGET, until
from workspace.errors import ConnectError, DsnError


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHost]:
    try:
        found = SshHost(tmp_path_factory.mktemp("ssh"))
    except NotInstalledError as reason:
        pytest.skip(str(reason))
    yield found
    found.stop()


@pytest.fixture
def way(host: SshHost, monkeypatch: pytest.MonkeyPatch) -> str:
    """How to log in; this process's ssh knows the keys."""
    host.configure("user", "known")
    monkeypatch.setenv("PACKHORSE_SSH_CONFIG", host.settings["PACKHORSE_SSH_CONFIG"])
    return host.way


def sshs(of: int | None = None) -> list[psutil.Process]:
    """The ssh processes below a process, ours without one."""
    return [each for each in psutil.Process(of).children(recursive=True) if each.name() == "ssh"]


def gone(processes: list[psutil.Process]) -> bool:
    return not any(_lives(each) for each in processes)


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it ended between the two
        return False


def test_both_systems_are_reached_and_the_tunnel_ends_with_its_last_user(
    way: str, postgres_database: Database, mariadb_database: Database
) -> None:
    mariadb_database.run("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
    source = open_source(through(mariadb_database.dsn, way))
    target = open_target(through(postgres_database.dsn, way))
    assert source.count("t") == 2
    target.prepare()
    target.reconnect()
    assert len(sshs()) == 2  # one a goal, whatever the number of connections
    second = open_source(through(mariadb_database.dsn, way))
    assert len(sshs()) == 2
    for line in (each.cmdline() for each in sshs()):
        assert "pass" not in " ".join(line)
        assert "BatchMode=yes" in line
    source.close()
    target.close()
    until(lambda: len(sshs()) == 1)
    second.close()
    until(lambda: not sshs())


def test_pg_dump_goes_through_too(way: str, postgres_database: Database, tmp_path: Path) -> None:
    postgres_database.run("CREATE TABLE through_ssh (id int)")
    dsn = through(postgres_database.dsn, way)
    target = open_target(dsn)
    assert run_program("pg_dump", Dsn.parse(dsn), "--schema-only", f"--file={tmp_path}/dump") is None
    assert "through_ssh" in (tmp_path / "dump").read_text()
    target.close()


def test_a_tunnel_that_fell_is_made_anew(way: str, mariadb_database: Database, postgres_database: Database) -> None:
    for database in (mariadb_database, postgres_database):
        dsn = through(database.dsn, way)
        target = open_target(dsn)
        (ssh,) = sshs()
        ssh.kill()
        until(lambda ssh=ssh: gone([ssh]))  # type: ignore[misc]
        target.reconnect()
        assert target.catalogue().tables == {}
        (again,) = sshs()
        assert again.pid != ssh.pid
        again.parent().kill()  # the one that watches: ssh ends with it
        until(lambda again=again: gone([again]))  # type: ignore[misc]
        target.reconnect()
        target.close()
        until(lambda: not sshs())


REFUSED: list[tuple[Callable[[SshHost], object], str, str]] = [
    (lambda host: host.configure("stranger", "known"), "Permission denied", "ssh a key"),
    (lambda host: host.configure("user", "nobody"), "Host key verification failed", "accept the host's key"),
]


@pytest.mark.parametrize(("change", "said", "advice"), REFUSED)
def test_why_there_is_no_way(
    host: SshHost, way: str, postgres_database: Database, change: Callable[[SshHost], object], said: str, advice: str
) -> None:
    change(host)
    for opened in (open_source, open_target, lambda text: reach(Dsn.parse(text))):
        with pytest.raises(ConnectError, match=said) as raised:
            opened(through(postgres_database.dsn, way))
        assert advice in raised.value.advice
        assert "\n" not in str(raised.value)
    assert not sshs()


def test_a_server_that_is_not_there_is_told_by_ssh(way: str) -> None:
    for dsn in ("postgresql://u:pw@127.0.0.1:1/d", "mysql://u:pw@127.0.0.1:1/d"):
        with pytest.raises(ConnectError, match=r"ssh says: .*Connection refused"):
            reach(Dsn.parse(through(dsn, way)))


def test_where_there_is_no_ssh(way: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConnectError, match="ssh is not installed"):
        reach(Dsn.parse(through("postgresql://u@db/d", way)))


def test_another_process_on_the_port_is_not_taken_for_ours(way: str, postgres_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(tunnels, "_free_port", lambda: int(postgres_database.server.port))
    with pytest.raises(ConnectError, match="no way through ssh"):
        reach(Dsn.parse(through(postgres_database.dsn, way)))


# -- whole jobs -----------------------------------------------------------------------------------


@pytest.fixture
def job(tmp_path: Path, postgres_database: Database) -> Path:
    """A folder with a plan; source and target tables in one database."""
    postgres_database.run(
        "CREATE SCHEMA old; CREATE TABLE old.accounts (id int PRIMARY KEY, name text);"
        "CREATE TABLE old.contacts (id int PRIMARY KEY, name text, mail text, account_id int, deleted int, notes text);"
        "INSERT INTO old.accounts SELECT i, 'Firm ' || i FROM generate_series(0, 39) i;"
        "INSERT INTO old.contacts SELECT i, 'Person ' || i, 'p' || i || '@example.com', i % 40, 0, NULL FROM generate_series(0, 599) i;"
        + TARGET
    )
    (tmp_path / "plan.yaml").write_text(PLAN)
    return tmp_path


def started(folder: Path, host: SshHost, database: Database, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            MIGRATE, "run", f"{database.dsn}?schema=old", database.dsn, "--source-ssh", host.way, "--target-ssh", host.way,
            "--plan", "plan.yaml", "--job", "j", "--yes", *more,
        ],
        cwd=folder, env=environment(folder, host.settings), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def waits_at(server: PostgresServer, database: Database) -> None:
    until(
        lambda: bool(
            server.rows(
                f"SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = '{database.name}'"
            )
        )
    )


@pytest.mark.parametrize("executor", ["inline", "local:2"])
def test_a_job_goes_on_when_the_tunnel_falls_in_mid_load(
    host: SshHost, way: str, job: Path, postgres: PostgresServer, postgres_database: Database, executor: str
) -> None:
    with psycopg.connect(postgres_database.socket_dsn) as holder:
        holder.execute("LOCK TABLE people IN SHARE MODE")
        process = started(job, host, postgres_database, "--executor", executor)
        waits_at(postgres, postgres_database)
        fallen = sshs(process.pid)
        assert fallen
        for ssh in fallen:
            ssh.kill()
        until(lambda: gone(fallen))
        holder.rollback()
    out, err = process.communicate(timeout=180)
    assert process.returncode == 0, out + err
    assert postgres_database.rows("SELECT count(*), count(DISTINCT id) FROM people") == [(600, 600)]
    assert "Traceback" not in err
    again = Result(*_done(job, host, "verify", "j", *given_again(postgres_database, way)))
    assert again.code == 0, again


def given_again(database: Database, way: str) -> list[str]:
    """Both DSNs of the job, whose passwords it doesn't keep, and the way to them."""
    return [
        "--source", f"{database.dsn}?schema=old", "--target", database.dsn, "--source-ssh", way, "--target-ssh", way,
    ]  # fmt: skip


@pytest.fixture
def loaded(job: Path, postgres_database: Database, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with a job that is done, without ssh; its DSNs are variables."""
    monkeypatch.setenv("OLD_DSN", f"{postgres_database.dsn}?schema=old")
    monkeypatch.setenv("CLOUD_DSN", postgres_database.dsn)
    monkeypatch.chdir(job)
    done = migrate_here("run", "${OLD_DSN}", "${CLOUD_DSN}", "--plan", "plan.yaml", "--job", "j", "--yes")
    assert done.code == 0, done
    return job


def test_each_verb_that_connects_again_goes_through(host: SshHost, way: str, loaded: Path) -> None:
    """By the option alone, for each side by itself: the other is reached without ssh."""
    text = (loaded / "plan.yaml").read_text()
    (loaded / "named.yaml").write_text("source: ${OLD_DSN}\ntarget: ${CLOUD_DSN}\n" + text)
    verbs = (
        ["verify", "j"],
        ["sync", "j"],
        ["preview", "j"],
        ["preview", "--plan", "named.yaml"],
        ["undo", "j", "--yes"],
    )
    for verb in verbs:
        for option in ("--source-ssh", "--target-ssh"):
            if verb[0] == "undo" and option == "--source-ssh":
                continue  # it needs no source
            logins = host.log.count("Accepted publickey")
            done = migrate_here(*verb, option, way)
            assert done.code == 0, (verb, option, done)
            assert host.log.count("Accepted publickey") == logins + 1, (verb, option)


def test_a_way_given_again_with_a_dsn_that_remembers_one(host: SshHost, way: str, loaded: Path) -> None:
    dsn = through("${CLOUD_DSN}", way)
    assert migrate_here("verify", "j", "--target", dsn, "--target-ssh", way).code == 0
    migrate_here("verify", "j", "--target", dsn, "--target-ssh", "other.example.com").refused(
        "PH-102", "names a host to go through itself"
    )


def _done(folder: Path, host: SshHost, *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [MIGRATE, *arguments], cwd=folder, env=environment(folder, host.settings), capture_output=True, text=True,
        timeout=120, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_no_ssh_outlives_a_job_that_is_killed(
    host: SshHost, way: str, job: Path, postgres: PostgresServer, postgres_database: Database
) -> None:
    with psycopg.connect(postgres_database.socket_dsn) as holder:
        holder.execute("LOCK TABLE people IN SHARE MODE")
        process = started(job, host, postgres_database)
        waits_at(postgres, postgres_database)
        children = psutil.Process(process.pid).children(recursive=True)
        assert "ssh" in {each.name() for each in children}
        process.kill()
        process.communicate()
        until(lambda: gone(children), 10)
        holder.rollback()
    code, out, err = _done(job, host, "resume", "j", "--yes", *given_again(postgres_database, way))
    assert code == 0, out + err
    assert postgres_database.rows("SELECT count(*) FROM people") == [(600,)]


def test_ctrl_c_leaves_the_tunnel_to_the_batch_at_hand(
    host: SshHost, way: str, job: Path, postgres: PostgresServer, postgres_database: Database
) -> None:
    with psycopg.connect(postgres_database.socket_dsn) as holder:
        holder.execute("LOCK TABLE people IN SHARE MODE")
        process = started(job, host, postgres_database)
        waits_at(postgres, postgres_database)
        ssh = sshs(process.pid)
        assert {os.getsid(each.pid) for each in ssh} & {os.getsid(process.pid)} == set()
        process.send_signal(signal.SIGINT)
        holder.rollback()
    process.communicate(timeout=120)
    assert process.returncode == 130
    until(lambda: gone(ssh), 10)


def test_a_name_keeps_its_way(host: SshHost, way: str, tmp_path: Path, postgres_database: Database) -> None:
    own = {
        **host.settings, "PYTHON_KEYRING_BACKEND": "keyrings.alt.file.PlaintextKeyring",
        "XDG_DATA_HOME": str(tmp_path / "keyring"), "HOME": str(tmp_path),
    }  # fmt: skip
    done = [
        subprocess.run(
            [MIGRATE, "dsn", *more], cwd=tmp_path, env=environment(tmp_path, own), input=typed, capture_output=True,
            text=True, timeout=120, check=False,
        )
        for typed, more in ((postgres_database.dsn, ("add", "cloud", "--ssh", way)), ("", ("test", "cloud", "--as", "target")), ("", ("list",)))
    ]  # fmt: skip
    assert [each.returncode for each in done] == [0, 0, 0], done
    assert f"ssh as far as {way}" in done[1].stdout
    assert way in done[2].stdout


# -- what a way may be ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "way",
    [
        "-oProxyCommand=touch /tmp/x", "me@-oProxyCommand=x", "-l@host", "me@host -v", "me@host;x", "$(x)@host", "me@host:0",
        "me@host:70000", "me@ho\nst", "", "me@@host", "me@host/x", "`x`", "me@[::1", "me@host%h", "--", "me@host:22:33",
    ],
)  # fmt: skip
def test_what_may_not_reach_ssh(way: str) -> None:
    with pytest.raises(DsnError, match="no host to go through"):
        Dsn.parse("mysql://u@db/crm?ssh=" + "".join(f"%{byte:02x}" for byte in (way or " ").encode()))
    if way:
        with pytest.raises(DsnError, match="no host to go through"):
            through("mysql://u@db/crm", way)


@pytest.mark.parametrize("goal", ["-x", "a b", "a:1:b:2x", "a;b", "$(x)", "/run/s"])
def test_what_may_not_be_a_goal(goal: str) -> None:
    with pytest.raises(DsnError):
        tunnels.Tunnel("me@host", goal, 5432)


def test_a_way_in_a_dsn() -> None:
    for text in ("mysql://crm:${PW}@db:3307/crm?ssh=me@gate:2222", "mysql://db:3307/crm?ssh=me@gate:2222&compress=1"):
        dsn = Dsn.parse(text, {"PW": "x"})
        assert (dsn.ssh, dsn.host, dsn.port) == ("me@gate:2222", "db", 3307)
        assert dsn.identity == "mysql://db:3307/crm"
        assert dsn.is_local
        assert Dsn.parse(dsn.masked).ssh == dsn.ssh
        assert keeps_no_secret(text)
        assert not hide_passwords(["run", text])
    assert masked("mysql://crm:pw@db/crm?ssh=me@gate").startswith("mysql://crm:***@db/crm?ssh=")
    assert through("mysql://crm:a?b@db/crm", "me@gate") == "mysql://crm:a?b@db/crm?ssh=me%40gate"
    assert through("${LEGACY}", "gate") == "${LEGACY}?ssh=gate"
    assert through("mysql://u@db/crm?ssh=me%40gate", "me@gate") == "mysql://u@db/crm?ssh=me%40gate"
    assert through("mysql://db/crm?compress=1", "gate") == "mysql://db/crm?compress=1&ssh=gate"
    # the loopback address is the gate's own: two gates are two systems
    assert Dsn.parse("mysql://u@127.0.0.1/crm?ssh=me@gate").identity == Dsn.parse("mysql://u@gate/crm").identity
    for text in (
        "sqlite:///x.db?ssh=gate", "mysql://u@/crm?unix_socket=/s&ssh=gate", "postgresql:///crm?host=/run&ssh=gate",
        "postgresql://u@h/crm?hostaddr=1.2.3.4&ssh=gate",
    ):  # fmt: skip
        with pytest.raises(DsnError, match="ssh leads to a host and port alone"):
            Dsn.parse(text)
    with pytest.raises(DsnError, match="names a host to go through itself"):
        through("mysql://u@db/crm?ssh=me@gate", "other")


def test_a_process_that_ends_at_once_leaves_nothing(way: str, postgres_database: Database, host: SshHost) -> None:
    script = (
        "import os, sys, psutil\nfrom connectors.dsn import open_target\n"
        "target = open_target(sys.argv[1])\n"
        "print(*(c.pid for c in psutil.Process().children(recursive=True)), flush=True)\nos._exit(1)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, through(postgres_database.dsn, way)], cwd=Path(__file__).parent.parent,
        env={**os.environ, **host.settings}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    pids = list(map(int, done.stdout.split()))
    assert len(pids) == 2, done
    end = time.monotonic() + 10
    while any(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE for pid in pids):
        assert time.monotonic() < end
        time.sleep(0.05)
