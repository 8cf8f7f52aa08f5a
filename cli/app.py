"""`migrate`: the one place where errors become lines and exit codes.

Imports next to nothing before a typed password is hidden. A traceback is shown only with --debug.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings

from cli.secrets import BETTER_WAYS, hide_passwords
from workspace.disk import owner_only
from workspace.errors import PackhorseError


def main() -> None:
    """The console script. Exits 0, 1, 2, 3, 4 or 130, as docs/reference/cli.md says."""
    if "_MIGRATE_COMPLETE" in os.environ:  # set by the script that --install-completion puts into a shell
        from cli.completing import answer_shell

        answer_shell()
    arguments = sys.argv[1:]
    typed_password = hide_passwords(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that can't show a character shows its number
            stream.reconfigure(errors="backslashreplace")
    debug = "--debug" in arguments or bool(os.environ.get("PACKHORSE_DEBUG"))
    if not debug:  # libraries' warnings are for those who build this
        warnings.simplefilter("ignore")
    if typed_password:
        print(f"note: {BETTER_WAYS}", file=sys.stderr)
    code = run([each for each in arguments if each != "--debug"], debug)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.exit(code)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has gone: `migrate log | head`
    sys.exit(code)


def run(arguments: list[str], debug: bool = False) -> int:
    """The exit code of one command; errors are printed on stderr, never raised unless `debug`.

    Whatever it writes is for its owner alone: people's records may be in it, and libraries of ours go by the umask."""
    with owner_only():
        return _run(arguments, debug)


def _run(arguments: list[str], debug: bool) -> int:
    try:
        # late, after the process title is masked
        from cli.verbs import UsageProblem, execute

        try:
            return execute(arguments)
        except UsageProblem as problem:
            return _report("PH-101", *_usage(problem), exit_code=2)
    except PackhorseError as error:
        if debug:
            raise
        return _report(error.code, error.what, error.where, error.advice, error.details, exit_code=error.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except Exception as error:
        if debug:
            raise
        what = f"unexpected {type(error).__name__}: {error}"
        return _report("PH-100", what, "", "run it again with --debug and report what it shows", exit_code=1)


def _usage(problem: Exception) -> tuple[str, str, str]:
    """What, where and advice of a command that was called wrongly."""
    message = getattr(problem, "format_message", lambda: str(problem))()
    context = getattr(problem, "ctx", None)
    command = context.command_path if context else "migrate"
    return message, "", f"{command} --help"


def _report(code: str, what: str, where: str, advice: str, details: tuple[str, ...] = (), *, exit_code: int) -> int:
    from cli.views.errors import show_error
    from cli.views.output import on_stderr

    word = {3: "stopped", 4: "waiting", 130: "interrupted"}.get(exit_code, "error")
    show_error(on_stderr(), code, what, where, advice, details, word=word)
    return exit_code
