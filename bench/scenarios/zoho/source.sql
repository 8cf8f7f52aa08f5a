-- A cloud CRM's export, a file a module: labels with blanks as headings, ids that begin with zcrm_, times with their
-- offset, choices set apart by semicolons, -None- where nothing was chosen, and owners by their names.
CREATE TABLE "Accounts" ("Record Id", "Account Owner.id", "Account Owner", "Account Name", "Phone", "Fax", "Website", "Industry",
    "Employees", "Annual Revenue", "Currency", "Exchange Rate", "Billing Street", "Billing City", "Billing State",
    "Billing Code", "Billing Country", "Shipping City", "Description", "Created By", "Created Time", "Modified By",
    "Modified Time", "Last Activity Time", "Tag");
CREATE TABLE "Contacts" ("Record Id", "Contact Owner", "Account Name.id", "Account Name", "Salutation", "First Name",
    "Last Name", "Full Name", "Email", "Secondary Email", "Phone", "Mobile", "Other Phone", "Title", "Department",
    "Date of Birth", "Lead Source", "Email Opt Out", "Interests", "Mailing City", "Mailing Country", "Skype ID",
    "Created By", "Created Time", "Modified Time", "Unsubscribed Mode");
CREATE TABLE "Deals" ("Record Id", "Deal Owner", "Deal Name", "Account Name.id", "Account Name", "Contact Name.id",
    "Contact Name", "Amount", "Currency", "Stage", "Probability (%)", "Expected Revenue", "Closing Date", "Next Step",
    "Lead Source", "Created Time", "Modified Time", "Overall Sales Duration");
