"""The list of jobs, and the word for what a job is doing."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from cli.views.table import Heading, number, show_table
from workspace.progress import Progress

_BY_OUTCOME = {
    "dry run": "previewed",
    "drafted": "drafted",
    "declined": "declined",
    "rehearsed": "rehearsed",
    "piloted": "piloted",
    "undone": "undone",
    "cleaned up": "cleaned up",
    "too many in quarantine": "stopped",
}
_BY_CODE = {0: "done", 3: "done", 4: "waiting", 130: "interrupted"}


def job_state(progress: Progress, holder: str | None) -> str:
    """running, paused (it runs, and waits because somebody asked it to; not yet where a killed process did so), done, failed, waiting (for a person), interrupted, stopped (killed, or never ended), undone (taken
    back), cleaned up (its records taken out of the target), purged (record values taken out of its files), or, where no row was to move, drafted, previewed,
    declined, rehearsed or piloted."""
    if holder:
        return "paused" if progress.paused_at and progress.paused_process == holder else "running"
    if progress.purged_at is not None:
        return "purged"
    if progress.exit_code is None:
        return "stopped"
    return _BY_OUTCOME.get(progress.outcome or "") or _BY_CODE.get(progress.exit_code, "failed")


def show(console: Console, jobs: list[dict[str, Any]]) -> None:
    """A line a job."""
    if not jobs:
        console.print("no job here yet; start one: migrate run SOURCE TARGET")
        return
    headings = [
        Heading("job"), Heading("state"), Heading("phase"), number("read"), number("loaded"),
        number("quarantined"), number("questions"), Heading("last event"),
    ]  # fmt: skip
    rows = [
        [
            job["job"],
            job["state"],
            job.get("phase") or None,
            job.get("read"),
            job.get("loaded"),
            job.get("quarantined"),
            job.get("questions"),
            short_time(job.get("last_at")) or job.get("error"),
        ]
        for job in jobs
    ]
    show_table(console, headings, rows)


def short_time(text: str | None) -> str | None:
    """`2026-05-01 13:05:09` of an ISO instant, still in UTC."""
    return text[:19].replace("T", " ") if text else None
