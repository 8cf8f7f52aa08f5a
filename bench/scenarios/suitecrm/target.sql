CREATE TYPE relation AS ENUM ('customer', 'prospect', 'supplier', 'partner');
CREATE TYPE call_status AS ENUM ('planned', 'held', 'not_held');
CREATE TABLE staff (
    id uuid PRIMARY KEY, login text NOT NULL UNIQUE, full_name text NOT NULL, job_title text, email text,
    active boolean NOT NULL);
CREATE TABLE organisations (
    id uuid PRIMARY KEY, name text NOT NULL, type relation, industry text, phone text, fax text, website text, email text,
    billing_street text, billing_city text, billing_postal_code text, billing_country char(2), shipping_city text,
    customer_number text UNIQUE, credit_limit numeric(12,2), contract_end date, owner_id uuid REFERENCES staff,
    parent_id uuid REFERENCES organisations, description text, created_at timestamptz NOT NULL, updated_at timestamptz);
CREATE TABLE contacts (
    id uuid PRIMARY KEY, organisation_id uuid REFERENCES organisations, salutation text, first_name text,
    last_name text NOT NULL, job_title text, department text, work_phone text, mobile_phone text, email text,
    email_opt_out boolean NOT NULL DEFAULT false, do_not_call boolean NOT NULL DEFAULT false, birthdate date, city text,
    newsletter_language text, reports_to_id uuid REFERENCES contacts, owner_id uuid REFERENCES staff,
    created_at timestamptz NOT NULL);
CREATE TABLE calls (
    id uuid PRIMARY KEY, subject text NOT NULL, status call_status NOT NULL, direction text, start_at timestamptz,
    duration_minutes integer, organisation_id uuid REFERENCES organisations, contact_id uuid REFERENCES contacts,
    owner_id uuid REFERENCES staff, created_at timestamptz NOT NULL);
