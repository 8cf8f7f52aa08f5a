"""Ids made from text, the same on every run and machine.

`uuid5` in a plan gives the id that an entity with `id: uuid5` gives the same key, so that rows of other
entities can point at it without the crosswalk. It must never trim or fold the key: that is another key.
"""

from __future__ import annotations

import uuid
from functools import lru_cache
from hashlib import sha1

from engine.functions.protocol import DomainFunction, Outcome, Reason
from engine.functions.text import trimmed

_NO_NAMESPACE = Reason("uuid5 without a namespace")
# The two bits of RFC 9562's variant, laid over the hex digit that holds them.
_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


@lru_cache(maxsize=256)
def _namespace(name: str) -> bytes:
    return uuid.uuid5(uuid.NAMESPACE_URL, f"packhorse:{name}").bytes


def uuid5(namespace_name: str | None, value: str | None) -> Outcome:
    """The uuid of `value` in the namespace `packhorse:<namespace_name>`, in lower case with hyphens.

    Equal to `uuid.uuid5(uuid.uuid5(uuid.NAMESPACE_URL, "packhorse:" + namespace_name), value)`. NULL for a
    NULL or blank value; a reason for a blank namespace. Composite keys are joined with "\\x1f" before.
    """
    if not trimmed(value):
        return None, None
    if not trimmed(namespace_name):
        return None, _NO_NAMESPACE
    assert value is not None
    assert namespace_name is not None
    h = sha1(_namespace(namespace_name) + value.encode(), usedforsecurity=False).hexdigest()
    return f"{h[:8]}-{h[8:12]}-5{h[13:16]}-{_VARIANT[h[16]]}{h[17:20]}-{h[20:32]}", None


UUID5 = DomainFunction("uuid5", ("namespace_name", "value"), 0, "UUID", uuid5)
