"""The words that made-up systems are named with: fields of CRMs in eight languages, columns with no counterpart, picklists.

Data in `learning/words`; written for training and never taken from a scenario of the bench (`learning.leaks` checks it).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LANGUAGES = ("en", "de", "fr", "es", "pt", "nl", "it", "pl")
TABLES: Mapping[str, Mapping[str, str]] = {
    "p": {
        "en": "contacts/people/persons", "de": "Ansprechpartner/Personen", "fr": "personnes/interlocuteurs", "es": "personas/contactos",
        "pt": "pessoas/contatos", "nl": "personen/contactpersonen", "it": "persone/referenti", "pl": "osoby/kontakty",
    },
    "c": {
        "en": "companies/organisations/clients", "de": "Unternehmen/Betriebe", "fr": "entreprises/clients", "es": "empresas/clientes",
        "pt": "empresas/clientes", "nl": "bedrijven/relaties", "it": "aziende/clienti", "pl": "firmy/klienci",
    },
    "d": {
        "en": "deals/sales/projects", "de": "Chancen/Projekte", "fr": "affaires/projets", "es": "negocios/proyectos",
        "pt": "vendas/projetos", "nl": "verkoopkansen/projecten", "it": "trattative/progetti", "pl": "szanse/projekty",
    },
    "a": {
        "en": "activities/events/journal", "de": "Vorgänge/Ereignisse", "fr": "activités/événements", "es": "actividades/eventos",
        "pt": "atividades/eventos", "nl": "activiteiten/gebeurtenissen", "it": "attività/eventi", "pl": "czynności/zdarzenia",
    },
    "t": {
        "en": "tickets/cases/requests", "de": "Anfragen/Störungen", "fr": "tickets/demandes", "es": "casos/solicitudes",
        "pt": "chamados/pedidos", "nl": "meldingen/verzoeken", "it": "segnalazioni/richieste", "pl": "zgłoszenia/sprawy",
    },
    "i": {
        "en": "invoices/bills", "de": "Rechnungen/Belege", "fr": "factures", "es": "facturas", "pt": "faturas", "nl": "facturen",
        "it": "fatture", "pl": "faktury",
    },
    "u": {
        "en": "users/staff/team members", "de": "Benutzer/Kollegen", "fr": "utilisateurs/agents", "es": "usuarios/agentes",
        "pt": "usuários/agentes", "nl": "gebruikers/medewerkers", "it": "utenti/operatori", "pl": "użytkownicy/pracownicy",
    },
}  # fmt: skip
"""What tables are called, by the letter under which `fields.csv` puts a field in them."""
_WORDS = Path(__file__).parent / "words"


@dataclass(frozen=True)
class Concept:
    """A field that CRMs have. `tables` are letters of TABLES, `kind` says what its values look like (`learning.values`),
    `phrases` are its names by language, `idioms` what systems with names of their own call it."""

    name: str
    tables: str
    kind: str
    phrases: Mapping[str, tuple[str, ...]]
    idioms: tuple[str, ...]


@dataclass(frozen=True)
class Unplaced:
    """Columns that no target has a field for, by language; of one kind of values."""

    kind: str
    phrases: Mapping[str, tuple[str, ...]]


@cache
def concepts() -> tuple[Concept, ...]:
    """All fields."""
    return tuple(
        Concept(row["concept"], row["tables"], row["kind"], _phrases(row), _cut(row["idioms"]))
        for row in _rows("fields.csv")
    )


@cache
def unplaced() -> tuple[Unplaced, ...]:
    """All columns without a counterpart."""
    return tuple(Unplaced(row["kind"], _phrases(row)) for row in _rows("unplaced.csv"))


@cache
def picklist(kind: str) -> tuple[Unplaced, ...]:
    """The values of a picklist, each with its labels by language; empty where the kind has no list."""
    return tuple(Unplaced(row["value"], _phrases(row)) for row in _rows("picklists.csv") if row["kind"] == kind)


def table_words(letter: str, language: str) -> tuple[str, ...]:
    """What a table of that letter is called in a language."""
    return _cut(TABLES[letter][language])


@cache
def _rows(name: str) -> tuple[dict[str, str], ...]:
    with (_WORDS / name).open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file, delimiter="|", quoting=csv.QUOTE_NONE))


def _phrases(row: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    return {language: _cut(row[language]) for language in LANGUAGES}


def _cut(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split("/") if part)
