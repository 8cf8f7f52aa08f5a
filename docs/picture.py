"""Draws docs/picture.svg: a real job on the sample, its live view in mid-load and its end, by Rich.

`python docs/picture.py [CONTACTS]`. Starts a PostgreSQL of its own and ends it.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from agent.job import JobRequest, Step, run_job
from cli.demo_server import DemoServer
from cli.views import status
from cli.views.live import LiveView
from sample_data import CLOUD_SQL, GOLD_PLAN, write_sample
from workspace.log import Workspace
from workspace.paths import JobPaths
from workspace.state import state_at

PICTURE = Path(__file__).parent / "picture.svg"
WIDTH = 104
_COMMAND = "migrate run sqlite:///legacy.db postgresql://me@cloud/crm --plan plan.yaml --job crm-to-cloud"


class Snapshot:
    """Draws the live view once, when contacts are loaded and not all else is."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = LiveView(Console(file=io.StringIO(), force_terminal=True, width=WIDTH), "crm-to-cloud")
        self._drawn = False

    def __call__(self, step: Step) -> None:
        """Takes in a step of progress."""
        self._live(step)
        if not self._drawn and (step.phase, step.entity) == ("load", "leads"):
            self._drawn = True
            self._console.print(self._live)


def main() -> int:
    """Draws the picture."""
    contacts = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    os.environ.pop("NO_COLOR", None)
    console = Console(
        record=True, file=io.StringIO(), force_terminal=True, color_system="truecolor", width=WIDTH,
        markup=False, highlight=False, emoji=False,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="packhorse-picture-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        write_sample("sqlite", folder / "legacy.db", contacts)
        server = DemoServer(folder / "postgres")
        server.start()
        try:
            server.make_database("crm", CLOUD_SQL.read_text(encoding="utf-8"))
            _draw(console, folder, server.dsn("crm"))
        finally:
            os.kill(server.pid, signal.SIGINT)
            shutil.rmtree(server.socket_folder, ignore_errors=True)
    console.save_svg(str(PICTURE), title="migrate")
    return 0


def _draw(console: Console, folder: Path, dsn: str) -> None:
    request = JobRequest(
        f"sqlite:///{folder}/legacy.db", dsn, GOLD_PLAN, "crm-to-cloud", yes=True, tolerate=0.5, base=folder
    )
    console.print(f"$ {_COMMAND}", style="bold")
    run_job(request, progress=Snapshot(console))
    console.print("\n...\n", style="dim")
    with Workspace.open(JobPaths(folder, "crm-to-cloud")) as workspace:
        state = state_at(workspace)
    console.print("crm-to-cloud: done, reconciled", style="bold")
    status.show_entities(console, state.progress)
    console.print("read = loaded + merged + excluded + quarantined, counted anew on both sides", style="green")


if __name__ == "__main__":
    sys.exit(main())
