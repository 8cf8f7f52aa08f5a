"""A writer that is killed at random instants: the log always opens, and holds all that `record` returned for."""

from __future__ import annotations

import random
import subprocess
import sys
import textwrap
import time
from pathlib import Path

from workspace.events import BatchCommitted, BeliefHeld, QuarantineSeen
from workspace.lock import JobLock
from workspace.log import Workspace
from workspace.paths import JobPaths
from workspace.state import fold, state_at

KILLS = 20
GROUP = 3  # events a transaction of the child

WRITER = textwrap.dedent(
    """
    import os, sys
    from pathlib import Path
    from workspace.events import BatchCommitted, BeliefHeld, QuarantineSeen
    from workspace.lock import JobLock
    from workspace.log import Workspace
    from workspace.paths import JobPaths
    paths = JobPaths(Path(sys.argv[1]), "job").create()
    with JobLock(paths), Workspace.open(paths, write=True) as workspace:
        while True:
            n = workspace.position // 3
            last = workspace.record(
                BatchCommitted("contacts", n, 1, 1, read=10, inserted=9, quarantined=1),
                QuarantineSeen("contacts", "dob: cast", "cast", "dob", 1, "99", batch=n),
                BeliefHeld(f"subject {n}", "text", {"text": "x" * (n % 50 * 100)}),
            )
            os.write(1, b"%d\\n" % last)
    """
)


def killed_writer(base: Path, after: float) -> int:
    """Runs a writer, kills it; the last position that it told of, 0 for none."""
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(base)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    first = process.stdout.readline()  # so that the kills fall on its writing, not on its start
    time.sleep(after)
    process.kill()
    told = first + process.stdout.read()
    process.stdout.close()
    process.wait()
    whole = told[: told.rfind(b"\n") + 1].split()
    return int(whole[-1]) if whole else 0


def test_a_writer_killed_again_and_again_never_loses_what_it_recorded(tmp_path: Path) -> None:
    chance = random.Random(20240501)
    paths = JobPaths(tmp_path, "job")
    told = 0
    for _ in range(KILLS):
        last = killed_writer(tmp_path, chance.uniform(0, 0.15))
        assert last >= told + GROUP  # each one got somewhere
        told = last
        with Workspace.open(paths) as reader:
            assert reader.position >= told
            assert reader.position <= told + GROUP  # at most the transaction that was committed and not told
            assert reader.position % GROUP == 0  # none in halves
        with JobLock(paths), Workspace.open(paths, write=True) as writer:  # whole, and free to go on
            told = writer.position

    with Workspace.open(paths) as reader:
        entries = list(reader.events())
        assert [entry.position for entry in entries] == list(range(1, told + 1))
        for n in range(told // GROUP):
            batch, seen, belief = (entry.event for entry in entries[n * GROUP : (n + 1) * GROUP])
            assert isinstance(batch, BatchCommitted)
            assert batch.batch == n
            assert isinstance(seen, QuarantineSeen)
            assert isinstance(belief, BeliefHeld)
            assert belief.evidence == {"text": "x" * (n % 50 * 100)}
        state = state_at(reader)
        assert state == fold(entries)
        assert state.progress.counts.read == 10 * told // GROUP
        assert state.progress.counts.missing == 0


def test_a_first_start_killed_at_any_instant_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    chance = random.Random(7)
    for n in range(8):
        base = tmp_path / str(n)
        base.mkdir()
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(base)], stdout=subprocess.DEVNULL)
        folder = JobPaths(base, "job").folder
        while not folder.exists():
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.02))
        process.kill()
        process.wait()
        paths = JobPaths(base, "job").create()
        with JobLock(paths), Workspace.open(paths, write=True) as workspace:
            assert workspace.position % GROUP == 0
            workspace.record(BeliefHeld("s", "c"))
