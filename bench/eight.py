"""Measures a model of the true Qwen3-8B shape on this machine: python -m bench.eight [--keep FOLDER]

Its weights are random (`bench.made_model`), so what it says is nothing; how much memory it takes and how fast it is does not
hang on what the numbers are. It takes 5 GB of disk while it runs, some minutes, and prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from agent.models.catalogue import CATALOGUE, DEFAULT
from agent.models.gguf_file import read_header
from agent.models.measure import measure
from agent.models.memory import CONTEXT, need_of
from bench.made_model import QWEN3_8B, write_model

_PATIENCE = 3600.0


def run(folder: Path) -> dict[str, object]:
    """Makes the file in `folder`, measures it, and says how near its size is to the true one's."""
    started = time.monotonic()
    path = write_model(folder / "qwen3-8b-random-Q4_K_M.gguf", QWEN3_8B)
    made = time.monotonic() - started
    header = read_header(path)
    found = measure(path, _PATIENCE)
    return {
        "file_bytes": header.size,
        "of_the_true_file": round(header.size / CATALOGUE[DEFAULT].size, 4),
        "parameters": header.values,
        "made_seconds": round(made, 1),
        "expected_mib": round(need_of(header, CONTEXT).whole / 2**20),
        "load_average_after": os.getloadavg()[0],
        **asdict(found),
    }


def main() -> int:
    """Exit code 0, or 1 where the disk has no room for it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--keep", type=Path, help="a folder to leave the file in")
    folder = parser.parse_args().keep
    place = folder or Path(tempfile.mkdtemp(prefix="packhorse-8b-"))
    try:
        if shutil.disk_usage(place).free < 1.2 * CATALOGUE[DEFAULT].size:
            print(f"6 GB are needed in {place}", file=sys.stderr)
            return 1
        print(json.dumps(run(place), indent=2))
    finally:
        if folder is None:
            shutil.rmtree(place, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
