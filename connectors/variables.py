"""What `${NAME}` stands for: the environment's variable, else that of a file `.env` in the working directory.

Values are taken as they stand: a `${NAME}` within one is resolved where it is used, so that a password in it needs no
percent-encoding. Never changes the environment, and so never reaches another program.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from workspace.errors import DsnError


class Variables(Mapping[str, str]):
    """Variables by name; the file is read only for a name that the environment lacks. DsnError where it can't be."""

    def __getitem__(self, name: str) -> str:
        found = os.environ.get(name)
        return found if found is not None else _of_file()[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**_of_file(), **os.environ})

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _of_file() -> dict[str, str]:
    from dotenv import dotenv_values  # only those need it who have no such variable

    file = Path.cwd() / ".env"
    if not file.is_file():
        return {}
    try:
        with file.open(encoding="utf-8") as lines:
            found = dotenv_values(stream=lines, interpolate=False)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it isn't UTF-8"
        raise DsnError(f"the file .env can't be read: {why}", where=str(file), advice="mend or remove it") from None
    return {name: value for name, value in found.items() if value is not None}
