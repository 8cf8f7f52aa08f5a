"""The functions that a plan may call beside plain SQL, a file a kind; `FUNCTIONS` has them by name."""

from __future__ import annotations

from engine.functions.boolean import BOOLEAN
from engine.functions.country import COUNTRY
from engine.functions.dates import EXCEL_DATE, LOCAL_TIME
from engine.functions.email import EMAIL
from engine.functions.identity import UUID5
from engine.functions.money import MONEY
from engine.functions.multiselect import MULTISELECT
from engine.functions.phone import PHONE
from engine.functions.protocol import DomainFunction
from engine.functions.text import HTML_TEXT, MOJIBAKE

FUNCTIONS: dict[str, DomainFunction] = {
    function.name: function
    for function in (
        BOOLEAN, COUNTRY, EMAIL, EXCEL_DATE, HTML_TEXT, LOCAL_TIME, MOJIBAKE, MONEY, MULTISELECT, PHONE, UUID5,
    )
}  # fmt: skip
"""Every domain function, by the name that a plan calls it with."""
