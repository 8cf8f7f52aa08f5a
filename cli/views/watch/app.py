"""The screen of `migrate watch`: a job followed from another terminal, at 80 by 24 and larger, with colour or without.

Writes nothing to the job but what a key asks. What it shows are texts, never markup: a record value is data.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.filter import NoColor
from textual.widgets import DataTable, Footer, RichLog, Sparkline, Static, TabbedContent, TabPane

from cli.views.inspect import log_line
from cli.views.pace import duration
from cli.views.status import state_words
from cli.views.text import visible
from cli.views.watch import cells
from cli.views.watch.followed import Followed
from cli.views.watch.screens import ClusterScreen, QuestionScreen, TextScreen
from cli.views.watch.tables import FilledTable
from workspace.errors import PackhorseError
from workspace.log import Workspace
from workspace.pause import ask_to_go_on, ask_to_pause

POLL_SECONDS = 0.5


class WatchApp(App[None]):
    """Follows a job until it is quit. `failed` is why it ended by itself."""

    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "pause", "Pause"),
        Binding("g", "go_on", "Go on"),
        Binding("a", "answer", "Answer"),
        Binding("1", "tab('quarantine')", "Quarantine", show=False),
        Binding("2", "tab('decisions')", "Decisions", show=False),
        Binding("3", "tab('questions')", "Questions", show=False),
        Binding("4", "tab('log')", "Log", show=False),
        Binding("q,ctrl+c", "quit", "Quit", priority=False),
    ]

    def __init__(self, followed: Followed, workspace: Workspace, target: str | None = None) -> None:
        colour = "NO_COLOR" not in os.environ
        super().__init__()
        if not colour:  # none at all: Textual would still send shades of grey
            self._filters[:] = [NoColor()]
        self.followed = followed
        self.failed: PackhorseError | None = None
        self._workspace, self._target = workspace, target
        self._logged = 0

    def compose(self) -> ComposeResult:
        """The head, the entities, and the rest in tabs."""
        yield Static(id="head", markup=False)
        yield Static(id="phases", markup=False)
        yield Static(id="equation", markup=False)
        with Horizontal(id="pulse"):
            yield Sparkline([], summary_function=_mean)
            yield Static(id="speed", markup=False)
        yield FilledTable("entities", "entities")
        with TabbedContent(id="tabs", initial="quarantine"):
            for number, name in enumerate(("quarantine", "decisions", "questions"), 1):
                with TabPane(f"{number} {name.capitalize()}", id=name):
                    yield FilledTable(f"{name}-table", name)
            with TabPane("4 Log", id="log"):
                yield RichLog(id="lines", markup=False, highlight=False, wrap=False, max_lines=1000)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Begins to follow."""
        self.query_one("#quarantine-table").focus()
        self.set_interval(POLL_SECONDS, self.poll)

    def on_resize(self) -> None:
        """Draws anew: how much is to be seen hangs on the width."""
        self.call_after_refresh(self.poll, always=True)

    def poll(self, always: bool = False) -> None:
        """Takes in what is new, and shows it."""
        try:
            changed = self.followed.follow(self._workspace)
        except PackhorseError as error:  # the job's folder is gone, or the disk
            self.failed = error
            self.exit()
            return
        if changed or always or not self.followed.over:
            self._show_head()
        if changed or always:
            self._show_lists()
        elif not self.followed.over:
            self.query_one("#entities", FilledTable).fill(cells.entities(self.followed))

    def action_pause(self) -> None:
        """Asks the job to wait."""
        if self.followed.over:
            self._say("nobody runs this job: there is nothing to pause")
        else:
            self._ask(ask_to_pause)

    def action_go_on(self) -> None:
        """Takes the wish to pause back."""
        if self.followed.paused:
            self._ask(ask_to_go_on)
        elif self.followed.over and self.followed.progress.exit_code != 0:
            self._say(f"nobody runs this job: migrate resume {self.followed.paths.job} goes on with it")
        else:
            self._say("the job isn't paused")

    def action_answer(self) -> None:
        """Opens the first question, or the one under the cursor."""
        open_questions = list(self.followed.progress.open_questions)
        if not open_questions:
            self._say("no question waits")
            return
        table = self.query_one("#questions-table", DataTable)
        showing = self.query_one("#tabs", TabbedContent).active == "questions"
        row = table.cursor_row if showing and table.cursor_row < len(open_questions) else 0
        self.push_screen(QuestionScreen(self.followed, open_questions[row]), lambda _: self.poll(always=True))

    def action_tab(self, name: str) -> None:
        """Shows a tab."""
        self.query_one("#tabs", TabbedContent).active = name
        self.query_one("#lines" if name == "log" else f"#{name}-table").focus()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Opens a cluster, a decision or a question."""
        key, table = str(event.row_key.value), event.data_table.id
        if table == "quarantine-table":
            entity, _, signature = key.partition("\x00")
            self.push_screen(ClusterScreen(self.followed, entity, signature, self._target))
        elif table == "decisions-table":
            entry = next(each for each in self.followed.decisions if str(each.position) == key)
            self.push_screen(TextScreen(cells.told(entry.event)))
        elif table == "questions-table":
            self.action_answer()

    def _ask(self, act: object) -> None:
        assert callable(act)
        try:
            act(self.followed.paths)
        except PackhorseError as error:
            self._say(str(error))
        self.poll(always=True)

    def _say(self, text: str) -> None:
        self.notify(visible(text), markup=False)

    def _show_head(self) -> None:
        followed = self.followed
        words = state_words(followed.progress, followed.holder)
        left = followed.seconds_to_load()
        if followed.paused and followed.word == "running":
            words += ", will pause after the batch at hand"
        if left is not None:
            words += f"; {duration(left)} to load all"
        self._set("#head", Text(f"{followed.paths.job}: {visible(words)}", no_wrap=True, overflow="ellipsis"))
        self._set("#phases", cells.phases(followed))
        self._set("#equation", cells.equation(followed))
        spark = self.query_one(Sparkline)
        rates = followed.throughput.rates(max(1, spark.size.width))
        spark.data = rates
        self._set("#speed", Text(f"{rates[-1]:,.0f} rows/s" if rates else ""))

    def _show_lists(self) -> None:
        followed = self.followed
        self.query_one("#entities", FilledTable).fill(cells.entities(followed))
        self.query_one("#quarantine-table", FilledTable).fill(cells.quarantine(followed))
        self.query_one("#decisions-table", FilledTable).fill(cells.decisions(followed))
        self.query_one("#questions-table", FilledTable).fill(cells.questions(followed))
        tabs = self.query_one("#tabs", TabbedContent)
        waiting = len(followed.progress.open_questions)
        tabs.get_tab("questions").label = f"3 Questions ({waiting})" if waiting else "3 Questions"
        lines = self.query_one("#lines", RichLog)
        for entry in followed.log:
            if entry.position > self._logged:
                lines.write(Text(log_line(entry), no_wrap=True))
                self._logged = entry.position

    def _set(self, where: str, text: Text) -> None:
        self.query_one(where, Static).update(text)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
