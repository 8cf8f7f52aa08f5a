"""Employees, customers, their contacts, visits. `dirt` is the share of values that somebody mistyped; deleted customers
keep their contacts, who then have nobody to belong to."""

from __future__ import annotations

from datetime import date

from bench.scenarios.maker import Maker

_COUNTRIES = {"DE": ("Deutschland", "DE"), "AT": ("Österreich",), "CH": ("Schweiz",)}
_KINDS = {"Besuch": "visit", "Telefonat": "call", "Anruf": "call", "Messe": "fair"}


def make(maker: Maker, contacts: int, dirt: float = 0.0, short_names: bool = False) -> None:
    """Draws the whole office; the other tables follow from the number of contacts. With `short_names`, the target has
    come to refuse customers' names of fewer than four letters, which one customer has."""
    staff = [_employee(maker, n) for n in range(1, 9)]
    customers = [_customer(maker, 1001 + n, staff, dirt, short_names and n == 3) for n in range(contacts // 2)]
    people = [_contact(maker, 1 + n, customers, dirt) for n in range(contacts)]
    for n in range(contacts):
        _visit(maker, 50_001 + n, people, staff)


def _german(day: date) -> str:
    return day.strftime("%d.%m.%Y")


def _amount(maker: Maker) -> tuple[str, str]:
    euros, cents = maker.draw.randint(1_000, 9_000_000), maker.draw.randint(0, 99)
    return f"{euros:,}".replace(",", ".") + f",{cents:02}", f"{euros}.{cents:02}"


def _employee(maker: Maker, key: int) -> int:
    one = maker.person("DE")
    email, extension = f"{one.letters}@maier-soehne.example", str(100 + key)
    initials = f"{one.first[0]}{one.last[:2]}".upper()
    maker.row("tblMitarbeiter", {
        "MaNr": key, "Kuerzel": initials, "Vorname": one.first, "Nachname": one.last, "EMail": email, "Durchwahl": extension,
    })  # fmt: skip
    maker.want(
        "tblMitarbeiter",
        key,
        initials=initials,
        given_name=one.first,
        family_name=one.last,
        email=email,
        extension=extension,
    )
    return key


def _customer(maker: Maker, key: int, staff: list[int], dirt: float, short: bool) -> tuple[int, bool]:
    place = maker.place(*_COUNTRIES)
    name = "Ebb" if short else f"{maker.company()} GmbH"
    addition = "z. Hd. Einkauf" if maker.chance(0.2) else None
    office, fax = (maker.telephone(place.country, "office", "e164", "home", "slash") for _ in range(2))
    mail = f"info@{maker.domain(name, key)}" if maker.chance(0.8) else None
    typed, revenue = _amount(maker)
    made, changed = maker.day(2001, 2012), maker.day(2013, 2023)
    gone, bad = not short and maker.chance(0.1), not short and maker.chance(dirt)
    vat = f"{place.country}{maker.draw.randint(10**8, 10**9 - 1)}" if maker.chance(0.7) else None
    manager, sector = maker.draw.choice(staff), maker.draw.choice(("Handel", "Bau", "Maschinenbau", "Versicherung"))
    note, web = ("zahlt spät" if maker.chance(0.2) else None), f"www.{maker.domain(name, key)}"
    maker.row("tblKunden", {
        "KdNr": key, "Firma": name, "Firma2": addition, "Strasse": place.street, "PLZ": place.postal, "Ort": place.city,
        "Land": maker.draw.choice(_COUNTRIES[place.country]), "Tel": office.typed, "Fax": fax.typed, "Mail": mail, "Web": web,
        "Branche": sector, "UmsatzVj": "ca. 2 Mio" if bad else typed, "Betreuer": manager, "UStID": vat, "Bemerkung": note,
        "AngelegtAm": _german(made), "GeaendertAm": _german(changed), "Geloescht": -1 if gone else 0,
    })  # fmt: skip
    if gone:
        maker.exclude("tblKunden", key)
    elif bad:
        maker.quarantine("tblKunden", key, "revenue_last_year", "function")
    elif short:
        maker.quarantine("tblKunden", key, "", "check")
    else:
        maker.want(
            "tblKunden", key, name=name, name_addition=addition, street=place.street, postal_code=place.postal, city=place.city,
            country_code=place.country, phone=office.e164, fax=fax.e164, email=mail, website=web, sector=sector,
            revenue_last_year=revenue, account_manager_id=manager, vat_id=vat, remarks=note, created_on=str(made),
            changed_on=str(changed),
        )  # fmt: skip
    return key, not (gone or bad or short)


def _contact(maker: Maker, key: int, customers: list[tuple[int, bool]], dirt: float) -> tuple[int, bool]:
    one = maker.person("DE", "AT", "CH")
    (customer, there), gone, bad = maker.draw.choice(customers), maker.chance(0.05), maker.chance(dirt)
    salutation, title = maker.draw.choice(("Herr", "Frau")), maker.draw.choice((None, None, "Dr.", "Dipl.-Ing."))
    role = maker.draw.choice(("Einkäufer", "Geschäftsführer", "Meister"))
    office = maker.telephone("DE", "office", "e164", "home") if maker.chance(0.8) else None
    mobile = maker.telephone("DE", "mobile", "e164", "home") if maker.chance(0.6) else None
    mail = f"{one.letters}{key}@post.example" if maker.chance(0.7) else None
    born, made = (maker.day(1945, 1999) if maker.chance(0.5) else None), maker.day(2005, 2020)
    silent = maker.chance(0.25)
    maker.row("tblAnsprechpartner", {
        "ApNr": key, "KdNr": customer, "Anrede": salutation, "Titel": title, "Vorname": one.first, "Nachname": one.last,
        "Funktion": role, "Tel": office.typed if office else None, "Handy": mobile.typed if mobile else None,
        "Mail": f"{one.letters}(at)post" if bad else mail, "GebDat": _german(born) if born else None,
        "KeineWerbung": -1 if silent else 0, "Bemerkung": None, "AngelegtAm": _german(made), "Geloescht": -1 if gone else 0,
    })  # fmt: skip
    if gone:
        maker.exclude("tblAnsprechpartner", key)
    elif bad or not there:
        if bad:
            maker.quarantine("tblAnsprechpartner", key, "email", "function")
        if not there:
            maker.quarantine("tblAnsprechpartner", key, "customer_id", "reference")
    else:
        maker.want(
            "tblAnsprechpartner", key, customer_id=customer, salutation=salutation, academic_title=title, given_name=one.first,
            family_name=one.last, position=role, phone=office.e164 if office else None, mobile=mobile.e164 if mobile else None,
            email=mail, birthday=str(born) if born else None, no_marketing=silent, created_on=str(made),
        )  # fmt: skip
    return key, there and not (gone or bad)


def _visit(maker: Maker, key: int, people: list[tuple[int, bool]], staff: list[int]) -> None:
    (person, there), employee = maker.draw.choice(people), maker.draw.choice(staff)
    when, art = maker.day(2013, 2023), maker.draw.choice(list(_KINDS))
    subject, report = f"Angebot {key}", "Muster dagelassen"
    maker.row("tblBesuche", {
        "BesuchNr": key, "ApNr": person, "MaNr": employee, "Datum": _german(when), "Art": art, "Betreff": subject,
        "Bericht": report,
    })  # fmt: skip
    if there:
        maker.want(
            "tblBesuche", key, contact_id=person, employee_id=employee, visited_on=str(when), kind=_KINDS[art],
            subject=subject, report=report,
        )  # fmt: skip
    else:
        maker.quarantine("tblBesuche", key, "contact_id", "reference")
