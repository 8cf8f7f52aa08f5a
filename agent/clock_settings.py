"""Which zone the source's own settings name: rows of a name and a value where the name speaks of a time zone, and
the database's own setting where it is the server's.

What users prefer says where people sit, not how the system wrote, and counts for nothing. A value counts only
where the zone database knows it: it goes on under that name, and as no other text.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from functools import lru_cache
from zoneinfo import available_timezones

import pyarrow as pa

from agent.lexicon import words
from agent.profile import TableProfile
from agent.survey import Survey
from connectors.protocols import Source
from engine.functions.zones import zone

_MOST_ROWS = 5_000
_LONGEST = 60  # characters of a name, and of a value
_OF_ZONES = re.compile(
    r"\b(tz|time ?zones?|zeit ?zone|fuseaux?( ?horaires?)?|zona ?horaria|huso ?horario)\b"
)  # in words as `words` gives them
_PEOPLE = frozenset(
    [
        "user",
        "person",
        "people",
        "member",
        "contact",
        "customer",
        "client",
        "agent",
        "employee",
        "staff",
        "account",
        "profile",
        "preference",
        "pref",
        "owner",
        "benutzer",
        "nutzer",
        "mitglied",
        "kunde",
        "kontakt",
        "mitarbeiter",
        "utilisateur",
        "personne",
        "membre",
        "usuario",
        "persona",
        "miembro",
    ]
)
_OF_CHANGES = frozenset(
    [
        "created",
        "modified",
        "updated",
        "changed",
        "entered",
        "edited",
        "create",
        "write",
        "by",
        "von",
        "par",
        "por",
        "last",
    ]
)


@lru_cache(maxsize=1)
def _known() -> frozenset[str]:
    """The names that both the machine and the conversion's own rules know: `localtime` is none."""
    return frozenset(name for name in available_timezones() if zone(name) is not None) - {"Factory"}


def check_zone(name: str) -> bool:
    """True for a zone that the database of zones knows, by its exact name."""
    return name in _known()


def named_zones(found: Survey, source: Source) -> dict[str, tuple[str, ...]]:
    """The zones that settings name, each with where (`config.value`); more than one where they contradict."""
    named: dict[str, list[str]] = defaultdict(list)
    for table in found.tables.values():
        if 0 < table.rows <= _MOST_ROWS and not _of_people(table) and table.name in found.samples:
            for column, name in _settings(found.samples[table.name]):
                named[name].append(f"{table.name}.{column}")
    if source.dialect == "mysql":
        (told,) = source.query("SELECT @@global.time_zone")[0]
        name = told.decode("ascii", "replace") if isinstance(told, bytes) else str(told)
        if check_zone(name):
            named[name].append("@@global.time_zone")
    return {name: tuple(dict.fromkeys(places)) for name, places in sorted(named.items())}


def _of_people(table: TableProfile) -> bool:
    """True for a table that speaks of people, but for who made and changed its rows."""
    if _people(table.name):
        return True
    return any(_people(c) and not _OF_CHANGES & set(words(c)) for c in table.columns)


def _people(text: str) -> bool:
    return any(word in _PEOPLE or word.rstrip("s") in _PEOPLE for word in words(text))


def _settings(rows: pa.Table) -> list[tuple[str, str]]:
    """(column of the value, zone) of rows that set a zone. A name that is there twice is one of many owners'."""
    texts = {c: [_short(v) for v in rows.column(c).to_pylist()] for c in rows.column_names}
    told: list[tuple[str, str, str]] = []
    often: Counter[str] = Counter()
    for at in range(rows.num_rows):
        row = {column: values[at] for column, values in texts.items() if values[at]}
        keys = [value for value in row.values() if _speaks_of_zones(value)]
        if not keys or any(_people(value) for value in row.values()):
            continue
        key = "\n".join(keys)
        often[key] += 1
        for column, value in row.items():
            name = value.strip("'\"")
            if value not in keys and check_zone(name):
                told.append((key, column, name))
    return [(column, name) for key, column, name in told if often[key] == 1]


def _speaks_of_zones(text: str) -> bool:
    spoken = " ".join(words(text))
    return "/" not in text and bool(_OF_ZONES.search(spoken)) and not _people(text)


def _short(value: object) -> str:
    text = value.strip() if isinstance(value, str) else ""
    return text if len(text) <= _LONGEST else ""
