"""E-mail addresses as a CRM holds them, to one spelling by which a person is known.

Syntax only: nothing is looked up, and names kept for tests and private networks are as good as others. It
must never choose among several addresses, nor correct one.
"""

from __future__ import annotations

import re

import email_validator
import pyarrow as pa
import pyarrow.compute as pc

from engine.functions.columns import left, matched
from engine.functions.protocol import Answers, DomainFunction, Outcome, Reason
from engine.functions.text import trimmed

# A company's own `ana@crm.local` and a test system's `bo@crm.test` are records like any other. The library
# offers this list to be changed; it is read at each call.
email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()

_NOT_AN_EMAIL = Reason("not an email")
_NO_AT = Reason("not an email: no @")
_SEVERAL = Reason("several emails")

_LONGEST = 1000  # an address has at most 254 characters; the rest is for a display name
_WRAPPED = re.compile(r"([^<>]*)<([^<>]*)>")
_MAILTO = re.compile(r"mailto:\s*([^?]*)(?:\?.*)?", re.IGNORECASE | re.DOTALL)
_BETWEEN = re.compile(r"[\s,;|/]+")

# Addresses of which the validator is known to think as we do: it would return them as they are but for the
# case. tests/test_functions_fast.py holds the two against each other.
_PLAIN = re.compile(
    r"[A-Za-z0-9_+-]+(?:\.[A-Za-z0-9_+-]+)*@(?:[A-Za-z0-9](?:(?:-?[A-Za-z0-9]){0,31})\.)+[A-Za-z]{2,63}", re.ASCII
)


def _validated(address: str) -> Outcome:
    if len(address) <= 254 and _PLAIN.fullmatch(address):
        return address.lower(), None
    return _by_library(address)


def _by_library(address: str) -> Outcome:
    try:
        valid = email_validator.validate_email(address, check_deliverability=False)
    except email_validator.EmailNotValidError:
        return None, _NOT_AN_EMAIL
    return valid.normalized.lower(), None


def _bare(text: str) -> str:
    """The address in `mailto:a@b.c?subject=d` or `<a@b.c>`; other text as it is."""
    if match := _MAILTO.fullmatch(text):
        text = trimmed(match[1])
    if match := _WRAPPED.fullmatch(text):
        text = trimmed(match[2])
    return text


def email(value: str | None) -> Outcome:
    """The address trimmed and in lower case; domains in Unicode, `xn--` undone.

    `mailto:ana@x.com` and `Ana <ana@x.com>` are unwrapped; an address given twice is given once. NULL for
    NULL and blank text. Reasons: `not an email: no @`; `several emails`; `not an email`.
    """
    if value is not None and len(value) <= 254 and _PLAIN.fullmatch(value):
        return value.lower(), None
    text = trimmed(value)
    if not text:
        return None, None
    if "@" not in text:
        return None, _NO_AT
    if len(text) > _LONGEST:
        return None, _NOT_AN_EMAIL
    text = trimmed(text.rstrip(",; "))
    if match := _WRAPPED.fullmatch(text):
        name, address = trimmed(match[1]).strip("'\""), _bare(trimmed(match[2]))
        if "@" in name and _bare(name).lower() != address.lower():
            return None, _SEVERAL  # `bo@x.com <ana@x.com>`: two people may stand here
        return _validated(address)
    address = _bare(text)
    if address.count("@") > 1:
        pieces = {_validated(_bare(piece))[0] for piece in _BETWEEN.split(address)}
        if len(pieces) > 1 or None in pieces:
            return None, _SEVERAL if sum(p is not None for p in pieces) > 1 else _NOT_AN_EMAIL
        return pieces.pop(), None
    return _validated(address)


def emails(values: pa.Array) -> Answers:
    """The addresses that are plain but for spaces around them."""
    addresses = pc.ascii_trim(values, " ")
    short = pc.less_equal(pc.binary_length(addresses), 254).fill_null(False)
    plain = pc.and_(matched(addresses, rf"\A{_PLAIN.pattern}\z"), short)
    lower = pc.ascii_lower(addresses)
    return pc.if_else(plain, lower, pa.scalar(None, pa.string())), left(values, plain)


EMAIL = DomainFunction("email", ("value",), 0, "VARCHAR", email, columns=emails)
