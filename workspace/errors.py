"""Every error a person can meet: a code, what happened, where, and what to do next.

One hierarchy for all rooms. The command line prints the three lines in that order and exits with
`exit_code`. Messages never hold a password (DSNs are masked before they come here) and never hold
control characters of record values.
"""

from __future__ import annotations

from functools import partial


class PackhorseError(Exception):
    """Base of all errors that a person is shown.

    `what` is one line; `where` names the place (a file and line, a DSN, a table) or is empty;
    `advice` says what to do next or is empty; `details` are lines that explain it, most telling first.
    """

    code = "PH-100"
    exit_code = 1

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


class DsnError(UsageError):
    """A DSN that cannot be read: unknown scheme, missing part, unknown name."""

    code = "PH-102"


class ConnectError(UsageError):
    """A system that cannot be reached or refuses us: wrong host, password, database, privilege."""

    code = "PH-103"


class CatalogueError(UsageError):
    """A table or column that is not there, or a source that holds nothing."""

    code = "PH-104"


class PlanError(UsageError):
    """A plan that cannot be executed; `where` is file:line:column or entities.contacts.fields.email."""

    code = "PH-201"


class ExpressionError(PlanError):
    """An expression that is not allowed or does not parse; `where` ends in the position."""

    code = "PH-202"


class ModelError(UsageError):
    """A model that cannot be loaded or reached."""

    code = "PH-301"


class WorkspaceError(UsageError):
    """A workspace that cannot be opened: unknown job, newer version, damaged file."""

    code = "PH-401"


class JobLockedError(UsageError):
    """Another process or machine runs this job."""

    code = "PH-402"


class JobFailedError(PackhorseError):
    """The job stopped on something that retrying did not cure; it can be resumed."""

    code = "PH-501"
    exit_code = 1


class DiskFullError(JobFailedError):
    """No space left for the stage or the workspace; free some and resume."""

    code = "PH-502"


class VerificationError(JobFailedError):
    """The equation or a checksum does not hold."""

    code = "PH-503"


class WaitingForPersonError(PackhorseError):
    """All that is left depends on questions only a person may answer."""

    code = "PH-601"
    exit_code = 4


class InterruptedJobError(PackhorseError):
    """A signal asked the job to stop; the batch at hand was finished and it can be resumed."""

    code = "PH-602"
    exit_code = 130


class SourceLostError(JobFailedError):
    """The source broke off in the middle of a read; reading can go on after the last whole page."""

    code = "PH-504"


class QuarantinedTooManyError(PackhorseError):
    """More rows are in quarantine than tolerated, or surely will be; what was committed stays, and it can be resumed."""

    code = "PH-603"
    exit_code = 3


class StrayedError(JobFailedError):
    """The job does otherwise than its rehearsal did; what was committed stays, and it can be resumed."""

    code = "PH-505"
