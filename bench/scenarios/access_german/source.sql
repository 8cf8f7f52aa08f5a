-- A database that a small firm built for itself: German words cut short, numbers that count up, -1 for yes, dates as
-- people write them, money with a comma.
CREATE TABLE tblMitarbeiter (MaNr INTEGER PRIMARY KEY, Kuerzel TEXT, Vorname TEXT, Nachname TEXT, EMail TEXT, Durchwahl TEXT);
CREATE TABLE tblKunden (
    KdNr INTEGER PRIMARY KEY, Firma TEXT, Firma2 TEXT, Strasse TEXT, PLZ TEXT, Ort TEXT, Land TEXT, Tel TEXT, Fax TEXT, Mail TEXT,
    Web TEXT, Branche TEXT, UmsatzVj TEXT, Betreuer INTEGER REFERENCES tblMitarbeiter(MaNr), UStID TEXT, Bemerkung TEXT,
    AngelegtAm TEXT, GeaendertAm TEXT, Geloescht INTEGER);
CREATE TABLE tblAnsprechpartner (
    ApNr INTEGER PRIMARY KEY, KdNr INTEGER REFERENCES tblKunden(KdNr), Anrede TEXT, Titel TEXT, Vorname TEXT, Nachname TEXT,
    Funktion TEXT, Tel TEXT, Handy TEXT, Mail TEXT, GebDat TEXT, KeineWerbung INTEGER, Bemerkung TEXT, AngelegtAm TEXT,
    Geloescht INTEGER);
CREATE TABLE tblBesuche (
    BesuchNr INTEGER PRIMARY KEY, ApNr INTEGER REFERENCES tblAnsprechpartner(ApNr), MaNr INTEGER REFERENCES tblMitarbeiter(MaNr),
    Datum TEXT, Art TEXT, Betreff TEXT, Bericht TEXT);
