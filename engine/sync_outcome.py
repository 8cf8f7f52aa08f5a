"""What a sync is asked to do, and what it found and did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from connectors.records import KeptEdit
from engine.generation import Deletes


@dataclass(frozen=True)
class SyncOptions:
    """What a person said: what becomes of rows that the source has no longer (keep, delete, mark), whether watermarks
    are not to be relied on, and what stands in the place of the entities' `edited` ("" for nothing)."""

    deletes: Deletes = "keep"
    full: bool = False
    edited: Literal["", "keep", "overwrite", "ask"] = ""


@dataclass(frozen=True)
class EntitySynced:
    """Of one entity: rows read and counted in the source; of those, new, changed, and unchanged ones driven again;
    `gone` ones that the source has no longer (None: nobody looked). Then what became of them: see LedgerRow and
    SyncCounts. `freed` left the quarantine; `references` are rows that had deferred ones filled."""

    entity: str
    seen: int = 0
    counted: int = 0
    new: int = 0
    changed: int = 0
    again: int = 0
    gone: int | None = None
    snapshot: bool = False
    watermark: str = ""
    inserted: int = 0
    updated: int = 0
    unchanged: int = 0
    excluded: int = 0
    quarantined: int = 0
    freed: int = 0
    kept: int = 0
    asked: int = 0
    deleted: int = 0
    marked: int = 0
    stayed: int = 0
    references: int = 0


@dataclass(frozen=True)
class SyncOutcome:
    """What was found, and with `done` what was brought in. `since` is when the generation before was read, `lag` the
    seconds from then until this one was. `kept` are rows of the target that stay as somebody edited them, of this
    and earlier syncs; `skipped` are entities that a sync leaves as they are, with the reason."""

    generation: int
    done: bool
    since: datetime
    lag: float
    entities: tuple[EntitySynced, ...]
    skipped: Mapping[str, str]
    kept: dict[str, list[KeptEdit]]

    @property
    def asked(self) -> int:
        """Rows of which a person is to say what holds."""
        return sum(row.asked for rows in self.kept.values() for row in rows)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "generation": self.generation,
            "done": self.done,
            "since": self.since.isoformat(timespec="milliseconds"),
            "lag_seconds": round(self.lag, 3),
            "entities": [asdict(each) for each in self.entities],
            "skipped": dict(self.skipped),
            "asked": self.asked,
            "kept_rows": [
                {"entity": entity, "key": row.old_id.split("\x1f"), "id": row.new_id, "fields": row.fields.split(", "), "asked": row.asked}
                for entity, rows in self.kept.items()
                for row in rows
            ],
        }  # fmt: skip
