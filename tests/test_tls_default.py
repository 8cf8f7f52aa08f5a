"""TLS is asked for wherever a network is in between: real servers, with and without it, on this machine's own address."""

from __future__ import annotations

import ipaddress
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from connectors.dsn import Dsn, open_source, open_target, reach
from connectors.embedded import ROOTS_USER
from connectors.postgres_programs import not_dumped, run_program
from sample_data.servers import Database, MariadbServer, NotInstalledError, PostgresServer
from tests.test_tls import authority, certificate
from workspace.errors import ConnectError


def own_address() -> str | None:
    """An IPv4 address of this machine that isn't loopback; None where it has none."""
    for addresses in psutil.net_if_addrs().values():
        for each in addresses:
            if each.family == socket.AF_INET and not ipaddress.ip_address(each.address).is_loopback:
                return each.address
    return None


ADDRESS = own_address()
if ADDRESS is None:
    pytest.skip("this machine has no address but loopback", allow_module_level=True)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: apt-get install openssl")
    folder = tmp_path_factory.mktemp("keys")
    authority(folder, "ca")
    certificate(folder, "server", f"IP:{ADDRESS}")
    return folder


class _Postgres(PostgresServer):
    """On this machine's own address too."""

    def _command(self) -> list[str]:
        hba = self.data / "pg_hba.conf"
        line = f"host all all {ADDRESS}/32 scram-sha-256\n"
        if line not in hba.read_text():
            hba.write_text(line + hba.read_text())
        return [part.replace("listen_addresses=127.0.0.1", "listen_addresses=*") for part in super()._command()]


class _Mariadb(MariadbServer):
    """On this machine's own address too; with TLS once `keys` are there."""

    keys: Path | None = None

    def _command(self) -> list[str]:
        files = () if self.keys is None else (("ca", "ca.pem"), ("cert", "server.pem"), ("key", "server.key"))
        plain = [part.replace("--bind-address=127.0.0.1", "--bind-address=0.0.0.0") for part in super()._command()]
        return plain + [f"--ssl-{name}={self.keys}/{file}" for name, file in files]


@pytest.fixture(scope="module")
def cloud() -> Iterator[Database]:
    """PostgreSQL without TLS at first: `with_tls` turns it on."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.skip("PostgreSQL with TLS is not installed: apt-get install postgresql")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PACKHORSE_POSTGRES", str(found[-1].parent))
        server = _Postgres()
    try:
        yield server.new_database()
    finally:
        server.remove()


@pytest.fixture(scope="module")
def old() -> Iterator[Database]:
    """MariaDB without TLS at first."""
    try:
        server = _Mariadb()
    except NotInstalledError as reason:
        pytest.skip(str(reason))
    try:
        database = server.new_database()
        database.run("CREATE TABLE t (a int primary key)")
        yield database
    finally:
        server.remove()


def there(database: Database) -> str:
    """Its DSN by the machine's own address."""
    return database.dsn.replace("@127.0.0.1:", f"@{ADDRESS}:")


def both_refuse(dsn: str, *words: str) -> None:
    for opened in (open_source, open_target, lambda text: reach(Dsn.parse(text))):
        with pytest.raises(ConnectError) as raised:
            opened(dsn)
        told = f"{raised.value} {raised.value.advice}"
        for word in words:
            assert word in told
        assert "\n" not in told


def with_tls(cloud: Database, keys: Path) -> None:
    server = cloud.server
    assert isinstance(server, PostgresServer)
    for name, file in (("cert", "server.pem"), ("key", "server.key")):
        place = server.folder / file
        shutil.copy(keys / file, place)
        place.chmod(0o600)
        if os.geteuid() == 0:
            shutil.chown(place, ROOTS_USER)
        server.run(f"ALTER SYSTEM SET ssl_{name}_file = '{place}'")
    server.run("ALTER SYSTEM SET ssl = on")
    server.restart()


def test_postgresql(cloud: Database, keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dsn = there(cloud)
    both_refuse(dsn, "the server does not encrypt the connection", "?sslmode=disable")
    both_refuse(f"{dsn}?sslmode=require", "the server does not encrypt the connection")
    for plain in (cloud.dsn, cloud.socket_dsn, f"{dsn}?sslmode=disable", f"{dsn}?sslmode=prefer"):
        assert reach(Dsn.parse(plain)).encrypted == "", plain
        open_target(plain).close()
    monkeypatch.setenv("PGSSLMODE", "disable")
    assert reach(Dsn.parse(dsn)).encrypted == ""
    monkeypatch.delenv("PGSSLMODE")

    nowhere = Dsn.parse(dsn)
    hostless = f"postgresql://{dsn.partition('//')[2].partition('@')[0]}@/{nowhere.database}?port={nowhere.port}"
    monkeypatch.setenv("PGHOST", str(ADDRESS))
    both_refuse(hostless, "the server does not encrypt the connection")
    monkeypatch.delenv("PGHOST")
    (tmp_path / "services").write_text(f"[crm]\nhost={ADDRESS}\n[plain]\nhost={ADDRESS}\nsslmode=disable\n")
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    both_refuse(f"{hostless}&service=crm", "the server does not encrypt the connection", "?sslmode=disable")
    assert reach(Dsn.parse(f"{hostless}&service=plain")).encrypted == ""

    with_tls(cloud, keys)
    assert reach(Dsn.parse(dsn)).encrypted.startswith("TLSv1")
    open_target(dsn).close()
    assert reach(Dsn.parse(f"{hostless}&service=crm")).encrypted.startswith("TLSv1")
    assert reach(Dsn.parse(f"{dsn}?sslmode=verify-full&sslrootcert={keys}/ca.pem")).encrypted.startswith("TLSv1")
    assert reach(Dsn.parse(f"{dsn}?sslmode=disable")).encrypted == ""
    # the wheel's pg_dump has no TLS: the machine's own goes in its place
    assert run_program("pg_dump", Dsn.parse(dsn), "--schema-only", f"--file={tmp_path}/dump") is None
    assert run_program("pg_dump", Dsn.parse(cloud.dsn), "--schema-only", f"--file={tmp_path}/dump") is None
    monkeypatch.setenv("PATH", str(tmp_path))
    said = run_program("pg_dump", Dsn.parse(dsn), "--schema-only", f"--file={tmp_path}/dump")
    assert said is not None
    assert "built without TLS" in not_dumped(said, Dsn.parse(dsn)).what


def test_mariadb(old: Database, keys: Path, tmp_path: Path) -> None:
    dsn = there(old)
    both_refuse(dsn, "encrypt", "?ssl_mode=DISABLED")
    both_refuse(f"{dsn}?ssl_mode=REQUIRED", "encrypt")
    for plain in (old.dsn, old.socket_dsn, f"{dsn}?ssl_mode=DISABLED", f"{dsn}?ssl_mode=PREFERRED"):
        assert reach(Dsn.parse(plain)).encrypted == "", plain
        open_target(plain).close()
    server = old.server
    (tmp_path / "options").write_text(f"[client]\nhost={ADDRESS}\nport={server.port}\n")
    login = dsn.partition("//")[2].partition("@")[0]
    hostless = f"mysql://{login}@/{old.name}?read_default_file={tmp_path}/options"
    both_refuse(hostless, "the server does not encrypt the connection")
    assert reach(Dsn.parse(f"{hostless}&ssl_mode=DISABLED")).encrypted == ""

    _Mariadb.keys = keys
    try:
        server.restart()
        assert reach(Dsn.parse(dsn)).encrypted.startswith("TLSv1")
        source = open_source(dsn)
        assert source.query("SHOW SESSION STATUS LIKE 'Ssl_cipher'")[0][1]
        assert source.count("t") == 0
        source.close()
        open_target(dsn).close()
        assert reach(Dsn.parse(f"{hostless}&ssl_mode=REQUIRED")).encrypted.startswith("TLSv1")
        assert reach(Dsn.parse(f"{dsn}?ssl_mode=DISABLED")).encrypted == ""
    finally:
        _Mariadb.keys = None


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("postgresql://u@127.0.0.1/d", True), ("postgresql://u@localhost:5432/d", True), ("postgresql://u@[::1]/d", True),
        ("postgresql:///d", True), ("postgresql:///d?host=/run/pg", True), ("mysql://u@/d?unix_socket=/s", True),
        ("mysql://u@127.8.9.1/d", True), ("sqlite:///x.db", True), ("postgresql://u@db/d", False),
        ("postgresql://u@localhost.example.com/d", False), ("postgresql://u@127.0.0.1.example.com/d", False),
        ("postgresql://u@/d?host=127.0.0.1,db", False), ("postgresql://u@localhost/d?hostaddr=192.0.2.1", False),
        ("postgresql://u@db/d?hostaddr=127.0.0.1", True), ("mysql://u@10.0.0.1/d", False), ("mysql://u@[2001:db8::1]/d", False),
    ],
)  # fmt: skip
def test_what_is_near(text: str, near: bool) -> None:
    assert Dsn.parse(text).is_local is near
