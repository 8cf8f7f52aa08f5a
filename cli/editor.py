"""A person's own editor, opened on a text: $VISUAL, else $EDITOR, else one that is there. No shell is in between."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

from workspace.errors import UsageError

_USUAL = ("sensible-editor", "nano", "vi")


def editor() -> list[str]:
    """The editor's command, words apart (`code --wait`). UsageError where there is none, or it can't be read."""
    for name in ("VISUAL", "EDITOR"):
        if said := os.environ.get(name, "").strip():
            try:
                words = shlex.split(said)
            except ValueError as error:
                raise UsageError(f"${name} can't be read: {error}", where=said, advice=f"export {name}=nano") from None
            if shutil.which(words[0]) is None:
                raise UsageError(f"${name} names no program: {words[0]}", advice=f"export {name}=nano")
            return words
    found = next((name for name in _USUAL if shutil.which(name)), None)
    if found is None:
        raise UsageError(
            "there is no editor", advice="export EDITOR='code --wait', or another that waits until it is closed"
        )
    return [found]


def edited(file: Path) -> str:
    """The file's text once the editor was closed. UsageError where the editor failed, or the file is no text."""
    command = editor()
    try:
        done = subprocess.run([*command, str(file)], check=False)
    except OSError as error:
        raise UsageError(f"the editor can't be run: {error.strerror}", where=command[0]) from None
    if done.returncode:
        raise UsageError(f"the editor ended with {done.returncode}; nothing was kept", where=" ".join(command))
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"what was edited can't be read: {type(error).__name__}", where=str(file)) from None
