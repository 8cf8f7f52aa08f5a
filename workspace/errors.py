"""Every error a person can meet: a code, what happened, where, and what to do next.

One hierarchy for all rooms. The command line prints the three lines in that order and exits with
`exit_code`. Messages never hold a password (DSNs are masked before they come here) and never hold
control characters of record values.
"""

from __future__ import annotations

from functools import partial


class PackhorseError(Exception):
    """Something that nobody foresaw.

    It is the base of all errors that a person is shown. `what` is one line; `where` names the place (a file and line, a DSN, a table) or is empty;
    `advice` says what to do next or is empty; `details` are lines that explain it, most telling first.
    `remedy`, the same for all of a code, is what mends it: `migrate explain` and the reference tell it.
    """

    code = "PH-100"
    exit_code = 1
    remedy = "Run it again with `--debug` and report what it shows; records are safe: `migrate resume` goes on."

    def __init__(self, what: str, *, where: str = "", advice: str = "", details: tuple[str, ...] = ()) -> None:
        super().__init__(what)
        self.details = details
        self.what = what
        self.where = where
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.what} ({self.where})" if self.where else self.what

    def __reduce__(self) -> tuple[object, ...]:
        # Worker processes send them: as they are, with the keywords that pickle would leave out.
        return partial(type(self), where=self.where, advice=self.advice), (self.what,)


class UsageError(PackhorseError):
    """The command was called wrongly; nothing moved."""

    code = "PH-101"
    exit_code = 2
    remedy = "Do what its `do:` line says, or see `migrate COMMAND --help`. It was found before anything moved."


class DsnError(UsageError):
    """A DSN that cannot be read: unknown scheme, missing part, unknown name."""

    code = "PH-102"
    remedy = "Write it as `postgresql://user@host/database`, `mysql://...`, `sqlite:///file.db`, or a path of files; `${NAME}` in it stands for a variable; or name one that `migrate dsn list` shows."


class ConnectError(UsageError):
    """A system that cannot be reached or refuses us: wrong host, password, database, privilege."""

    code = "PH-103"
    remedy = "Try the same host, user and database with the system's own client; `migrate doctor SOURCE TARGET` tells of each what is missing, and prints the privileges that a job needs."


class CatalogueError(UsageError):
    """A table or column that is not there, or a source that holds nothing."""

    code = "PH-104"
    remedy = "Compare the name in the message with those that are there (it lists the nearest), and the rights of the user: a table that one may not read isn't seen."


class KeyringError(UsageError):
    """The machine's keyring can't keep a DSN, or doesn't give it back: there is none, or it is locked."""

    code = "PH-105"
    remedy = "Unlock the keyring, or do without: set an environment variable, or write it into a file `.env` in the folder that you call `migrate` in, and say `${NAME}` where the DSN would stand."


class PlanError(UsageError):
    """A plan that cannot be executed; `where` is file:line:column or entities.contacts.fields.email."""

    code = "PH-201"
    remedy = "Go to the place that it names, mend it, and try it with `migrate plan check FILE`; nothing moves until the plan holds."


class ExpressionError(PlanError):
    """An expression that is not allowed or does not parse; `where` ends in the position."""

    code = "PH-202"
    remedy = "An expression is a SQL scalar over the source row, of allowed functions (`docs/reference/functions.md`); the position says where reading it stopped."


class ModelError(UsageError):
    """A model that cannot be loaded or reached."""

    code = "PH-301"
    remedy = "`migrate model list` tells which models are there, `migrate model check FILE` whether one can be used; `--model none` goes on with rules and questions."


class WorkspaceError(UsageError):
    """A workspace that cannot be opened: unknown job, newer version, damaged file."""

    code = "PH-401"
    remedy = "`migrate jobs` lists the jobs under this folder. A damaged log is not repaired: keep the folder, and load anew under another name; what is in the target is found again by its keys."


class JobLockedError(UsageError):
    """Another process or machine runs this job."""

    code = "PH-402"
    remedy = "Wait for the other process, or stop it (Ctrl-C): its lock ends with it. A lease of another machine ends when its connection does."


class JobFailedError(PackhorseError):
    """The job stopped on something that retrying did not cure; it can be resumed."""

    code = "PH-501"
    exit_code = 1
    remedy = "Mend what the message names, then `migrate resume`: what was committed stays, and no row is there twice."


class DiskFullError(JobFailedError):
    """No space left for the stage or the workspace; free some and resume."""

    code = "PH-502"
    remedy = "Free space where the job's folder lies, or move it, then `migrate resume`."


class WaitingForPersonError(PackhorseError):
    """All that is left depends on questions only a person may answer."""

    code = "PH-601"
    exit_code = 4
    remedy = "`migrate answer`, then `migrate resume`. With `--yes` unsure decisions become questions; `--autonomy` says how sure is sure."


class InterruptedJobError(PackhorseError):
    """A signal asked the job to stop; the batch at hand was finished and it can be resumed."""

    code = "PH-602"
    exit_code = 130
    remedy = "`migrate resume` goes on where it stopped."


class SourceLostError(JobFailedError):
    """The source broke off in the middle of a read; reading can go on after the last whole page."""

    code = "PH-504"
    remedy = "When the source answers again, `migrate resume` reads on after the last whole page."


class QuarantinedTooManyError(PackhorseError):
    """More rows are in quarantine than tolerated, or surely will be; what was committed stays, and it can be resumed."""

    code = "PH-603"
    exit_code = 3
    remedy = "`migrate quarantine list` shows what fails alike: mend the plan and `migrate quarantine retry`, or allow it with `--tolerate`."


class StrayedError(JobFailedError):
    """The job does otherwise than its rehearsal did; what was committed stays, and it can be resumed."""

    code = "PH-505"
    remedy = "Its lines say where job and rehearsal part. Rehearse again where the source changed, or allow it with `--stray`; then `migrate resume`."


def errors_by_code() -> dict[str, type[PackhorseError]]:
    """Every error by its code, in order."""
    kinds, found = [PackhorseError], dict[str, type[PackhorseError]]()
    while kinds:
        kind = kinds.pop()
        found.setdefault(kind.code, kind)  # kinds of a kind share its code
        kinds += kind.__subclasses__()
    return dict(sorted(found.items()))
