-- A marketing platform's tables as its connector copies them: all times in UTC, ids are numbers, words of its own.
CREATE TABLE owners (
    owner_id INTEGER PRIMARY KEY, firstname VARCHAR(60), lastname VARCHAR(60), email VARCHAR(120), archived BOOLEAN);
CREATE TABLE companies (
    hs_object_id INTEGER PRIMARY KEY, name VARCHAR(200), domain VARCHAR(120), phone VARCHAR(40), address VARCHAR(200),
    city VARCHAR(80), state VARCHAR(80), zip VARCHAR(20), country VARCHAR(80), industry VARCHAR(60),
    numberofemployees INTEGER, annualrevenue DECIMAL(15,2), about_us TEXT, createdate DATETIME,
    hs_lastmodifieddate DATETIME, hubspot_owner_id INTEGER REFERENCES owners(owner_id),
    first_contact_createdate DATETIME, num_associated_contacts INTEGER);
CREATE TABLE contacts (
    vid INTEGER PRIMARY KEY, associatedcompanyid INTEGER REFERENCES companies(hs_object_id), salutation VARCHAR(10),
    firstname VARCHAR(60), lastname VARCHAR(60), email VARCHAR(120), work_email VARCHAR(120), phone VARCHAR(40),
    mobilephone VARCHAR(40), jobtitle VARCHAR(80), lifecyclestage VARCHAR(40), hs_email_optout BOOLEAN,
    date_of_birth DATE, createdate DATETIME, lastmodifieddate DATETIME, notes_last_updated DATETIME,
    hubspot_owner_id INTEGER REFERENCES owners(owner_id), company VARCHAR(200));
CREATE TABLE deals (
    dealid INTEGER PRIMARY KEY, dealname VARCHAR(200), dealstage VARCHAR(40), amount DECIMAL(15,2),
    amount_in_home_currency DECIMAL(15,2), closedate DATE, createdate DATETIME,
    associatedcompanyid INTEGER REFERENCES companies(hs_object_id), hubspot_owner_id INTEGER REFERENCES owners(owner_id));
