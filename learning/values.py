"""Sample values of the made-up columns: what a column of a kind looks like in a country, and in one system's hand.

Made of the sample's pools of names, places and telephone numbers; nobody real. Same draw, same values.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from learning.vocabulary import picklist
from sample_data.names import COUNTRIES, FAMILY, GIVEN, ascii_letters
from sample_data.phones import BLOCKS, WAYS, written
from sample_data.places import CITIES, POSTAL_MASKS, REGIONS, SPELLINGS, STREETS, PlacePool
from sample_data.words import (
    COMPANY_BRANCHES,
    COMPANY_FORMS,
    COMPANY_WORDS,
    DEAL_GOODS,
    PLACES_TO_MEET,
    SECOND_LINES,
    SENTENCES,
    SUBJECTS,
    TAGS,
)

HOME: Mapping[str, tuple[str, ...]] = {
    "en": ("US", "GB", "CA", "AU"), "de": ("DE", "AT", "CH"), "fr": ("FR",), "es": ("ES", "MX"), "pt": ("PT", "BR"),
    "nl": ("NL",), "it": ("IT",), "pl": ("PL",),
}  # fmt: skip
"""The countries in which a language's systems are at home."""
FLAGS = (("0", "1"), ("Y", "N"), ("true", "false"), ("t", "f"), ("-1", "0"), ("yes", "no"), ("X", ""))
_DAYS = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y%m%d", "%d-%b-%Y")
_TIMES = (" %H:%M:%S", " %H:%M", "T%H:%M:%SZ", "", " 00:00:00", "T%H:%M:%S.000+0000")


@dataclass(frozen=True)
class Hand:
    """How one table's values are written: its language and country, its dates, flags and keys."""

    language: str
    country: str
    day: str
    time: str
    flags: tuple[str, str]
    keys: str


def draw_hand(draw: random.Random, language: str) -> Hand:
    """A hand of that language."""
    keys = draw.choice(("serial", "serial", "serial", "uuid", "hex", "letters", "long"))
    return Hand(
        language, draw.choice(HOME[language]), draw.choice(_DAYS), draw.choice(_TIMES), draw.choice(FLAGS), keys
    )


def samples(kind: str, hand: Hand, draw: random.Random, count: int = 3) -> tuple[str, ...]:
    """Up to `count` values that differ, none of them empty. KeyError for an unknown kind."""
    labels = picklist(kind)
    if labels:
        chosen = draw.sample(labels, min(count, len(labels)))
        return tuple(draw.choice(label.phrases[hand.language]) for label in chosen)
    make = KINDS[kind]
    found: dict[str, None] = {}
    for _ in range(count * 2):
        if value := make(hand, draw):
            found[value] = None
    return tuple(found)[:count]


def _given(hand: Hand, draw: random.Random) -> str:
    at = COUNTRIES.index(hand.country)
    return GIVEN.names[GIVEN.start[at] + draw.randrange(GIVEN.size[at])]


def _family(hand: Hand, draw: random.Random) -> str:
    at = COUNTRIES.index(hand.country)
    return FAMILY.names[FAMILY.start[at] + draw.randrange(FAMILY.size[at])]


def _full(hand: Hand, draw: random.Random) -> str:
    return f"{_given(hand, draw)} {_family(hand, draw)}"


def _company(hand: Hand, draw: random.Random) -> str:
    return f"{draw.choice(COMPANY_WORDS)} {draw.choice(COMPANY_BRANCHES)} {draw.choice(COMPANY_FORMS)}"


def _domain(draw: random.Random) -> str:
    return f"{ascii_letters(draw.choice(COMPANY_WORDS))}.example"


def _email(hand: Hand, draw: random.Random) -> str:
    first, last = ascii_letters(_given(hand, draw)) or "info", ascii_letters(_family(hand, draw)) or "office"
    return draw.choice((f"{first}.{last}", f"{first[:1]}{last}", f"{first}", "info")) + "@" + _domain(draw)


def _phone(line: str) -> Callable[[Hand, random.Random], str]:
    def make(hand: Hand, draw: random.Random) -> str:
        blocks = [b for b in BLOCKS if b.country == hand.country and b.line == line]
        block = draw.choice(blocks or [b for b in BLOCKS if b.country == hand.country])
        head, free = draw.choice(block.heads)
        digits = iter(head + _digits(draw, free))
        return "".join(next(digits) if c == "#" else c for c in written(block, draw.choice(WAYS)))

    return make


def _place(pool: PlacePool) -> Callable[[Hand, random.Random], str]:
    def make(hand: Hand, draw: random.Random) -> str:
        at = COUNTRIES.index(hand.country)
        return pool.values[pool.start[at] + draw.randrange(pool.size[at])]

    return make


def _city_part(pool: PlacePool) -> Callable[[Hand, random.Random], str]:
    """Regions and postal codes stand at the places of their cities."""

    def make(hand: Hand, draw: random.Random) -> str:
        at = COUNTRIES.index(hand.country)
        mask = pool.values[CITIES.start[at] + draw.randrange(CITIES.size[at])]
        return "".join(_digits(draw, 1) if c == "#" else c for c in mask)

    return make


def _street(hand: Hand, draw: random.Random) -> str:
    street = _place(STREETS)(hand, draw)
    house = draw.randint(1, 180)
    return f"{house} {street}" if hand.country in ("US", "GB", "CA", "AU", "FR") else f"{street} {house}"


def _country(hand: Hand, draw: random.Random) -> str:
    at = COUNTRIES.index(draw.choice((hand.country, draw.choice(COUNTRIES))))
    return SPELLINGS.values[SPELLINGS.start[at] + draw.randrange(SPELLINGS.size[at])]


def _moment(hand: Hand, draw: random.Random, first: int = 2004, last: int = 2024) -> datetime:
    return datetime(first, 1, 1) + timedelta(
        days=draw.randrange((last - first) * 365), seconds=draw.randrange(7 * 3600, 20 * 3600)
    )


def _time(hand: Hand, draw: random.Random) -> str:
    return _moment(hand, draw).strftime(hand.day + hand.time)


def _day(hand: Hand, draw: random.Random) -> str:
    return _moment(hand, draw).strftime(hand.day)


def _birthday(hand: Hand, draw: random.Random) -> str:
    return _moment(hand, draw, 1940, 2001).strftime(hand.day)


def _ref(hand: Hand, draw: random.Random) -> str:
    if hand.keys == "serial":
        return str(draw.randint(1, 4000))
    if hand.keys == "uuid":
        return str(uuid.UUID(int=draw.getrandbits(128), version=4))
    if hand.keys == "hex":
        return f"{draw.getrandbits(64):016x}"
    if hand.keys == "long":
        return str(draw.randint(10**9, 10**11))
    return draw.choice("KACDPU") + _digits(draw, 6)


def _money(top: int) -> Callable[[Hand, random.Random], str]:
    def make(hand: Hand, draw: random.Random) -> str:
        whole, cents = draw.randint(1, top) * draw.choice((1, 10, 50)), draw.randint(0, 99)
        form = draw.randrange(4)
        if form == 0:
            return str(whole)
        if form == 1:
            return f"{whole}.{cents:02d}"
        shown = f"{whole:,}.{cents:02d}"
        return shown if hand.language == "en" else shown.translate(str.maketrans(",.", ".,"))

    return make


def _masked(*masks: str) -> Callable[[Hand, random.Random], str]:
    """Codes: # is a digit, @ a capital letter, and {c} the country."""

    def make(hand: Hand, draw: random.Random) -> str:
        mask = draw.choice(masks).replace("{c}", hand.country)
        return "".join(
            _digits(draw, 1) if c == "#" else draw.choice("ABCDEFGHKLMNPRSTUVWX") if c == "@" else c for c in mask
        )

    return make


def _among(*values: str) -> Callable[[Hand, random.Random], str]:
    def make(hand: Hand, draw: random.Random) -> str:
        return draw.choice(values)

    return make


def _number(first: int, last: int) -> Callable[[Hand, random.Random], str]:
    def make(hand: Hand, draw: random.Random) -> str:
        return str(draw.randint(first, last))

    return make


def _deal(hand: Hand, draw: random.Random) -> str:
    return f"{draw.choice(COMPANY_WORDS)} - {draw.choice(DEAL_GOODS)}"


def _flag(hand: Hand, draw: random.Random) -> str:
    return draw.choice(hand.flags)


def _url(hand: Hand, draw: random.Random) -> str:
    return draw.choice(("www.", "https://", "https://www.", "http://")) + _domain(draw)


def _linkedin(hand: Hand, draw: random.Random) -> str:
    return f"linkedin.com/in/{ascii_letters(_given(hand, draw))}-{ascii_letters(_family(hand, draw))}"


def _handle(hand: Hand, draw: random.Random) -> str:
    return f"{ascii_letters(_given(hand, draw))}{draw.choice(('.', '_', ''))}{ascii_letters(_family(hand, draw))[:5]}"


def _path(hand: Hand, draw: random.Random) -> str:
    return draw.choice(("img/", "D:\\scans\\", "/files/")) + _digits(draw, 5) + draw.choice((".jpg", ".pdf", ".png"))


def _digits(draw: random.Random, count: int) -> str:
    return "".join(draw.choice("0123456789") for _ in range(count))


KINDS: Mapping[str, Callable[[Hand, random.Random], str]] = {
    "given": _given, "family": _family, "fullname": _full, "company": _company, "email": _email,
    "phone": _phone("office"), "mobile": _phone("mobile"), "fax": _phone("office"), "street": _street,
    "street2": _among(*SECOND_LINES), "city": _place(CITIES), "postal": _city_part(POSTAL_MASKS),
    "region": _city_part(REGIONS), "country": _country, "moment": _time, "day": _day, "birthday": _birthday,
    "ref": _ref, "note": _among(*SENTENCES), "text": _among(*TAGS, *SUBJECTS), "flag": _flag, "url": _url,
    "linkedin": _linkedin, "handle": _handle, "dealname": _deal, "subject": _among(*SUBJECTS),
    "place": _among(*PLACES_TO_MEET), "money": _money(9000), "turnover": _money(900_000), "percent": _number(0, 100),
    "headcount": _number(2, 5000), "days": _among("0", "7", "8", "14", "21", "30", "45", "60", "90"),
    "minutes": _among("5", "10", "15", "20", "30", "45", "60", "90", "120"), "int": _number(0, 900), "score": _number(1, 5),
    "float": _masked("#.#####", "##.####"), "currency": _among("EUR", "USD", "GBP", "CHF", "PLN", "BRL", "MXN"),
    "zone": _among("Europe/Paris", "America/Chicago", "Europe/Lisbon", "Asia/Tokyo", "UTC", "America/Sao_Paulo"),
    "taxid": _masked("{c}#########", "{c}########", "########-#", "###.###.##"), "regno": _masked("HRB #####", "########", "@@ ######"),
    "custno": _masked("C-#####", "######", "{c}####", "##-####"), "ticketno": _masked("T-#####", "0000####", "#######"),
    "invno": _masked("INV-####", "RE-####-##", "20##/####", "F######"), "iban": _masked("{c}## #### #### #### ####"),
    "code": _masked("@##", "@@-###", "###", "@@@"), "hash": _masked("#@##@@##@#@@"), "path": _path,
}  # fmt: skip
"""How a value of each kind is made; a kind of `words/picklists.csv` is none of these."""
