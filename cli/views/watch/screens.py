"""What opens over the screen of `migrate watch`: a cluster, a decision, a question."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, Static

from cli.answer import record_answer
from cli.systems import job_target
from cli.views.text import visible
from cli.views.watch import cells
from cli.views.watch.followed import Followed
from workspace.errors import PackhorseError

ROWS = 20  # of a cluster, shown at once


class TextScreen(ModalScreen[None]):
    """A text that is scrolled and closed."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "close", "Close")]

    def __init__(self, text: Text) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """The text, and the keys."""
        with VerticalScroll():
            yield Static(self._text, id="told", markup=False)
        yield Footer(show_command_palette=False)

    def action_close(self) -> None:
        """Back to the job."""
        self.dismiss(None)


class ClusterScreen(TextScreen):
    """Rows that failed alike: how many, of which batches, and at a key's asking the rows themselves, out of the target."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "rows", "Read rows from the target"),
        Binding("escape,q", "close", "Close"),
    ]

    def __init__(self, followed: Followed, entity: str, signature: str, target: str | None) -> None:
        self._followed, self._entity, self._signature, self._target = followed, entity, signature, target
        super().__init__(self._about())

    def action_rows(self) -> None:
        """Reads the first rows of the cluster; in a thread, since a server may be slow."""
        self._show("reading...")
        self.run_worker(self._read, thread=True, exclusive=True)

    def _read(self) -> None:
        from engine.quarantine import quarantined_rows

        try:
            with job_target(self._target, self._followed.state.belief) as system:
                found = list(
                    quarantined_rows(
                        system, self._followed.paths.job, entity=self._entity, signature=self._signature, limit=ROWS
                    )
                )
            lines = [f"{visible('|'.join(row.key), 40)}  {visible(row.detail, 200)}" for row in found]
            shown = "\n".join(lines) or "no such row in the target now"
        except PackhorseError as error:
            shown = visible(f"{error}; {error.advice}")
        self.app.call_from_thread(self._show, shown)

    def _show(self, below: str) -> None:
        self.query_one("#told", Static).update(self._about().append(f"\n{below}\n"))

    def _about(self) -> Text:
        entity = self._followed.progress.entities[self._entity]
        failure = entity.failures.get(self._signature)
        text = Text()
        text.append(f"{visible(self._entity)}: {visible(self._signature)}\n\n", style="bold")
        if failure is None:
            return text.append("no row of it is in quarantine any more\n")
        batches = [number for number, batch in entity.batches if any(s == self._signature for s, _ in batch.signatures)]
        text.append(f"{failure.open:,} rows open, {failure.dropped:,} dropped; reason {visible(failure.code)}")
        text.append(f", field {visible(failure.field)}\n" if failure.field else "\n")
        if batches:
            of = f"in {len(batches):,} of {len(entity.batches):,} batches, the first {batches[0]}, the last {batches[-1]}"
            text.append(f"{of}\n")
        if failure.example:
            text.append(f"such as {visible(failure.example, 200)}\n")
        job = self._followed.paths.job
        text.append(f"\nwhat can be done: migrate quarantine show|retry|drop {job}; docs/how-to/quarantine.md\n", "dim")
        return text


class QuestionScreen(TextScreen):
    """A question with its evidence; an answer is recorded as `migrate answer` does, where nobody runs the job."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "Close")]

    def __init__(self, followed: Followed, question: str) -> None:
        self._followed, self._question = followed, question
        super().__init__(cells.told(followed.progress.open_questions[question]))

    def compose(self) -> ComposeResult:
        """The question, and where the answer is typed or why it can't be."""
        with VerticalScroll():
            yield Static(self._text, id="told", markup=False)
        if self._followed.over:
            yield Input(placeholder="a candidate's number, its answer, or none; Enter records it", id="answer")
        else:
            yield Static(WHILE_RUNNING, id="later", markup=False)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """The cursor stands where the answer is typed."""
        if self._followed.over:
            self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Records the answer, or says what is wrong with it."""
        text = event.value.strip()
        if not text:
            self.dismiss(None)
            return
        try:
            record_answer(self._followed.paths, self._question, text)
        except PackhorseError as error:
            self.app.notify(visible(f"{error.what}; {error.advice}"), markup=False, severity="error")
            return
        self.app.notify(visible(f"recorded; migrate resume {self._followed.paths.job} goes on with it"), markup=False)
        self.dismiss(None)


WHILE_RUNNING = (
    "The job is running: it took its plan before it began to move rows, and takes answers when it is resumed.\n"
    "Once it has ended, press a again, or: migrate answer"
)
