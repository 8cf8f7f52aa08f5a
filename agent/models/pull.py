"""Fetches a model from the hub: pinned, resumable, and of no use to anyone until its SHA-256 was found right.

The hub's library speaks the protocol; what lies here is the file: it grows as `FILE.….part`, goes on from there after
a cut, and gets its name at the end. A file that was carried here by hand is checked in the same way, without a network.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from agent.models.catalogue import Pinned
from agent.models.gguf_file import read_header, sha256_of
from agent.models.kept import Kept, read_note, write_note
from workspace.errors import ModelError
from workspace.paths import OWNER_ONLY

# Over plain HTTP a download goes on where it was cut; the hub's newer protocol starts anew in each process.
os.environ.setdefault("HF_HUB_DISABLE_XET", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

import filelock
import httpx
import huggingface_hub
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled
from huggingface_hub.file_download import http_get
from huggingface_hub.utils import build_hf_headers, disable_progress_bars, enable_progress_bars

_SHA256 = re.compile(r"[0-9a-f]{64}")
_SPARE = 64 * 2**20  # bytes of the disk that are left to others


def pull(pinned: Pinned, folder: Path, *, progress: bool = False) -> Kept:
    """The model, on this machine and sound; fetched only where it isn't yet. `progress` shows a bar on stderr.

    ModelError, one line, where the hub can't be reached or has something else, where the disk has no room, or where the
    file isn't what was promised; what was fetched so far stays for the next call unless its hash is wrong.
    """
    final = folder / pinned.local_file
    try:
        folder.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
        with filelock.FileLock(folder / f"{pinned.local_file}.lock", timeout=0):
            there = _look(pinned, final)
            return there if there is not None else _fetch(pinned, final, progress)
    except filelock.Timeout:
        raise ModelError("another process pulls it already", where=str(final), advice="wait for it") from None
    except OSError as error:
        raise ModelError(f"cannot be written: {error.strerror or error}", where=str(final)) from None


def _look(pinned: Pinned, final: Path) -> Kept | None:
    """The file that is there already, read whole; None where there is none. ModelError where it is another."""
    if not final.exists():
        return None
    note = read_note(final)
    wanted = pinned.sha256 or (note.sha256 if note is not None else "")
    if note is not None and note.repository != pinned.repository:
        raise ModelError(
            f"a file of that name was pulled from {note.repository}", where=str(final), advice="move it away first"
        )
    if not wanted:
        return None
    found = sha256_of(final)
    if found != wanted:
        raise ModelError(
            f"another file of that name is there: its SHA-256 is {found[:16]}…, not {wanted[:16]}…",
            where=str(final), advice="remove it and pull again",
        )  # fmt: skip
    read_header(final)
    return write_note(final, pinned, note.revision if note is not None else pinned.revision, found)


def _fetch(pinned: Pinned, final: Path, progress: bool) -> Kept:
    url = huggingface_hub.hf_hub_url(pinned.repository, pinned.file, revision=pinned.revision)
    with _one_line(url, pinned, final):
        told = huggingface_hub.get_hf_file_metadata(url, library_name="packhorse")
    wanted, size = _promised(pinned, told.etag or "", told.size or 0, url)
    part = final.with_name(f"{final.name}.{wanted[:12]}.part")
    held = part.stat().st_size if part.exists() else 0
    if held > size:
        part.unlink()
        held = 0
    _check_room(size - held, final.parent)
    headers = build_hf_headers(library_name="packhorse")
    if urlsplit(told.location).netloc != urlsplit(url).netloc:
        headers.pop("authorization", None)  # a key for the hub is none of its content servers' business
    (enable_progress_bars if progress else disable_progress_bars)()
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    with _one_line(url, pinned, final, part), part.open("ab") as file:
        http_get(
            told.location, file, resume_size=held, headers=headers, expected_size=size, displayed_filename=pinned.name
        )
    found = sha256_of(part)
    if found != wanted:
        part.unlink()
        raise ModelError(
            f"what was fetched has the SHA-256 {found[:16]}…, not {wanted[:16]}…: it was removed",
            where=url, advice="pull again; if it stays so, the file was changed on its way or at its origin",
        )  # fmt: skip
    read_header(part)
    part.replace(final)
    return write_note(final, pinned, told.commit_hash or pinned.revision, found)


def _promised(pinned: Pinned, etag: str, size: int, url: str) -> tuple[str, int]:
    """SHA-256 and size that the file must have; ModelError where the hub has another, before a byte is fetched."""
    sha256 = etag if _SHA256.fullmatch(etag) else ""
    if pinned.size and size != pinned.size:
        raise ModelError(f"the hub has a file of {size:,} bytes there, and {pinned.size:,} are pinned", where=url)
    if pinned.sha256 and sha256 and sha256 != pinned.sha256:
        raise ModelError(
            f"the hub has another file there: SHA-256 {sha256[:16]}…, not {pinned.sha256[:16]}…", where=url
        )
    wanted = pinned.sha256 or sha256
    if not wanted or not size:
        raise ModelError(
            "the hub gives no SHA-256 for it, so it can't be checked",
            where=url,
            advice="fetch it yourself: --model FILE",
        )
    return wanted, size


def _check_room(needed: int, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed + _SPARE:
        raise ModelError(
            f"{needed / 2**30:.1f} GiB are to come, and the disk has {free / 2**30:.1f} free",
            where=str(folder), advice="free some space, or set PACKHORSE_DATA_HOME to a folder on another disk",
        )  # fmt: skip


@contextmanager
def _one_line(url: str, pinned: Pinned, final: Path, part: Path | None = None) -> Iterator[None]:
    """Turns what the hub's library raises into one line."""
    try:
        yield
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        what = "the hub has no such file" if status in (401, 404) else f"the hub refuses: HTTP {status}"
        raise ModelError(what, where=url) from None
    except (httpx.HTTPError, OfflineModeIsEnabled, OSError) as error:
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EACCES):
            raise  # of this machine, and told as such by who called
        held = part.stat().st_size if part is not None and part.exists() else 0
        if held:
            raise ModelError(
                f"the connection was cut after {held:,} bytes: {type(error).__name__}", where=url,
                advice="run it again: it goes on from there",
            ) from None  # fmt: skip
        check = f"SHA-256 {pinned.sha256}" if pinned.sha256 else "and check its SHA-256"
        raise ModelError(
            f"the hub cannot be reached: {type(error).__name__}", where=url,
            advice=f"without a network: fetch it elsewhere, {check}, and put it at {final}; then run this again",
        ) from None  # fmt: skip
