"""Feedback: what an action did, in one schema, for the loop, the log and whoever looks.

Outcome, what changed, what failed (by signature, with counts and one masked example), what to attend to next,
and what it cost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from agent.models.protocol import Price
from workspace.events import FeedbackGiven

Outcome = Literal["done", "refused", "failed", "partly", "waiting"]


@dataclass(frozen=True)
class Failure:
    """One kind of failure: its signature, how many rows or tries, one example as a shape."""

    signature: str
    count: int
    example: str = ""


@dataclass(frozen=True)
class Feedback:
    """What came of an action. `changed` are counts and names; `attend` what to look at next, first things first."""

    action: str
    outcome: Outcome
    changed: dict[str, object] = field(default_factory=dict)
    failed: tuple[Failure, ...] = ()
    attend: tuple[str, ...] = ()
    cost: Price = field(default_factory=Price)

    def event(self) -> FeedbackGiven:
        """As the log keeps it."""
        return FeedbackGiven(
            action=self.action,
            outcome=self.outcome,
            changed=self.changed,
            failed=[{"signature": f.signature, "count": f.count, "example": f.example} for f in self.failed],
            attend=list(self.attend),
            cost={
                "calls": self.cost.calls,
                "tokens": self.cost.prompt_tokens + self.cost.answer_tokens,
                "seconds": round(self.cost.seconds, 3),
            },
        )
