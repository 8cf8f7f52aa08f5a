"""Why a source column goes nowhere: every column is accounted for, with a reason a person can check."""

from __future__ import annotations

from collections.abc import Mapping

from agent.profile import ColumnProfile
from agent.structure import Relation


def reasons(relation: Relation, used: set[str], drawn: set[str], wanted: Mapping[str, str]) -> dict[str, str]:
    """A reason for each column of the relation that no field draws on.

    `drawn` are all columns that its SELECT is made for; `wanted` maps columns to fields that may want them:
    their question is open."""
    through = {o.through for o in relation.columns if o.name in drawn and ">" in o.through}
    said = {o.says for o in relation.columns if o.says and o.name in used}
    out = {}
    for origin in relation.columns:
        if origin.name in used or (">" in origin.through and origin.through not in through):
            continue
        if origin.name in wanted:
            out[origin.name] = f"left out until the question on {wanted[origin.name]} is answered"
        elif origin.name in said:
            out[origin.name] = "its label is read in its place"
        else:
            out[origin.name] = reason(origin.profile)
    return out


def reason(profile: ColumnProfile) -> str:
    """What the profile says against carrying a column over."""
    about = "about " if profile.capped else ""
    if profile.filled == 0:
        return "no counterpart in the target; empty in every row"
    if profile.empty_share >= 0.95:
        return f"no counterpart in the target; empty in {about}{profile.empty_share:.1%} of rows"
    if profile.distinct == 1 and profile.empty_share == 0:
        return "no counterpart in the target; the same value in every row"
    return "no counterpart in the target"
