"""A real sshd on a high port of the loopback address, with keys made for it, and a configuration for those who log in."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

from sample_data.servers import NotInstalledError


class SshHost:
    """An sshd as a child; `way` is how to log in, `settings` the environment of who does."""

    def __init__(self, folder: Path) -> None:
        program = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
        if program is None or shutil.which("ssh") is None:
            raise NotInstalledError("there is no sshd: apt-get install openssh-server openssh-client")
        self.folder, self._program = folder, program
        folder.chmod(0o700)
        with socket.socket() as asked:
            asked.bind(("127.0.0.1", 0))
            self.port = int(asked.getsockname()[1])
        for name in ("host", "user", "stranger"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
        shutil.copy(folder / "user.pub", folder / "authorized")
        public = (folder / "host.pub").read_text()
        (folder / "known").write_text(f"[127.0.0.1]:{self.port} {public}")
        (folder / "sshd_config").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\n"
            "StrictModes no\nUsePAM no\nPidFile none\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n"
            "MaxStartups 100\nLogLevel VERBOSE\n"
        )
        self.configure("user", "known")
        self.way = f"{getpass.getuser()}@127.0.0.1:{self.port}"
        self.settings = {"PACKHORSE_SSH_CONFIG": str(folder / "config")}
        if os.geteuid() == 0:  # where sshd wants it
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def configure(self, key: str, known: str) -> None:
        """Which key is shown, and which hosts are known."""
        (self.folder / "config").write_text(
            f"Host gate.example.com\nHostName 127.0.0.1\nPort {self.port}\nUser {getpass.getuser()}\n"
            f"Host *\nIdentityFile {self.folder}/{key}\nIdentitiesOnly yes\nIdentityAgent none\nStrictHostKeyChecking yes\n"
            f"UserKnownHostsFile {self.folder}/{known}\nGlobalKnownHostsFile none\n"
        )

    @property
    def log(self) -> str:
        """What it wrote so far."""
        return (self.folder / "log").read_text(errors="replace")

    def start(self) -> None:
        """Starts it and waits until it answers."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, "-D", "-e", "-f", str(self.folder / "sshd_config")],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        end = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert self._process.poll() is None, self.log
                assert time.monotonic() < end, self.log
                time.sleep(0.05)

    def stop(self) -> None:
        """Ends it; sessions that are open go on. Safe to call twice."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(20)
            self._process = None
