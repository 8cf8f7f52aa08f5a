"""What telephone numbers look like before they are read."""

from __future__ import annotations

from agent.profile import ColumnProfile

INTERNATIONAL = 0.9  # share of numbers with a country code from which none has to be known


def international(profile: ColumnProfile) -> float:
    """The share of the sample's numbers that begin with + or 00."""
    total = sum(n for _, n in profile.top)
    return sum(n for v, n in profile.top if v.startswith(("+", "00"))) / total if total else 1.0
