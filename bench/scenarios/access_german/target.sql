CREATE TYPE visit_kind AS ENUM ('visit', 'call', 'fair');
CREATE TABLE employees (
    id integer PRIMARY KEY, initials text, given_name text, family_name text NOT NULL, email text, extension text);
CREATE TABLE customers (
    id integer PRIMARY KEY, name text NOT NULL, name_addition text, street text, postal_code text, city text,
    country_code char(2), phone text, fax text, email text, website text, sector text, revenue_last_year numeric(14,2),
    account_manager_id integer REFERENCES employees, vat_id text, remarks text, created_on date NOT NULL, changed_on date);
CREATE TABLE contacts (
    id integer PRIMARY KEY, customer_id integer NOT NULL REFERENCES customers, salutation text, academic_title text,
    given_name text, family_name text NOT NULL, position text, phone text, mobile text, email text, birthday date,
    no_marketing boolean NOT NULL, remarks text, created_on date NOT NULL);
CREATE TABLE visits (
    id integer PRIMARY KEY, contact_id integer NOT NULL REFERENCES contacts, employee_id integer REFERENCES employees,
    visited_on date NOT NULL, kind visit_kind NOT NULL, subject text, report text);
