"""What the domain functions cost: CPU seconds a million rows, by field of the sample's contacts.

    python -m bench.functions [--contacts N]

Each field goes through its function as in a load: in DuckDB's chunks, each value once. `html_text` and
`mojibake` get all rows here, of which a plan hands them only those with an ampersand or with letters outside
of ASCII. The best of three is shown, with what the function remembers forgotten before each.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import pyarrow as pa

from engine.functions import FUNCTIONS
from engine.functions import register as registering
from engine.functions.register import vectorised
from sample_data import World
from sample_data.legacy import source_batches

_CHUNK = 2048  # rows that DuckDB hands over at a time
_FIELDS = {
    "email": ("email_addresses.email_address",),
    "excel_date": ("contacts_cstm.contract_date_c",),
    "html_text": ("contacts.description", "contacts.primary_address_street"),
    "local_time": ("contacts.date_entered America/New_York", "contacts.date_modified America/New_York"),
    "mojibake": ("contacts.last_name", "contacts.primary_address_street"),
    "money": ("contacts_cstm.credit_limit_c",),
    "phone": ("contacts.phone_mobile contacts.primary_address_country", "contacts.phone_work contacts.primary_address_country"),
    "boolean": ("contacts.do_not_call",),
    "country": ("contacts.primary_address_country",),
    "multiselect": ("contacts_cstm.interests_c",),
    "uuid5": ("contacts contacts.id",),
}  # fmt: skip


def main() -> int:
    """Prints a line a field; 0."""
    parser = argparse.ArgumentParser(prog="python -m bench.functions", description="CPU seconds a million rows.")
    parser.add_argument("--contacts", type=int, default=50_000)
    arguments = parser.parse_args()
    tables: dict[str, list[pa.Table]] = {}
    for name, batch in source_batches(World(arguments.contacts, 7, "mariadb"), only=("contacts",)):
        tables.setdefault(name, []).append(batch)
    sample = {name: pa.concat_tables(batches).combine_chunks() for name, batches in tables.items()}
    for name, fields in _FIELDS.items():
        for field in fields:
            columns = list(_columns(sample, field))
            seconds = min(_seconds(name, columns) for _ in range(3))
            print(f"{name:12} {seconds / len(columns[0]) * 1e6:6.2f} s  {field}")
    return 0


def _columns(sample: dict[str, pa.Table], field: str) -> Iterator[pa.Array]:
    """The column of each `table.column`; another word is a value that all rows have."""
    words = [word.partition(".") for word in field.split()]
    rows = max(sample[table].num_rows for table, _, column in words if column)
    for word, _, column in words:
        yield sample[word][column].combine_chunks() if column else pa.array([word] * rows, pa.string())


def _seconds(name: str, columns: list[pa.Array]) -> float:
    function = FUNCTIONS[name]
    registering._remembering(function.call).cache_clear()  # type: ignore[attr-defined]
    over = vectorised(function, len(columns))
    started = time.process_time()
    for start in range(0, len(columns[0]), _CHUNK):
        over(*(column.slice(start, _CHUNK) for column in columns))
    return time.process_time() - started


if __name__ == "__main__":
    raise SystemExit(main())
