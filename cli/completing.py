"""What a shell is told when somebody presses Tab: names of jobs and DSNs, plans, codes of errors.

It prints nothing but candidates: what fails here is no news for somebody in the middle of a line.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

_PLANS = (".yaml", ".yml")
Candidates = list[str | tuple[str, str]]


def answer_shell() -> NoReturn:
    """Prints the candidates for the line that the shell has put into the environment, and exits."""
    gc.disable()  # the process is gone before there is anything worth collecting
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        from cli.verbs import tree

        root = tree()
        _without_markup()
        _offer(root, ())
        root.main([], prog_name="migrate")
    except Exception:
        sys.exit(1)
    sys.exit(0)


def _without_markup() -> None:
    """Keeps Typer from loading Rich's Markdown for the help beside a candidate, which has no markup and is shown after a
    tenth of a second more."""
    from typer import _completion_classes

    _completion_classes._sanitize_help_text = lambda text: text


def mend_zsh_script() -> None:
    """Has the script that Typer installs for zsh complete at the first Tab of a shell too. Loaded by that Tab it only
    says what will complete from the next one on."""
    from typer import _completion_shared

    scripts, register = _completion_shared._completion_scripts, "\ncompdef %(complete_func)s %(prog_name)s\n"
    called = '\nif [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n  %(complete_func)s "$@"\nelse\n  '
    scripts["zsh"] = scripts["zsh"].replace(register, f"{called}{register.strip()}\nfi\n")


def _offer(command: Any, path: tuple[str, ...]) -> None:
    """Has each parameter of the verbs below offer what belongs there; others offer what Typer knows of them."""
    for name, child in getattr(command, "commands", {}).items():
        _offer(child, (*path, name))
    for parameter in command.params:
        find = _BY_VERB.get((*path[:1], parameter.name)) or _BY_NAME.get(parameter.name)
        if find is not None:
            parameter.shell_complete = partial(_items, find)


def _items(find: Callable[[str], Candidates], _context: Any, incomplete: str) -> list[Any]:
    from typer._click.shell_completion import CompletionItem

    found = [each if isinstance(each, tuple) else (each, None) for each in find(incomplete)]
    return [CompletionItem(value, help=about) for value, about in found if value.startswith(incomplete)]


def quietly(find: Callable[[str], Candidates]) -> Callable[[str], Candidates]:
    """`find`, with no candidates where it fails."""

    def found(incomplete: str) -> Candidates:
        try:
            return find(incomplete)
        except Exception:
            return []

    return found


@quietly
def jobs(incomplete: str) -> Candidates:
    """The jobs under this folder."""
    from workspace.paths import list_jobs

    return list(list_jobs(Path.cwd()))


@quietly
def dsns(incomplete: str) -> Candidates:
    """The DSNs that are kept, with where they lead."""
    from connectors.kept_dsns import kept_dsns

    return [(name, f"{kept.system} {kept.database}".strip()) for name, kept in kept_dsns().items()]


@quietly
def plans(incomplete: str) -> Candidates:
    """Plans in the folder that is being typed; none leaves it to the shell to offer files."""
    folder, _, _ = incomplete.rpartition("/")
    place = Path(f"{folder}/" if "/" in incomplete else ".").expanduser()
    names = sorted(each.name for each in place.iterdir() if each.suffix in _PLANS)
    return [f"{folder}/{name}" if "/" in incomplete else name for name in names]


@quietly
def codes(incomplete: str) -> Candidates:
    """The codes of errors, with what they mean."""
    from workspace.errors import errors_by_code

    short = incomplete[:1].isdigit()
    return [
        (code.removeprefix("PH-") if short else code, (kind.__doc__ or "").strip().partition("\n")[0])
        for code, kind in errors_by_code().items()
    ]


_BY_NAME = {"job": jobs, "source": dsns, "target": dsns, "into": dsns, "plan": plans, "code": codes}
_BY_VERB = {
    ("plan", "file"): plans,
    ("plan", "before"): plans,
    ("plan", "after"): plans,
    ("dsn", "name"): dsns,
    ("dsn", "dsn"): dsns,
}
"""By the parameter's name, and where that may be anything, by the first word of the verb too."""
