"""Partners who buy and partners who sell in one table, the people of those who buy, their orders, and the texts of codes.
`dirt` is the share of values that somebody mistyped, and of keys that a tool wrote without their zeros; with `twins`, two
customers carry one VAT number, which the target has come to refuse."""

from __future__ import annotations

from datetime import date

from bench.scenarios.maker import Maker

_COUNTRIES = ("DE", "FR", "GB", "PL")
_CURRENCIES = {"DE": "EUR", "FR": "EUR", "GB": "GBP", "PL": "PLN"}
_TONGUES = {"D": "de", "E": "en", "F": "fr"}
_BRANCHES = {"0010": ("Maschinenbau", "Machinery"), "0020": ("Handel", "Trade"), "0030": ("Chemie", "Chemicals")}
_TERMS = {"Z000": ("sofort", "at once"), "Z014": ("14 Tage", "14 days"), "Z030": ("30 Tage", "30 days")}
_DEPARTMENTS = {"0001": "Management", "0002": "Purchasing", "0003": "Sales"}
_KINDS = {"TA": "standard", "SO": "rush", "RE": "return"}


def make(maker: Maker, partners: int, dirt: float = 0.0, twins: bool = False) -> None:
    """Draws the whole of the master data; the other tables follow from the number of partners."""
    for code, texts in _BRANCHES.items():
        for tongue, text in zip("DE", texts, strict=True):
            maker.row("TBRAN", {"BRSCH": code, "SPRAS": tongue, "BRTXT": text})
    for code, texts in _TERMS.items():
        for tongue, text in zip("DE", texts, strict=True):
            maker.row("TZTRM", {"ZTERM": code, "SPRAS": tongue, "TEXT1": text})
    customers: list[tuple[str, bool]] = []
    for n in range(partners):
        buys = (twins and n < 2) or maker.chance(0.7)
        vat = "DE811111111" if twins and n < 2 else None
        key, loaded = _partner(maker, n, buys, vat, dirt)
        if buys:
            customers.append((key, loaded))
    for n in range(partners):
        _person(maker, n, customers, dirt)
    for n in range(2 * partners):
        _order(maker, n, customers, dirt)


def _day(day: date) -> str:
    return day.strftime("%Y%m%d")


def _reference(maker: Maker, key: str, dirt: float) -> str:
    """A partner's key as it is, or without its zeros."""
    return key.lstrip("0") if maker.chance(dirt) else key


def _partner(maker: Maker, number: int, buys: bool, vat: str | None, dirt: float) -> tuple[str, bool]:
    key, place, name = (
        f"{100_000 + 7 * number:010}",
        maker.place(*_COUNTRIES),
        f"{maker.company()} {maker.draw.choice(('GmbH', 'S.A.', 'Ltd.'))}",
    )
    more = maker.draw.choice((None, None, "Zentrallager", "Central stores"))
    office, fax = (maker.telephone(place.country, "office", "e164", "spaced", "home", "slash") for _ in range(2))
    twin = vat is not None
    gone, bad = not twin and maker.chance(0.08), not twin and maker.chance(dirt)
    blocked, tongue = maker.chance(0.1), maker.draw.choice(list(_TONGUES))
    email = f"bestellung@{maker.domain(name, number)}" if maker.chance(0.8) else None
    vat = vat or f"{place.country}{maker.draw.randint(10**8, 8 * 10**8)}{number:03}"
    branch, terms = maker.draw.choice(list(_BRANCHES)), maker.draw.choice(list(_TERMS))
    limit = 1000 * maker.draw.randint(-3, 50)
    made, changed = maker.day(1998, 2012), maker.day(2013, 2024) if maker.chance(0.7) else None
    maker.row("GPSTAM", {
        "GPNUM": key, "PTYP": "D" if buys else "K", "NAME1": name, "NAME2": more, "STRAS": place.street,
        "PSTLZ": place.postal, "ORT01": place.city, "LAND1": place.country, "SPRAS": tongue,
        "TELF1": "s. Liste" if bad else office.typed, "TELFX": fax.typed, "SMTPA": email, "STCEG": vat, "BRSCH": branch,
        "ZTERM": terms, "KLIMK": f"{abs(limit)}.00{'-' if limit < 0 else ''}", "WAERS": _CURRENCIES[place.country],
        "SPERR": "X" if blocked else None, "LOEVM": "X" if gone else None, "ERDAT": _day(made), "ERNAM": "MEIERH",
        "AEDAT": _day(changed) if changed else "00000000", "KONZS": None,
    })  # fmt: skip
    mine, other = ("customers", "suppliers") if buys else ("suppliers", "customers")
    maker.exclude(other, key)
    held = bad or (twin and number == 1)
    if gone:
        maker.exclude(mine, key)
    elif bad:
        maker.quarantine(mine, key, "phone", "function")
    elif held:
        maker.quarantine(mine, key, "vat_id", "unique")
    elif buys:
        maker.want(
            "customers", key, number=key.lstrip("0"), name=name, name_2=more, street=place.street, postal_code=place.postal,
            city=place.city, country=place.country, language=_TONGUES[tongue], phone=office.e164, fax=fax.e164, email=email,
            vat_id=vat, industry=_BRANCHES[branch][1], payment_terms=_TERMS[terms][1], credit_limit=f"{limit}.00",
            currency=_CURRENCIES[place.country], blocked=blocked, created_on=str(made),
            changed_on=str(changed) if changed else None,
        )  # fmt: skip
    else:
        maker.want(
            "suppliers", key, number=key.lstrip("0"), name=name, name_2=more, street=place.street, postal_code=place.postal,
            city=place.city, country=place.country, phone=office.e164, email=email, vat_id=vat,
            payment_terms=_TERMS[terms][1], currency=_CURRENCIES[place.country], blocked=blocked, created_on=str(made),
        )  # fmt: skip
    return key, not (gone or held)


def _person(maker: Maker, number: int, customers: list[tuple[str, bool]], dirt: float) -> None:
    key, one, (customer, there) = f"{500_000 + number:010}", maker.person(*_COUNTRIES), maker.draw.choice(customers)
    office = maker.telephone("DE", "office", "e164", "home", "slash") if maker.chance(0.8) else None
    email = f"{one.letters}{number}@mail.example" if maker.chance(0.8) else None
    bad = email is not None and maker.chance(dirt)
    born = maker.day(1950, 2000) if maker.chance(0.4) else None
    salutation, department = maker.draw.choice(("Herr", "Frau", "Mr")), maker.draw.choice(list(_DEPARTMENTS))
    made = maker.day(2005, 2022)
    maker.row("GPANSP", {
        "PARNR": key, "GPNUM": _reference(maker, customer, dirt), "ANRED": salutation, "NAMEV": one.first, "NAME1": one.last,
        "ABTNR": department, "TELF1": office.typed if office else None,
        "SMTPA": f"{one.letters} (at) mail" if bad else email, "GBDAT": _day(born) if born else "00000000",
        "ERDAT": _day(made),
    })  # fmt: skip
    if bad:
        maker.quarantine("contacts", key, "email", "function")
    if not there:
        maker.quarantine("contacts", key, "customer_id", "reference")
    if there and not bad:
        maker.want(
            "contacts", key, customer_id=customer, salutation=salutation, first_name=one.first, last_name=one.last,
            department=_DEPARTMENTS[department], phone=office.e164 if office else None, email=email,
            birth_date=str(born) if born else None, created_on=str(made),
        )  # fmt: skip


def _order(maker: Maker, number: int, customers: list[tuple[str, bool]], dirt: float) -> None:
    key, (customer, there) = f"{7_000_000 + number:010}", maker.draw.choice(customers)
    kind, made, currency = (
        maker.draw.choice(list(_KINDS)),
        maker.day(2015, 2024),
        maker.draw.choice(("EUR", "GBP", "PLN")),
    )
    wanted = maker.day(2025, 2026) if maker.chance(0.6) else None
    euros, cents = maker.draw.randint(10, 200_000), maker.draw.randint(0, 99)
    theirs = f"PO-{maker.draw.randint(1000, 9999)}" if maker.chance(0.5) else None
    minus = "-" if kind == "RE" else ""
    maker.row("AUFKOP", {
        "AUFNR": key, "GPNUM": _reference(maker, customer, dirt), "AUART": kind, "ERDAT": _day(made),
        "VDATU": _day(wanted) if wanted else "00000000", "NETWR": f"{euros}.{cents:02}{minus}", "WAERK": currency,
        "BSTNK": theirs, "ERNAM": "MEIERH",
    })  # fmt: skip
    if there:
        maker.want(
            "orders", key, order_number=key.lstrip("0"), customer_id=customer, kind=_KINDS[kind], ordered_on=str(made),
            wanted_on=str(wanted) if wanted else None, net_value=f"{minus}{euros}.{cents:02}", currency=currency,
            purchase_order=theirs,
        )  # fmt: skip
    else:
        maker.quarantine("orders", key, "customer_id", "reference")
