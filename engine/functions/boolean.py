"""Yes and no as legacy systems write them.

Only words that mean one thing in every language at hand are known. It must never guess: 2, -1 and "x" are
given a meaning by a value map in the plan, or go to quarantine.
"""

from __future__ import annotations

import re

from engine.functions.protocol import DomainFunction, Outcome, Reason
from engine.functions.text import trimmed

_TRUE = "1 1.0 true t yes y on ja j oui si sí s sim tak wahr vrai vero verdadero verdadeiro waar prawda"
_FALSE = "0 0.0 false f no n off nein nee nej nei non não nao nie falsch faux falso onwaar fałsz"
_WORDS = dict.fromkeys(_TRUE.split(), True) | dict.fromkeys(_FALSE.split(), False)
_NOT_A_BOOLEAN = Reason("not a boolean")
_SMALL = re.compile(r"-?[0-9]{1,3}")


def boolean(value: str | None) -> Outcome:
    """True or False for 1/0, true/false, t/f, yes/no, y/n, on/off and their like in other languages.

    NULL for NULL and blank text. Anything else is `not a boolean`; a small number is named with it, since 2
    and -1 are two questions to a person and not one.
    """
    text = trimmed(value)
    if not text:
        return None, None
    if len(text) <= 10:
        known = _WORDS.get(text.lower())
        if known is not None:
            return known, None
    return None, Reason(f"not a boolean: {text}") if _SMALL.fullmatch(text) else _NOT_A_BOOLEAN


BOOLEAN = DomainFunction("boolean", ("value",), 0, "BOOLEAN", boolean)
