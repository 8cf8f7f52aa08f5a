"""Users, accounts with parents, contacts with managers, opportunities. `dirt` is the share of values that somebody
mistyped; a tenth of the rows is in the bin (IsDeleted)."""

from __future__ import annotations

import string
from datetime import datetime

from bench.scenarios.maker import Maker

_COUNTRIES = {
    "US": ("United States", "USA"),
    "DE": ("Germany", "Deutschland"),
    "GB": ("United Kingdom",),
    "ES": ("Spain",),
}
_STAGES = {
    "Prospecting": ("prospecting", 10), "Qualification": ("qualification", 10), "Needs Analysis": ("qualification", 20),
    "Proposal/Price Quote": ("proposal", 75), "Negotiation/Review": ("negotiation", 90), "Closed Won": ("won", 100),
    "Closed Lost": ("lost", 0),
}  # fmt: skip
_ALPHABET = string.ascii_letters + string.digits


def make(maker: Maker, contacts: int, dirt: float = 0.0) -> None:
    """Draws the whole export; the other objects follow from the number of contacts."""
    users = [_user(maker, n) for n in range(max(4, contacts // 50))]
    accounts: list[str] = []
    for _ in range(max(10, contacts // 3)):
        accounts.append(_account(maker, accounts, users, dirt))
    people: list[str] = []
    for n in range(contacts):
        people.append(_contact(maker, n, accounts, people, users, dirt))
    for _ in range(contacts // 2):
        _opportunity(maker, accounts, users)


def _id(maker: Maker, prefix: str) -> str:
    return prefix + maker.code(_ALPHABET, 12) + maker.code(string.ascii_uppercase + "012345", 3)


def _z(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _user(maker: Maker, number: int) -> str:
    key, one, made = _id(maker, "005"), maker.person("US", "DE", "GB"), maker.moment(2015, 2018)
    email = f"{one.letters}{number}@packline.example"
    active, title = maker.chance(0.8), maker.draw.choice(("Account Executive", "Sales Manager", "Sales Rep"))
    maker.row("User", {
        "Id": key, "Username": f"{email}.crm", "FirstName": one.first, "LastName": one.last, "Email": email, "Title": title,
        "IsActive": int(active), "CreatedDate": _z(made), "SystemModstamp": _z(made),
    })  # fmt: skip
    maker.want(
        "User", key, full_name=f"{one.first} {one.last}", email=email, job_title=title, active=active,
        joined_at=maker.instant(made),
    )  # fmt: skip
    return key


def _account(maker: Maker, accounts: list[str], users: list[str], dirt: float) -> str:
    key, place, name = _id(maker, "001"), maker.place(*_COUNTRIES), maker.company()
    parent = maker.draw.choice(accounts) if accounts and maker.chance(0.2) else None
    office, fax = (maker.telephone(place.country, "office", "e164", "spaced", "home") for _ in range(2))
    has_fax, unreadable, in_bin = maker.chance(0.3), maker.chance(dirt), maker.chance(0.1)
    made, changed = maker.moment(2016, 2019), maker.moment(2020, 2024)
    revenue, heads = str(maker.draw.randint(10**5, 10**8)), maker.draw.randint(1, 9000)
    vat = f"{place.country}{maker.draw.randint(10**8, 10**9 - 1)}" if maker.chance(0.6) else None
    site, owner = f"https://www.{maker.domain(name, len(accounts))}", maker.draw.choice(users)
    industry, notes = maker.draw.choice(("Banking", "Energy", "Retail", "Technology")), f"{name}, met at the fair"
    maker.row("Account", {
        "Id": key, "IsDeleted": int(in_bin), "Name": name, "Type": maker.draw.choice(("Customer - Direct", "Prospect")),
        "ParentId": parent, "BillingStreet": place.street, "BillingCity": place.city, "BillingState": place.region,
        "BillingPostalCode": place.postal, "BillingCountry": maker.draw.choice(_COUNTRIES[place.country]),
        "ShippingStreet": "Dock 3", "ShippingCity": maker.place("US").city, "ShippingCountry": "USA",
        "Phone": "ask Tina" if unreadable else office.typed, "Fax": fax.typed if has_fax else None, "Website": site,
        "Industry": industry, "AnnualRevenue": revenue, "NumberOfEmployees": heads, "Description": notes, "OwnerId": owner,
        "CreatedDate": _z(made), "CreatedById": maker.draw.choice(users), "LastModifiedDate": _z(changed),
        "SystemModstamp": _z(changed), "VAT_No__c": vat, "Customer_Priority__c": maker.draw.choice(("High", "Low")),
    })  # fmt: skip
    if in_bin:
        maker.exclude("Account", key)
    elif unreadable:
        maker.quarantine("Account", key, "phone", "function")
    else:
        maker.want(
            "Account", key, name=name, parent_id=parent, street=place.street, city=place.city, region=place.region,
            postal_code=place.postal, country_code=place.country, phone=office.e164, fax=fax.e164 if has_fax else None,
            website=site, industry=industry, annual_revenue=f"{revenue}.00", headcount=heads, vat_number=vat, notes=notes,
            owner_id=owner, created_at=maker.instant(made), updated_at=maker.instant(changed),
        )  # fmt: skip
    return key


def _contact(maker: Maker, number: int, accounts: list[str], people: list[str], users: list[str], dirt: float) -> str:
    key, place = _id(maker, "003"), maker.place(*_COUNTRIES)
    one = maker.person(place.country)
    account = maker.draw.choice(accounts) if maker.chance(0.95) else None
    manager = maker.draw.choice(people) if people and maker.chance(0.3) else None
    email = f"{one.letters}{number}@mail.example" if maker.chance(0.85) else None
    office = maker.telephone(place.country, "office", "e164", "spaced", "home") if maker.chance(0.7) else None
    mobile = maker.telephone(place.country, "mobile", "e164", "spaced", "home") if maker.chance(0.6) else None
    born = str(maker.day(1950, 2003)) if maker.chance(0.4) else None
    in_bin, bad = maker.chance(0.1), born is not None and maker.chance(dirt)
    out, silent = maker.chance(0.2), maker.chance(0.07)
    tongues = sorted(maker.draw.sample(("German", "English", "Spanish", "French"), maker.draw.randint(1, 3)))
    made, changed = maker.moment(2016, 2019), maker.moment(2020, 2024)
    honorific, title = maker.draw.choice(("Mr.", "Ms.", "Dr.", None)), maker.draw.choice(("CFO", "Buyer", "Engineer"))
    department, lead = (
        maker.draw.choice(("Purchasing", "Finance", "IT")),
        maker.draw.choice(("Web", "Trade Show", None)),
    )
    owner = maker.draw.choice(users)
    maker.row("Contact", {
        "Id": key, "IsDeleted": int(in_bin), "AccountId": account, "LastName": one.last, "FirstName": one.first,
        "Salutation": honorific, "MailingStreet": place.street, "MailingCity": place.city, "MailingPostalCode": place.postal,
        "MailingCountry": maker.draw.choice(_COUNTRIES[place.country]), "OtherCity": maker.place("US").city if maker.chance(0.2) else None,
        "Phone": office.typed if office else None, "Fax": None, "MobilePhone": mobile.typed if mobile else None,
        "HomePhone": maker.telephone("US", "office", "home").typed if maker.chance(0.2) else None, "AssistantPhone": None,
        "ReportsToId": manager, "Email": email, "Title": title, "Department": department,
        "AssistantName": maker.person("US").first if maker.chance(0.1) else None, "LeadSource": lead,
        "Birthdate": "1899-13-45" if bad else born, "Description": None, "OwnerId": owner, "HasOptedOutOfEmail": int(out),
        "DoNotCall": int(silent), "CreatedDate": _z(made), "LastModifiedDate": _z(changed), "SystemModstamp": _z(changed),
        "LastActivityDate": str(maker.day(2020, 2024)) if maker.chance(0.5) else None, "Languages__c": ";".join(tongues),
    })  # fmt: skip
    if in_bin:
        maker.exclude("Contact", key)
    elif bad:
        maker.quarantine("Contact", key, "birth_date", "cast")
    else:
        maker.want(
            "Contact", key, company_id=account, manager_id=manager, honorific=honorific, given_name=one.first,
            family_name=one.last, email=email, phone=office.e164 if office else None, mobile=mobile.e164 if mobile else None,
            job_title=title, department=department, birth_date=born, street=place.street, city=place.city,
            postal_code=place.postal, country_code=place.country, email_opt_out=out, do_not_call=silent,
            languages="{" + ",".join(tongues) + "}", source=lead, owner_id=owner,
            created_at=maker.instant(made), updated_at=maker.instant(changed),
        )  # fmt: skip
    return key


def _opportunity(maker: Maker, accounts: list[str], users: list[str]) -> None:
    key, account, owner = _id(maker, "006"), maker.draw.choice(accounts), maker.draw.choice(users)
    name, stage, in_bin = f"{maker.company()} renewal", maker.draw.choice(list(_STAGES)), maker.chance(0.1)
    label, probability = _STAGES[stage]
    amount = f"{maker.draw.randint(100, 10**6)}.{maker.draw.randint(0, 99):02}" if maker.chance(0.9) else None
    closes, made, changed = str(maker.day(2022, 2025)), maker.moment(2019, 2021), maker.moment(2022, 2024)
    maker.row("Opportunity", {
        "Id": key, "IsDeleted": int(in_bin), "AccountId": account, "Name": name, "StageName": stage, "Amount": amount,
        "ExpectedRevenue": amount, "Probability": probability, "CloseDate": closes, "Type": "Existing Business",
        "IsClosed": int("Closed" in stage), "IsWon": int(label == "won"), "OwnerId": owner, "CreatedDate": _z(made),
        "LastModifiedDate": _z(changed),
    })  # fmt: skip
    if in_bin:
        maker.exclude("Opportunity", key)
    else:
        maker.want(
            "Opportunity", key, company_id=account, title=name, stage=label, amount=amount, probability=probability,
            closes_on=closes, owner_id=owner, created_at=maker.instant(made), updated_at=maker.instant(changed),
        )  # fmt: skip
