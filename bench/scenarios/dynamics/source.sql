-- A copy of a business cloud's tables: GUIDs for keys, lookups as _..._value with the kind of what they lead to beside
-- them, choices as numbers whose labels are in stringmap, state and status as numbers, fields of its own under new_, and
-- each amount once more in the base currency.
CREATE TABLE systemuser (
    systemuserid TEXT PRIMARY KEY, domainname TEXT, fullname TEXT, firstname TEXT, lastname TEXT, internalemailaddress TEXT,
    isdisabled TEXT, createdon TEXT, versionnumber INTEGER);
CREATE TABLE account (
    accountid TEXT PRIMARY KEY, name TEXT, accountnumber TEXT, statecode INTEGER, statuscode INTEGER, industrycode INTEGER,
    new_customersegment INTEGER, telephone1 TEXT, telephone2 TEXT, fax TEXT, websiteurl TEXT, emailaddress1 TEXT,
    address1_line1 TEXT, address1_line2 TEXT, address1_city TEXT, address1_postalcode TEXT, address1_country TEXT,
    address2_city TEXT, revenue TEXT, revenue_base TEXT, exchangerate TEXT, numberofemployees INTEGER,
    _parentaccountid_value TEXT, _ownerid_value TEXT, _owningbusinessunit_value TEXT, createdon TEXT, modifiedon TEXT,
    importsequencenumber INTEGER, versionnumber INTEGER);
CREATE TABLE contact (
    contactid TEXT PRIMARY KEY, _parentcustomerid_value TEXT, parentcustomeridtype TEXT, fullname TEXT, firstname TEXT,
    lastname TEXT, jobtitle TEXT, emailaddress1 TEXT, emailaddress2 TEXT, telephone1 TEXT, mobilephone TEXT,
    address1_country TEXT, donotemail TEXT, donotbulkemail TEXT, donotphone TEXT, gendercode INTEGER, birthdate TEXT,
    new_badgenumber TEXT, statecode INTEGER, statuscode INTEGER, _ownerid_value TEXT, createdon TEXT, modifiedon TEXT,
    lastusedincampaign TEXT, versionnumber INTEGER);
CREATE TABLE opportunity (
    opportunityid TEXT PRIMARY KEY, name TEXT, _parentaccountid_value TEXT, _parentcontactid_value TEXT, estimatedvalue TEXT,
    estimatedvalue_base TEXT, actualvalue TEXT, estimatedclosedate TEXT, actualclosedate TEXT, closeprobability INTEGER,
    statecode INTEGER, statuscode INTEGER, stepname TEXT, _ownerid_value TEXT, createdon TEXT, modifiedon TEXT,
    versionnumber INTEGER);
CREATE TABLE stringmap (
    stringmapid TEXT PRIMARY KEY, objecttypecode TEXT, attributename TEXT, attributevalue INTEGER, langid INTEGER, value TEXT,
    displayorder INTEGER);
