"""In which country telephone numbers are that are written without one, where no column of the row tells."""

from __future__ import annotations

from collections import Counter

from agent.lexicon import column_meaning
from agent.matter import Matter, Option
from agent.phones import international
from agent.profile import ColumnProfile
from agent.survey import Survey
from engine.functions import FUNCTIONS


def country_matter(found: Survey, subject: str, profile: ColumnProfile, holds: tuple[str, ...]) -> Matter:
    """The question, with the countries that the source's addresses name most."""
    named: Counter[str] = Counter()
    for table in found.tables.values():
        for name, column in table.columns.items():
            if "country" not in column_meaning(name, table.name).core:
                continue
            for value, count in column.top:
                code, _ = FUNCTIONS["country"].call(value)
                if isinstance(code, str):
                    named[code] += count
    total = sum(named.values())
    options = tuple(Option(c, c, 0.6 * n / total, {"addresses": n}) for c, n in named.most_common(5))
    national = 1 - international(profile)
    text = (
        f"{national:.0%} of the numbers in {subject} are written without a country, and no column of the row names"
        " one. In which country are they? Name it by its two letters."
    )
    return Matter("country", subject, text, options, holds=holds, must=True, free=True)


def check_country(code: str) -> bool:
    """True for a country that the function `country` knows."""
    return FUNCTIONS["country"].call(code)[0] is not None
