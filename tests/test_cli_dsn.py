"""DSNs kept under a name: asked for, tested, used wherever a DSN may stand, and a password nowhere but in the keyring."""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
import sqlite3
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pexpect
import pytest

from connectors.dsn import Dsn, keeps_no_secret
from connectors.kept_dsns import KeptDsn, check_name, kept_dsns
from sample_data.servers import Database
from tests.cli_runner import MIGRATE, Result, environment
from workspace.errors import DsnError, KeyringError, UsageError

SECRET = "hush/hush:%40 horse"
PLAN = """\
version: 1
source: ${legacy}
target: ${cloud-1}
entities:
  contacts:
    from: contacts
    to: people
    key: id
    id: keep
    fields:
      name: {sql: "trim(name)"}
"""


@dataclass(frozen=True)
class Place:
    """A folder to run commands in, with a keyring in a file of its own and a list of names."""

    folder: Path
    settings: dict[str, str]

    def migrate(self, *arguments: str, typed: str = "", env: dict[str, str] | None = None) -> Result:
        done = subprocess.run(
            [MIGRATE, *arguments], cwd=self.folder, env=environment(self.folder, {**self.settings, **(env or {})}),
            input=typed, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        return Result(done.returncode, done.stdout, done.stderr)

    def terminal(self, *arguments: str) -> pexpect.spawn[str]:
        env = {**environment(self.folder, self.settings), "TERM": "dumb"}
        child = pexpect.spawn(MIGRATE, list(arguments), cwd=str(self.folder), env=env, timeout=60, encoding="utf-8")
        child.logfile_read = io.StringIO()  # all that was shown
        return child

    def holding(self, secret: str) -> list[str]:
        """The files that hold it, in any spelling; the keyring's own aside."""
        spellings = {secret, quote(secret, safe=""), base64.b64encode(secret.encode()).decode()}
        return [
            str(file.relative_to(self.folder)) for file in self.folder.rglob("*")
            if file.is_file() and "keyring" not in file.parts and any(s.encode() in file.read_bytes() for s in spellings)
        ]  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Place:
    keyring = {
        "PYTHON_KEYRING_BACKEND": "keyrings.alt.file.PlaintextKeyring",
        "XDG_DATA_HOME": str(tmp_path / "keyring"),
    }
    return Place(tmp_path, {**keyring, "HOME": str(tmp_path)})


@pytest.fixture
def crm(postgres_database: Database) -> Iterator[str]:
    """The DSN of a user who may do everything in a database with a few contacts, with a password like no other's."""
    postgres_database.run(
        f"CREATE ROLE keeper SUPERUSER LOGIN PASSWORD '{SECRET}';"
        "CREATE TABLE contacts (id int PRIMARY KEY, name text);"
        "INSERT INTO contacts SELECT i, 'n' || i FROM generate_series(1, 30) i;"
        "CREATE TABLE people (id int PRIMARY KEY, name text)"
    )
    yield postgres_database.server.dsn(postgres_database.name, "keeper", SECRET)
    postgres_database.run("DROP OWNED BY keeper; DROP ROLE keeper")


def contacts(file: Path) -> str:
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE contacts (id INTEGER PRIMARY KEY, name TEXT)")
        connection.executemany("INSERT INTO contacts VALUES (?, ?)", [(i, f"n{i}") for i in range(30)])
    connection.close()
    return f"sqlite:///{file}"


def test_a_whole_job_goes_by_names_and_the_password_is_in_the_keyring_alone(
    place: Place, crm: str, postgres_database: Database
) -> None:
    kept = place.migrate("dsn", "add", "legacy", typed=contacts(place.folder / "legacy.db"))
    assert kept.code == 0, kept
    kept = place.migrate("dsn", "add", "cloud-1", "--as", "target", typed=crm + "\n")
    assert kept.code == 0, kept
    assert "ok    connection     PostgreSQL " in kept.out
    assert "none, and nothing goes over a network" in kept.out
    (place.folder / "plan.yaml").write_text(PLAN)
    done = [
        place.migrate("plan", "check", "plan.yaml"),
        place.migrate("run", "legacy", "cloud-1", "--plan", "plan.yaml", "--job", "j", "--dry-run"),
        place.migrate("resume", "j", "--yes"),
        place.migrate("verify", "j"),
        place.migrate("plan", "draft", "legacy", "cloud-1", "--model", "none", "-o", "drafted.yaml"),
        place.migrate("dsn", "list"),
        place.migrate("dsn", "test", "cloud-1", "--as", "target"),
        place.migrate("dsn", "test", "${cloud-1}"),
    ]
    assert [each.code for each in done] == [0] * len(done), done
    assert postgres_database.rows("SELECT count(*), min(name) FROM people") == [(30, "n0")]
    drafted = (place.folder / "drafted.yaml").read_text()
    assert "source: ${legacy}\n" in drafted
    assert "target: ${cloud-1}\n" in drafted
    assert place.holding(SECRET) == []
    assert (place.folder / "keyring").exists()
    for each in done:
        assert SECRET not in each.out + each.err
        assert quote(SECRET, safe="") not in each.out + each.err


def test_the_list_shows_where_and_no_password_and_is_its_owners_alone(place: Place) -> None:
    typed = f"mysql://crm:{quote(SECRET, safe='')}@old.example.com:3307/crm?ssl_mode=DISABLED"
    kept = place.migrate("dsn", "add", "old", "--force", typed=typed, env={"PYTHONPATH": ""})
    assert kept.code == 0, kept
    assert "mysql://crm:***@old.example.com:3307/crm" in kept.out
    listed = place.migrate("dsn", "list", "--json")
    assert listed.json == {
        "dsns": [
            {
                "name": "old",
                "system": "mysql",
                "host": "old.example.com",
                "port": 3307,
                "database": "crm",
                "user": "crm",
                "ssh": "",
            }
        ]
    }
    assert "old   mysql   old.example.com:3307  crm       crm" in place.migrate("dsn", "list").out
    folder = place.folder / "config-home"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for file in folder.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_on_a_terminal_it_asks_part_by_part_and_shows_no_password(
    place: Place, crm: str, postgres_database: Database
) -> None:
    dsn = Dsn.parse(crm)
    child = place.terminal("dsn", "add", "cloud")
    told = (
        ("system", "postgresql"), ("host .localhost.", "127.0.0.1"), ("port .5432.", str(dsn.port)),
        ("database", dsn.database), ("user", dsn.user), ("password", SECRET),
    )  # fmt: skip
    for asked, answer in told:
        child.expect(asked)
        child.expect(": ")
        child.sendline(answer)
    child.expect("kept as cloud: postgresql://keeper:\\*\\*\\*@127.0.0.1")
    child.expect(pexpect.EOF)
    said = child.logfile_read.getvalue()
    child.close()
    assert child.exitstatus == 0, said
    assert SECRET not in said
    assert place.migrate("dsn", "test", "cloud").code == 0
    assert place.holding(SECRET) == []


def test_a_whole_dsn_is_pasted_unseen(place: Place, crm: str) -> None:
    child = place.terminal("dsn", "add", "cloud")
    child.expect("system")
    child.sendline("dsn")
    child.expect("DSN .not shown.: ")
    child.sendline(crm)
    child.expect(pexpect.EOF)
    said = child.logfile_read.getvalue()
    child.close()
    assert child.exitstatus == 0, said
    assert quote(SECRET, safe="") not in said
    assert "kept as cloud" in said


def test_what_can_not_be_reached_is_kept_on_a_yes_or_by_force_alone(place: Place) -> None:
    nowhere = "postgresql://crm:pw@127.0.0.1:1/crm"
    place.migrate("dsn", "add", "gone", typed=nowhere).refused("PH-101", "the test of gone failed", "--force")
    assert place.migrate("dsn", "list", "--json").json == {"dsns": []}
    for answer, code in (("n", 130), ("y", 0)):
        child = place.terminal("dsn", "add", "gone", nowhere)
        child.expect("no server|refused|connection")
        child.expect("keep it nevertheless")
        child.sendline(answer)
        child.expect(pexpect.EOF)
        child.close()
        assert child.exitstatus == code
        assert ("gone" in place.migrate("dsn", "list").out) is (code == 0)
    assert place.migrate("dsn", "test", "gone").code == 1
    assert place.migrate("dsn", "add", "there", "--force", typed=nowhere).code == 0


def test_a_name_is_replaced_only_when_told(place: Place) -> None:
    first, second = contacts(place.folder / "a.db"), contacts(place.folder / "b.db")
    assert place.migrate("dsn", "add", "legacy", typed=first).code == 0
    place.migrate("dsn", "add", "legacy", typed=second).refused("PH-101", "kept under the name legacy", "--replace")
    assert "a.db" in place.migrate("dsn", "list").out
    assert place.migrate("dsn", "add", "legacy", "--replace", typed=second).code == 0
    assert "b.db" in place.migrate("dsn", "test", "legacy").out


def test_a_file_is_found_from_everywhere(place: Place) -> None:
    contacts(place.folder / "legacy.db")
    assert place.migrate("dsn", "add", "legacy", typed="legacy.db").code == 0
    (place.folder / "deeper").mkdir()
    there = Place(
        place.folder / "deeper", {**place.settings, "PACKHORSE_CONFIG_HOME": str(place.folder / "config-home")}
    )
    assert there.migrate("dsn", "test", "legacy").code == 0


def test_rights_that_lack_are_shown(place: Place, postgres_database: Database) -> None:
    postgres_database.run(
        "CREATE ROLE guest LOGIN PASSWORD 'pw'; CREATE TABLE people (id int PRIMARY KEY, name text);"
        "CREATE TABLE firms (id int PRIMARY KEY); GRANT SELECT ON firms TO guest"
    )
    try:
        dsn = postgres_database.server.dsn(postgres_database.name, "guest", "pw")
        kept = place.migrate("dsn", "add", "cloud", "--as", "target", typed=dsn)
        assert kept.code == 0, kept
        assert "fail  target right" in kept.out
        assert "the user lacks " in kept.out
        result = place.migrate("dsn", "test", "cloud", "--as", "target", "--json")
        assert result.code == 1
        assert result.json["ok"] is False
        assert {check["name"] for check in result.json["checks"]} >= {"connection", "encryption", "target right"}
    finally:
        postgres_database.run("DROP OWNED BY guest; DROP ROLE guest")


def test_a_typed_dsn_works_and_earns_one_line(place: Place) -> None:
    result = place.migrate("dsn", "add", "gone", f"postgresql://crm:{SECRET}@127.0.0.1:1/crm", "--force")
    assert result.code == 0, result
    assert result.err.count("stays in your shell's history") == 1
    assert SECRET not in result.out + result.err


@pytest.mark.parametrize(
    "backend", ["keyring.backends.fail.Keyring", "keyring.backends.null.Keyring", "no.such.Keyring"]
)
def test_without_a_keyring_it_is_one_line_with_the_better_ways(place: Place, backend: str) -> None:
    result = place.migrate("dsn", "add", "legacy", typed="sqlite:///x.db", env={"PYTHON_KEYRING_BACKEND": backend})
    result.refused("PH-105", "environment variable", ".env")
    assert place.migrate("dsn", "list", "--json").json == {"dsns": []}


def test_a_keyring_that_lost_an_entry_or_is_gone(place: Place) -> None:
    assert place.migrate("dsn", "add", "legacy", typed=contacts(place.folder / "legacy.db")).code == 0
    headless = {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
    place.migrate("dsn", "test", "legacy", env=headless).refused("PH-105", "no keyring")
    place.migrate("dsn", "rm", "legacy", env=headless).refused("PH-105", "no keyring")
    shutil.rmtree(place.folder / "keyring")
    place.migrate("run", "legacy", "sqlite:///x.db").refused("PH-105", "holds no DSN legacy", "--replace")
    assert place.migrate("dsn", "rm", "legacy").code == 0
    place.migrate("dsn", "rm", "legacy").refused("PH-102", "no DSN is kept under the name legacy")


@pytest.mark.skipif(
    not (shutil.which("gnome-keyring-daemon") and shutil.which("dbus-run-session")),
    reason="there is no Secret Service to try: apt-get install gnome-keyring dbus",
)
def test_a_desktops_keyring(place: Place) -> None:
    dsn = contacts(place.folder / "legacy.db")
    runtime = place.folder / "runtime"
    runtime.mkdir(mode=0o700)
    script = (
        "printf unlock | gnome-keyring-daemon --unlock --components=secrets >/dev/null;"
        f"echo '{dsn}' | {MIGRATE} dsn add legacy && {MIGRATE} dsn test legacy && {MIGRATE} dsn rm legacy"
    )
    own = {
        **place.settings, "PYTHON_KEYRING_BACKEND": "keyring.backends.SecretService.Keyring",
        "XDG_RUNTIME_DIR": str(runtime), "XDG_DATA_HOME": str(place.folder / "keyrings"),
    }  # fmt: skip
    done = subprocess.run(
        ["dbus-run-session", "--", "bash", "-c", script], cwd=place.folder, env=environment(place.folder, own),
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done
    assert "kept as legacy" in done.stdout
    assert "removed legacy" in done.stdout


# -- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["", "-x", "a.b", "a/b", "./a", "a:b", "sqlite://x", "${A}", "a b", "ä", "x" * 65, "a\n"]
)
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(UsageError, match="can't be a DSN's name"):
        check_name(name)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A keyring of this process, with a DSN `legacy` in it; the working directory is empty."""
    import keyring
    from keyrings.alt.file import PlaintextKeyring

    from connectors.kept_dsns import keep

    before = keyring.get_keyring()
    monkeypatch.setenv("PACKHORSE_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    own = PlaintextKeyring()
    own.file_path = str(tmp_path / "keyring")
    keyring.set_keyring(own)
    keep(KeptDsn("legacy", "mysql", "old", None, "crm"), "mysql://crm:secret-1@old/crm")
    yield
    keyring.set_keyring(before)


@pytest.mark.usefixtures("kept")
def test_a_name_stands_wherever_a_dsn_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEGACY", "legacy")
    for text in ("legacy", "${legacy}", " legacy ", "${LEGACY}", "legacy?ssl_ca=/ca.pem"):
        dsn = Dsn.parse(text)
        assert (dsn.host, dsn.password) == ("old", "secret-1"), text
        assert keeps_no_secret(text)
    assert Dsn.parse("legacy?ssl_ca=/ca.pem").parameters == {"ssl_ca": "/ca.pem"}
    assert not keeps_no_secret("legacy?password=x")
    assert not keeps_no_secret("${LEGACY}?password=x")
    monkeypatch.setenv("legacy", "mysql://me@other/crm")
    assert Dsn.parse("${legacy}").host == "other"  # the environment goes first
    assert Dsn.parse("legacy").host == "old"


@pytest.mark.usefixtures("kept")
def test_a_name_that_is_a_folder_too_is_asked_about() -> None:
    Path("legacy").mkdir()
    with pytest.raises(DsnError, match="name of a DSN that is kept, and of a file or folder") as raised:
        Dsn.parse("legacy")
    assert "${legacy}" in raised.value.advice
    assert Dsn.parse("${legacy}").host == "old"
    assert Dsn.parse("./legacy").system == "csv"


@pytest.mark.usefixtures("kept")
def test_a_dot_env_file_serves_variables_after_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    Path(".env").write_text(
        "# ours\nexport CLOUD='postgresql://crm:${PW}@new/crm'\nPW=\"p@ss/${w}ord:%\"\nHERE=file\nlegacy=sqlite:///own.db\n"
    )
    monkeypatch.setenv("HERE", "environment")
    cloud = Dsn.parse("${CLOUD}", None)
    assert (cloud.host, cloud.password) == ("new", "p@ss/${w}ord:%")
    assert Dsn.parse("postgresql://u@${HERE}/crm").host == "environment"
    assert Dsn.parse("${legacy}").system == "sqlite"
    assert "CLOUD" not in os.environ
    with pytest.raises(DsnError, match="NOWHERE is not set") as raised:
        Dsn.parse("${NOWHERE}")
    assert ".env" in raised.value.advice
    Path(".env").write_bytes(b"CLOUD=\xff\xfe")
    with pytest.raises(DsnError, match=r"\.env can't be read"):
        Dsn.parse("${CLOUD}")


@pytest.mark.usefixtures("kept")
def test_a_list_that_is_damaged_or_newer_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "config" / "dsns.json"
    whole = json.loads(file.read_text())
    for text in ("", "[]", "{}", json.dumps({**whole, "dsns": {"legacy": {"no": 1}}}), '{"version": "x"}'):
        file.write_text(text)
        with pytest.raises(UsageError, match="list of DSNs is damaged"):
            kept_dsns()
    file.write_text(json.dumps({**whole, "version": 2}))
    with pytest.raises(UsageError, match="newer"):
        kept_dsns()


@pytest.mark.usefixtures("kept")
def test_a_locked_keyring_is_one_line_without_what_it_said(monkeypatch: pytest.MonkeyPatch) -> None:
    import keyring

    def refuse(*_: str) -> str:
        raise RuntimeError("org.freedesktop.Secret.Error.IsLocked secret-1")

    monkeypatch.setattr(keyring.get_keyring(), "get_password", refuse)
    with pytest.raises(KeyringError, match="the keyring doesn't give the DSN: RuntimeError") as raised:
        Dsn.parse("legacy")
    assert "secret-1" not in f"{raised.value} {raised.value.advice}"


@pytest.mark.usefixtures("kept")
def test_a_keyring_that_keeps_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import keyring

    from connectors.kept_dsns import keep

    monkeypatch.setattr(keyring.get_keyring(), "set_password", lambda *_: None)
    with pytest.raises(KeyringError, match="doesn't give back"):
        keep(KeptDsn("other", "mysql"), "mysql://crm@db/crm")
    assert list(kept_dsns()) == ["legacy"]


def test_several_at_once_lose_no_name(place: Place) -> None:
    dsn = contacts(place.folder / "legacy.db")
    children = [
        subprocess.Popen(
            [MIGRATE, "dsn", "add", f"n{i}", dsn], cwd=place.folder, env=environment(place.folder, place.settings),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ) for i in range(4)
    ]  # fmt: skip
    for child in children:
        child.wait(120)
    listed = place.migrate("dsn", "list", "--json").json["dsns"]
    assert [each["name"] for each in listed] == [f"n{i}" for i in range(4)]
