"""MariaDB as the machine has it installed, for as long as the process that started it lives."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .server import NotInstalledError, Server, ended_well

_SBIN = ":/usr/sbin:/usr/local/sbin:/usr/local/bin:/opt/homebrew/bin"


class MariadbServer(Server):
    """MariaDB as the machine has it installed. The user `crm` has every right and a password.

    It lives in another zone than UTC, as legacy servers do.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._daemon = _program("mariadbd", "mysqld")
        self._installer = _program("mariadb-install-db", "mysql_install_db")
        try:
            import MySQLdb
        except ImportError:
            raise NotInstalledError("mysqlclient is not installed: pip install packhorse[mysql]") from None
        self._driver = MySQLdb
        super().__init__(folder)
        self.socket = self.socket_folder / "s"
        self._root = ["--user=root"] if os.geteuid() == 0 else []
        options = [f"--datadir={self.data}", "--auth-root-authentication-method=normal", "--skip-test-db"]
        ended_well("mariadb-install-db", subprocess.run(
            [self._installer, "--no-defaults", *self._root, *options, "--skip-log-bin"],
            capture_output=True, text=True, check=False,
        ))  # fmt: skip
        self.start()
        self.run(
            f"CREATE USER '{self.user}'@'%' IDENTIFIED BY '{self.password}'; "
            f"GRANT ALL ON *.* TO '{self.user}'@'%' WITH GRANT OPTION",
            "",
        )

    def _command(self) -> list[str]:
        return [
            *(self._daemon, "--no-defaults", *self._root, f"--datadir={self.data}"),
            *(f"--socket={self.socket}", f"--port={self.port}", "--bind-address=127.0.0.1"),
            *("--skip-name-resolve", "--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=256M"),
            *(
                "--character-set-server=utf8mb4",
                "--default-time-zone=-05:00",
                "--max-allowed-packet=64M",
                f"--pid-file={self.folder}/pid",
            ),
        ]

    def _answers(self) -> bool:
        try:
            self.rows("SELECT 1", "")
        except self._driver.OperationalError:
            return False
        return True

    def dsn(self, database: str, user: str | None = None, password: str | None = None) -> str:
        """The URL that logs in by TCP, as the user `crm` where no other is given."""
        login = f"{quote(user or self.user)}:{quote(password or self.password, safe='')}"
        return f"mysql://{login}@127.0.0.1:{self.port}/{database}"

    def socket_dsn(self, database: str) -> str:
        """The URL that logs in by the socket, as root, without a password."""
        return f"mysql://root@/{database}?unix_socket={self.socket}"

    def connect(self, database: str = "") -> Any:
        """A MySQLdb connection of root by the socket, in autocommit."""
        return self._driver.connect(
            unix_socket=str(self.socket), user="root", database=database, charset="utf8mb4", autocommit=True
        )

    def run(self, script: str, database: str = "") -> None:
        """Executes one or more statements as root and commits."""
        connection = self.connect(database)
        try:
            cursor = connection.cursor()
            cursor.execute(script)
            while cursor.nextset() is not None:
                pass
        finally:
            connection.close()

    def rows(self, sql: str, database: str = "") -> list[tuple[Any, ...]]:
        """The rows of one SELECT, as the driver gives them."""
        connection = self.connect(database)
        try:
            cursor = connection.cursor()
            cursor.execute(sql)
            return list(cursor.fetchall())
        finally:
            connection.close()


def _program(*names: str) -> str:
    for name in names:
        found = shutil.which(name, path=os.environ.get("PATH", "") + _SBIN)
        if found:
            return found
    raise NotInstalledError(f"MariaDB's {names[0]} is not installed: apt-get install mariadb-server")
