-- An open-source CRM's own tables: text keys of 36 characters, deleted as a flag everywhere, custom fields in a table
-- beside each, e-mail addresses shared by all and reached through a table that says whose they are, text escaped for HTML.
CREATE TABLE users (
    id CHAR(36) PRIMARY KEY, user_name VARCHAR(60), user_hash VARCHAR(255), first_name VARCHAR(255), last_name VARCHAR(255),
    title VARCHAR(50), status VARCHAR(100), is_admin TINYINT(1), date_entered DATETIME, deleted TINYINT(1) DEFAULT 0);
CREATE TABLE accounts (
    id CHAR(36) PRIMARY KEY, name VARCHAR(150), date_entered DATETIME, date_modified DATETIME, modified_user_id CHAR(36),
    created_by CHAR(36), description TEXT, deleted TINYINT(1) DEFAULT 0, assigned_user_id CHAR(36), account_type VARCHAR(50),
    industry VARCHAR(50), phone_fax VARCHAR(100), billing_address_street VARCHAR(150), billing_address_city VARCHAR(100),
    billing_address_postalcode VARCHAR(20), billing_address_country VARCHAR(255), phone_office VARCHAR(100),
    phone_alternate VARCHAR(100), website VARCHAR(255), shipping_address_city VARCHAR(100), parent_id CHAR(36));
CREATE TABLE accounts_cstm (
    id_c CHAR(36) PRIMARY KEY, customer_number_c VARCHAR(20), credit_limit_c DECIMAL(26,6), contract_end_c DATE,
    jjwg_maps_lat_c FLOAT);
CREATE TABLE contacts (
    id CHAR(36) PRIMARY KEY, date_entered DATETIME, date_modified DATETIME, modified_user_id CHAR(36), created_by CHAR(36),
    description TEXT, deleted TINYINT(1) DEFAULT 0, assigned_user_id CHAR(36), salutation VARCHAR(255),
    first_name VARCHAR(100), last_name VARCHAR(100), title VARCHAR(100), department VARCHAR(255), do_not_call TINYINT(1),
    phone_home VARCHAR(100), phone_mobile VARCHAR(100), phone_work VARCHAR(100), primary_address_city VARCHAR(100),
    primary_address_country VARCHAR(255), alt_address_city VARCHAR(100), assistant VARCHAR(75), birthdate DATE,
    reports_to_id CHAR(36));
CREATE TABLE contacts_cstm (id_c CHAR(36) PRIMARY KEY, newsletter_language_c VARCHAR(10), badge_printed_c TINYINT(1));
CREATE TABLE accounts_contacts (
    id VARCHAR(36) PRIMARY KEY, contact_id VARCHAR(36), account_id VARCHAR(36), date_modified DATETIME, deleted TINYINT(1) DEFAULT 0);
CREATE TABLE email_addresses (
    id CHAR(36) PRIMARY KEY, email_address VARCHAR(255), email_address_caps VARCHAR(255), invalid_email TINYINT(1),
    opt_out TINYINT(1), date_created DATETIME, deleted TINYINT(1) DEFAULT 0);
CREATE TABLE email_addr_bean_rel (
    id CHAR(36) PRIMARY KEY, email_address_id CHAR(36), bean_id CHAR(36), bean_module VARCHAR(100), primary_address TINYINT(1),
    reply_to_address TINYINT(1), date_created DATETIME, deleted TINYINT(1) DEFAULT 0);
CREATE TABLE calls (
    id CHAR(36) PRIMARY KEY, name VARCHAR(50), date_entered DATETIME, date_modified DATETIME, deleted TINYINT(1) DEFAULT 0,
    assigned_user_id CHAR(36), duration_hours INT, duration_minutes INT, date_start DATETIME, date_end DATETIME,
    parent_type VARCHAR(255), status VARCHAR(100), direction VARCHAR(100), parent_id CHAR(36), reminder_time INT);
