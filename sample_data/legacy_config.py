"""The legacy system's own settings, which nothing on the other side has a place for.

They say in which zone the system keeps its times. No secret stands in them, not even a made-up one.
"""

from __future__ import annotations

import numpy as np

from .columns import Batch, pick
from .draw import Index

_SETTINGS: tuple[tuple[str, str, str], ...] = (
    ("info", "sugar_version", "6.5.25"),
    ("system", "name", "Harbour & Vale Trading"),
    ("system", "skypeout_on", "1"),
    ("system", "tweettocall_on", "0"),
    ("locale", "default_currency_iso4217", "USD"),
    ("locale", "default_currency_symbol", "$"),
    ("locale", "default_date_format", "m/d/Y"),
    ("locale", "default_time_format", "h:ia"),
    ("locale", "default_timezone", "America/New_York"),
    ("locale", "default_language", "en_us"),
    ("locale", "default_locale_name_format", "s f l"),
    ("notify", "fromname", "Harbour & Vale CRM"),
    ("notify", "fromaddress", "crm@harbour-vale.example"),
    ("notify", "on", "1"),
    ("mail", "smtp_server", "mail.harbour-vale.example"),
    ("mail", "smtp_port", "587"),
    ("mail", "smtp_auth_req", "1"),
    ("mail", "smtp_user", "crm@harbour-vale.example"),
    ("mail", "smtp_pass", ""),
    ("scheduler", "nightly_run_at", "02:00"),
)


def config_table() -> Batch:
    """The settings: a category, a name in it, a value."""
    index: Index = np.arange(len(_SETTINGS), dtype=np.int64)
    columns = zip(("category", "name", "value"), zip(*_SETTINGS, strict=True), strict=True)
    return {column: pick(values, index) for column, values in columns}
