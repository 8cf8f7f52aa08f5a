"""Who `--on` tells: read and checked before anything begins, since nobody sits there to mend it later."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import dataclass
from urllib.parse import urlsplit

from workspace.errors import UsageError

EVENTS = ("done", "question", "failure")
_FORM = "as in --on done,question,failure=https://hooks.example.com/night, or --on 'failure=notify-send packhorse'"


@dataclass(frozen=True)
class Goal:
    """Who is told, and of what: a URL, or a command's words."""

    events: frozenset[str]
    url: str = ""
    command: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """As it may be shown: the path of a webhook's URL often is its secret."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.hostname}" if self.url else self.command[0]


def goals_of(texts: list[str]) -> list[Goal]:
    """What each `--on` says. UsageError for an unknown event, a URL that is none, a command that isn't there."""
    return [_goal(text) for text in texts]


def _goal(text: str) -> Goal:
    from engine.known_names import near

    words, equals, goal = text.partition("=")
    events, goal = [word.strip() for word in words.split(",")], goal.strip()
    if not equals or not goal:
        raise UsageError("--on names no URL or command", where="--on", advice=_FORM)
    for word in events:
        if word not in EVENTS:
            raise UsageError(
                f"there is no event {word!r}{near(word, EVENTS)}", where="--on", advice=f"they are {', '.join(EVENTS)}"
            )
    if "://" in goal.partition(" ")[0]:
        return Goal(frozenset(events), url=_url(goal))
    try:
        command = tuple(shlex.split(goal))
    except ValueError as error:
        raise UsageError(f"the command can't be read: {str(error).lower()}", where="--on", advice=_FORM) from None
    if shutil.which(command[0]) is None:
        raise UsageError(
            f"there is no command {command[0]!r}", where="--on",
            advice="give its path; it is run without a shell, so a pipe or a variable needs a script",
        )  # fmt: skip
    return Goal(frozenset(events), command=command)


def _url(text: str) -> str:
    from connectors.dsn import resolved

    url = resolved(text)  # ${NAME} keeps a webhook's secret out of the process list
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        fine = False
    if not fine:
        raise UsageError("a webhook is an http:// or https:// URL", where="--on", advice=_FORM)
    return url
