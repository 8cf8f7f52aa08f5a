"""A zip of exports as a source: its members are tables; what can't be trusted or read is set aside with one clear line."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from connectors import zip_files
from connectors.dsn import open_source
from connectors.protocols import Source
from workspace.errors import CatalogueError, DiskFullError, SourceLostError

Files = dict[str, str | bytes]


def read(source: Source, table: str) -> list[list[Any]]:
    return [list(row.values()) for page in source.pages(table, (), after=None, size=2) for row in page.rows.to_pylist()]


def zipped(path: Path, files: Files, how: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def workbook() -> bytes:
    book = openpyxl.Workbook()
    for row in (["id", "size"], ["007", 12]):
        book.active.append(row)
    written = io.BytesIO()
    book.save(written)
    return written.getvalue()


@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_members_are_tables_by_their_names(tmp_path: Path, how: int) -> None:
    files: Files = {
        "Account.csv": 'id,name\n1,"a\nb"\n2,\n', "deep/er/Contact.tsv": "id\tname\n1,5\tMüller\n".encode("cp1252"),
        "lines.jsonl": '{"id": 123456789012345678}\n', "book.xlsx": workbook(), "Ünïcode ✓.csv": "a\n1\n",
        "attachments/00P1": b"\0\1", "empty.csv": "", "readme.txt": "no table", ".hidden.csv": "id\n1\n",
        "__MACOSX/Account.csv": "junk", "back\\slash.csv": "a\n2\n",
    }  # fmt: skip
    export = zipped(tmp_path / "export.zip", files, how)
    for dsn in (str(export), f"csv:///{export}", f"file:///{export}?totals=keep"):
        with closing(open_source(dsn)) as source:
            catalogue = source.catalogue()
            assert sorted(catalogue.tables) == ["Account", "Contact", "book", "lines", "slash", "Ünïcode ✓"]
            assert catalogue.server.startswith("CSV, JSONL, XLSX, ZIP by DuckDB")
            assert source.notes == ()
            for _ in range(2):
                assert read(source, "Account") == [["1", "a\nb"], ["2", None]]
                assert read(source, "Contact") == [["1,5", "Müller"]]
                assert read(source, "lines") == [["123456789012345678"]]
                assert read(source, "book") == [["007", "12"]]
            assert source.query('SELECT a FROM "Ünïcode ✓"') == [("1",)]
    assert [file.name for file in tmp_path.iterdir()] == ["export.zip"]


def encrypted(folder: Path) -> Files:
    if shutil.which("zip") is None:
        pytest.skip("there is no zip")
    (folder / "Bad.csv").write_text("id\n1\n")
    subprocess.run(["zip", "-q", "-P", "secret", "export.zip", "Bad.csv"], cwd=folder, check=True)
    return {}


def linked(folder: Path) -> Files:
    info = zipfile.ZipInfo("Bad.csv")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(folder / "export.zip", "w") as archive:
        archive.writestr(info, "/etc/passwd")
    return {}


def damaged(folder: Path) -> Files:
    zipped(folder / "export.zip", {"Bad.csv": "id,name\n1,Ana Lovelace\n"}, zipfile.ZIP_STORED)
    raw = (folder / "export.zip").read_bytes()
    (folder / "export.zip").write_bytes(raw.replace(b"Lovelace", b"lovelace", 1))
    return {}


def unknown_method(folder: Path) -> Files:
    zipped(folder / "export.zip", {"Bad.csv": "id\n1\n"})
    raw = bytearray((folder / "export.zip").read_bytes())
    raw[raw.index(b"PK\1\2") + 10] = 9  # deflate64, as Windows packs what is large
    (folder / "export.zip").write_bytes(raw)
    return {}


def bomb(folder: Path) -> Files:
    return {"Bad.csv": b"id\n" + b"0" * 120_000_000}


def plain(name: str, content: str | bytes = "id\n1\n") -> Callable[[Path], Files]:
    return lambda folder: {name: content}


@pytest.mark.parametrize(
    ("make", "what", "place"),
    [
        (encrypted, "the file is encrypted within", "Bad.csv"),
        (linked, "is a link", "Bad.csv"),
        (damaged, "damaged within the zip: Bad CRC", "Bad.csv"),
        (unknown_method, "packed by method 9", "Bad.csv"),
        (bomb, "120,000,003 bytes out of", "Bad.csv"),
        (plain("inner.zip"), "a zip within the zip", "inner.zip"),
        (plain("Bad.csv", b"id,name\n1,a\n" + b"x" * 16_000_001), None, ""),
        (plain("Bad.csv", "1,2\n3,4\n"), "no header", "Bad.csv:1"),
        (plain("sub/Bad.jsonl", '{"a": 1}\n[2]\n'), "a list and no object", "sub/Bad.jsonl:2"),
        (plain("Bad.xlsx", "junk"), "no XLSX", "Bad.xlsx"),
        (plain("../Good.csv"), "leads out of the zip", "../Good.csv"),
        (plain("a/../../Good.csv"), "leads out of the zip", "a/../../Good.csv"),
        (plain("/etc/Good.csv"), "leads out of the zip", "/etc/Good.csv"),
        (plain("C:\\Good.csv"), "leads out of the zip", "C:/Good.csv"),
        (plain("..\\Good.csv"), "leads out of the zip", "../Good.csv"),
        (plain("\x1b[31mBad.csv"), "can't be shown", "?[31mBad.csv"),
    ],
)  # fmt: skip
def test_a_bad_member_is_set_aside_with_one_line(
    tmp_path: Path, make: Callable[[Path], Files], what: str | None, place: str
) -> None:
    export = tmp_path / "export.zip"
    more = make(tmp_path)
    with zipfile.ZipFile(export, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**more, "Good.csv": "id\n1\n"}.items():
            archive.writestr(name, content)
    with closing(open_source(str(export))) as source:
        assert read(source, "Good") == [["1"]]
        if what is None:  # found where the table is read
            with pytest.raises(CatalogueError) as raised:
                read(source, "Bad")
            assert str(export / "Bad.csv") in raised.value.where
            with pytest.raises(CatalogueError, match=raised.value.what[:20]):
                source.count("Bad")
            return
        assert list(source.catalogue().tables) == ["Good"]
        (note,) = source.notes
        assert what in note
        assert f"{export}/{place}".replace("//", "/") in note.replace("//", "/")
        assert note.isprintable()
        if "Bad" in place and "?" not in place:
            with pytest.raises(CatalogueError, match=what[:12]):
                source.count("Bad")
    assert sorted(file.name for file in tmp_path.iterdir() if file.name != "Bad.csv") == ["export.zip"]


def test_a_zip_without_anything_good_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match="leads out"):
        open_source(str(zipped(tmp_path / "a.zip", {"../a.csv": "id\n1\n"})))
    (tmp_path / "b.zip").write_bytes(b"PK\3\4 no zip at all")
    whole = zipped(tmp_path / "c.zip", {"a.csv": "id\n1\n" * 100}).read_bytes()
    (tmp_path / "c.zip").write_bytes(whole[:-30])
    for name in ("b.zip", "c.zip"):
        with pytest.raises(CatalogueError, match="no zip, or it is cut off") as raised:
            open_source(str(tmp_path / name))
        assert raised.value.where == str(tmp_path / name)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name(tmp_path: Path) -> None:
    export = tmp_path / "export.zip"
    with zipfile.ZipFile(export, "w") as archive:
        archive.writestr("a.csv", "id\n1\n")
        archive.writestr("a.csv", "id\n2\n")
    with pytest.raises(CatalogueError, match=r"two files in the zip have the name a\.csv"):
        open_source(str(export))
    zipped(export, {"x/a.csv": "id\n1\n", "y/a.csv": "id\n2\n"})
    with pytest.raises(CatalogueError, match="two files or sheets are the table a") as raised:
        open_source(str(export))
    assert raised.value.where == f"{export}/y/a.csv"


@pytest.mark.parametrize(
    ("raw", "name", "told"), [("Müll.csv".encode(), "Müll", False), (b"M\x81ll.csv", "Müll", True)]
)
def test_names_without_an_encoding(tmp_path: Path, raw: bytes, name: str, told: bool) -> None:
    export = zipped(tmp_path / "export.zip", {"X" * (len(raw) - 4) + ".csv": "id\n1\n"})
    export.write_bytes(export.read_bytes().replace(b"X" * (len(raw) - 4) + b".csv", raw))
    with closing(open_source(str(export))) as source:
        assert read(source, name) == [["1"]]
        assert [("isn't in UTF-8" in note, name in note) for note in source.notes] == ([(True, True)] if told else [])


def test_a_zip_that_needs_more_room_than_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export = zipped(
        tmp_path / "export.zip", {"a.csv": b"id\n" + b"1\n" * 1_000_000, "attachment.bin": b"0" * 9_000_000}
    )
    usage = shutil.disk_usage(tmp_path)
    for spare, fits in ((1_999_000, False), (2_001_000, True)):
        monkeypatch.setattr(zip_files, "_SPARE", usage.free)
        monkeypatch.setattr(shutil, "disk_usage", lambda _, s=spare: usage._replace(free=usage.free + s))
        if fits:
            open_source(str(export)).close()
        else:
            with pytest.raises(DiskFullError, match="2,000,003 bytes unpacked") as raised:
                open_source(str(export))
            assert "TMPDIR" in raised.value.advice


def test_several_zips_in_a_folder(tmp_path: Path) -> None:
    zipped(tmp_path / "WE_1.zip", {"Account.csv": "id\n1\n"})
    zipped(tmp_path / "WE_2.ZIP", {"Contact.csv": "id\n2\n"})
    (tmp_path / "WE_3.zip").write_bytes(b"PK cut off")
    with closing(open_source(str(tmp_path))) as source:
        assert (read(source, "Account"), read(source, "Contact")) == ([["1"]], [["2"]])
        (note,) = source.notes
        assert "WE_3.zip" in note
    (tmp_path / "Account.csv").write_text("id\n3\n")  # unpacked there: no second source
    with closing(open_source(str(tmp_path))) as source:
        assert list(source.catalogue().tables) == ["Account"]
        assert read(source, "Account") == [["3"]]
        assert len(source.notes) == 3


def test_a_zip_that_changes_while_it_is_read(tmp_path: Path) -> None:
    export = zipped(tmp_path / "export.zip", {"t.csv": "id\n1\n2\n3\n"})
    with closing(open_source(str(export))) as source:
        stream = source.pages("t", ("id",), after=None, size=1)
        next(stream)
        os.utime(export, (1, 1))
        with pytest.raises(SourceLostError, match="changed"):
            list(stream)


def test_what_is_unpacked_is_for_its_owner_and_goes_also_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    export = zipped(tmp_path / "export.zip", {"a.csv": "id\n1\n", "b.csv": "id\n2\n"})
    script = (
        "import os, signal, sys, tempfile; from connectors.dsn import open_source; tempfile.tempdir = sys.argv[1];"
        "source = open_source(sys.argv[2]); source.count('a'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    root = Path(__file__).parent.parent
    subprocess.run([sys.executable, "-c", script, str(temporary), str(export)], check=False, cwd=root)
    (left,) = temporary.iterdir()
    assert left.stat().st_mode & 0o077 == 0
    kept = [file for file in left.iterdir() if file.name.startswith("member_")]
    assert len(kept) == 1, "a member is deleted once its table is read"
    with closing(open_source(str(export))) as source:
        assert not left.exists()
        assert read(source, "a") + read(source, "b") == [["1"], ["2"]]
        with pytest.raises(CatalogueError, match="only one SELECT"):
            source.query(f"COPY a TO '{tmp_path}/out.csv'")
    assert not list(temporary.iterdir())
