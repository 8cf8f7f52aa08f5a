"""TLS options of a DSN reach the drivers: servers with a certificate of a CA made here are trusted by that CA alone, and
what isn't trusted is refused in a line."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.dsn import open_source, open_target
from connectors.embedded import ROOTS_USER
from connectors.postgres_source import PostgresSource
from sample_data.servers import Database, MariadbServer, NotInstalledError, PostgresServer
from workspace.errors import ConnectError

if shutil.which("openssl") is None:
    pytest.skip("openssl is not installed: apt-get install openssl", allow_module_level=True)

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def authority(folder: Path, name: str) -> None:
    openssl(
        folder,
        "req",
        "-x509",
        *_KEY,
        "-keyout",
        f"{name}.key",
        "-out",
        f"{name}.pem",
        "-days",
        "2",
        "-subj",
        f"/CN={name}",
    )


def certificate(folder: Path, name: str, names: str = "") -> None:
    """A key and a certificate signed by `ca`, for the subject and, where given, other names."""
    openssl(folder, "req", *_KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
    (folder / "extra").write_text(f"subjectAltName={names}" if names else "basicConstraints=CA:FALSE")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "extra")
    openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.pem", *signed)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ca, another CA, a server's certificate for 127.0.0.1, and one of the user crm."""
    folder = tmp_path_factory.mktemp("keys")
    authority(folder, "ca")
    authority(folder, "other")
    certificate(folder, "localhost", "DNS:localhost,IP:127.0.0.1")
    certificate(folder, "crm")
    return folder


class TlsFront:
    """TLS before a PostgreSQL server whose build has none: answers the client's wish for it as a server does, and hands
    on what it decrypts. With `wants_papers` a client has to show a certificate of the CA."""

    def __init__(self, keys: Path, port: int, *, wants_papers: bool = False) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(keys / "localhost.pem", keys / "localhost.key")
        if wants_papers:
            self._context.verify_mode = ssl.CERT_REQUIRED
            self._context.load_verify_locations(keys / "ca.pem")
        self._behind = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client:
            length, wish = struct.unpack("!ii", client.recv(8, socket.MSG_WAITALL))
            if (length, wish) != (8, 80877103):  # not an SSLRequest
                return
            client.sendall(b"S")
            with (
                self._context.wrap_socket(client, server_side=True) as inner,
                socket.create_connection(("127.0.0.1", self._behind)) as server,
            ):
                both = {inner: server, server: inner}
                while True:
                    ready = [inner] if inner.pending() else select.select([inner, server], [], [])[0]
                    for one in ready:
                        block = one.recv(65536)
                        if not block:
                            return
                        both[one].sendall(block)


@pytest.fixture(scope="module")
def server(postgres: PostgresServer) -> Iterator[Database]:
    database = postgres.new_database()
    yield database
    postgres.drop(database)


@pytest.fixture(scope="module")
def real(system_postgres: PostgresServer, keys: Path) -> Iterator[str]:
    """The DSN of a database of a server that has TLS itself, and lets the user crm in by a certificate alone."""
    server = system_postgres
    for name, file in (("cert", "localhost.pem"), ("key", "localhost.key"), ("ca", "ca.pem")):
        place = server.folder / file
        shutil.copy(keys / file, place)
        place.chmod(0o600)
        if os.geteuid() == 0:
            shutil.chown(place, ROOTS_USER)
        server.run(f"ALTER SYSTEM SET ssl_{name}_file = '{place}'")
    server.run("ALTER SYSTEM SET ssl = on")
    hba = server.data / "pg_hba.conf"
    hba.write_text("hostssl all crm 127.0.0.1/32 cert\n" + hba.read_text())
    server.restart()
    server.run("CREATE ROLE crm LOGIN")
    database = server.new_database()
    yield database.dsn
    server.drop(database)
    server.run("DROP ROLE crm")
    server.run("ALTER SYSTEM RESET ALL")
    server.restart()


def test_a_server_that_has_tls_itself(real: str, keys: Path) -> None:
    trusted = f"{real}?sslmode=verify-full&sslrootcert={keys}/ca.pem"
    source = open_source(trusted)
    assert source.query("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()") == [(True,)]
    source.close()
    target = open_target(trusted)
    target.prepare()
    target.close()
    assert "certificate verify failed" in refused(trusted.replace("ca.pem", "other.pem"))
    shutil.copy(keys / "crm.key", keys / "crm-own.key")
    (keys / "crm-own.key").chmod(0o600)
    crm = "postgresql://crm@" + trusted.rpartition("@")[2]
    source = open_source(f"{crm}&sslcert={keys}/crm.pem&sslkey={keys}/crm-own.key")
    assert source.query("SELECT current_user") == [("crm",)]
    source.close()
    assert "client certificate" in refused(crm)


@pytest.fixture(scope="module")
def cloud(server: Database, keys: Path) -> Iterator[str]:
    """The DSN of a PostgreSQL database, by TLS alone."""
    front = TlsFront(keys, server.server.port)
    yield server.dsn.replace(f":{server.server.port}/", f":{front.port}/")
    front.close()


class _Tls(MariadbServer):
    place: Path | None = None

    def _command(self) -> list[str]:
        if self.place is None:
            return super()._command()
        files = [
            f"--ssl-{name}={self.place / file}"
            for name, file in (("ca", "ca.pem"), ("cert", "localhost.pem"), ("key", "localhost.key"))
        ]
        return super()._command() + files


@pytest.fixture(scope="module")
def old(keys: Path) -> Iterator[Database]:
    try:
        server = _Tls()
    except NotInstalledError as reason:
        pytest.skip(str(reason))
    try:
        _Tls.place = keys
        server.restart()
        server.run("CREATE USER 'papers'@'%' REQUIRE X509; GRANT ALL ON *.* TO 'papers'@'%'")
        database = server.new_database()
        database.run("CREATE TABLE t (a int)")
        yield database
    finally:
        server.remove()


def refused(dsn: str) -> str:
    """What a DSN is refused with, as source and, where it can be one, as target: one line, the same."""
    told = []
    for opened in (open_source, open_target) if dsn.startswith("postgresql") else (open_source,):
        with pytest.raises(ConnectError) as error:
            opened(dsn)
        told.append(f"{error.value} {error.value.advice}")
    assert len(set(told)) == 1
    assert "\n" not in told[0]
    assert "Traceback" not in told[0]
    return told[0]


@pytest.mark.parametrize(
    "options", ["sslmode=require", "sslmode=verify-ca&sslrootcert={}/ca.pem", "sslmode=verify-full&sslrootcert={}/ca.pem", "sslrootcert={}/ca.pem&sslmode=verify-full&ssl_min_protocol_version=TLSv1.3"]
)  # fmt: skip
def test_postgresql_is_encrypted_and_trusted(cloud: str, keys: Path, options: str) -> None:
    dsn = f"{cloud}?{options.format(keys)}"
    source = open_source(dsn)
    assert isinstance(source, PostgresSource)
    assert source._asking.pgconn.ssl_in_use
    assert source.count("SELECT 1") == 1  # by the connection that streams
    source.close()
    target = open_target(dsn)
    target.prepare()
    target.reconnect()
    assert target.has_schema()
    target.close()


POSTGRES_REFUSES = [
    ("sslmode=verify-full&sslrootcert={}/other.pem", "certificate verify failed"),
    ("sslmode=verify-ca&sslrootcert={}/other.pem", "certificate verify failed"),
    ("sslmode=verify-full&sslrootcert={}/nowhere.pem", "root certificate file"),
    ("sslmode=surely", "invalid sslmode value"),
]


@pytest.mark.parametrize(("options", "said"), POSTGRES_REFUSES)
def test_postgresql_refused(cloud: str, keys: Path, options: str, said: str) -> None:
    told = refused(f"{cloud}?{options.replace('{}', str(keys))}")
    assert said in told
    assert "check sslmode, sslrootcert, sslcert and sslkey in the DSN" in told


def test_postgresql_by_another_name(cloud: str, keys: Path) -> None:
    dsn = f"{cloud.replace('@127.0.0.1', '@db.example.com')}?hostaddr=127.0.0.1&sslrootcert={keys}/ca.pem&sslmode="
    open_source(f"{dsn}verify-ca").close()
    assert 'does not match host name "db.example.com"' in refused(f"{dsn}verify-full")


def test_postgresql_is_shown_a_certificate(server: Database, keys: Path) -> None:
    shutil.copy(keys / "crm.key", keys / "own.key")
    (keys / "own.key").chmod(0o600)
    front = TlsFront(keys, server.server.port, wants_papers=True)
    try:
        dsn = f"{server.dsn.replace(f':{server.server.port}/', f':{front.port}/')}?sslmode=verify-full&sslrootcert={keys}/ca.pem"
        open_source(f"{dsn}&sslcert={keys}/crm.pem&sslkey={keys}/own.key").close()
        assert "check sslmode, sslrootcert, sslcert and sslkey in the DSN" in refused(dsn)
    finally:
        front.close()


@pytest.mark.parametrize(
    "options",
    ["ssl_mode=REQUIRED", "ssl_mode=VERIFY_CA&ssl_ca={}/ca.pem", "ssl_mode=VERIFY_IDENTITY&ssl_ca={}/ca.pem", "ssl_ca={}/ca.pem", "ssl_mode=VERIFY_CA&ssl_ca={}/ca.pem&ssl_cert={}/crm.pem&ssl_key={}/crm.key"],
)  # fmt: skip
def test_mariadb_is_encrypted_and_trusted(old: Database, keys: Path, options: str) -> None:
    source = open_source(f"{old.dsn}?{options.replace('{}', str(keys))}")
    assert source.query("SHOW SESSION STATUS LIKE 'Ssl_cipher'")[0][1]
    assert source.count("t") == 0
    source.close()


@pytest.mark.parametrize("mode", ["VERIFY_CA", "VERIFY_IDENTITY"])
@pytest.mark.parametrize("file", ["other.pem", "nowhere.pem"])
def test_mariadb_refused(old: Database, keys: Path, mode: str, file: str) -> None:
    assert "the encrypted connection was not made" in refused(f"{old.dsn}?ssl_mode={mode}&ssl_ca={keys}/{file}")


def test_mariadb_knows_a_user_by_the_certificate(old: Database, keys: Path) -> None:
    dsn = f"mysql://papers@127.0.0.1:{old.server.port}/{old.name}?ssl_mode=VERIFY_CA&ssl_ca={keys}/ca.pem"
    source = open_source(f"{dsn}&ssl_cert={keys}/crm.pem&ssl_key={keys}/crm.key")
    assert source.query("SELECT CURRENT_USER()") == [("papers@%",)]
    source.close()
    assert "the server refuses the user" in refused(dsn)
