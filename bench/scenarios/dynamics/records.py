"""Users, accounts with parents, contacts of accounts and of other contacts, opportunities, and the labels of choices.
`dirt` is the share of lookups that an old import wrote in capitals and braces, of birth dates that stand for none, and of
telephone numbers that nobody can read."""

from __future__ import annotations

from datetime import datetime

from bench.scenarios.maker import Maker

_COUNTRIES = {"US": "United States", "CA": "Canada", "NL": "Netherlands", "SE": "Sweden"}
_SEGMENTS = {100_000_000: "enterprise", 100_000_001: "mid_market", 100_000_002: "small_business"}
_INDUSTRIES = {1: "Accounting", 7: "Consulting", 12: "Equipment Rental", 26: "Transportation"}
_STATES = ("active", "inactive")
_OUTCOMES = ("open", "won", "lost")
_LABELS = {
    ("account", "industrycode"): _INDUSTRIES,
    ("account", "new_customersegment"): {100_000_000: "Enterprise", 100_000_001: "Mid market", 100_000_002: "Small business"},
    ("account", "statecode"): {0: "Active", 1: "Inactive"},
    ("contact", "statecode"): {0: "Active", 1: "Inactive"},
    ("contact", "gendercode"): {1: "Male", 2: "Female"},
    ("opportunity", "statecode"): {0: "Open", 1: "Won", 2: "Lost"},
}  # fmt: skip


def make(maker: Maker, contacts: int, dirt: float = 0.0) -> None:
    """Draws the whole organisation; the other tables follow from the number of contacts."""
    for (table, column), labels in _LABELS.items():
        for order, (value, label) in enumerate(labels.items()):
            maker.row("stringmap", {
                "stringmapid": maker.uuid(), "objecttypecode": table, "attributename": column, "attributevalue": value,
                "langid": 1033, "value": label, "displayorder": order,
            })  # fmt: skip
    users = [_user(maker, n) for n in range(7)]
    accounts: list[str] = []
    for n in range(max(12, contacts // 3)):
        accounts.append(_account(maker, n, accounts, users, dirt))
    people: list[str] = []
    for n in range(contacts):
        people.append(_contact(maker, n, accounts, people, users, dirt))
    for n in range(contacts // 2):
        _opportunity(maker, n, accounts, people, users, dirt)


def _z(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _lookup(maker: Maker, key: str | None, dirt: float) -> str | None:
    """A lookup as it is, or as an old import wrote it."""
    return "{" + key.upper() + "}" if key is not None and maker.chance(dirt) else key


def _user(maker: Maker, number: int) -> str:
    key, one, made = maker.uuid(), maker.person("US", "NL", "SE"), maker.moment(2015, 2016)
    email, off = f"{one.letters}{number}@packline.example", maker.chance(0.2)
    maker.row("systemuser", {
        "systemuserid": key, "domainname": f"PACKLINE\\{one.letters}{number}", "fullname": f"{one.first} {one.last}",
        "firstname": one.first, "lastname": one.last, "internalemailaddress": email, "isdisabled": str(off),
        "createdon": _z(made), "versionnumber": maker.draw.randint(10**6, 10**7),
    })  # fmt: skip
    maker.want("systemuser", key, full_name=f"{one.first} {one.last}", email=email, disabled=off)
    return key


def _account(maker: Maker, number: int, accounts: list[str], users: list[str], dirt: float) -> str:
    key, place, name = maker.uuid(), maker.place(*_COUNTRIES), maker.company()
    parent = maker.draw.choice(accounts) if accounts and maker.chance(0.25) else None
    office = maker.telephone(place.country, "office", "e164", "spaced", "home")
    fax = maker.telephone(place.country, "office", "e164", "home") if maker.chance(0.3) else None
    unreadable, state, segment = maker.chance(dirt), int(maker.chance(0.15)), maker.draw.choice(list(_SEGMENTS))
    industry, staff = maker.draw.choice(list(_INDUSTRIES)), maker.draw.randint(1, 9000)
    revenue, made, changed = maker.draw.randint(10**5, 10**8), maker.moment(2016, 2019), maker.moment(2020, 2024)
    site, email = f"https://{maker.domain(name, number)}", f"office@{maker.domain(name, number)}"
    owner, client = maker.draw.choice(users), f"ACC-{10_000 + 3 * number}"
    maker.row("account", {
        "accountid": key, "name": name, "accountnumber": client, "statecode": state, "statuscode": state + 1,
        "industrycode": industry, "new_customersegment": segment, "telephone1": "unlisted" if unreadable else office.typed,
        "telephone2": None, "fax": fax.typed if fax else None, "websiteurl": site, "emailaddress1": email,
        "address1_line1": place.street, "address1_line2": None, "address1_city": place.city,
        "address1_postalcode": place.postal, "address1_country": _COUNTRIES[place.country],
        "address2_city": maker.place("US").city if maker.chance(0.2) else None, "revenue": f"{revenue}.0000",
        "revenue_base": f"{revenue * 9 // 10}.0000", "exchangerate": "0.9000000000", "numberofemployees": staff,
        "_parentaccountid_value": _lookup(maker, parent, dirt), "_ownerid_value": owner,
        "_owningbusinessunit_value": "5b1f5f5e-0000-4000-8000-00000000b001", "createdon": _z(made), "modifiedon": _z(changed),
        "importsequencenumber": None, "versionnumber": maker.draw.randint(10**6, 10**7),
    })  # fmt: skip
    if unreadable:
        maker.quarantine("account", key, "phone", "function")
    else:
        maker.want(
            "account", key, name=name, client_number=client, segment=_SEGMENTS[segment], sector=_INDUSTRIES[industry],
            standing=_STATES[state], phone=office.e164, fax=fax.e164 if fax else None, website=site, email=email,
            address_line=place.street, city=place.city, postcode=place.postal, country=place.country,
            turnover=f"{revenue}.00", employees=staff, parent_id=parent, owner_id=owner, created_at=maker.instant(made),
            modified_at=maker.instant(changed),
        )  # fmt: skip
    return key


def _contact(
    maker: Maker, number: int, accounts: list[str], people: list[str], users: list[str], dirt: float
) -> str:  # fmt: skip
    key, country = maker.uuid(), maker.draw.choice(list(_COUNTRIES))
    one = maker.person(country)
    private = bool(people) and maker.chance(0.1)  # belongs to another contact, not to an account
    parent = maker.draw.choice(people if private else accounts) if maker.chance(0.95) else None
    office = maker.telephone(country, "office", "e164", "spaced", "home") if maker.chance(0.7) else None
    mobile = maker.telephone(country, "mobile", "e164", "spaced", "home") if maker.chance(0.6) else None
    email = f"{one.letters}{number}@mail.example" if maker.chance(0.9) else None
    second = f"{one.letters}{number}@home.example" if maker.chance(0.2) else None
    no_mail, no_call, bulk = maker.chance(0.12), maker.chance(0.08), maker.chance(0.3)
    born = maker.draw.choice((str(maker.day(1950, 2002)), None))
    unknown = born is None and maker.chance(3 * dirt)
    bad, state = mobile is not None and maker.chance(dirt), int(maker.chance(0.1))
    made, changed, owner = maker.moment(2017, 2019), maker.moment(2020, 2024), maker.draw.choice(users)
    title, badge = maker.draw.choice(("Buyer", "CFO", "Engineer")), f"B{maker.draw.randint(1000, 9999)}"
    has_badge = maker.chance(0.4)
    maker.row("contact", {
        "contactid": key, "_parentcustomerid_value": _lookup(maker, parent, dirt),
        "parentcustomeridtype": None if parent is None else "contact" if private else "account",
        "fullname": f"{one.first} {one.last}", "firstname": one.first, "lastname": one.last, "jobtitle": title,
        "emailaddress1": email, "emailaddress2": second, "telephone1": office.typed if office else None,
        "mobilephone": "do not use" if bad else mobile.typed if mobile else None, "address1_country": _COUNTRIES[country],
        "donotemail": str(no_mail), "donotbulkemail": str(bulk), "donotphone": str(no_call),
        "gendercode": maker.draw.choice((1, 2, None)), "birthdate": "1753-01-01" if unknown else born,
        "new_badgenumber": badge if has_badge else None, "statecode": state, "statuscode": state + 1, "_ownerid_value": owner,
        "createdon": _z(made), "modifiedon": _z(changed), "lastusedincampaign": None,
        "versionnumber": maker.draw.randint(10**6, 10**7),
    })  # fmt: skip
    if bad:
        maker.quarantine("contact", key, "mobile", "function")
    else:
        maker.want(
            "contact", key, client_id=None if private else parent, forename=one.first, surname=one.last, job_title=title,
            email=email, phone=office.e164 if office else None, mobile=mobile.e164 if mobile else None,
            do_not_email=no_mail, do_not_phone=no_call, birthday=born, badge_number=badge if has_badge else None,
            standing=_STATES[state], owner_id=owner, created_at=maker.instant(made),
        )  # fmt: skip
    return key


def _opportunity(
    maker: Maker, number: int, accounts: list[str], people: list[str], users: list[str], dirt: float
) -> None:  # fmt: skip
    key, account, owner = maker.uuid(), maker.draw.choice(accounts), maker.draw.choice(users)
    person = maker.draw.choice(people) if maker.chance(0.7) else None
    topic, state = f"{maker.company()} no. {number}", maker.draw.randrange(3)
    value = maker.draw.randint(500, 10**6) if maker.chance(0.9) else None
    chance, closes = maker.draw.choice((10, 25, 50, 75, None)), str(maker.day(2023, 2026))
    made, changed = maker.moment(2019, 2021), maker.moment(2022, 2024)
    maker.row("opportunity", {
        "opportunityid": key, "name": topic, "_parentaccountid_value": _lookup(maker, account, dirt),
        "_parentcontactid_value": person, "estimatedvalue": f"{value}.0000" if value else None,
        "estimatedvalue_base": f"{value * 9 // 10}.0000" if value else None,
        "actualvalue": f"{value}.0000" if value and state == 1 else None, "estimatedclosedate": closes,
        "actualclosedate": closes if state else None, "closeprobability": chance, "statecode": state,
        "statuscode": state + 1, "stepname": "3-Propose", "_ownerid_value": owner, "createdon": _z(made),
        "modifiedon": _z(changed), "versionnumber": maker.draw.randint(10**6, 10**7),
    })  # fmt: skip
    maker.want(
        "opportunity", key, client_id=account, contact_id=person, topic=topic, outcome=_OUTCOMES[state],
        estimated_value=f"{value}.00" if value else None, estimated_close_date=closes, probability=chance, owner_id=owner,
        created_at=maker.instant(made),
    )  # fmt: skip
