-- The cloud CRM of cloud.sql in SQLite, translated by hand: an empty file. Lists are text there, and labels a check.

create table currencies (
    code char(3) primary key,
    name text not null
);

create table members (
    id uuid primary key,
    login varchar(60) not null unique,
    full_name text not null,
    job_title text,
    email text not null,
    phone text check (phone glob '+[1-9][0-9][0-9][0-9][0-9][0-9][0-9]*'),
    state text not null check (state in ('active', 'suspended')),
    is_admin boolean not null default 0,
    manager_id uuid references members (id),
    locale varchar(10) not null default 'en',
    joined_at timestamptz not null
);
create unique index members_email_key on members (lower(email));

create table campaigns (
    id integer primary key,
    title varchar(120) not null,
    channel text not null check (channel in ('email', 'phone', 'event', 'web', 'print', 'other')),
    budget numeric(12, 2) check (budget >= 0),
    starts_on date,
    ends_on date,
    utm_source text,
    owner_id uuid references members (id),
    created_at timestamptz not null,
    constraint campaigns_period check (ends_on >= starts_on)
);

create table companies (
    id uuid primary key,
    name varchar(150) not null,
    kind text check (kind in ('customer', 'prospect', 'partner', 'supplier', 'competitor', 'other')),
    industry text check (industry in (
        'automotive', 'banking', 'biotechnology', 'chemicals', 'construction', 'consulting', 'education',
        'energy', 'food', 'government', 'healthcare', 'hospitality', 'insurance', 'logistics', 'machinery',
        'media', 'nonprofit', 'real_estate', 'retail', 'software', 'telecom', 'other')),
    parent_id uuid references companies (id),
    owner_id uuid references members (id),
    primary_contact_id uuid references people (id),
    website text check (website like 'http://%' or website like 'https://%'),
    domain text,
    phone text check (phone glob '+[1-9][0-9][0-9][0-9][0-9][0-9][0-9]*'),
    annual_revenue numeric(14, 2) check (annual_revenue >= 0),
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
    created_at timestamptz not null,
    updated_at timestamptz not null
);
create index companies_parent_id_idx on companies (parent_id);

create table people (
    id uuid primary key,
    company_id uuid references companies (id),
    reports_to_id uuid references people (id),
    owner_id uuid references members (id),
    honorific varchar(20),
    given_name varchar(80),
    family_name varchar(80) not null,
    job_title varchar(100),
    department text,
    email text,
    email_opt_out boolean not null default 0,
    do_not_call boolean not null default 0,
    newsletter boolean,
    mobile text check (mobile glob '+[1-9][0-9][0-9][0-9][0-9][0-9][0-9]*'),
    phone text check (phone glob '+[1-9][0-9][0-9][0-9][0-9][0-9][0-9]*'),
    street text,
    city text,
    region text,
    postal_code varchar(12),
    country_code char(2),
    birthday date,
    interests text,
    acquired_through text check (acquired_through in ('phone', 'web', 'email', 'event', 'referral', 'partner', 'campaign', 'other')),
    credit_limit numeric(12, 2),
    engagement integer,
    contract_signed_on date,
    avatar_url text,
    about text,
    created_at timestamptz not null,
    updated_at timestamptz not null
);
create unique index people_email_key on people (lower(email));
create index people_company_id_idx on people (company_id);


create table person_emails (
    person_id uuid not null references people (id),
    address text not null,
    is_primary boolean not null,
    opted_out boolean not null default 0,
    verified_at timestamptz,
    primary key (person_id, address)
);

create table leads (
    id uuid primary key,
    given_name varchar(80),
    family_name varchar(80) not null,
    company_name text,
    job_title text,
    email text,
    phone text check (phone glob '+[1-9][0-9][0-9][0-9][0-9][0-9][0-9]*'),
    country_code char(2),
    state text not null check (state in ('new', 'contacted', 'qualified', 'converted', 'discarded')),
    acquired_through text check (acquired_through in ('phone', 'web', 'email', 'event', 'referral', 'partner', 'campaign', 'other')),
    estimated_value numeric(12, 2),
    campaign_id bigint references campaigns (id),
    owner_id uuid references members (id),
    converted_person_id uuid references people (id),
    about text,
    created_at timestamptz not null
);

create table deals (
    id uuid primary key,
    title varchar(150) not null,
    company_id uuid not null references companies (id),
    stage text not null check (stage in ('new', 'qualified', 'proposal', 'negotiation', 'won', 'lost')),
    amount numeric(12, 2) not null check (amount >= 0),
    currency_code char(3) not null references currencies (code),
    win_probability smallint check (win_probability between 0 and 100),
    expected_close_on date,
    acquired_through text check (acquired_through in ('phone', 'web', 'email', 'event', 'referral', 'partner', 'campaign', 'other')),
    campaign_id bigint references campaigns (id),
    owner_id uuid references members (id),
    next_step text,
    lost_reason text,
    created_at timestamptz not null,
    updated_at timestamptz not null
);

-- A deal that is won has brought something in.
create trigger deals_won_amount before insert on deals when new.stage = 'won' and new.amount = 0
begin
    select raise(abort, 'a won deal needs an amount');
end;


create table deal_people (
    deal_id uuid not null references deals (id),
    person_id uuid not null references people (id),
    part text,
    primary key (deal_id, person_id)
);

create table tickets (
    id uuid primary key,
    number integer not null unique,
    subject varchar(120) not null,
    state text not null check (state in ('open', 'pending', 'closed')),
    urgency text not null default 'normal' check (urgency in ('high', 'normal', 'low')),
    company_id uuid references companies (id),
    assignee_id uuid references members (id),
    problem text,
    solution text,
    opened_at timestamptz not null
);

create table notes (
    id uuid primary key,
    subject text not null,
    body text,
    pinned boolean not null default 0,
    company_id uuid references companies (id),
    person_id uuid references people (id),
    deal_id uuid references deals (id),
    lead_id uuid references leads (id),
    ticket_id uuid references tickets (id),
    author_id uuid references members (id),
    created_at timestamptz not null,
    constraint notes_one_parent check ((company_id is not null) + (deal_id is not null) + (lead_id is not null) + (ticket_id is not null) <= 1)
);

create table activities (
    id uuid primary key,
    kind text not null check (kind in ('call', 'meeting', 'task')),
    subject text not null,
    state text not null check (state in ('planned', 'done', 'cancelled')),
    starts_at timestamptz,
    due_at timestamptz,
    duration_minutes integer check (duration_minutes >= 0),
    location text,
    body text,
    company_id uuid references companies (id),
    person_id uuid references people (id),
    deal_id uuid references deals (id),
    lead_id uuid references leads (id),
    assignee_id uuid references members (id),
    created_at timestamptz not null
);

-- What the cloud service keeps for itself; no legacy record goes here.
create table saved_views (
    id integer primary key,
    member_id uuid not null references members (id),
    title text not null,
    definition text not null
);

insert into currencies (code, name) values
    ('AUD', 'Australian dollar'), ('BRL', 'Brazilian real'), ('CAD', 'Canadian dollar'), ('CHF', 'Swiss franc'),
    ('CZK', 'Czech koruna'), ('EUR', 'Euro'), ('GBP', 'Pound sterling'), ('INR', 'Indian rupee'), ('JPY', 'Yen'),
    ('MXN', 'Mexican peso'), ('PLN', 'Złoty'), ('SEK', 'Swedish krona'), ('USD', 'US dollar');
