"""`migrate resume`: goes on with a job where it stopped."""

from __future__ import annotations

from functools import partial

from cli.conduct import conduct
from cli.options import AsJson, Executor, Job, SourceSsh, StagePlace, Stray, TargetSsh, Tolerated, Yes, here
from cli.systems import GivenSource, GivenTarget, given_again
from workspace.paths import find_job


def resume(
    job: Job = None,
    source: GivenSource = None,
    target: GivenTarget = None,
    source_ssh: SourceSsh = None,
    target_ssh: TargetSsh = None,
    executor: Executor = None,
    stage: StagePlace = None,
    tolerate: Tolerated = None,
    stray: Stray = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> int:
    """Go on with a job where it stopped: after Ctrl-C, a crash, a lost server, or answers.

    What the target committed is not moved again; what was decided is not asked again. The DSNs are needed
    only where theirs held a password. Another --executor than the job began with may go on.

    JSON: what `migrate status --json` gives, with `exit_code`.
    """
    from agent.job import resume_job

    paths = find_job(here(), job)
    source = given_again(paths, "source", source, source_ssh)
    target = given_again(paths, "target", target, target_ssh)
    act = partial(
        resume_job,
        paths.job,
        base=paths.base,
        source_dsn=source,
        target_dsn=target,
        executor=executor,
        stage=stage,
        stray=stray,
        tolerate=tolerate,
    )
    return conduct(paths.job, act, yes=yes, as_json=as_json)
