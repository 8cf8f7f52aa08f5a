"""`python -m sample_data sqlite PATH --contacts 20000`: writes a sample for a person to look at."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from . import FORMS, write_sample
from .duplicates import write_duplicates


def main() -> int:
    """Writes the sample that the arguments ask for and prints its tables with their rows."""
    parser = argparse.ArgumentParser(prog="python -m sample_data", description="Writes a made-up legacy CRM.")
    parser.add_argument("form", choices=(*FORMS, "duplicates"))
    parser.add_argument("where", help="a file (sqlite, duplicates), a folder (csv), or the URL of a database")
    parser.add_argument("--contacts", type=int, default=2000, help="how many contacts (default 2000)")
    parser.add_argument("--seed", type=int, default=7, help="another seed, other records (default 7)")
    options = parser.parse_args()
    started = time.perf_counter()
    try:
        if options.form == "duplicates":
            truth = write_duplicates(Path(options.where), options.contacts, options.seed)
            print(f"{len(truth.people):,} contacts, {len(truth.companies):,} accounts; some are one, some look alike")
            return 0
        facts = write_sample(options.form, options.where, options.contacts, options.seed)
    except ValueError as error:
        parser.error(str(error))
    for table, rows in facts.rows.items():
        print(f"{rows:>12,}  {table}")
    print(f"{sum(facts.rows.values()):>12,}  rows in {time.perf_counter() - started:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
