"""Zips of exports as they are found: which of their members are files of records, and each of those as a file of its own.

A member's name is never a path to write to: whoever unpacks one says where. What can't be trusted or read (a name that
leads out of the zip, a password, a bomb, damage) is an error of that member, and the others are read without it.
"""

from __future__ import annotations

import re
import shutil
import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from workspace.errors import CatalogueError, DiskFullError

SUFFIX = ".zip"
_MOST_RATIO = 200
_NEVER_A_BOMB = 100_000_000
"""Bytes unpacked, up to which a member may be packed as tightly as it likes."""
_SPARE = 64 << 20
_IN_UTF8 = 0x800
_ENCRYPTED = 0x1
_UNPACK = "unpack the zip, and name the folder as the source"
_SEND_AGAIN = "export or copy it again: a download may have ended early"


@dataclass(frozen=True)
class Member:
    """A file within a zip. `path` is its name there as a person reads it, with `/` between folders. `error` says why
    it can't be read, `misnamed` that its name is why; `note` is a line for a person, or ""."""

    path: str
    info: zipfile.ZipInfo
    error: CatalogueError | None = None
    misnamed: bool = False
    note: str = ""


class ZipFiles:
    """An open zip. Its `members` are in the order of their names; hidden ones, and those that no table is made of,
    are none of them."""

    def __init__(self, archive: zipfile.ZipFile, place: str, suffixes: Sequence[str]) -> None:
        """CatalogueError where two members have one name."""
        self._archive = archive
        self._place = place
        found = [_member(info, place, suffixes) for info in archive.infolist() if not info.is_dir()]
        self.members = sorted((m for m in found if m is not None), key=lambda member: member.path)
        counts = Counter(member.path.casefold() for member in self.members)
        twice = next((member for member in self.members if counts[member.path.casefold()] > 1), None)
        if twice is not None:
            raise CatalogueError(
                f"two files in the zip have the name {twice.path}", where=place,
                advice="which of them counts can't be told: make the zip again with each file once",
            )  # fmt: skip

    def check_room(self, folder: Path) -> None:
        """DiskFullError where what the members hold wouldn't fit into the folder's file system."""
        needed = sum(member.info.file_size for member in self.members if member.error is None)
        free = shutil.disk_usage(folder).free
        if needed + _SPARE > free:
            raise DiskFullError(
                f"the zip's files are {needed:,} bytes unpacked, and {free:,} are free in {folder}", where=self._place,
                advice="free some space, or set TMPDIR to a folder that has it",
            )  # fmt: skip

    def unpack(self, member: Member, into: Path) -> None:
        """Writes a member's bytes, never more of them than the zip declares. CatalogueError where it is damaged;
        OSError."""
        try:
            with self._archive.open(member.info) as packed, open(into, "wb") as out:
                shutil.copyfileobj(packed, out, 1 << 20)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
            into.unlink(missing_ok=True)
            raise CatalogueError(
                f"the file is damaged within the zip: {' '.join(str(error).split())[:120]}",
                where=f"{self._place}/{member.path}", advice=_SEND_AGAIN,
            ) from None  # fmt: skip


@contextmanager
def opened(path: Path, place: str, suffixes: Sequence[str]) -> Iterator[ZipFiles]:
    """The zip, open to read members of these suffixes from. CatalogueError where it is none, is damaged or is one of
    several volumes; OSError."""
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, UnicodeDecodeError, ValueError):
        raise CatalogueError("this is no zip, or it is cut off", where=place, advice=_SEND_AGAIN) from None
    with archive:
        yield ZipFiles(archive, place, suffixes)


def _member(info: zipfile.ZipInfo, place: str, suffixes: Sequence[str]) -> Member | None:
    name, foreign = _name(info)
    folders, base = name.split("/")[:-1], name.split("/")[-1]
    suffix = Path(base).suffix.lower()
    if suffix not in (*suffixes, SUFFIX) or base.startswith((".", "~$")) or "__MACOSX" in folders:
        return None
    shown = "".join(letter if letter.isprintable() else "?" for letter in name)[:200]

    def bad(what: str, advice: str, *, misnamed: bool = False) -> Member:
        return Member(shown, info, CatalogueError(what, where=f"{place}/{shown}", advice=advice), misnamed)

    if shown != name:
        return bad("the file's name within the zip can't be shown, or is too long", _UNPACK, misnamed=True)
    if name.startswith("/") or ".." in folders or re.match(r"[A-Za-z]:", name):
        return bad(
            "the file's name leads out of the zip", "make the zip again without .. and / at its start", misnamed=True
        )
    if info.flag_bits & _ENCRYPTED:
        return bad("the file is encrypted within the zip", "unpack the zip with its password, and name the folder")
    if stat.S_ISLNK(info.external_attr >> 16):
        return bad("the file is a link", "make the zip again with the file itself")
    if suffix == SUFFIX:
        return bad("a zip within the zip", _UNPACK)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        return bad(f"the file is packed by method {info.compress_type}, which can't be read", _UNPACK)
    if info.file_size > max(_NEVER_A_BOMB, _MOST_RATIO * info.compress_size):
        return bad(
            f"the file would be {info.file_size:,} bytes out of {info.compress_size:,}", f"if you trust it: {_UNPACK}"
        )
    note = f"{place}: a file's name isn't in UTF-8 and is taken for {name!r}" if foreign else ""
    return Member(name, info, note=note)


def _name(info: zipfile.ZipInfo) -> tuple[str, bool]:
    """The member's name, and whether its encoding isn't told: macOS writes UTF-8 without saying so, old Windows cp437."""
    name, foreign = info.orig_filename, False
    if not info.flag_bits & _IN_UTF8 and not name.isascii():
        try:
            name = name.encode("cp437").decode()
        except UnicodeError:
            foreign = True
    return name.replace("\\", "/"), foreign
