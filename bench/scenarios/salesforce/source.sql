-- The weekly export of a sales cloud, a file an object: ids of 18 characters, times in UTC with a Z, flags as 0 and 1.
CREATE TABLE User (Id, Username, FirstName, LastName, Email, Title, IsActive, CreatedDate, SystemModstamp);
CREATE TABLE Account (Id, IsDeleted, Name, Type, ParentId, BillingStreet, BillingCity, BillingState, BillingPostalCode,
    BillingCountry, ShippingStreet, ShippingCity, ShippingCountry, Phone, Fax, Website, Industry, AnnualRevenue,
    NumberOfEmployees, Description, OwnerId, CreatedDate, CreatedById, LastModifiedDate, SystemModstamp, VAT_No__c,
    Customer_Priority__c);
CREATE TABLE Contact (Id, IsDeleted, AccountId, LastName, FirstName, Salutation, MailingStreet, MailingCity,
    MailingPostalCode, MailingCountry, OtherCity, Phone, Fax, MobilePhone, HomePhone, AssistantPhone, ReportsToId, Email,
    Title, Department, AssistantName, LeadSource, Birthdate, Description, OwnerId, HasOptedOutOfEmail, DoNotCall,
    CreatedDate, LastModifiedDate, SystemModstamp, LastActivityDate, Languages__c);
CREATE TABLE Opportunity (Id, IsDeleted, AccountId, Name, StageName, Amount, ExpectedRevenue, Probability, CloseDate, Type,
    IsClosed, IsWon, OwnerId, CreatedDate, LastModifiedDate);
