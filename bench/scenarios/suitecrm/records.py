"""Users, accounts, contacts and calls, with custom fields and addresses in tables beside them. `dirt` is the share of
values that somebody mistyped, and of birth dates that are zeros; with `overdrawn`, one account's credit limit is below
nothing, which the target has come to refuse."""

from __future__ import annotations

from datetime import datetime

from bench.scenarios.maker import Maker

_COUNTRIES = {"DE": "Germany", "FR": "France", "GB": "United Kingdom", "IT": "Italy"}
_RELATIONS = {"Customer": "customer", "Prospect": "prospect", "Supplier": "supplier", "Reseller": "partner"}
_STATES = {"Planned": "planned", "Held": "held", "Not Held": "not_held"}


def make(maker: Maker, contacts: int, dirt: float = 0.0, overdrawn: bool = False) -> None:
    """Draws the whole instance; the other tables follow from the number of contacts."""
    users = [_user(maker, n) for n in range(8)]
    accounts: list[tuple[str, bool]] = []
    for n in range(max(14, contacts // 3)):
        accounts.append(_account(maker, n, accounts, users, dirt, overdrawn and n == 5))
    people: list[tuple[str, bool]] = []
    for n in range(contacts):
        people.append(_contact(maker, n, accounts, people, users, dirt))
    for _ in range(contacts // 2):
        _call(maker, accounts, people, users)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("'", "&#039;")


def _address(
    maker: Maker, bean: str, module: str, address: str, out: bool, made: datetime, primary: bool = True
) -> None:
    """An e-mail address of a record; one that is not the primary one is an old one, or somebody's at home."""
    key = maker.uuid()
    maker.row("email_addresses", {
        "id": key, "email_address": address, "email_address_caps": address.upper(), "invalid_email": 0, "opt_out": int(out),
        "date_created": str(made), "deleted": 0,
    })  # fmt: skip
    maker.row("email_addr_bean_rel", {
        "id": maker.uuid(), "email_address_id": key, "bean_id": bean, "bean_module": module, "primary_address": int(primary),
        "reply_to_address": 0, "date_created": str(made), "deleted": 0 if primary else int(maker.chance(0.3)),
    })  # fmt: skip


def _user(maker: Maker, number: int) -> str:
    key, one, made = maker.uuid(), maker.person("DE", "FR", "GB"), maker.moment(2014, 2015)
    login, email = f"{one.letters}{number}", f"{one.letters}{number}@packline.example"
    active, title = maker.chance(0.8), maker.draw.choice(("Sales Manager", "Sales Rep"))
    maker.row("users", {
        "id": key, "user_name": login, "user_hash": f"$2y$10${maker.code('abcdef0123456789', 22)}",
        "first_name": _escaped(one.first), "last_name": _escaped(one.last), "title": title,
        "status": "Active" if active else "Inactive", "is_admin": int(number == 0), "date_entered": str(made), "deleted": 0,
    })  # fmt: skip
    _address(maker, key, "Users", email, False, made)
    maker.want(
        "users", key, login=login, full_name=f"{one.first} {one.last}", job_title=title, email=email, active=active
    )
    return key


def _account(
    maker: Maker, number: int, accounts: list[tuple[str, bool]], users: list[str], dirt: float, overdrawn: bool
) -> tuple[str, bool]:
    key, place, name = maker.uuid(), maker.place(*_COUNTRIES), maker.company()
    name = f"{name} & Co." if maker.chance(0.2) else name
    parent = maker.draw.choice(accounts)[0] if accounts and maker.chance(0.2) else None
    office, fax = (maker.telephone(place.country, "office", "e164", "spaced", "home") for _ in range(2))
    bad, gone = not overdrawn and maker.chance(dirt), not overdrawn and maker.chance(0.1)
    made, changed = maker.moment(2015, 2018), maker.moment(2019, 2024)
    kind, industry = (
        maker.draw.choice(list(_RELATIONS)),
        maker.draw.choice(("Banking", "Energy", "Retail", "Technology")),
    )
    site, email = f"http://{maker.domain(name, number)}", f"info@{maker.domain(name, number)}"
    owner, ships, about = maker.draw.choice(users), maker.place(*_COUNTRIES).city, f"{name}: since {made.year}"
    maker.row("accounts", {
        "id": key, "name": _escaped(name), "date_entered": str(made), "date_modified": str(changed),
        "modified_user_id": maker.draw.choice(users), "created_by": maker.draw.choice(users),
        "description": _escaped(about), "deleted": int(gone), "assigned_user_id": owner, "account_type": kind,
        "industry": industry, "phone_fax": fax.typed, "billing_address_street": _escaped(place.street),
        "billing_address_city": _escaped(place.city), "billing_address_postalcode": place.postal,
        "billing_address_country": _COUNTRIES[place.country], "phone_office": "ex-directory" if bad else office.typed,
        "phone_alternate": None, "website": site, "shipping_address_city": _escaped(ships), "parent_id": parent,
    })  # fmt: skip
    has_more = overdrawn or maker.chance(0.9)  # accounts from before the custom fields have no row for them
    number_c, limit = f"K-{20_000 + number}", -500 if overdrawn else 500 * maker.draw.randint(0, 40)
    ends = str(maker.day(2025, 2028)) if maker.chance(0.6) else None
    if has_more:
        maker.row("accounts_cstm", {
            "id_c": key, "customer_number_c": number_c, "credit_limit_c": f"{limit}.000000", "contract_end_c": ends,
            "jjwg_maps_lat_c": 0.0,
        })  # fmt: skip
    _address(maker, key, "Accounts", email, False, made)
    if gone:
        maker.exclude("accounts", key)
    elif bad:
        maker.quarantine("accounts", key, "phone", "function")
    elif overdrawn:
        maker.quarantine("accounts", key, "", "check")
    else:
        maker.want(
            "accounts", key, name=name, type=_RELATIONS[kind], industry=industry, phone=office.e164, fax=fax.e164,
            website=site, email=email, billing_street=place.street, billing_city=place.city,
            billing_postal_code=place.postal, billing_country=place.country, shipping_city=ships,
            customer_number=number_c if has_more else None, credit_limit=f"{limit}.00" if has_more else None,
            contract_end=ends if has_more else None, owner_id=owner, parent_id=parent, description=about,
            created_at=maker.instant(made), updated_at=maker.instant(changed),
        )  # fmt: skip
    return key, not (gone or bad or overdrawn)


def _contact(
    maker: Maker, number: int, accounts: list[tuple[str, bool]], people: list[tuple[str, bool]], users: list[str], dirt: float
) -> tuple[str, bool]:  # fmt: skip
    key, place = maker.uuid(), maker.place(*_COUNTRIES)
    one = maker.person(place.country)
    account = maker.draw.choice(accounts)[0] if maker.chance(0.95) else None
    manager = maker.draw.choice(people)[0] if people and maker.chance(0.25) else None
    office = maker.telephone(place.country, "office", "e164", "spaced", "home") if maker.chance(0.7) else None
    mobile = maker.telephone(place.country, "mobile", "e164", "spaced", "home") if maker.chance(0.6) else None
    home = maker.telephone(place.country, "office", "home").typed if maker.chance(0.2) else None
    email = f"{one.letters}{number}@mail.example" if maker.chance(0.9) else None
    out, silent, gone = email is not None and maker.chance(0.2), maker.chance(0.08), maker.chance(0.08)
    bad, zeros = office is not None and maker.chance(dirt), maker.chance(dirt)
    born = str(maker.day(1950, 2001)) if maker.chance(0.4) and not zeros else None
    made, changed, owner = maker.moment(2016, 2019), maker.moment(2020, 2024), maker.draw.choice(users)
    salutation, title = maker.draw.choice(("Mr.", "Ms.", "Dr.", None)), maker.draw.choice(("Buyer", "CFO", "Engineer"))
    department, language = maker.draw.choice(("Purchasing", "IT")), maker.draw.choice(("de", "fr", "en"))
    maker.row("contacts", {
        "id": key, "date_entered": str(made), "date_modified": str(changed), "modified_user_id": maker.draw.choice(users),
        "created_by": maker.draw.choice(users), "description": None, "deleted": int(gone), "assigned_user_id": owner,
        "salutation": salutation, "first_name": _escaped(one.first), "last_name": _escaped(one.last), "title": title,
        "department": department, "do_not_call": int(silent), "phone_home": home,
        "phone_mobile": mobile.typed if mobile else None,
        "phone_work": "ask at the desk" if bad else office.typed if office else None,
        "primary_address_city": _escaped(place.city), "primary_address_country": _COUNTRIES[place.country],
        "alt_address_city": None, "assistant": None, "birthdate": "0000-00-00" if zeros else born, "reports_to_id": manager,
    })  # fmt: skip
    maker.row(
        "contacts_cstm", {"id_c": key, "newsletter_language_c": language, "badge_printed_c": int(maker.chance(0.5))}
    )
    if account is not None:
        maker.row("accounts_contacts", {
            "id": maker.uuid(), "contact_id": key, "account_id": account, "date_modified": str(changed), "deleted": 0,
        })  # fmt: skip
    if maker.chance(0.15):  # an employer of old
        maker.row("accounts_contacts", {
            "id": maker.uuid(), "contact_id": key, "account_id": maker.draw.choice(accounts)[0], "date_modified": str(made),
            "deleted": 1,
        })  # fmt: skip
    if email is not None:
        _address(maker, key, "Contacts", email, out, made)
        if maker.chance(0.2):
            _address(maker, key, "Contacts", f"{one.letters}{number}@home.example", False, made, primary=False)
    if gone:
        maker.exclude("contacts", key)
    elif bad:
        maker.quarantine("contacts", key, "work_phone", "function")
    else:
        maker.want(
            "contacts", key, organisation_id=account, salutation=salutation, first_name=one.first, last_name=one.last,
            job_title=title, department=department, work_phone=office.e164 if office else None,
            mobile_phone=mobile.e164 if mobile else None, email=email, email_opt_out=out, do_not_call=silent, birthdate=born,
            city=place.city, newsletter_language=language, reports_to_id=manager, owner_id=owner,
            created_at=maker.instant(made),
        )  # fmt: skip
    return key, not (gone or bad)


def _call(maker: Maker, accounts: list[tuple[str, bool]], people: list[tuple[str, bool]], users: list[str]) -> None:
    key, owner, state = maker.uuid(), maker.draw.choice(users), maker.draw.choice(list(_STATES))
    whose, (parent, _) = maker.draw.choice(
        (("Accounts", maker.draw.choice(accounts)), ("Contacts", maker.draw.choice(people)))
    )
    made, start = maker.moment(2019, 2020), maker.moment(2021, 2024)
    hours, minutes, gone = maker.draw.randint(0, 1), 15 * maker.draw.randint(1, 3), maker.chance(0.05)
    subject, way = f"About the offer & order {made:%d.%m.}", maker.draw.choice(("Inbound", "Outbound"))
    maker.row("calls", {
        "id": key, "name": _escaped(subject), "date_entered": str(made), "date_modified": str(start), "deleted": int(gone),
        "assigned_user_id": owner, "duration_hours": hours, "duration_minutes": minutes, "date_start": str(start),
        "date_end": str(start), "parent_type": whose, "status": state, "direction": way, "parent_id": parent,
        "reminder_time": -1,
    })  # fmt: skip
    if gone:
        maker.exclude("calls", key)
    else:
        maker.want(
            "calls", key, subject=subject, status=_STATES[state], direction=way, start_at=maker.instant(start),
            duration_minutes=60 * hours + minutes, organisation_id=parent if whose == "Accounts" else None,
            contact_id=parent if whose == "Contacts" else None, owner_id=owner, created_at=maker.instant(made),
        )  # fmt: skip
