-- The cloud CRM of cloud.sql in MariaDB, translated by hand: an empty database. Lists are text there, and unique
-- keys fold case by the collation. References in a column need MariaDB 10.5; older servers read over them.

create table currencies (
    code char(3) primary key,
    name text not null
);

create table members (
    id char(36) primary key,
    login varchar(60) not null unique,
    full_name text not null,
    job_title text,
    email varchar(254) not null,
    phone text check (phone regexp '^[+][1-9][0-9]{6,14}$'),
    state enum ('active', 'suspended') not null,
    is_admin boolean not null default false,
    manager_id char(36) references members (id),
    locale varchar(10) not null default 'en',
    joined_at timestamp not null default current_timestamp
);
create unique index members_email_key on members (email);

create table campaigns (
    id bigint auto_increment primary key,
    title varchar(120) not null,
    channel enum ('email', 'phone', 'event', 'web', 'print', 'other') not null,
    budget decimal(12, 2) check (budget >= 0),
    starts_on date,
    ends_on date,
    utm_source text,
    owner_id char(36) references members (id),
    created_at timestamp not null default current_timestamp,
    constraint campaigns_period check (ends_on >= starts_on)
);

create table companies (
    id char(36) primary key,
    name varchar(150) not null,
    kind enum ('customer', 'prospect', 'partner', 'supplier', 'competitor', 'other'),
    industry enum (
        'automotive', 'banking', 'biotechnology', 'chemicals', 'construction', 'consulting', 'education',
        'energy', 'food', 'government', 'healthcare', 'hospitality', 'insurance', 'logistics', 'machinery',
        'media', 'nonprofit', 'real_estate', 'retail', 'software', 'telecom', 'other'),
    parent_id char(36) references companies (id),
    owner_id char(36) references members (id),
    primary_contact_id char(36),
    website text check (website regexp '^https?://'),
    domain text,
    phone text check (phone regexp '^[+][1-9][0-9]{6,14}$'),
    annual_revenue decimal(14, 2) check (annual_revenue >= 0),
    headcount integer check (headcount >= 0),
    tax_number varchar(20),
    customer_since date,
    street text,
    city text,
    region text,
    postal_code varchar(12),
    country_code char(2),
    tags text,
    about text,
    created_at timestamp not null default current_timestamp,
    updated_at timestamp not null default current_timestamp
);

create table people (
    id char(36) primary key,
    company_id char(36) references companies (id),
    reports_to_id char(36) references people (id),
    owner_id char(36) references members (id),
    honorific varchar(20),
    given_name varchar(80),
    family_name varchar(80) not null,
    job_title varchar(100),
    department text,
    email varchar(254),
    email_opt_out boolean not null default false,
    do_not_call boolean not null default false,
    newsletter boolean,
    mobile text check (mobile regexp '^[+][1-9][0-9]{6,14}$'),
    phone text check (phone regexp '^[+][1-9][0-9]{6,14}$'),
    street text,
    city text,
    region text,
    postal_code varchar(12),
    country_code char(2),
    birthday date,
    interests text,
    acquired_through enum ('phone', 'web', 'email', 'event', 'referral', 'partner', 'campaign', 'other'),
    credit_limit decimal(12, 2),
    engagement integer,
    contract_signed_on date,
    avatar_url text,
    about text,
    created_at timestamp not null default current_timestamp,
    updated_at timestamp not null default current_timestamp
);
create unique index people_email_key on people (email);

alter table companies
    add constraint companies_primary_contact_id_fkey foreign key (primary_contact_id) references people (id);

create table person_emails (
    person_id char(36) not null references people (id),
    address varchar(254) not null,
    is_primary boolean not null,
    opted_out boolean not null default false,
    verified_at timestamp null,
    primary key (person_id, address)
);

create table leads (
    id char(36) primary key,
    given_name varchar(80),
    family_name varchar(80) not null,
    company_name text,
    job_title text,
    email varchar(254),
    phone text check (phone regexp '^[+][1-9][0-9]{6,14}$'),
    country_code char(2),
    state enum ('new', 'contacted', 'qualified', 'converted', 'discarded') not null,
    acquired_through enum ('phone', 'web', 'email', 'event', 'referral', 'partner', 'campaign', 'other'),
    estimated_value decimal(12, 2),
    campaign_id bigint references campaigns (id),
    owner_id char(36) references members (id),
    converted_person_id char(36) references people (id),
    about text,
    created_at timestamp not null default current_timestamp
);

create table deals (
    id char(36) primary key,
    title varchar(150) not null,
    company_id char(36) not null references companies (id),
    stage enum ('new', 'qualified', 'proposal', 'negotiation', 'won', 'lost') not null,
    amount decimal(12, 2) not null check (amount >= 0),
    currency_code char(3) not null references currencies (code),
    win_probability smallint check (win_probability between 0 and 100),
    expected_close_on date,
    acquired_through enum ('phone', 'web', 'email', 'event', 'referral', 'partner', 'campaign', 'other'),
    campaign_id bigint references campaigns (id),
    owner_id char(36) references members (id),
    next_step text,
    lost_reason text,
    created_at timestamp not null default current_timestamp,
    updated_at timestamp not null default current_timestamp
);

-- A deal that is won has brought something in.
create trigger deals_won_amount before insert on deals for each row
    if new.stage = 'won' and new.amount = 0 then
        signal sqlstate '45000' set message_text = 'a won deal needs an amount';
    end if;


create table deal_people (
    deal_id char(36) not null references deals (id),
    person_id char(36) not null references people (id),
    part text,
    primary key (deal_id, person_id)
);

create table tickets (
    id char(36) primary key,
    number integer not null unique,
    subject varchar(120) not null,
    state enum ('open', 'pending', 'closed') not null,
    urgency enum ('high', 'normal', 'low') not null default 'normal',
    company_id char(36) references companies (id),
    assignee_id char(36) references members (id),
    problem text,
    solution text,
    opened_at timestamp not null default current_timestamp
);

create table notes (
    id char(36) primary key,
    subject text not null,
    body text,
    pinned boolean not null default false,
    company_id char(36) references companies (id),
    person_id char(36) references people (id),
    deal_id char(36) references deals (id),
    lead_id char(36) references leads (id),
    ticket_id char(36) references tickets (id),
    author_id char(36) references members (id),
    created_at timestamp not null default current_timestamp,
    constraint notes_one_parent check ((company_id is not null) + (deal_id is not null) + (lead_id is not null) + (ticket_id is not null) <= 1)
);

create table activities (
    id char(36) primary key,
    kind enum ('call', 'meeting', 'task') not null,
    subject text not null,
    state enum ('planned', 'done', 'cancelled') not null,
    starts_at timestamp null,
    due_at timestamp null,
    duration_minutes integer check (duration_minutes >= 0),
    location text,
    body text,
    company_id char(36) references companies (id),
    person_id char(36) references people (id),
    deal_id char(36) references deals (id),
    lead_id char(36) references leads (id),
    assignee_id char(36) references members (id),
    created_at timestamp not null default current_timestamp
);

-- What the cloud service keeps for itself; no legacy record goes here.
create table saved_views (
    id bigint auto_increment primary key,
    member_id char(36) not null references members (id),
    title text not null,
    definition text not null
);

insert into currencies (code, name) values
    ('AUD', 'Australian dollar'), ('BRL', 'Brazilian real'), ('CAD', 'Canadian dollar'), ('CHF', 'Swiss franc'),
    ('CZK', 'Czech koruna'), ('EUR', 'Euro'), ('GBP', 'Pound sterling'), ('INR', 'Indian rupee'), ('JPY', 'Yen'),
    ('MXN', 'Mexican peso'), ('PLN', 'Złoty'), ('SEK', 'Swedish krona'), ('USD', 'US dollar');
