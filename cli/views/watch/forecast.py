"""When all rows of a job will be loaded: entities under way as their own pace says, those to come by what a row of them
costs beside the rows so far."""

from __future__ import annotations

from collections.abc import Mapping

from cli.views.pace import Pace
from workspace.progress import Progress

ROW = 5.0
"""What a row costs beside one of its fields: an entity of many fields takes longer a row. Measured on the sample."""


def weights_of(plan: str) -> dict[str, float]:
    """What a row of each entity of a plan, a YAML document, costs, in no unit; nothing for a plan that can't be read."""
    from engine.plan import parse_plan
    from workspace.errors import PackhorseError

    try:
        entities = parse_plan(plan).entities
    except PackhorseError:
        return {}
    return {name: ROW + len(entity.fields) for name, entity in entities.items()}


def seconds_to_load(
    progress: Progress, paces: Mapping[str, Pace], weights: Mapping[str, float], now: float
) -> float | None:
    """Time until the last row is loaded; None before the first batch, or where it isn't known how many rows will come."""
    loading = {name: pace for name, pace in paces.items() if pace.phase == "load"}
    work = sum(weights.get(name, 1.0) * (pace.done - pace.before) for name, pace in loading.items())
    spent = sum(pace.ended - pace.began for pace in loading.values())
    if work <= 0 or spent <= 0:
        return None
    left = 0.0
    for name, entity in progress.entities.items():
        if entity.completed:
            continue
        if entity.rows_to_read is None:
            return None
        rows, pace = max(0, entity.rows_to_read - entity.counts.read), loading.get(name)
        own = pace.seconds_left(now) if pace is not None else None
        left += own if own is not None else rows * weights.get(name, 1.0) * spent / work
    return left
