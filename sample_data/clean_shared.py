"""What the clean records of several tables have in common: owners, sentences, picklists, addresses.

Choices that later mess depends on are made here: a row whose text will be escaped or mis-decoded gets a
text in which that shows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import words
from .columns import Text, fill_masks, join, numbers_text, only, pick, some, where
from .draw import Index, Mask
from .names import FAMILY, NamePool
from .places import CITIES, POSTAL_MASKS, REGIONS, STREETS, PlacePool
from .world import NONE, NOWHERE, World

SAFE_LETTERS = "áâãäçéêëíïñóôöõúüÖÜÉßè"
"""Letters that can be told from the two that they become when UTF-8 is read as cp1252."""


def _safe(text: str) -> bool:
    return not text.isascii() and all(c.isascii() or c in SAFE_LETTERS for c in text)


ACCENTED_FAMILY = [n for n, name in enumerate(FAMILY.names) if _safe(name)]
"""Family names with letters of SAFE_LETTERS."""
QUOTED_FAMILY = [n for n, name in enumerate(FAMILY.names) if "'" in name]
"""Family names with an apostrophe."""
_ACCENTED_STREETS = [n for n, name in enumerate(STREETS.values) if _safe(name)]
_QUOTED_STREETS = [n for n, name in enumerate(STREETS.values) if "'" in name]
_ACCENTED_CITIES = [n for n, name in enumerate(CITIES.values) if _safe(name)]
_QUOTED_CITIES = [n for n, name in enumerate(CITIES.values) if "'" in name]


def from_pool(world: World, stream: str, index: Index, country: Index, pool: NamePool | PlacePool) -> Index:
    """A place in the pool's stretch of each row's country."""
    size = np.asarray(pool.size)[country]
    return np.asarray(pool.start)[country] + world.draw.below(stream, index, size)


def fitting(world: World, lanes: str, index: Index, place: Index, accented: list[int], quoted: list[int]) -> Index:
    """Places in a pool, those of rows that will be dirtied chosen so that the dirt can show."""
    kinds = world.lanes(lanes)
    luck = world.draw.below(f"{lanes}/fitting", index, 1 << 30)
    place = np.where(kinds.has(index, "mojibake"), np.asarray(accented)[luck % len(accented)], place)
    escaped = kinds.has(index, "html") | kinds.has(index, "html_twice")
    return np.where(escaped, np.asarray(quoted)[luck % len(quoted)], place)


def owners(world: World, stream: str, index: Index) -> Index:
    """A user a row; a few rows have none, a few one that was removed for good."""
    owner = world.draw.below(f"{stream}/owner", index, world.rows["users"])
    owner = np.where(world.draw.chance(f"{stream}/owner/none", index, 0.03), NONE, owner)
    return np.where(world.draw.chance(f"{stream}/owner/nowhere", index, 0.004), NOWHERE, owner)


def sentences(world: World, stream: str, index: Index, share: float) -> Text:
    """One or two sentences for that share of the rows, NULL for the others."""
    first = some(world.draw, f"{stream}/first", index, words.SENTENCES)
    second = some(world.draw, f"{stream}/second", index, words.SENTENCES)
    text = where(world.draw.chance(f"{stream}/two", index, 0.4), join(" ", first, second), first)
    return only(world.draw.chance(f"{stream}/any", index, share), text)


def picklist(world: World, stream: str, index: Index, values: dict[str, tuple[str, ...]], share: float) -> Text:
    """A value of the cloud schema's list for that share of the rows, NULL for the others."""
    weights = [1.0 / (1 + n % 5) for n in range(len(values))]
    text = pick(list(values), world.draw.pick(stream, index, weights))
    return only(world.draw.chance(f"{stream}/any", index, share), text)


@dataclass(frozen=True)
class Address:
    """A postal address; `country` is a position in COUNTRIES, and on record only where `known`."""

    street: Text
    city: Text
    region: Text
    postal: Text
    country: Index
    known: Mask


def addresses(world: World, table: str, index: Index, country: Index, share: float) -> Address:
    """An address in the given countries for that share of the rows, empty for the others."""
    draw = world.draw
    city = from_pool(world, f"{table}/city", index, country, CITIES)
    street = from_pool(world, f"{table}/street", index, country, STREETS)
    postal = fill_masks(POSTAL_MASKS.values, city, draw.bits(f"{table}/postal", index))
    street = fitting(world, f"{table}:street", index, street, _ACCENTED_STREETS, _QUOTED_STREETS)
    region = pick(REGIONS.values, city)
    city = fitting(world, f"{table}:city", index, city, _ACCENTED_CITIES, _QUOTED_CITIES)
    troubled = world.trouble(table, index, "country_unknown")
    known = draw.chance(f"{table}/address", index, share)
    number = numbers_text(1 + draw.below(f"{table}/house", index, 240))
    for column in ("street", "city"):
        kinds = world.lanes(f"{table}:{column}")
        known |= kinds.of(index) < len(kinds.lanes)
    return Address(
        only(known, join(" ", pick(STREETS.values, street), number)),
        only(known, pick(CITIES.values, city)),
        only(known, region),
        only(known, postal),
        country,
        draw.chance(f"{table}/country/any", index, 0.92) & ~troubled,
    )
