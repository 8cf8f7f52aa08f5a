"""One job: what it is, the table of the equation by entity, what waits and what comes next."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from agent.models.options import ModelOptions
from cli.views.jobs import job_state, short_time
from cli.views.table import Heading, number, show_table
from cli.views.text import one_line, visible
from workspace.progress import Progress
from workspace.state import State


def document(job: str, state: State, holder: str | None) -> dict[str, Any]:
    """The status as JSON values."""
    return {
        "job": job,
        "state": job_state(state.progress, holder),
        "running": holder,
        "source": state.belief.source,
        "target": state.belief.target,
        "position": state.position,
        "progress": state.progress.to_dict(),
        "money": _money(state),
    }


def show(console: Console, job: str, state: State, holder: str | None) -> None:
    """The status for a person."""
    progress = state.progress
    console.print(f"{job}: {state_words(progress, holder)}", style="bold")
    console.print(f"  {visible(state.belief.source)} -> {visible(state.belief.target)}")
    dates = progress.to_dict()
    console.print(f"  started {short_time(dates['started_at'])}, last event {short_time(dates['last_at'])} (UTC)")
    if progress.purged_at is not None:
        console.print(
            f"  purged {progress.purged_at:%Y-%m-%d %H:%M:%S} (UTC): its stage and record values are gone; what follows are its accounts"
        )
    if progress.entities:
        console.print()
        show_entities(console, progress)
        for name, entity in progress.entities.items():
            left_out = [f"{n:,} {one_line(reason)}" for reason, n in entity.excluded_by.items() if reason != "where"]
            if left_out:
                console.print(f"{one_line(name)}: excluded: {', '.join(left_out)}")
    _show_decisions(console, progress, _money(state))
    for what, tried in progress.attempts.items():
        console.print(f"tried again {tried.count:,} times: {one_line(what)}: {one_line(tried.error)}")
    _show_list(console, "to attend to", [one_line(line) for line in progress.attend_next])
    _show_list(console, "next", next_commands(job, progress, holder))


def show_entities(console: Console, progress: Progress) -> None:
    """The equation, a row an entity and the sum; rows without an outcome, those among the loaded that were matched
    with rows already there, and those among the quarantined that were dropped, are shown where there are any."""
    dropped = sum(entity.dropped for entity in progress.entities.values())
    matches = [entity.matched for entity in progress.entities.values() if entity.matched is not None]

    def gave_up(rows: int) -> list[int]:
        return [rows] if dropped else []

    def linked(rows: int | None) -> list[int | None]:
        return [rows] if matches else []

    names = ["read", "loaded", "merged", "excluded", "quarantined", *(["missing"] if progress.counts.missing else [])]
    rows = []
    for name, entity in progress.entities.items():
        parts = str(len(entity.parts)) if entity.stage_completed else f"{len(entity.parts)}+"
        done = "all" if entity.completed else f"{len(entity.batches)} of {parts}"
        if entity.undone:
            done += f", {len(entity.undone)} taken back"
        rows.append(
            [
                name,
                *(getattr(entity.counts, each) for each in names),
                *linked(entity.matched),
                *gave_up(entity.dropped),
                done,
            ]
        )
    total = ["all", *(getattr(progress.counts, each) for each in names), *linked(sum(matches)), *gave_up(dropped), ""]
    headings = [
        Heading("entity"),
        *map(number, [*names, *(["matched"] if matches else []), *(["dropped"] if dropped else [])]),
        Heading("batches"),
    ]
    show_table(console, headings, rows, total=total)


def next_commands(job: str, progress: Progress, holder: str | None) -> list[str]:
    """What a person may type next, the most useful first."""
    state = job_state(progress, holder)
    if state == "purged":
        cleanup = [f"migrate cleanup {job}        takes its records out of the target"]
        return [f"migrate report {job}", *(cleanup if progress.outcome != "cleaned up" else [])]
    lines = []
    if progress.open_questions:
        lines.append(f"migrate answer {job}       {len(progress.open_questions)} questions wait for you")
    if state in ("drafted", "previewed", "declined", "rehearsed", "piloted"):
        lines.append(f"migrate resume {job}       moves the rows")
    if state == "paused":
        lines.append(f"migrate watch {job} --go-on    ends the pause")
    if progress.taken_back:
        if state != "undone":
            lines.append(f"migrate undo {job}         goes on taking back")
        elif any(batch.refused for entity in progress.entities.values() for _, batch in entity.undone):
            lines.append(f"migrate undo {job}         tries again to take back the rows that stayed")
    elif state in ("stopped", "interrupted", "failed", "waiting"):
        lines.append(f"migrate resume {job}       goes on where it stopped")
    if any(failure.open for entity in progress.entities.values() for failure in entity.failures.values()):
        lines.append(f"migrate quarantine list {job}")
    if state == "done":
        lines.append(f"migrate verify {job}")
    return lines


def state_words(progress: Progress, holder: str | None) -> str:
    """What the job is doing, in a line: running and by whom, or how it ended."""
    state = job_state(progress, holder)
    words = f"running, {holder}" if holder else state
    if progress.outcome and not holder:
        words += f" ({one_line(progress.outcome)})" if progress.outcome.startswith(("failed", "not")) else ""
    if progress.phase and state in ("running", "paused", "stopped", "interrupted", "failed"):
        words += f", in {progress.phase}"
    if state == "paused":
        words += f", paused since {progress.paused_at:%H:%M:%S} (UTC)"
    if progress.verified is not None:
        words += ", reconciled" if progress.verified else ", NOT RECONCILED"
    return words


def _money(state: State) -> float | None:
    """What the job's model cost at the prices that it was begun with; None where none were given."""
    prices = ModelOptions.of(state.belief.options.get("model_options"))
    spent = state.progress.price
    return prices.money(spent.prompt_tokens, spent.answer_tokens)


def _show_decisions(console: Console, progress: Progress, money: float | None) -> None:
    if not progress.rungs:
        return
    parts = [f"{rung} {price.decisions}" for rung, price in progress.rungs.items()]
    spent = progress.price
    paid = "" if money is None else f", {money:,.4f} of money"
    cached = "" if spent.cached_share is None else f" ({spent.cached_share:.0%} of those read from the prefix cache)"
    tokens = f"{spent.prompt_tokens + spent.answer_tokens:,} tokens{cached}"
    console.print(f"\ndecisions: {', '.join(parts)}; {spent.calls:,} model calls, {tokens}{paid}")


def _show_list(console: Console, title: str, lines: list[str]) -> None:
    if lines:
        console.print(f"\n{title}", style="bold")
        for line in lines:
            console.print(f"  {line}")
