CREATE TYPE deal_stage AS ENUM ('prospecting', 'qualification', 'proposal', 'negotiation', 'won', 'lost');
CREATE TABLE members (
    id uuid PRIMARY KEY, full_name text NOT NULL, email text NOT NULL, job_title text, active boolean NOT NULL DEFAULT true,
    joined_at timestamptz NOT NULL);
CREATE TABLE companies (
    id uuid PRIMARY KEY, name text NOT NULL, parent_id uuid REFERENCES companies, street text, city text, region text,
    postal_code text, country_code char(2), phone text, fax text, website text, industry text, annual_revenue numeric(16,2),
    headcount integer, vat_number text, notes text, owner_id uuid REFERENCES members, created_at timestamptz NOT NULL,
    updated_at timestamptz);
CREATE TABLE people (
    id uuid PRIMARY KEY, company_id uuid REFERENCES companies, manager_id uuid REFERENCES people, honorific text,
    given_name text, family_name text NOT NULL, email text, phone text, mobile text, job_title text, department text,
    birth_date date, street text, city text, postal_code text, country_code char(2),
    email_opt_out boolean NOT NULL DEFAULT false, do_not_call boolean NOT NULL DEFAULT false, languages text[],
    source text, owner_id uuid REFERENCES members, created_at timestamptz NOT NULL, updated_at timestamptz);
CREATE TABLE deals (
    id uuid PRIMARY KEY, company_id uuid REFERENCES companies, title text NOT NULL, stage deal_stage NOT NULL,
    amount numeric(16,2), probability smallint CHECK (probability BETWEEN 0 AND 100), closes_on date, owner_id uuid REFERENCES members,
    created_at timestamptz NOT NULL, updated_at timestamptz);
