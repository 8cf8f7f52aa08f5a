"""A table of the screen of `migrate watch`: its headings, and its rows brought up to date under the cursor."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.widgets import DataTable

from cli.views.watch import cells

_HEADINGS = {
    "entities": ("entity", "", "rows".rjust(17), "rows/s".rjust(7), "left".rjust(7), "quarantined"),
    "quarantine": ("open".rjust(7), "1 min".rjust(7), "entity", "signature"),
    "decisions": ("at", "about", "choice", "by", "sure", "price", "why"),
    "questions": ("question", "waiting for it", "asked"),
}


class FilledTable(DataTable[Text]):
    """A table whose rows have keys; what it shows are texts, never markup."""

    def __init__(self, id_: str, kind: str) -> None:
        """`kind` is entities, quarantine, decisions or questions."""
        super().__init__(id=id_, cursor_type="row", zebra_stripes=False, cell_padding=1)
        for heading in _HEADINGS[kind]:
            self.add_column(Text(heading), key=heading.strip() or "bar")

    def fill(self, rows: Sequence[cells.Row]) -> None:
        """Shows the rows; the cursor stays on its row where that is still there."""
        keys = [str(row.key.value) for row in self.ordered_rows]
        if keys == [key for key, _ in rows]:
            for at, (_, texts) in enumerate(rows):
                for column, text in enumerate(texts):
                    if self.get_cell_at((at, column)) != text:  # type: ignore[arg-type]
                        self.update_cell_at((at, column), text, update_width=True)  # type: ignore[arg-type]
            return
        under = keys[self.cursor_row] if self.cursor_row < len(keys) else None
        self.clear()
        for key, texts in rows:
            self.add_row(*texts, key=key)
        if under is not None and self.cursor_row:
            found = next((at for at, (key, _) in enumerate(rows) if key == under), 0)
            self.move_cursor(row=found, scroll=True)
