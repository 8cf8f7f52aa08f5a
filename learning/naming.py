"""From a phrase to a column's name, in the styles that databases are written in: `date added` -> `DateAdded`, `dt_add`, `DATE_ADDED`.

A style is drawn once a table, as one hand wrote it. Same draw, same name.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass

from sample_data.names import ascii_letters

FORMS = ("snake", "camel", "pascal", "upper", "title", "glued", "dotted", "hungarian")
CUSTOM = ("cf_{n}", "x_studio_{s}", "{p}__c", "custom_{s}", "udf_{s}", "field_{n}", "attribute{n}", "text_{n}", "X_{u}")
NAMELESS = (
    "cf_{n}",
    "field_{n}",
    "attribute{n}",
    "text_{n}",
    "user_{n}",
    "col{n}",
    "UserDefined{n}",
    "zusatz{n}",
    "libre_{n}",
)
"""Names that say nothing: only the values tell."""

_SHORT = {
    "number": "no", "date": "dt", "address": "addr", "phone": "tel", "telephone": "tel", "amount": "amt", "description": "desc",
    "code": "cd", "name": "nm", "account": "acct", "company": "co", "customer": "cust", "contact": "cont", "created": "crt",
    "modified": "mod", "department": "dep", "quantity": "qty", "currency": "curr", "country": "ctry", "street": "str",
    "postal": "post", "invoice": "invc", "shipping": "ship", "billing": "bill", "employees": "emps", "language": "lng",
    "probability": "prob", "expected": "expd", "reference": "ref", "manager": "mgr", "position": "pos", "organisation": "org",
    "nummer": "nr", "datum": "dat", "straße": "str", "telefon": "tel", "numéro": "num", "adresse": "adr", "société": "ste",
    "número": "num", "fecha": "fec", "teléfono": "tfno", "dirección": "dir", "data": "dt", "endereço": "end", "código": "cod",
    "naam": "nm", "telefoon": "tel", "indirizzo": "ind", "codice": "cod", "telefono": "tel", "nazwa": "nazw", "adres": "adr",
}  # fmt: skip
_SIGNS: Mapping[str, str] = {
    "flag": "bln", "moment": "dtm", "day": "dat", "birthday": "dat", "int": "lng", "headcount": "lng", "days": "int",
    "minutes": "int", "money": "cur", "turnover": "cur", "percent": "dbl", "ref": "lng", "note": "mem", "float": "dbl",
}  # fmt: skip
_SMALL = frozenset("of the in to at on by de la le du des el del da do dei van der di zu no no".split())  # noqa: SIM905


@dataclass(frozen=True)
class Style:
    """How one table's columns are written. `short` is the chance that a word is cut, `prefix` stands before each name,
    `ascii` spells accents out."""

    form: str
    short: float = 0.0
    prefix: str = ""
    ascii: bool = True

    @property
    def name(self) -> str:
        """For counts: form, and whether words are cut or names begin alike."""
        return self.form + ("+short" if self.short else "") + ("+prefix" if self.prefix else "")


def draw_style(draw: random.Random, forms: tuple[str, ...], table: str) -> Style:
    """A style among these forms for a table of that name."""
    form = draw.choice(forms)
    short = draw.choice((0.0, 0.0, 0.0, 0.5, 0.9))
    letters = re.sub(r"[^a-z]", "", ascii_letters(table).lower()) or "x"
    prefix = draw.choice(("", "", "", "", "", letters[:3], letters[:1], f"{letters[:4]}s", "fld", "c"))
    if form in ("title", "dotted", "hungarian"):
        short, prefix = (short if form == "hungarian" else 0.0), ""
    return Style(form, short, prefix, draw.random() < 0.7)


def written(phrase: str, style: Style, kind: str, draw: random.Random) -> str:
    """The phrase as a column's name."""
    words = [w for w in re.split(r"[\s\-'’.()%&]+", _spelt(phrase) if style.ascii else phrase) if w]
    if len(words) > 2 and draw.random() < 0.5:
        words = [w for w in words if w.lower() not in _SMALL] or words
    if style.form == "title":
        return " ".join(w[:1].upper() + w[1:] for w in words)
    cut = [shortened(w, draw) if draw.random() < style.short else w for w in words]
    if kind == "ref" and cut[-1].lower() != "id" and draw.random() < 0.7:
        cut.append(draw.choice(("id", "id", "id", "key", "ref", "no")))
    lower = [w.lower() for w in cut]
    if style.form == "hungarian":
        return _SIGNS.get(kind, "str") + "".join(w.capitalize() for w in lower)
    if style.prefix:
        lower.insert(0, style.prefix)
    if style.form == "camel":
        return lower[0] + "".join(w.capitalize() for w in lower[1:])
    if style.form == "pascal":
        return "".join(w.capitalize() for w in lower)
    if style.form == "upper":
        return "_".join(lower).upper()
    if style.form == "glued":
        return "".join(lower)
    return (".".join if style.form == "dotted" else "_".join)(lower)


def custom(phrase: str, draw: random.Random) -> str:
    """The name that a user's own field gets in systems that number or mark them."""
    words = _spelt(phrase).split()
    snake = "_".join(w.lower() for w in words)
    form = draw.choice(CUSTOM)
    return form.format(n=draw.randint(1, 999), s=snake, u=snake.upper(), p="_".join(w.capitalize() for w in words))


def nameless(draw: random.Random) -> str:
    """A name that says nothing."""
    return draw.choice(NAMELESS).format(n=draw.randint(1, 99))


def field_name(phrase: str, kind: str, draw: random.Random) -> str:
    """A new system's name for a field: snake case, whole words, `_id` where it points elsewhere."""
    words = [w.lower() for w in re.split(r"[\s\-'’.()%&]+", _spelt(phrase)) if w]
    if kind == "ref" and words[-1] != "id":
        words.append("id")
    return "_".join(words)


def shortened(word: str, draw: random.Random) -> str:
    """A word cut as people cut it: by habit, without vowels, or at its end."""
    known = _SHORT.get(word.lower())
    if known and draw.random() < 0.6:
        return known
    if len(word) < 4:
        return word
    if draw.random() < 0.5:
        bare = word[0] + re.sub(r"[aeiouyäöüáéíóúâêôãõèàùąęó]", "", word[1:].lower())
        return bare[:5] if len(bare) > 1 else word
    return word[: draw.choice((3, 4, 4, 5))]


def _spelt(text: str) -> str:
    """Without accents: ä as ae in some hands, a in others, is `ascii_letters`' to say; case and blanks stay."""
    out = []
    for word in text.split(" "):
        plain = "".join(_plain(c) for c in word)
        out.append(plain)
    return " ".join(out)


def _plain(character: str) -> str:
    if character.isascii():
        return character
    letters = ascii_letters(character)
    return letters.upper() if character.isupper() else letters
