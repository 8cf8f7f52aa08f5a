"""What picklist values mean: a source's wording beside a target's labels.

General lists of the trade in several languages, and plain rules: equality after normalising, a common synonym,
containment. Where two labels could be meant, or none is, the answer isn't sure and a person is asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from rapidfuzz import fuzz

from agent.lexicon import plain

# Each line is one meaning. A label and a value on the same line mean the same, unless two labels stand there.
_GROUPS = """
new|neu|nouveau|nuevo|novo|nuovo|nieuw|nowy|unassigned|not contacted|fresh|prospecting
open|offen|ouvert|abierto|aberto|aperto|otwarty|opened|active case
assigned|zugewiesen|assigne|asignado
in progress|in process|in bearbeitung|en cours|en curso|em andamento|in corso|wip|ongoing|started|working|underway
pending|pending input|waiting|wartend|on hold|awaiting|en attente|pendiente|pendente|in attesa|wait|hold
closed|geschlossen|ferme|cerrado|fechado|chiuso|zamkniety|resolved|geloest|erledigt|done|solved|closed closed
done|completed|complete|erledigt|held|durchgefuehrt|termine|realizado|hecho|concluido|fatto|finished|abgeschlossen|zrobione|gehalten
planned|geplant|scheduled|planifie|planificado|planejado|pianificato|not started|upcoming|to do|todo|planowane|gepland
cancelled|canceled|abgesagt|annule|cancelado|annullato|not held|storniert|geannuleerd|called off|anulowane
deferred|verschoben|postponed|reporte|aplazado|adiado|rinviato
contacted|kontaktiert|contacte|contactado|contattato|attempted|reached|attempted to contact|gecontacteerd
qualified|qualifiziert|qualifie|calificado|cualificado|qualificado|qualificato|sql|mql|qualification
converted|konvertiert|converti|convertido|convertito|umgewandelt
discarded|dead|tot|junk|disqualified|unqualified|do not pursue|verworfen|rejected|abandoned|spam|mort|descartado|lost lead|not interested
proposal|angebot|quote|proposal price quote|offer|devis|propuesta|proposta|offerte|oferta|quote sent|proposition|presentation
negotiation|negotiation review|verhandlung|negociation|negociacion|negociacao|negoziazione|onderhandeling|in negotiation|negotiating
won|closed won|gewonnen|gagne|gagnee|ganado|ganada|ganho|vinto|gewonnen deal|wygrana
lost|closed lost|verloren|perdu|perdue|perdido|perdida|perso|przegrana
active|aktiv|actif|activo|ativo|attivo|actief|aktywny|enabled|current
suspended|inactive|inaktiv|inactif|inactivo|inativo|inattivo|inactief|disabled|gesperrt|terminated|blocked|deactivated|locked
high|hoch|haut|haute|alto|alta|hoog|wysoki|urgent|p1|important|elevee
normal|medium|mittel|moyen|moyenne|medio|media prioridad|average|standard|p2|middle|gemiddeld|sredni
low|niedrig|bas|basse|bajo|baja|baixo|basso|laag|niski|p3|minor|gering|faible
critical|kritisch|critique|critico|blocker|p0|emergency
customer|kunde|client|cliente|klant|klient|existing customer|bestandskunde|customer direct|customer channel
prospect|interessent|prospecto|potential customer|potential|interessentin|suspect
partner|reseller|channel partner|partenaire|socio|parceiro|integrator|wiederverkaeufer|distributor|channel partner reseller|technology partner
supplier|vendor|lieferant|fournisseur|proveedor|fornecedor|fornitore|leverancier|dostawca
competitor|wettbewerber|konkurrent|concurrent|competidor|concorrente|concurrenti|competition
other|others|sonstige|sonstiges|andere|autre|autres|otro|otros|outro|outros|altro|altri|overig|overige|inne|misc|miscellaneous|various|diverse|none of the above
investor|investisseur|inversor
press|presse|prensa|media press
phone|telephone|telefon|cold call|call|inbound call|telesales|phone call|telefono|telefone|telemarketing|anruf|phone inquiry|kaltakquise
web|website|web site|internet|homepage|webseite|online|site web|sitio web|web form|webformular|web research|landing page
email|e mail|mail campaign email|correo|courriel|newsletter|email marketing|emailing
event|trade show|messe|conference|tradeshow|trade fair|seminar|exhibition|veranstaltung|salon|feria|konferenz|webinar|congress|fair
referral|word of mouth|empfehlung|recommendation|employee referral|recommandation|recomendacion|mundpropaganda|external referral|customer referral|referred
campaign|kampagne|campagne|campana|campanha|campagna|marketing campaign|mailing campaign
print|direct mail print|brief|letter|brochure|flyer|imprime|impreso|newspaper|magazine
advertisement|advertising|werbung|ad|ads|anzeige|publicite|publicidad|advert|google ads|adwords
social|social media|facebook|linkedin|twitter|soziale medien|xing
call|telefonat|anruf|phone call|calls|appel|llamada|chiamata
meeting|termin|besprechung|appointment|reunion|meetings|rendez vous|riunione
task|aufgabe|todo|to do|tasks|tache|tarea|tarefa
automotive|auto|automobil|car dealers|vehicles|automobile|automocion|car industry|kfz
banking|bank|banks|banken|bankwesen|banque|banca|financial institution
finance|financial services|finanzdienstleister|finanzen|finanzwesen|finances|finanzas|investment
biotechnology|biotech|bio tech|life sciences|biotechnologie|biotecnologia
pharmaceutical|pharma|pharmaceuticals|arzneimittel
chemicals|chemical|chemie|chemical industry|chimie|quimica|chimica
construction|bau|baugewerbe|building|construccion|construcao|costruzioni|batiment|btp|bauwesen|bouw
consulting|consultancy|beratung|conseil|consultoria|consulenza|consultants|management consulting|unternehmensberatung|advies
education|bildung|schools|university|higher education|educacion|educacao|istruzione|enseignement|onderwijs|edukacja|schule
energy|energie|utilities|oil gas|oil and gas|energia|energy utilities|power|versorger|electricity|utility
food|food beverage|food and beverage|lebensmittel|alimentation|alimentacion|f b|nahrungsmittel|agroalimentaire|gastronomy products
agriculture|landwirtschaft|farming|agricultura|agro
government|public sector|behoerde|public administration|oeffentlicher dienst|oeffentliche verwaltung|gobierno|governo|administration publique|govt|overheid
healthcare|health care|health|gesundheit|medical|hospitals|gesundheitswesen|sante|salud|saude|sanita|krankenhaus|zorg
hospitality|hotels|hotel|hotel restaurant|hotellerie|gastgewerbe|gastronomie|gastro|tourism|tourismus|hosteleria|restaurants|leisure
insurance|versicherung|versicherungen|assurance|assurances|seguros|assicurazioni|insurances|verzekering
logistics|transportation|transport|logistik|spedition|transport logistics|logistique|logistica|shipping|transportation logistics|freight|trucking
machinery|maschinenbau|mechanical engineering|machine building|machines|maquinaria|machinery equipment|anlagenbau
manufacturing|mfg|produktion|fertigung|industrie|fabrication|fabricacion|industrial
engineering|ingenieurwesen|ingenierie|ingenieria
electronics|elektronik|electronique|electronica|electrical
media|medien|publishing|verlag|medios|media print|broadcasting|presse medien|verlagswesen
entertainment|unterhaltung|spectacle|entretenimiento
nonprofit|not for profit|non profit|ngo|charity|verein|gemeinnuetzig|association|sin fines de lucro|npo|foundation|stiftung
real estate|realestate|immobilien|property|immobilier|inmobiliaria|imobiliario|immobiliare|vastgoed
retail|einzelhandel|retail trade|handel|shops|commerce de detail|comercio minorista|varejo|detailhandel|retailing
wholesale|grosshandel|commerce de gros|mayorista
software|information technology|it|edv|software it|informatik|informatique|informatica|it services|it software
telecom|telecommunications|telco|telekommunikation|telecommunication|telecomunicaciones|telecoms|communications
legal|recht|law|juridique|law firm|rechtsanwalt
male|m|mann|maennlich|masculin|masculino|herr|man
female|f|w|frau|weiblich|feminin|femenino|feminino|woman
mr|herr|m.|monsieur|senor|sr|signor|mister|dhr|pan
mrs|frau|mme|madame|senora|sra|signora|mevr|pani
ms|miss|fraeulein|mlle|srta
yes|ja|oui|si|sim|tak|y|true|1
no|nein|non|nao|nie|n|false|0
"""
_MEANINGS: dict[str, set[int]] = {}
for _index, _line in enumerate(line for line in _GROUPS.splitlines() if line):
    for _value in _line.split("|"):
        _MEANINGS.setdefault(_value, set()).add(_index)

# Words that turn a value's meaning: a value that holds one is never placed by the words around it.
_TURNING = frozenset(
    (  # noqa: SIM905
        "not no non ex former potential lost un never kein nicht ohne without pre dead old inactive"
    ).split()
)
_EMPTY = frozenset("and the of und de la le und & in for".split())  # noqa: SIM905


@dataclass(frozen=True)
class Hit:
    """The label a value means most likely (None: none comes near), how near, and whether a rule may decide it."""

    label: str | None
    score: float
    sure: bool
    why: str


def label_for(value: str, labels: Sequence[str]) -> Hit:
    """The target's label for a source value."""
    return _label_for(value, tuple(labels))


def label_words(value: str, labels: Sequence[str]) -> str:
    """The value's words that are a label's too, as they follow one another."""
    own = {word for label in labels for word in normal(label).split()}
    return " ".join(token for token in normal(value).split() if any(_alike(word, token) for word in own))


@lru_cache(maxsize=50_000)
def normal(value: str) -> str:
    """A value without case, accents, punctuation, entities and leading codes: `01 - Neu` -> `neu`."""
    text = plain(value.replace("&amp;", "&"))
    text = re.sub(r"^\s*\(?\d{1,3}\)?\s*[-.:)]\s*", "", text)
    return " ".join(re.findall(r"[a-z0-9]+", text))


@lru_cache(maxsize=50_000)
def _label_for(value: str, labels: tuple[str, ...]) -> Hit:
    text = normal(value)
    if not text:
        return Hit(None, 0.0, False, "no words")
    named = {label: normal(label) for label in labels}
    same = [label for label, words in named.items() if words == text or words.replace(" ", "") == text.replace(" ", "")]
    if len(same) == 1:
        return Hit(same[0], 1.0, True, "the same word")
    groups = _MEANINGS.get(text, set())
    meant = [label for label, words in named.items() if groups & _MEANINGS.get(words, set())]
    if len(meant) == 1:
        return Hit(meant[0], 0.95, True, "a usual synonym")
    if len(meant) > 1:
        return Hit(meant[0], 0.5, False, f"could be {' or '.join(meant[:3])}")
    return _by_words(text, named)


def _by_words(text: str, named: dict[str, str]) -> Hit:
    """By the words in common: one label whose words all stand in the value, and no turning word beside them."""
    tokens = [t for t in text.split() if t not in _EMPTY]
    heads = {t[:4] for t in tokens}  # words that are alike begin alike
    meant: set[int] = set().union(*(_MEANINGS.get(t, set()) for t in tokens if len(t) >= 4))
    inside: list[str] = []
    for label, words in named.items():
        own = words.split()
        held = own and all(w[:4] in heads and any(_alike(w, t) for t in tokens) for w in own)
        if held or meant & _MEANINGS.get(words, set()):
            inside.append(label)
    inside = list(dict.fromkeys(inside))
    if len(inside) == 1 and not _TURNING & set(tokens):
        sure = len(tokens) <= 3
        return Hit(inside[0], 0.85 if sure else 0.7, sure, f"holds the word {inside[0]}")
    if inside:
        return Hit(inside[0], 0.45, False, f"could be {' or '.join(inside[:3])}")
    best = max(named, key=lambda label: fuzz.ratio(text, named[label]), default=None)
    score = fuzz.ratio(text, named[best]) / 100 if best else 0.0
    if best and score >= 0.88 and len(text) >= 6:
        return Hit(best, score, True, "spelt nearly the same")
    return Hit(best if score >= 0.5 else None, min(score, 0.5), False, "no label comes near")


def _alike(a: str, b: str) -> bool:
    """The same word but for its ending: bank and banks, chemical and chemicals."""
    if a == b:
        return True
    shorter, longer = sorted((a, b), key=len)
    return (
        len(shorter) >= 4
        and longer.startswith(shorter)
        and longer[len(shorter) :] in {"s", "es", "en", "e", "er", "n", "ing", "al"}
    )
