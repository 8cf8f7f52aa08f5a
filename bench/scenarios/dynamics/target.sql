CREATE TYPE standing AS ENUM ('active', 'inactive');
CREATE TYPE segment AS ENUM ('enterprise', 'mid_market', 'small_business');
CREATE TYPE outcome AS ENUM ('open', 'won', 'lost');
CREATE TABLE sales_reps (
    id uuid PRIMARY KEY, full_name text NOT NULL, email text NOT NULL, disabled boolean NOT NULL);
CREATE TABLE clients (
    id uuid PRIMARY KEY, name text NOT NULL, client_number text UNIQUE, segment segment, sector text, standing standing NOT NULL,
    phone text, fax text, website text, email text, address_line text, city text, postcode text, country char(2),
    turnover numeric(18,2), employees integer, parent_id uuid REFERENCES clients, owner_id uuid REFERENCES sales_reps,
    created_at timestamptz NOT NULL, modified_at timestamptz);
CREATE TABLE client_contacts (
    id uuid PRIMARY KEY, client_id uuid REFERENCES clients, forename text, surname text NOT NULL, job_title text, email text,
    phone text, mobile text, do_not_email boolean NOT NULL, do_not_phone boolean NOT NULL, birthday date, badge_number text,
    standing standing NOT NULL, owner_id uuid REFERENCES sales_reps, created_at timestamptz NOT NULL);
CREATE TABLE opportunities (
    id uuid PRIMARY KEY, client_id uuid REFERENCES clients, contact_id uuid REFERENCES client_contacts, topic text NOT NULL,
    outcome outcome NOT NULL, estimated_value numeric(18,2), estimated_close_date date, probability smallint,
    owner_id uuid REFERENCES sales_reps, created_at timestamptz NOT NULL);
