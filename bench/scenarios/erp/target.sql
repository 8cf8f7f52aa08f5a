CREATE TYPE order_kind AS ENUM ('standard', 'rush', 'return');
CREATE TABLE customers (
    id uuid PRIMARY KEY, number text NOT NULL UNIQUE, name text NOT NULL, name_2 text, street text, postal_code text, city text,
    country char(2) NOT NULL, language char(2), phone text, fax text, email text, vat_id text, industry text,
    payment_terms text, credit_limit numeric(15,2), currency char(3), blocked boolean NOT NULL, created_on date NOT NULL,
    changed_on date);
CREATE TABLE suppliers (
    id uuid PRIMARY KEY, number text NOT NULL UNIQUE, name text NOT NULL, name_2 text, street text, postal_code text, city text,
    country char(2) NOT NULL, phone text, email text, vat_id text, payment_terms text, currency char(3),
    blocked boolean NOT NULL, created_on date NOT NULL);
CREATE TABLE contact_persons (
    id uuid PRIMARY KEY, customer_id uuid NOT NULL REFERENCES customers, salutation text, first_name text,
    last_name text NOT NULL, department text, phone text, email text, birth_date date, created_on date NOT NULL);
CREATE TABLE orders (
    id uuid PRIMARY KEY, order_number text NOT NULL UNIQUE, customer_id uuid NOT NULL REFERENCES customers,
    kind order_kind NOT NULL, ordered_on date NOT NULL, wanted_on date, net_value numeric(15,2), currency char(3),
    purchase_order text);
