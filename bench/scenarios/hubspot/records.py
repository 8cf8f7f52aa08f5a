"""A portal's owners, companies, contacts and deals. `dirt` is the share of values that somebody mistyped; the first
`moved` deals get a new stage while the job is under way."""

from __future__ import annotations

from bench.scenarios.maker import Maker

_COUNTRIES = {
    "US": ("United States", "USA", "US"),
    "DE": ("Germany", "Deutschland"),
    "FR": ("France",),
    "GB": ("United Kingdom", "UK"),
}
_STAGES = {
    "appointmentscheduled": "appointment",
    "qualifiedtobuy": "qualified",
    "closedwon": "won",
    "closedlost": "lost",
}
_INDUSTRIES = ("BANKING", "RETAIL", "COMPUTER_SOFTWARE", "INSURANCE", "MACHINERY")
_JOBS = ("Head of Sales", "Buyer", "CEO", "Engineer", "Accountant", "Project Manager")


def make(maker: Maker, contacts: int, dirt: float = 0.0, moved: int = 0) -> None:
    """Draws the whole portal; the other tables follow from the number of contacts."""
    owners = [_owner(maker, 101 + n) for n in range(max(4, contacts // 40))]
    companies = [_company(maker, 5001 + 3 * n, owners, dirt) for n in range(max(10, contacts // 3))]
    for n in range(contacts):
        _contact(maker, 90_001 + 7 * n, companies, owners, dirt)
    for n in range(contacts // 2):
        _deal(maker, 700_001 + n, companies, owners, n < moved)


def _owner(maker: Maker, key: int) -> int:
    one = maker.person("US", "DE", "FR")
    email = f"{one.letters}{key}@packline.example"
    maker.row("owners", {"owner_id": key, "firstname": one.first, "lastname": one.last, "email": email, "archived": int(maker.chance(0.1))})  # fmt: skip
    maker.want("owners", key, name=f"{one.first} {one.last}", email=email)
    return key


def _company(maker: Maker, key: int, owners: list[int], dirt: float) -> int:
    place = maker.place(*_COUNTRIES)
    name, owner = maker.company(), maker.draw.choice(owners)
    domain = maker.domain(name, key)
    telephone = maker.telephone(place.country, "office", "e164", "spaced", "home")
    made, changed = maker.moment(2019, 2022), maker.moment(2023, 2024)
    staff, revenue = maker.draw.randint(1, 4000), f"{maker.draw.randint(10**4, 10**7)}.{maker.draw.randint(0, 99):02}"
    industry, about = maker.draw.choice(_INDUSTRIES), f"{name} since {maker.draw.randint(1900, 2015)}"
    unreadable = maker.chance(dirt)
    maker.row("companies", {
        "hs_object_id": key, "name": name, "domain": domain, "phone": "see notes" if unreadable else telephone.typed,
        "address": place.street, "city": place.city, "state": place.region, "zip": place.postal,
        "country": maker.draw.choice(_COUNTRIES[place.country]), "industry": industry, "numberofemployees": staff,
        "annualrevenue": revenue, "about_us": about, "createdate": str(made), "hs_lastmodifieddate": str(changed),
        "hubspot_owner_id": owner, "first_contact_createdate": str(made), "num_associated_contacts": maker.draw.randint(0, 9),
    })  # fmt: skip
    if unreadable:
        maker.quarantine("companies", key, "phone", "function")
        return key
    maker.want(
        "companies", key, name=name, website=domain, phone=telephone.e164, street=place.street, city=place.city,
        region=place.region, postal_code=place.postal, country_code=place.country, industry=industry, employee_count=staff,
        annual_revenue=revenue, description=about, owner_id=owner, created_at=maker.instant(made), updated_at=maker.instant(changed),
    )  # fmt: skip
    return key


def _contact(maker: Maker, key: int, companies: list[int], owners: list[int], dirt: float) -> None:
    one = maker.person("US", "DE", "FR", "GB")
    company = maker.draw.choice(companies) if maker.chance(0.9) else None
    owner = maker.draw.choice(owners) if maker.chance(0.95) else None
    email = f"{one.letters}{key}@mail.example" if maker.chance(0.9) else None
    office = maker.telephone("US", "office", "e164", "home") if maker.chance(0.7) else None
    mobile = maker.telephone("US", "mobile", "e164", "home") if maker.chance(0.5) else None
    made, changed = maker.moment(2019, 2022), maker.moment(2023, 2024)
    born = maker.day(1950, 2003) if maker.chance(0.4) else None
    out, title = maker.chance(0.15), maker.draw.choice(_JOBS)
    salutation = maker.draw.choice(("Mr", "Ms", "Dr", None))
    bad = email is not None and maker.chance(dirt)
    maker.row("contacts", {
        "vid": key, "associatedcompanyid": company, "salutation": salutation, "firstname": one.first, "lastname": one.last,
        "email": f"{one.letters} at mail" if bad else email, "work_email": None, "phone": office.typed if office else None,
        "mobilephone": mobile.typed if mobile else None, "jobtitle": title,
        "lifecyclestage": maker.draw.choice(("lead", "customer", "opportunity", "subscriber")), "hs_email_optout": int(out),
        "date_of_birth": str(born) if born else None, "createdate": str(made), "lastmodifieddate": str(changed),
        "notes_last_updated": str(changed) if maker.chance(0.3) else None, "hubspot_owner_id": owner, "company": maker.company(),
    })  # fmt: skip
    if bad:
        maker.quarantine("contacts", key, "email", "function")
        return
    maker.want(
        "contacts", key, account_id=company, salutation=salutation, first_name=one.first, last_name=one.last, job_title=title,
        email=email, phone=office.e164 if office else None,
        mobile=mobile.e164 if mobile else None, birthdate=str(born) if born else None, email_opt_out=out,
        owner_id=owner, created_at=maker.instant(made), updated_at=maker.instant(changed),
    )  # fmt: skip


def _deal(maker: Maker, key: int, companies: list[int], owners: list[int], moves: bool) -> None:
    company, owner = maker.draw.choice(companies), maker.draw.choice(owners)
    name, stage = f"{maker.company()} {maker.draw.randint(2020, 2024)}", maker.draw.choice(list(_STAGES))
    amount = f"{maker.draw.randint(100, 10**6)}.{maker.draw.randint(0, 99):02}" if maker.chance(0.9) else None
    closes, made = maker.day(2022, 2025), maker.moment(2020, 2022)
    maker.row("deals", {
        "dealid": key, "dealname": name, "dealstage": stage, "amount": amount, "amount_in_home_currency": amount,
        "closedate": str(closes), "createdate": str(made), "associatedcompanyid": company, "hubspot_owner_id": owner,
    })  # fmt: skip
    maker.want(
        "deals", key, account_id=company, name=name, stage="qualified" if moves else _STAGES[stage], amount=amount, close_date=str(closes), owner_id=owner,
        created_at=maker.instant(made),
    )  # fmt: skip
