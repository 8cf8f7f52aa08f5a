"""The picklists of the legacy CRM: each value of the cloud schema with the spellings that fifteen years left behind.

The first spelling of a value is the one the picklist offers today and the commonest; the others came from
imports, older versions, other languages and free typing. Every spelling names one value only.
"""

from __future__ import annotations

INDUSTRY: dict[str, tuple[str, ...]] = {
    "automotive": ("Automotive", "Auto", "Automobil", "Car Dealers", "Automotive & Parts", "AUTOMOTIVE "),
    "banking": ("Banking", "Banks", "Bank", "Banking/Finance", "Finance", "Finanzdienstleister"),
    "biotechnology": ("Biotechnology", "Biotech", "Bio-Tech", "Life Sciences", "BioTec"),
    "chemicals": ("Chemicals", "Chemical", "Chemie", "Chemical Industry", "Química"),
    "construction": ("Construction", "Bau", "Building", "Construction & Engineering", "Baugewerbe", "Construcción"),
    "consulting": ("Consulting", "Consultancy", "Beratung", "Consultants", "Mgmt Consulting", "Conseil"),
    "education": ("Education", "Bildung", "Schools", "University", "Higher Ed.", "Educación"),
    "energy": ("Energy", "Energie", "Utilities", "Oil & Gas", "Energy/Utilities", "Power"),
    "food": ("Food & Beverage", "Food", "Food and Beverage", "F&B", "Lebensmittel", "Alimentation"),
    "government": ("Government", "Public Sector", "Govt", "Gov't", "Behörde", "Public Administration"),
    "healthcare": ("Healthcare", "Health Care", "Health", "Medical", "Hospitals", "Gesundheit"),
    "hospitality": ("Hospitality", "Hotels", "Hotel & Restaurant", "Gastro", "Tourism", "Hôtellerie"),
    "insurance": ("Insurance", "Versicherung", "Insurances", "Ins.", "Assurance"),
    "logistics": ("Transportation", "Logistics", "Transport", "Shipping", "Spedition", "Transport & Logistics"),
    "machinery": ("Machinery", "Maschinenbau", "Mechanical Engineering", "Machine Building", "Manufacturing", "Mfg"),
    "media": ("Media", "Entertainment", "Medien", "Publishing", "Media/Print", "Advertising"),
    "nonprofit": ("Not For Profit", "Non-Profit", "Nonprofit", "NGO", "Charity", "Verein"),
    "real_estate": ("Real Estate", "RealEstate", "Immobilien", "Property", "Immobilier"),
    "retail": ("Retail", "Einzelhandel", "Retail Trade", "Shops", "Wholesale/Retail", "Commerce de détail"),
    "software": ("Technology", "Software", "IT", "Information Technology", "EDV", "Software/IT", "Informatique"),
    "telecom": ("Telecommunications", "Telecom", "Telco", "Telekommunikation", "Communications"),
    "other": ("Other", "Others", "Sonstige", "Misc", "Miscellaneous", "Autre"),
}

ACCOUNT_TYPE: dict[str, tuple[str, ...]] = {
    "customer": ("Customer", "customer", "Kunde", "Client", "Existing Customer"),
    "prospect": ("Prospect", "Interessent", "Lead", "Potential Customer"),
    "partner": ("Partner", "Reseller", "Integrator", "Channel Partner"),
    "supplier": ("Supplier", "Vendor", "Lieferant"),
    "competitor": ("Competitor", "Competition"),
    "other": ("Other", "Press", "Investor", "Analyst"),
}

SALES_STAGE: dict[str, tuple[str, ...]] = {
    "new": ("Prospecting", "New", "Neu", "01 - New"),
    "qualified": ("Qualification", "Needs Analysis", "Qualified", "Id. Decision Makers", "02 - Qualified"),
    "proposal": ("Proposal/Price Quote", "Value Proposition", "Quote sent", "Angebot", "03 - Proposal"),
    "negotiation": ("Negotiation/Review", "Perception Analysis", "Negotiation", "Verhandlung", "04 - Negotiation"),
    "won": ("Closed Won", "Won", "closed won", "Gewonnen", "05 - Won"),
    "lost": ("Closed Lost", "Lost", "Verloren", "06 - Lost"),
}

LEAD_STATUS: dict[str, tuple[str, ...]] = {
    "new": ("New", "Neu", "Unassigned", "Open"),
    "contacted": ("Assigned", "In Process", "In Bearbeitung", "Contacted", "Working"),
    "qualified": ("Qualified", "Recycled", "Hot"),
    "converted": ("Converted", "Konvertiert", "Won"),
    "discarded": ("Dead", "Tot", "Junk", "Do not pursue"),
}

LEAD_SOURCE: dict[str, tuple[str, ...]] = {
    "phone": ("Cold Call", "Telefon", "Inbound Call", "cold call"),
    "web": ("Web Site", "Website", "Web", "Internet", "Homepage"),
    "email": ("Email", "E-Mail", "Direct Mail", "Newsletter"),
    "event": ("Trade Show", "Conference", "Messe", "Trade Fair", "Event"),
    "referral": ("Word of mouth", "Existing Customer", "Employee", "Empfehlung", "Referral"),
    "partner": ("Partner", "Public Relations", "Reseller"),
    "campaign": ("Campaign", "Kampagne", "Mailing Campaign"),
    "other": ("Other", "Self Generated", "Sonstiges", "Misc."),
}

CALL_STATE: dict[str, tuple[str, ...]] = {
    "planned": ("Planned", "Geplant", "Scheduled"),
    "done": ("Held", "Done", "Durchgeführt", "held"),
    "cancelled": ("Not Held", "Cancelled", "Abgesagt", "Canceled"),
}

TASK_STATE: dict[str, tuple[str, ...]] = {
    "planned": ("Not Started", "In Progress", "Pending Input", "Offen"),
    "done": ("Completed", "Erledigt", "Done", "complete"),
    "cancelled": ("Deferred", "Dropped", "Obsolete"),
}

CASE_STATE: dict[str, tuple[str, ...]] = {
    "open": ("Open_New", "Open_Assigned", "New", "Assigned", "Open"),
    "pending": ("Open_Pending Input", "Pending Input", "Waiting"),
    "closed": ("Closed_Closed", "Closed", "Closed_Rejected", "Closed_Duplicate", "Erledigt"),
}

PRIORITY: dict[str, tuple[str, ...]] = {
    "high": ("P1", "High", "Hoch", "1"),
    "normal": ("P2", "Medium", "Mittel", "2"),
    "low": ("P3", "Low", "Niedrig", "3"),
}

CAMPAIGN_TYPE: dict[str, tuple[str, ...]] = {
    "email": ("Email", "NewsLetter", "E-Mail", "Mailing"),
    "phone": ("Telesales", "Phone", "Telefon"),
    "event": ("Event", "Trade Show", "Messe"),
    "web": ("Web", "Radio/Web", "Banner"),
    "print": ("Print", "Mail", "Brief"),
    "other": ("Television", "Radio", "Other"),
}

USER_STATUS: dict[str, tuple[str, ...]] = {
    "active": ("Active", "active"),
    "suspended": ("Inactive", "Terminated", "Gesperrt"),
}

PICKLISTS: dict[str, dict[str, tuple[str, ...]]] = {
    "industries": INDUSTRY,
    "account_types": ACCOUNT_TYPE,
    "sales_stages": SALES_STAGE,
    "lead_statuses": LEAD_STATUS,
    "lead_sources": LEAD_SOURCE,
    "meeting_states": CALL_STATE,
    "task_states": TASK_STATE,
    "case_states": CASE_STATE,
    "priorities": PRIORITY,
    "campaign_types": CAMPAIGN_TYPE,
    "user_states": USER_STATUS,
}
"""By the gold plan's name of the value map."""
