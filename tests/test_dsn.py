"""DSNs: what they are read as, what is shown of them, and which are refused in one clear line."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.dsn import Dsn, open_source, open_target
from workspace.errors import DsnError

SECRET = "hush-hush"


@pytest.mark.parametrize(
    ("text", "masked", "identity"),
    [
        (
            f"mysql://crm:{SECRET}@DB.example.com/crm",
            "mysql://crm:***@db.example.com/crm",
            "mysql://db.example.com:3306/crm",
        ),
        (
            f"mariadb://crm:{SECRET}@db:3307/crm?ssl_ca=/etc/ca.pem",
            "mysql://crm:***@db:3307/crm?ssl_ca=/etc/ca.pem",
            "mysql://db:3307/crm",
        ),
        (
            "mysql://root@/crm?unix_socket=/run/mysqld.sock",
            "mysql://root@/crm?unix_socket=/run/mysqld.sock",
            "mysql:///crm?unix_socket=/run/mysqld.sock",
        ),
        (
            f"postgres://me:{SECRET}@[::1]/crm",
            "postgresql://me:***@[::1]/crm",
            "postgresql://[::1]:5432/crm",
        ),
        (
            f"postgresql+psycopg://db/crm?password={SECRET}&sslmode=require&schema=sales",
            "postgresql://db/crm?password=***&schema=sales&sslmode=require",
            "postgresql://db:5432/crm?schema=sales",
        ),
        (
            "postgresql:///crm?host=/tmp/pg&port=5433",
            "postgresql:///crm?host=/tmp/pg&port=5433",
            "postgresql:///crm?host=/tmp/pg&port=5433",
        ),
        ("sqlite:////srv/crm.db", "sqlite:////srv/crm.db", "sqlite:////srv/crm.db"),
    ],
)
def test_what_is_shown_and_what_names_the_system(text: str, masked: str, identity: str) -> None:
    dsn = Dsn.parse(text)
    assert (dsn.masked, dsn.identity) == (masked, identity)
    assert str(dsn) == masked
    assert SECRET not in repr(dsn) + str(dsn) + dsn.masked + dsn.identity


def test_two_ways_to_the_same_system_are_one_identity() -> None:
    ways = [f"mysql://a:{SECRET}@db/crm", "mariadb://b@DB:3306/crm?ssl_mode=REQUIRED"]
    assert len({Dsn.parse(way).identity for way in ways}) == 1


@given(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=6).filter(
        # a password that is part of what must be shown cannot be told from it
        lambda text: text not in "postgresql://me:***@db:5432/crm?sslpassword=***"
    )
)
def test_no_password_shows_however_it_is_written(password: str) -> None:
    for text in (
        f"postgresql://me:{quote(password, safe='')}@db/crm",
        f"postgresql://db/crm?sslpassword={quote(password, safe='')}",
        f"mysql://db/crm?passwd={quote(password, safe='')}",
    ):
        dsn = Dsn.parse(text)
        assert password in (dsn.password, dsn.parameters.get("sslpassword"), dsn.parameters.get("passwd"))
        shown = dsn.masked + dsn.identity + repr(dsn)
        assert password not in shown
        assert quote(password, safe="") not in shown


def test_a_variable_holds_all_of_it_or_one_part(tmp_path: Path) -> None:
    environment = {"LEGACY_DSN": f"mysql://crm:{SECRET}@db/crm", "PW": "p@ss/word:%", "DATA": str(tmp_path)}
    assert Dsn.parse("${LEGACY_DSN}", environment).password == SECRET
    dsn = Dsn.parse("mysql://crm:${PW}@db/crm", environment)
    assert dsn.password == "p@ss/word:%"
    assert "p@ss" not in dsn.masked
    assert Dsn.parse("${DATA}", environment).path == tmp_path
    with pytest.raises(DsnError, match="LEGACY_DNS is not set"):
        Dsn.parse("${LEGACY_DNS}", environment)


def test_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "crm.db").touch()
    (tmp_path / "contacts.csv").touch()
    (tmp_path / "contacts.ods").touch()
    (tmp_path / "contacts.xlsx").touch()
    assert Dsn.parse(str(tmp_path)).system == "csv"
    assert Dsn.parse(str(tmp_path / "contacts.csv")).system == "csv"
    assert Dsn.parse(str(tmp_path / "crm.db")).system == "sqlite"
    assert Dsn.parse(Dsn.parse(str(tmp_path)).identity).path == tmp_path.resolve()
    dsn = Dsn.parse(f"csv:///{tmp_path}?encoding=cp1250")
    assert (dsn.path, dsn.masked) == (tmp_path, f"csv:///{tmp_path}?encoding=cp1250")
    assert Dsn.parse(str(tmp_path / "contacts.xlsx")).system == "csv"
    with pytest.raises(DsnError, match="ods"):
        Dsn.parse(str(tmp_path / "contacts.ods"))
    with pytest.raises(DsnError, match="neither a DSN nor a file"):
        Dsn.parse(str(tmp_path / "nothing"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"oracle://crm:{SECRET}@db/crm",
        f"mysql://crm:{SECRET}@x@db/crm",
        f"mysql://crm/x:{SECRET}@db/crm",
        f"mysql://crm:{SECRET}@db:port/crm",
        f"mysql://crm:{SECRET}@db",
        f"crm:{SECRET}@db/crm",
        f"oracle://db/crm?password={SECRET}",
        f"oracle://crm:what?{SECRET}@db/crm",
        "sqlite://",
        "sqlite:///:memory:",
    ],
)
def test_what_cannot_be_read_is_one_line_without_the_password(text: str) -> None:
    with pytest.raises(DsnError) as raised:
        Dsn.parse(text)
    error = raised.value
    assert error.exit_code == 2
    assert error.advice
    assert "\n" not in str(error)
    assert SECRET not in str(error) + error.where + error.advice + repr(error)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


def test_a_drivers_message_is_redacted() -> None:
    dsn = Dsn.parse("mysql://crm:p%40ss%2Fword@db/crm")
    assert dsn.redact("refused\nfor 'p@ss/word' and p%40ss%2Fword") == "refused for '***' and ***"


def test_a_folder_is_no_target(tmp_path: Path) -> None:
    with pytest.raises(DsnError, match="csv cannot be a target"):
        open_target(str(tmp_path))


def test_the_class_follows_the_dsn(tmp_path: Path) -> None:
    source = open_source(str(tmp_path))
    assert source.dialect == "duckdb"
    assert source.catalogue().tables == {}
    source.close()
