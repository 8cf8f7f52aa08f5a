"""The words that records are filled with: company names, job titles, subjects, sentences.

No text holds an entity (an ampersand, a name and a semicolon), so that what the mess escapes later can
be undone without doubt. Texts of tables kept in latin1 stay within cp1252.
"""

from __future__ import annotations

COMPANY_WORDS = [
    "Northwind",
    "Bluebird",
    "Alpina",
    "Meridian",
    "Oakfield",
    "Sunrise",
    "Harbor",
    "Redwood",
    "Zenith",
    "Cobalt",
    "Granite",
    "Evergreen",
    "Polaris",
    "Kestrel",
    "Vega",
    "Aurora",
    "Summit",
    "Keystone",
    "Pinnacle",
    "Ironbridge",
]
COMPANY_BRANCHES = (
    "Logistics",
    "Systems",
    "Foods",
    "Maschinenbau",
    "Consulting",
    "Engineering",
    "Textiles",
    "Energy",
    "Media",
    "Pharma",
    "Bau",
    "Instruments",
    "Trading",
    "Software",
    "Hôtels",
    "Construcción",
)
COMPANY_FORMS = ("GmbH", "Ltd", "Inc.", "S.A.", "SARL", "AG", "LLC", "B.V.", "S.r.l.", "AB", "Sp. z o.o.", "KG")

JOB_TITLES = (
    "Managing Director",
    "Head of Sales & Marketing",
    "Buyer",
    "CFO",
    "Chief of Staff",
    "Leiter Einkauf",
    "Geschäftsführer",
    "Directeur général",
    "Responsable R&D",
    "Jefe de compras",
    "VP Finance",
    "Office Manager",
    "Software Engineer",
    "Key Account Manager",
    "Gerente",
    "Assistant to the CEO",
    'Consultant "on call"',
    "Director, Human Resources",
)
DEPARTMENTS = (
    "Sales",
    "Purchasing",
    "Finance",
    "R&D",
    "IT",
    "Einkauf",
    "Marketing & PR",
    "Legal",
    "Operations",
    "HR",
)
SALUTATIONS = ("Mr.", "Ms.", "Mrs.", "Dr.", "Prof.")
SECOND_LINES = ("Suite 400", "2. Stock", "Apt. 7", "Building C", "Hinterhaus", "PO Box 1180", "bâtiment A")
SOLUTIONS = (
    "Replaced the part.",
    "Restarted the service and it's fine now.",
    "Refund issued",
    "Explained the price list & the discount",
    "Kunde hat bestätigt",
)
ROLES = ("Primary Decision Maker", "Business Evaluator", "Technical Evaluator", "Influencer", "Executive Sponsor")
PLACES_TO_MEET = ("Our office", "Customer's site", "Café Central", "Room 4 & 5", "Online", "Messe Halle 3")

SENTENCES = (
    "Met at the trade fair; wants an offer for next year.",
    "Asked for a call back after the holidays.",
    "Doesn't like to be called before 10.",
    "Budget is tight, but the need is real.",
    "Kennt uns von der Messe, möchte Unterlagen.",
    "Bitte nur per E-Mail kontaktieren.",
    "Ne parle qu'à son directeur.",
    "Le contrat court jusqu'à la fin de l'année.",
    "Pide precios con descuento del 5 %.",
    "Prefers R&D contacts over sales.",
    'Said: "send me the figures first".',
    "Price < 10,000 and > 5,000 would be fine.",
    "Old customer of the Leeds branch.",
    "See the note of last spring.",
    "Müsste im Herbst noch einmal angerufen werden.",
    "Competitor's contract ends in March.",
    "Reklamation wurde kulant geregelt.",
    "Wants delivery in two parts: first half in May, the rest in June.",
    "Decision lies with the board & the works council.",
    "Path on their share: \\\\server\\quotes\\new",
)
SUBJECTS = (
    "Follow-up",
    "Intro call",
    "Contract renewal",
    "Offer & price list",
    "Complaint about delivery",
    "Angebot besprechen",
    "Rückruf",
    "Demo at customer's site",
    "Kick-off",
    "Q&A session",
    "Invoice question",
    "Besuch Messe",
)
DEAL_GOODS = (
    "Licences",
    "Maintenance",
    "Rollout",
    "Pilot & training",
    "Machines",
    "Ersatzteile",
    "Consulting days",
    "Renewal",
    "Hardware",
    "Spare parts",
)
CASE_SUBJECTS = (
    "Printer doesn't print",
    "Login fails",
    "Wrong invoice",
    "Missing parts & papers",
    "Lieferung beschädigt",
    "Export is empty",
    "Question about the warranty",
    "Slow since update",
    "Caractères illisibles à l'écran",
)
CAMPAIGN_TITLES = (
    "Spring mailing",
    "Messe",
    "Webinar",
    "Christmas card",
    "Customer day",
    "Frühjahrsaktion",
    "Relaunch",
)
NEXT_STEPS = ("Send offer", "Call back", "Wait for the board", "Demo & workshop", "Vertrag prüfen")

INTERESTS = (
    "Golf",
    "Wine, red",
    "Chess",
    "Sailing",
    "Opera",
    "Football",
    "Cooking",
    "Travel",
    "Photography",
    "Jazz",
    "Hiking",
    "Theatre",
    "Science & nature",
)
TAGS = ("key", "newsletter", "event 2019", "A-customer", "to check", "gdpr", "payment, slow")
