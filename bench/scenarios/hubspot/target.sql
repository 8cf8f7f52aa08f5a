CREATE TYPE stage AS ENUM ('appointment', 'qualified', 'won', 'lost');
CREATE TABLE users (
    id bigint PRIMARY KEY, name text NOT NULL, email text NOT NULL);
CREATE TABLE accounts (
    id bigint PRIMARY KEY, name text NOT NULL, website text, phone text, street text, city text, region text,
    postal_code text, country_code char(2), industry text, employee_count int, annual_revenue numeric(15,2),
    description text, owner_id bigint REFERENCES users, shipping_city text, created_at timestamptz NOT NULL,
    updated_at timestamptz);
CREATE TABLE people (
    id bigint PRIMARY KEY, account_id bigint REFERENCES accounts, salutation text, first_name text,
    last_name text NOT NULL, job_title text, email text, phone text, mobile text, birthdate date,
    email_opt_out boolean NOT NULL DEFAULT false, do_not_call boolean, owner_id bigint REFERENCES users,
    assistant_name text, created_at timestamptz NOT NULL, updated_at timestamptz);
CREATE TABLE opportunities (
    id bigint PRIMARY KEY, account_id bigint REFERENCES accounts, name text NOT NULL, stage stage NOT NULL,
    amount numeric(15,2), close_date date, probability int, owner_id bigint REFERENCES users,
    created_at timestamptz NOT NULL);
