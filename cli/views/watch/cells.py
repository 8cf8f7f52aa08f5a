"""Cells and lines of the screen, as texts: nothing of a record value is read as markup or sent as an escape."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from cli.views.inspect import choice_text
from cli.views.pace import Pace, left_text, rows_text, speed_text
from cli.views.quarantine import clusters
from cli.views.text import one_line, visible
from cli.views.watch.followed import Followed
from workspace.events import PHASES, DecisionMade, QuestionAnswered, QuestionAsked
from workspace.log import Entry

Row = tuple[str, list[Text]]
"""A row's key and its cells."""

BAR = 10
_MAIN = ("load", "verify", "done")  # phases that every job comes to


def safe(value: object, limit: int = 0, style: str = "") -> Text:
    """A value as a cell."""
    return Text(visible(value, limit), style=style, no_wrap=True)


def entities(followed: Followed) -> list[Row]:
    """A row an entity: how far it is, how fast, how long still, how many in quarantine."""
    now = followed.now()
    running = not followed.over
    rows = []
    for pace in followed.paces():
        entity = followed.progress.entities[pace.entity]
        held = entity.counts.quarantined - entity.dropped
        rows.append(
            (
                pace.entity,
                [
                    safe(pace.entity, 15),
                    Text(bar(pace)),
                    _right(rows_text(pace).removesuffix(" rows"), 17),
                    _right((speed_text(pace) if pace.phase else "").removesuffix(" rows/s"), 7),
                    _right(left_text(pace, now) if running else "", 7),
                    _right(f"{held:,}" if held else "", 11),
                ],
            )
        )
    return rows


def bar(pace: Pace) -> str:
    """How much of the rows is done, to be read without colour; nothing where it isn't known how many there are."""
    if pace.total is None:
        return ""
    full = BAR if not pace.total else min(BAR, BAR * pace.done // pace.total)
    return "█" * full + "░" * (BAR - full)


def phases(followed: Followed) -> Text:
    """The phases that were begun, the present one marked, and those to come."""
    progress = followed.progress
    text = Text(no_wrap=True)
    known = sorted({*progress.phases, *(_MAIN if not progress.taken_back else ())}, key=PHASES.index)
    for phase in known:
        mark, style = ("✓", "") if phase in progress.phases else ("·", "dim")
        if phase == progress.phase and phase != "done":
            mark, style = "▶", "bold reverse"
        text.append(f"{mark} {phase}", style=style)
        text.append("  ")
    return text


def equation(followed: Followed) -> Text:
    """The counts of the job."""
    counts = followed.progress.counts
    parts = [
        f"{n:,} {name}" for name in ("loaded", "merged", "excluded", "quarantined") if (n := getattr(counts, name))
    ]
    return Text(f"{counts.read:,} read = {' + '.join(parts) or '0 loaded'}", no_wrap=True)


def quarantine(followed: Followed) -> list[Row]:
    """A row a cluster, most rows first."""
    rows = []
    for each in clusters(followed.progress):
        key = (str(each["entity"]), str(each["signature"]))
        grown = followed.growth(key)
        cells = [
            _right(f"{each['open']:,}", 7), _right(f"+{grown:,}" if grown else "", 7), safe(each["entity"], 18),
            safe(each["signature"], 160),
        ]  # fmt: skip
        rows.append(("\x00".join(key), cells))
    return rows


def decisions(followed: Followed) -> list[Row]:
    """A row a decision, a question or an answer, the latest first."""
    return [(str(each.position), decided(each)) for each in reversed(followed.decisions)]


def decided(entry: Entry) -> list[Text]:
    """When, about what, what was chosen, by whom, how sure, at what price, why."""
    event = entry.event
    at = safe(f"{entry.at:%H:%M:%S}")
    match event:
        case DecisionMade():
            sure = f"{event.confidence:.2f}"
            cells = [
                safe(f"{event.kind} {event.subject}", 34), safe(choice_text(event.choice), 28), safe(event.rung),
                safe(sure), safe(price(event)), safe(one_line(event.why), 160),
            ]  # fmt: skip
        case QuestionAsked():
            cells = [
                safe(event.id, 34), safe("waits for a person"), safe("ask"), safe(""), safe(price(event)),
                safe(one_line(event.text), 160),
            ]  # fmt: skip
        case QuestionAnswered():
            cells = [safe(event.id, 34), safe(choice_text(event.answer), 28), safe(event.by), *map(safe, ("", "", ""))]
        case _:
            cells = []
    return [at, *cells]


def price(made: DecisionMade | QuestionAsked) -> str:
    """`2 calls, 340 tokens, 1.2 s`; free where no model was asked."""
    if not made.calls:
        return "free"
    return f"{made.calls} calls, {made.prompt_tokens + made.answer_tokens:,} tokens, {made.seconds:.1f} s"


def questions(followed: Followed) -> list[Row]:
    """A row an open question: what waits for it, and what is asked."""
    return [
        (id_, [safe(id_, 34), safe(", ".join(asked.holds) or "-", 24), safe(one_line(asked.text), 160)])
        for id_, asked in followed.progress.open_questions.items()
    ]


def told(event: Any) -> Text:
    """A decision with its candidates and evidence, or a question, at length."""
    text = Text()
    lines: list[tuple[str, object]] = []
    if isinstance(event, DecisionMade):
        lines = [
            (event.kind, event.subject), ("choice", choice_text(event.choice)), ("rung", event.rung),
            ("confidence", f"{event.confidence:.2f}"), ("price", price(event)), ("why", event.why),
        ]  # fmt: skip
    elif isinstance(event, QuestionAsked):
        lines = [("question", event.id), ("asked", event.text), ("waiting", ", ".join(event.holds) or "nothing")]
        lines += list(event.evidence.items())
    elif isinstance(event, QuestionAnswered):
        lines = [("question", event.id), ("answer", choice_text(event.answer)), ("by", event.by)]
    for name, value in lines:
        text.append(f"{visible(name)}: ", style="bold")
        text.append(visible(value, 600) + "\n")
    for place, each in enumerate(getattr(event, "candidates", ()), 1):
        weight = each.get("weight")
        share = f"  {weight:.2f}" if isinstance(weight, int | float) else ""
        text.append(f"\n{place}  {visible(each.get('label') or each.get('answer'), 120)}{share}")
        if each.get("evidence"):
            text.append(f"\n   {visible(each['evidence'], 300)}", style="dim")
    return text


def _right(text: str, width: int) -> Text:
    return Text(text.rjust(width), no_wrap=True)
