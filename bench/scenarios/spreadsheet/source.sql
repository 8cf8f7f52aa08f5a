-- One sheet that an assistant kept for ten years, saved as CSV with semicolons: a line a person, the company's data in each
-- of its lines, dates as Excel counts days, decimal commas, n/a for nothing, two telephone numbers in one cell.
CREATE TABLE "clients 2014-2024" (
    "N°", "Société", "Rue", "CP", "Ville", "Pays", "Secteur", "Client depuis", "CA 2023 (EUR)", "Remise %", "Commercial",
    "Contact", "Fonction", "Tél.", "E-mail", "Dernier contact", "Newsletter (O/N)", "Remarques", "vu 2019", "vu 2020");
