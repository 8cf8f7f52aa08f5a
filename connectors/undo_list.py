"""What the engine asks of a target to take a job back: the list of what the job wrote there."""

from __future__ import annotations

from typing import Protocol

from connectors.records import KeptRow, SlowKey


class UndoList(Protocol):
    """The rows of one job, or of one batch of it, each with what taking it back means and the reason, if any, why it
    has to stay. Lives in the target's session: lost with it, `find` makes it again."""

    slow: tuple[SlowKey, ...]

    def find(self) -> None:
        """Lists what the job wrote, with a reason for each row that has to stay."""
        ...

    def going(self) -> dict[tuple[str, int], int]:
        """How many rows can be taken back, by entity and batch; batches without any are left out."""
        ...

    def counts(self) -> list[tuple[str, str, str | None, int]]:
        """Rows by entity, act (delete, restore, return, refer, unmerge, later) and reason (None: can be taken back)."""
        ...

    def kept(self, most: int) -> list[KeptRow]:
        """The first `most` rows that stay."""
        ...

    def lock(self, entity: str, batch: int) -> None:
        """Locks a batch's rows until the transaction ends: nobody changes them or refers to them anew."""
        ...

    def take_back_rows(self, entity: str, batch: int) -> tuple[int, int]:
        """Takes back the rows of a locked batch that can go, with their crosswalk: how many were deleted and how many
        hold again what they held. Rows that can't go after all stay, with a reason."""
        ...

    def take_back_references(self, entity: str, batch: int) -> tuple[int, int]:
        """The same of what the batch's second pass filled: no row is deleted; of the rows that hold again what they
        held, those of earlier jobs count."""
        ...

    def staying(self, entity: str, batch: int, step: int) -> int:
        """How many rows of a batch stay: of the second step, those whose references alone were the job's."""
        ...
