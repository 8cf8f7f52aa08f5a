"""One sheet: a line a person, and for companies without one a line of their own. A twelfth of the lines was pasted twice.
`dirt` is the share of values that somebody typed as a note."""

from __future__ import annotations

from datetime import date

from bench.scenarios.maker import Maker, Telephone, Value

_COUNTRIES = {"FR": "France", "CH": "Suisse", "ES": "Espagne", "IT": "Italie"}
_SHEET = "clients 2014-2024"
_FIRST_DAY = date(1899, 12, 30)  # what Excel counts days from, since it takes 1900 for a leap year


def make(maker: Maker, contacts: int, dirt: float = 0.0) -> None:
    """Draws the whole sheet; the companies follow from the number of contacts."""
    number = 1
    companies = [_company(maker, n, dirt) for n in range(max(10, contacts // 3))]
    left = contacts
    for cells, loaded in companies:
        people = min(left, maker.draw.randint(0, 6))
        left -= people
        if not people:
            _line(maker, number, cells, {})
            maker.exclude("people", number)
            number += 1
        for _ in range(people):
            number = _person(maker, number, cells, loaded, dirt)


def _serial(day: date) -> str:
    return str((day - _FIRST_DAY).days)


def _comma(whole: int, cents: int) -> str:
    return f"{whole:,}".replace(",", " ") + f",{cents:02}"


def _line(maker: Maker, number: int, company: dict[str, Value], person: dict[str, Value]) -> None:
    """A line of the sheet; a cell that nobody filled says n/a."""
    cells = ("Contact", "Fonction", "Tél.", "E-mail", "Dernier contact", "Remarques")
    maker.row(_SHEET, {
        "N°": str(number), **company, **{c: person.get(c) or "n/a" for c in cells},
        "Newsletter (O/N)": person.get("Newsletter (O/N)", "N"), "vu 2019": "x" if maker.chance(0.1) else None,
        "vu 2020": None,
    })  # fmt: skip


def _company(maker: Maker, number: int, dirt: float) -> tuple[dict[str, Value], bool]:
    place, name = maker.place(*_COUNTRIES), f"{maker.company()} {number + 1}"
    since, bad = maker.day(2004, 2020), maker.chance(dirt)
    euros, cents = maker.draw.randint(1000, 9_000_000), maker.draw.randint(0, 99)
    discount, rep = maker.draw.choice((None, 2.5, 5.0, 7.5)), maker.draw.choice(("M. Roux", "Mme Petit", "M. Garnier"))
    sector = maker.draw.choice(("Agroalimentaire", "Bâtiment", "Transport", None))
    has_revenue = maker.chance(0.85)
    cells: dict[str, Value] = {
        "Société": name, "Rue": place.street, "CP": place.postal, "Ville": place.city, "Pays": _COUNTRIES[place.country],
        "Secteur": sector or "n/a", "Client depuis": "au salon" if bad else _serial(since),
        "CA 2023 (EUR)": _comma(euros, cents) if has_revenue else "n/a",
        "Remise %": "n/a" if discount is None else f"{discount:.1f}".replace(".", ","), "Commercial": rep,
    }  # fmt: skip
    if bad:
        maker.quarantine("companies", name, "customer_since", "function")
    else:
        maker.want(
            "companies", name, name=name, street=place.street, postal_code=place.postal, city=place.city,
            country=place.country, industry=sector, customer_since=str(since),
            revenue_2023=f"{euros}.{cents:02}" if has_revenue else None,
            discount_percent=None if discount is None else f"{discount:.2f}", sales_rep=rep,
        )  # fmt: skip
    return cells, not bad


def _person(maker: Maker, number: int, company: dict[str, Value], loaded: bool, dirt: float) -> int:
    """A person's line, now and then twice; the number of the next line."""
    country = next(c for c, told in _COUNTRIES.items() if told == company["Pays"])
    one = maker.person(country)
    last = one.last.replace(" ", "-")
    numbers: list[Telephone] = []
    if maker.chance(0.8):
        numbers.append(maker.telephone(country, "office", "home", "spaced"))
        if maker.chance(0.4):
            numbers.append(maker.telephone(country, "mobile", "home", "spaced"))
    typed = " / ".join(n.typed for n in numbers)
    bad = maker.chance(dirt)
    email = f"{one.letters}{number}@boite.example"
    title = maker.draw.choice(("Directeur", "Acheteuse", "Comptable", None))
    seen, remark = maker.day(2015, 2024), maker.draw.choice((None, None, "rappeler en mai", "préfère le matin"))
    reads = maker.chance(0.3)
    cells: dict[str, Value] = {
        "Contact": f"{one.first} {last}", "Fonction": title, "Tél.": "voir l'accueil" if bad else typed, "E-mail": email,
        "Dernier contact": _serial(seen), "Newsletter (O/N)": "O" if reads else "N", "Remarques": remark,
    }  # fmt: skip
    _line(maker, number, company, cells)
    if bad or not loaded:
        if bad:
            maker.quarantine("people", number, "phone", "function")
        if not loaded:
            maker.quarantine("people", number, "company_id", "reference")
    else:
        maker.want(
            "people", number, company_id=str(company["Société"]), first_name=one.first, last_name=last, job_title=title,
            phone=numbers[0].e164 if numbers else None, second_phone=numbers[1].e164 if len(numbers) > 1 else None,
            email=email, last_contact_on=str(seen), newsletter=reads, remarks=remark,
        )  # fmt: skip
    if maker.chance(0.08):  # pasted twice
        _line(maker, number + 1, company, cells)
        return number + 2
    return number + 1
