"""How often a model is right at what the ladder asks of it, as measured; the ladder weighs its word by that.

A model nobody measured is taken for a weak one. `bench/choose.py` measures; see docs on bringing a model.
"""

from __future__ import annotations

_UNMEASURED = 0.5
_SCRIPTED = 0.97
# The share of right answers among about six options and "none of these" (bench/choose.py).
_MEASURED: tuple[tuple[str, float], ...] = (("smollm2-135m", 0.25),)


def accuracy_of(model: str, kind: str, options: int) -> float:
    """The probability that the model's answer is right, 0 to 1, never less than guessing gives."""
    name = model.casefold()
    known = next((share for start, share in _MEASURED if start in name), None)
    if known is None:
        known = _SCRIPTED if "scripted" in name else _UNMEASURED
    return max(known, 1 / max(2, options))
