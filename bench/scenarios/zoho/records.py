"""Accounts, contacts, deals of a cloud CRM's export. `dirt` is the share of values that somebody mistyped; the first
`moved` deals get a new stage while the job is under way."""

from __future__ import annotations

from datetime import datetime

from bench.scenarios.maker import Maker

_COUNTRIES = {"IN": "India", "US": "United States", "GB": "United Kingdom", "FR": "France"}
_CURRENCIES = {"IN": "INR", "US": "USD", "GB": "GBP", "FR": "EUR"}
_CHANNELS = {
    "Web Download": "web", "Online Store": "web", "Employee Referral": "referral", "Trade Show": "event",
    "Partner": "partner", "Cold Call": "cold_call", "-None-": None,
}  # fmt: skip
_PHASES = {
    "Qualification": ("qualifying", 10), "Needs Analysis": ("qualifying", 20), "Proposal/Price Quote": ("proposing", 75),
    "Negotiation/Review": ("negotiating", 90), "Closed Won": ("won", 100), "Closed Lost": ("lost", 0),
}  # fmt: skip
_INTERESTS = ("Analytics", "Cloud Hosting", "Field Service", "Payroll")


def make(maker: Maker, contacts: int, dirt: float = 0.0, moved: int = 0) -> None:
    """Draws the whole export; the other modules follow from the number of contacts."""
    owners = [_name(maker) for _ in range(6)]
    accounts = [_account(maker, n, owners, dirt) for n in range(max(12, contacts // 3))]
    people = [_contact(maker, n, accounts, owners, dirt) for n in range(contacts)]
    for n in range(contacts // 2):
        _deal(maker, n, accounts, people, owners, dirt, n < moved)


def _name(maker: Maker) -> str:
    one = maker.person("IN", "US", "GB")
    return f"{one.first} {one.last}"


def _id(module: int, number: int) -> str:
    return f"zcrm_41508680000{module}{225_001 + 17 * number}"


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S+05:30")


def _account(maker: Maker, number: int, owners: list[str], dirt: float) -> tuple[str, str]:
    key, place, name = _id(1, number), maker.place(*_COUNTRIES), maker.company()
    owner, unreadable = maker.draw.choice(owners), maker.chance(dirt)
    office = maker.telephone(place.country, "office", "e164", "spaced", "home")
    made, changed = maker.moment(2016, 2019), maker.moment(2020, 2024)
    revenue, staff = f"{maker.draw.randint(10**5, 10**8)}.00", maker.draw.randint(1, 5000)
    site, about = (
        f"https://{maker.domain(name, number)}",
        f"{name}, met at the fair of {maker.draw.randint(2009, 2016)}",
    )
    industry = maker.draw.choice(("Data/Telecom OEM", "ERP", "Government/Military", "Large Enterprise"))
    maker.row("Accounts", {
        "Record Id": key, "Account Owner.id": f"zcrm_4150868000000{101 + owners.index(owner)}", "Account Owner": owner,
        "Account Name": name, "Phone": "call Priya" if unreadable else office.typed, "Fax": None, "Website": site,
        "Industry": industry, "Employees": staff, "Annual Revenue": revenue, "Currency": _CURRENCIES[place.country],
        "Exchange Rate": "1", "Billing Street": place.street, "Billing City": place.city, "Billing State": place.region,
        "Billing Code": place.postal, "Billing Country": _COUNTRIES[place.country], "Shipping City": maker.place("IN").city,
        "Description": about, "Created By": maker.draw.choice(owners), "Created Time": _time(made),
        "Modified By": maker.draw.choice(owners), "Modified Time": _time(changed),
        "Last Activity Time": _time(changed) if maker.chance(0.5) else None, "Tag": None,
    })  # fmt: skip
    if unreadable:
        maker.quarantine("Accounts", key, "phone", "function")
    else:
        maker.want(
            "Accounts", key, company_name=name, phone=office.e164, website=site, industry=industry, employees=staff,
            annual_revenue=revenue, currency=_CURRENCIES[place.country], street=place.street, city=place.city,
            state=place.region, postal_code=place.postal, country=place.country, description=about, owner_name=owner,
            created_at=maker.instant(made), modified_at=maker.instant(changed),
        )  # fmt: skip
    return key, name


def _contact(
    maker: Maker, number: int, accounts: list[tuple[str, str]], owners: list[str], dirt: float
) -> tuple[str, str]:
    key, place = _id(2, number), maker.place(*_COUNTRIES)
    one = maker.person(place.country)
    account = maker.draw.choice(accounts) if maker.chance(0.93) else (None, None)
    office = maker.telephone(place.country, "office", "e164", "spaced", "home") if maker.chance(0.7) else None
    mobile = maker.telephone(place.country, "mobile", "e164", "spaced", "home") if maker.chance(0.6) else None
    other = maker.telephone("IN", "mobile", "spaced").typed if maker.chance(0.1) else None
    email = f"{one.letters}{number}@mail.example" if maker.chance(0.9) else None
    second = f"{one.letters}{number}@home.example" if maker.chance(0.3) else None
    bad = email is not None and maker.chance(dirt)
    born = str(maker.day(1955, 2002)) if maker.chance(0.4) else None
    channel, out = maker.draw.choice(list(_CHANNELS)), maker.chance(0.15)
    likes = maker.draw.sample(_INTERESTS, maker.draw.randint(1, 3))
    made, changed, owner = maker.moment(2017, 2019), maker.moment(2020, 2024), maker.draw.choice(owners)
    salutation, title = maker.draw.choice(("Mr.", "Ms.", "Dr.", None)), maker.draw.choice(("CTO", "Buyer", "Analyst"))
    department = maker.draw.choice(("Purchase", "Finance", "IT"))
    skype = f"{one.letters}.{number}" if maker.chance(0.3) else None
    maker.row("Contacts", {
        "Record Id": key, "Contact Owner": owner, "Account Name.id": account[0], "Account Name": account[1],
        "Salutation": salutation, "First Name": one.first, "Last Name": one.last, "Full Name": f"{one.first} {one.last}",
        "Email": f"{one.letters}(at)mail" if bad else email, "Secondary Email": second,
        "Phone": office.typed if office else None, "Mobile": mobile.typed if mobile else None, "Other Phone": other,
        "Title": title, "Department": department, "Date of Birth": born, "Lead Source": channel,
        "Email Opt Out": "true" if out else "false", "Interests": ";".join(likes), "Mailing City": place.city,
        "Mailing Country": _COUNTRIES[place.country], "Skype ID": skype, "Created By": maker.draw.choice(owners),
        "Created Time": _time(made), "Modified Time": _time(changed), "Unsubscribed Mode": "Consent form" if out else None,
    })  # fmt: skip
    if bad:
        maker.quarantine("Contacts", key, "email", "function")
    else:
        maker.want(
            "Contacts", key, company_id=account[0], salutation=salutation, given_name=one.first, surname=one.last,
            email=email, second_email=second, phone=office.e164 if office else None,
            mobile=mobile.e164 if mobile else None, job_title=title, department=department, date_of_birth=born,
            lead_source=_CHANNELS[channel], email_opt_out=out, interests=_array(likes), city=place.city,
            country=place.country, skype=skype, owner_name=owner, created_at=maker.instant(made),
        )  # fmt: skip
    return key, f"{one.first} {one.last}"


def _array(values: list[str]) -> str:
    """As PostgreSQL writes a list of texts."""
    return "{" + ",".join(f'"{v}"' if " " in v else v for v in values) + "}"


def _deal(
    maker: Maker, number: int, accounts: list[tuple[str, str]], people: list[tuple[str, str]], owners: list[str],
    dirt: float, moves: bool,
) -> None:  # fmt: skip
    key, account, person = _id(3, number), maker.draw.choice(accounts), maker.draw.choice(people)
    name, stage, bad = f"{account[1]} {maker.draw.randint(2019, 2024)}", maker.draw.choice(list(_PHASES)), False
    phase, probability = _PHASES[stage]
    amount = f"{maker.draw.randint(100, 10**6)}.{maker.draw.randint(0, 99):02}" if maker.chance(0.9) else None
    bad = not moves and maker.chance(dirt)
    closes, made, changed = str(maker.day(2022, 2025)), maker.moment(2019, 2021), maker.moment(2022, 2024)
    owner, channel, currency = (
        maker.draw.choice(owners),
        maker.draw.choice(list(_CHANNELS)),
        maker.draw.choice(("INR", "USD")),
    )
    step = maker.draw.choice((None, "send the offer", "call again in May"))
    maker.row("Deals", {
        "Record Id": key, "Deal Owner": owner, "Deal Name": name, "Account Name.id": account[0], "Account Name": account[1],
        "Contact Name.id": person[0], "Contact Name": person[1], "Amount": amount, "Currency": currency, "Stage": stage,
        "Probability (%)": probability, "Expected Revenue": amount, "Closing Date": "after Diwali" if bad else closes,
        "Next Step": step, "Lead Source": channel, "Created Time": _time(made), "Modified Time": _time(changed),
        "Overall Sales Duration": maker.draw.randint(1, 400),
    })  # fmt: skip
    if bad:
        maker.quarantine("Deals", key, "closing_date", "cast")
    else:
        maker.want(
            "Deals", key, company_id=account[0], contact_id=person[0], deal_name=name, phase="lost" if moves else phase,
            amount=amount, currency=currency, probability=probability, closing_date=closes, next_step=step,
            lead_source=_CHANNELS[channel], owner_name=owner, created_at=maker.instant(made),
        )  # fmt: skip
