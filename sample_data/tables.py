"""The tables of the legacy CRM: columns with their kinds, keys and indexes, and the DDL each server takes.

A kind says what the column is, not how one server spells it:

    id      a 36-character key                    flag      a tinyint that means yes or no
    ref     a 36-character reference, unchecked   bit       a BIT(1) (boolean on PostgreSQL)
    str:N   text of at most N characters          int uint double
    text    long text                             date datetime

No foreign keys: the legacy system keeps none, which is how its orphans came about.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SourceTable:
    """A legacy table: `columns` maps names to kinds in order, `key` is its primary key ("" where it has none).

    `latin1` tables are stored in MariaDB's latin1 (which is cp1252), the others in utf8mb4.
    """

    name: str
    key: str
    columns: dict[str, str]
    indexes: tuple[tuple[str, ...], ...] = ()
    latin1: bool = False


_STAMPS = "date_entered datetime, date_modified datetime, modified_user_id ref, created_by ref"


def _table(
    name: str, key: str, columns: str, *, indexes: tuple[tuple[str, ...], ...] = (), latin1: bool = False
) -> SourceTable:
    words = columns.replace(",", "").split()
    return SourceTable(name, key, dict(zip(words[::2], words[1::2], strict=True)), indexes, latin1)


SOURCE_TABLES: tuple[SourceTable, ...] = (
    _table("config", "", "category str:32, name str:32, value text", indexes=(("category",),)),
    _table(
        "users",
        "id",
        "id id, user_name str:60, user_hash str:255, first_name str:255, last_name str:255, title str:50, "
        "department str:50, phone_work str:50, phone_mobile str:50, status str:100, "
        f"employee_status str:100, is_admin flag, reports_to_id ref, {_STAMPS}, deleted flag",
    ),
    _table(
        "currencies",
        "id",
        "id id, name str:36, symbol str:36, iso4217 str:3, conversion_rate double, status str:100, deleted flag",
    ),
    _table(
        "campaigns",
        "id",
        f"id id, name str:120, {_STAMPS}, deleted flag, assigned_user_id ref, tracker_key int, "
        "start_date date, end_date date, status str:100, impressions int, currency_id ref, budget double, "
        "expected_cost double, campaign_type str:100, objective text, content text",
        latin1=True,
    ),
    _table(
        "accounts",
        "id",
        f"id id, name str:150, {_STAMPS}, description text, deleted flag, assigned_user_id ref, "
        "account_type str:50, industry str:50, annual_revenue str:100, phone_fax str:100, "
        "phone_office str:100, phone_alternate str:100, billing_address_street str:150, "
        "billing_address_city str:100, billing_address_state str:100, billing_address_postalcode str:20, "
        "billing_address_country str:255, shipping_address_city str:100, shipping_address_country str:255, "
        "rating str:100, website str:255, ownership str:100, employees str:10, ticker_symbol str:10, "
        "sic_code str:10, parent_id ref, campaign_id ref",
        indexes=(("parent_id",),),
    ),
    _table(
        "accounts_cstm",
        "id_c",
        "id_c id, vat_no_c str:30, customer_since_c str:20, tags_c text, primary_contact_id_c ref, erp_sync_c flag",
    ),
    _table(
        "contacts",
        "id",
        f"id id, {_STAMPS}, description text, deleted flag, assigned_user_id ref, salutation str:255, "
        "first_name str:100, last_name str:100, title str:100, department str:255, do_not_call bit, "
        "phone_home str:100, phone_mobile str:100, phone_work str:100, phone_fax str:100, "
        "primary_address_street str:150, primary_address_street_2 str:150, primary_address_city str:100, "
        "primary_address_state str:100, primary_address_postalcode str:20, "
        "primary_address_country str:255, alt_address_city str:100, alt_address_country str:255, "
        "assistant str:75, lead_source str:255, reports_to_id ref, birthdate date, campaign_id ref, "
        "portal_user_type str:100",
        indexes=(("last_name",),),
    ),
    _table(
        "contacts_cstm",
        "id_c",
        "id_c id, interests_c text, newsletter_c flag, score_c uint, credit_limit_c str:40, "
        "contract_date_c str:20, old_crm_no_c str:20",
    ),
    _table(
        "accounts_contacts",
        "id",
        "id id, contact_id ref, account_id ref, date_modified datetime, deleted flag",
        indexes=(("contact_id", "deleted", "account_id"),),
    ),
    _table(
        "email_addresses",
        "id",
        "id id, email_address str:255, email_address_caps str:255, invalid_email flag, opt_out flag, "
        "date_created datetime, deleted flag",
    ),
    _table(
        "email_addr_bean_rel",
        "id",
        "id id, email_address_id ref, bean_id ref, bean_module str:100, primary_address flag, "
        "reply_to_address flag, date_created datetime, deleted flag",
        indexes=(("bean_id", "bean_module"),),
    ),
    _table(
        "leads",
        "id",
        f"id id, {_STAMPS}, description text, deleted flag, assigned_user_id ref, full_name str:200, "
        "title str:100, account_name str:255, phone_work str:100, primary_address_country str:255, "
        "status str:100, status_description text, lead_source str:100, refered_by str:100, "
        "opportunity_amount str:50, converted flag, contact_id ref, campaign_id ref",
    ),
    _table(
        "opportunities",
        "id",
        f"id id, name str:150, {_STAMPS}, description text, deleted flag, assigned_user_id ref, "
        "opportunity_type str:255, campaign_id ref, lead_source str:50, amount double, "
        "amount_usdollar double, currency_id ref, date_closed date, next_step str:100, "
        "sales_stage str:255, probability int",
    ),
    _table(
        "accounts_opportunities",
        "id",
        "id id, opportunity_id ref, account_id ref, date_modified datetime, deleted flag",
        indexes=(("opportunity_id", "deleted", "account_id"),),
    ),
    _table(
        "opportunities_contacts",
        "id",
        "id id, contact_id ref, opportunity_id ref, contact_role str:50, date_modified datetime, deleted flag",
    ),
    _table(
        "cases",
        "id",
        f"id id, case_number int, name str:255, {_STAMPS}, description text, deleted flag, "
        "assigned_user_id ref, type str:255, status str:100, priority str:100, resolution text, "
        "work_log text, account_id ref",
        latin1=True,
    ),
    _table(
        "notes",
        "id",
        f"id id, name str:255, {_STAMPS}, description text, deleted flag, assigned_user_id ref, "
        "parent_type str:255, parent_id ref, contact_id ref, filename str:255, file_mime_type str:100, "
        "portal_flag flag",
    ),
    _table(
        "calls",
        "id",
        f"id id, name str:150, {_STAMPS}, description text, deleted flag, assigned_user_id ref, "
        "status str:100, date_start datetime, parent_type str:255, parent_id ref, date_end datetime, "
        "duration_hours int, duration_minutes int, direction str:100, reminder_time int",
    ),
    _table(
        "meetings",
        "id",
        f"id id, name str:150, {_STAMPS}, description text, deleted flag, assigned_user_id ref, "
        "status str:100, date_start datetime, parent_type str:255, parent_id ref, date_end datetime, "
        "duration_hours int, duration_minutes int, location str:150, reminder_time int",
    ),
    _table(
        "tasks",
        "id",
        f"id id, name str:150, {_STAMPS}, description text, deleted flag, assigned_user_id ref, "
        "status str:100, date_start datetime, parent_type str:255, parent_id ref, date_due datetime, "
        "date_due_flag flag, contact_id ref, priority str:100",
    ),
)
"""All tables of the legacy CRM."""

_TYPES: dict[str, dict[str, str]] = {
    "sqlite": {
        "id": "CHAR(36)",
        "ref": "VARCHAR(36)",
        "text": "TEXT",
        "flag": "TINYINT",
        "bit": "BIT",
        "int": "INTEGER",
        "uint": "INTEGER",
        "double": "REAL",
        "date": "DATE",
        "datetime": "DATETIME",
    },
    "mariadb": {
        "id": "CHAR(36)",
        "ref": "CHAR(36)",
        "text": "LONGTEXT",
        "flag": "TINYINT(1)",
        "bit": "BIT(1)",
        "int": "INT(11)",
        "uint": "INT(11) UNSIGNED",
        "double": "DOUBLE",
        "date": "DATE",
        "datetime": "DATETIME",
    },
    # A date column that held zero dates became text when this system was moved to PostgreSQL.
    "postgresql": {
        "id": "varchar(36)",
        "ref": "varchar(36)",
        "text": "text",
        "flag": "smallint",
        "bit": "boolean",
        "int": "integer",
        "uint": "bigint",
        "double": "double precision",
        "date": "varchar(10)",
        "datetime": "timestamp",
    },
}


def create_statements(table: SourceTable, form: str) -> tuple[str, ...]:
    """The CREATE TABLE of a legacy table and then its indexes; form is sqlite, mariadb or postgresql."""
    mark = "`" if form == "mariadb" else '"'
    lines = []
    for name, kind in table.columns.items():
        base, _, length = kind.partition(":")
        type_ = f"VARCHAR({length})" if base == "str" else _TYPES[form][base]
        lines.append(f"{mark}{name}{mark} {type_}{' NOT NULL' if name == table.key else ''}")
    if table.key:
        lines.append(f"PRIMARY KEY ({mark}{table.key}{mark})")
    tail = ""
    if form == "mariadb":
        tail = f" ENGINE=InnoDB DEFAULT CHARSET={'latin1' if table.latin1 else 'utf8mb4'}"
    body = ",\n  ".join(lines)
    indexes = tuple(
        f"CREATE INDEX {mark}idx_{table.name}_{columns[0]}{mark} ON {mark}{table.name}{mark} "
        f"({', '.join(mark + c + mark for c in columns)})"
        for columns in table.indexes
    )
    return (f"CREATE TABLE {mark}{table.name}{mark} (\n  {body}\n){tail}", *indexes)
