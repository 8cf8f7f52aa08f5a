"""Packhorse beside the raw pipe and other tools, in one run: `python -m bench.pipe --contacts 1000000` (`make bench`).

The legacy CRM stands in MariaDB. Packhorse carries users, campaigns, accounts and contacts over by the gold
plan, with all that it does; the others copy the same rows from tables where they are clean already, into the
same DDL where they can. Each runs in a process of its own, in turn. What counts is the ratio within one run:
machines differ and are noisy, so figures of two runs are never compared.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from bench.chart import chart
from bench.measure import Measured, measure
from bench.peers import FORMS, PEERS, PIPE, Contender, NotRunError, packhorse
from bench.results import Outcome, Run, machine, print_table, to_json
from bench.systems import Systems
from sample_data.servers import NotInstalledError

RESULTS = Path(__file__).parent / "results"
_TROUBLE = re.compile(r"error|fatal|exhausted|fail|denied", re.IGNORECASE)
_NAMES = (PIPE.name, "packhorse", *(peer.name for peer in PEERS))


def main() -> int:
    """Prints the table, writes JSON and SVG.

    0 when the pipe and Packhorse, where asked for, went through right; 1 when not; 2 where there is no MariaDB.
    """
    arguments = _arguments()
    folder = Path(tempfile.mkdtemp(prefix="packhorse-pipe-"))
    folder.chmod(0o755)  # a server run for root reaches its data through it
    began, here = datetime.now(UTC), machine()
    try:
        with closing(Systems(folder, arguments.contacts, arguments.seed)) as systems:
            outcomes = _measure(arguments, systems)
            document = to_json(systems, outcomes, began, here)
    except NotInstalledError as reason:
        _say(f"error: {reason}")
        return 2
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    arguments.output.mkdir(parents=True, exist_ok=True)
    stem = arguments.output / f"pipe-{began:%Y%m%d-%H%M%S}-{arguments.contacts}"
    stem.with_suffix(".json").write_text(document, encoding="utf-8")
    stem.with_suffix(".svg").write_text(chart(outcomes, arguments.contacts), encoding="utf-8")
    print_table(outcomes, arguments.contacts, here)
    print(f"\nwritten: {stem}.json and {stem.name}.svg")
    return 0 if all(outcome.fine for outcome in outcomes if outcome.contender not in PEERS) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.pipe", description="Packhorse beside the raw pipe and others."
    )
    parser.add_argument(
        "--contacts", type=_positive, default=1_000_000, help="how many contacts the CRM has (default 1000000)"
    )
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--only", type=_words(_NAMES), metavar="NAMES", help=f"of {','.join(_NAMES)}")
    parser.add_argument(
        "--peers", action=argparse.BooleanOptionalAction, default=True, help="other tools beside pipe and Packhorse"
    )
    parser.add_argument(
        "--sources", type=_words(FORMS), default=("mariadb",), metavar="FORMS",
        help=f"what Packhorse reads from, of {','.join(FORMS)} (default mariadb)",
    )  # fmt: skip
    parser.add_argument(
        "--repeat", type=_positive, default=1, metavar="N", help="run each N times, in turn, and give medians"
    )
    parser.add_argument("--limit", type=float, default=3600, metavar="SECONDS", help="a run that takes longer is ended")
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="FOLDER", help="where JSON and SVG go")
    arguments = parser.parse_args()
    if not _contenders(arguments):
        parser.error("--only and --no-peers leave nothing to measure")
    return arguments


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def _words(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    def read(text: str) -> tuple[str, ...]:
        words = tuple(word.strip() for word in text.split(","))
        for word in words:
            if word not in known:
                raise argparse.ArgumentTypeError(f"{word!r} is none of {', '.join(known)}")
        return words

    return read


def _contenders(arguments: argparse.Namespace) -> list[Contender]:
    asked = [PIPE, *(packhorse(form) for form in arguments.sources), *(PEERS if arguments.peers else ())]
    return [c for c in asked if not arguments.only or c.name.partition(",")[0] in arguments.only]


def _measure(arguments: argparse.Namespace, systems: Systems) -> list[Outcome]:
    outcomes = [_prepared(contender) for contender in _contenders(arguments)]
    started = time.monotonic()
    systems.fill()
    for form in {outcome.contender.form for outcome in outcomes if not outcome.reason} - {"mariadb"}:
        systems.fill_form(form)
    _say(f"the legacy CRM: {arguments.contacts:,} contacts in {time.monotonic() - started:.0f} s")
    for turn in range(arguments.repeat):
        for outcome in outcomes:
            if not outcome.reason:
                _run(
                    outcome,
                    systems,
                    systems.folder / f"{outcome.contender.name}-{turn}".replace(", ", "-"),
                    arguments.limit,
                )
    return outcomes


def _prepared(contender: Contender) -> Outcome:
    try:
        return Outcome(contender, contender.prepare())
    except NotRunError as error:
        _say(f"{contender.name}: {error}")
        return Outcome(contender, {}, reason=str(error))


def _run(outcome: Outcome, systems: Systems, folder: Path, limit: float) -> None:
    """One run into a target of its own. What goes wrong becomes the outcome's reason, and it isn't run again."""
    contender = outcome.contender
    folder.mkdir()
    target = systems.new_target()
    try:
        systems.settle()
        started = contender.start(systems, target, folder)
        measured = measure(started.command, folder, started.environment, limit)
        if measured.out_of_time:
            raise NotRunError(f"ended after {limit:.0f} s")
        if measured.code:
            raise NotRunError(_why(measured))
        rows, same = systems.arrived(target, contender.place)
        told = contender.after(systems, target, folder)
        # a form has its own truth, and ours alone reads other forms than the one that the others' rows come from
        outcome.runs.append(Run(measured, rows, same if contender.form == "mariadb" else None, told))
        _say(f"{contender.name}: {measured.seconds:.1f} s")
    except (NotRunError, OSError) as error:
        outcome.reason = systems.without_secrets(str(error))
        _say(f"{contender.name}: {outcome.reason}")
    finally:
        systems.postgres.drop(target)
        shutil.rmtree(folder, ignore_errors=True)


def _why(measured: Measured) -> str:
    """Why a command failed: the last line of its that speaks of an error, or the last."""
    lines = [line.strip() for line in measured.said.splitlines() if line.strip()] or ["no word"]
    telling = [line for line in lines if _TROUBLE.search(line)] or lines
    end = f"killed by signal {-measured.code}" if measured.code < 0 else f"exit {measured.code}"
    return f"{end}: {telling[-1][:200]}"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
