"""What a name means: a table's or column's name as canonical words, and how near two meanings lie.

Names are split, translated and read as concepts of the trade (`agent.lexicon_words`), so that `Vorname`,
`fname` and `given_name` are one thing. It judges names only; it must never look at record values.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from rapidfuzz import fuzz

from agent.lexicon_near import NEAR, NEAR_COLUMNS
from agent.lexicon_words import COMPOUNDS, EXCLUSIVE, FAINT, MEANINGS, NOISE, PREFERENCE, WORDS

_VARIANTS: dict[str, str] = {}
for _token, _written in WORDS.items():
    _VARIANTS[_token] = _token
    for _word in _written.split():
        _VARIANTS.setdefault(_word, _token)
# In a column's name `employees` counts heads; as a table it holds people.
_COLUMN_WORDS = {"employees": "headcount", "mitarbeiter": "headcount"}
_SMALL = {"id", "nr", "no", "at", "on", "of", "to", "by"}  # the short words that glued names hold
_PATTERNS = sorted(
    ((frozenset(p.split()), meaning) for meaning, patterns in MEANINGS.items() for p in patterns),
    key=lambda item: (-len(item[0]), item[1]),
)
_QUALIFIERS = frozenset(word for word in PREFERENCE if word) | {
    "first",
    "last",
    "start",
    "end",
    "expected",
    "next",
    "full",
    "external",
}


_NAMED = {"stage", "status", "type", "category", "industry", "country", "city", "region", "department", "source"}


@dataclass(frozen=True)
class Meaning:
    """What a name says: `core` concepts, `qualifiers` (billing, mobile's home or work), `faint` words
    that say little (id, date, code) and `numbers` (`address2`)."""

    core: frozenset[str]
    qualifiers: frozenset[str] = frozenset()
    faint: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        """The meaning in words, the same for names that mean the same; a signature without values."""
        return " ".join([*sorted(self.qualifiers), *sorted(self.core), *sorted(self.faint), *sorted(self.numbers)])

    @property
    def place(self) -> str:
        """The one qualifier by which several values of a kind are told apart (`primary`), or empty."""
        return next((word for word in PREFERENCE if word and word in self.qualifiers), "")


@dataclass(frozen=True)
class Nearness:
    """How near two meanings lie, 0 to 1, and why. `conflict` names words that exclude each other."""

    score: float
    why: str
    conflict: str = ""


def plain(text: str) -> str:
    """Lower case without accents: `Straße` and `strasse` are the same."""
    if text.isascii():
        return text.lower()
    text = text.casefold().replace("ß", "ss").replace("ł", "l").replace("ø", "o")
    text = text.replace("ä", "ae").replace("ö", "oe").replace("ü", "ue")
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


@lru_cache(maxsize=50_000)
def _split(name: str) -> tuple[str, ...]:
    name = re.sub(r"__c$|_c$", "", name.strip())
    name = re.sub(r"(?<=[a-zà-ÿ0-9])(?=[A-ZÀ-Þ])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    name = re.sub(r"(?<=[A-Za-zÀ-ÿ])(?=\d)|(?<=\d)(?=[A-Za-zÀ-ÿ])", " ", name)
    name = re.sub(r"(?i)(?<![a-z])e[ _-]?mail(?=[^a-z]|$|s\b|address|addr)", "email", plain(name))
    return tuple(w for w in re.split(r"[^0-9a-z]+", name) if w)


def words(name: str) -> list[str]:
    """A schema name's words in lower case without accents: `PrimaryAddress_street1` -> primary address street 1."""
    return list(_split(name))


def says_something(word: str) -> bool:
    """True for a word, in lower case, that the trade's names are made of, in one piece or glued; not for noise."""
    return word not in NOISE and any(each in _VARIANTS or each in COMPOUNDS for each in _canonical(word))


@lru_cache(maxsize=20_000)
def _canonical(word: str) -> tuple[str, ...]:
    """The canonical tokens of a written word; a glued word is cut in two where both halves are known."""
    if word in COMPOUNDS:
        return tuple(COMPOUNDS[word].split())
    if word in _VARIANTS:
        return (_VARIANTS[word],)
    if word.endswith("s") and word[:-1] in _VARIANTS:
        return (_VARIANTS[word[:-1]],)
    parts = _cut(word) if len(word) >= 5 else None
    if parts is None and len(word) >= 8:  # an unknown prefix before known words: smownerid
        for size in range(1, len(word) - 4):
            tail = _cut(word[size:])
            if tail and any(len(p) >= 5 and p not in _SMALL for p in tail):
                parts = (word[:size], *tail)
                break
    if parts and len(parts) > 1:
        return tuple(_VARIANTS.get(p, p) for p in parts if p not in NOISE and p not in ("at", "on", "of", "to"))
    return (word,)


@lru_cache(maxsize=20_000)
def _cut(word: str) -> tuple[str, ...] | None:
    """A glued word in the fewest known words (`contactaddressid`), or None where it isn't made of them."""
    if not word:
        return ()
    best: tuple[str, ...] | None = None
    for size in range(len(word), 1, -1):
        head = word[:size]
        if head not in _SMALL and not (size >= 3 and (head in _VARIANTS or head in COMPOUNDS)):
            continue
        rest = _cut(word[size:])
        if rest is None and word[size:].startswith("s"):  # the German linking s
            rest = _cut(word[size + 1 :])
        if rest is not None and (best is None or len(rest) + 1 < len(best)):
            best = tuple(COMPOUNDS.get(head, head).split()) + rest
    return best


def _tokens(name: str, column: bool) -> list[str]:
    out: list[str] = []
    written = words(name)
    glued = "".join(written)
    if glued in COMPOUNDS:
        return COMPOUNDS[glued].split()
    for word in written:
        if column and word in _COLUMN_WORDS:
            out.append(_COLUMN_WORDS[word])
        elif word not in NOISE or len(written) == 1:
            out.extend(_canonical(word))
    return out


@lru_cache(maxsize=20_000)
def table_meaning(name: str) -> Meaning:
    """What a table's name says it holds."""
    tokens = [t for t in _tokens(name, column=False) if not t.isdigit()]
    known = [t for t in tokens if t in WORDS]
    return _meaning(known or tokens)


@lru_cache(maxsize=50_000)
def column_meaning(name: str, table: str = "") -> Meaning:
    """What a column's name says. Words that only repeat its table (`account_name` in accounts) are left out."""
    tokens = _tokens(name, column=True)
    own = table_meaning(table).core if table else frozenset()
    rest = [t for t in tokens if t not in own]
    if rest and rest != tokens and not set(rest) <= {"id"}:
        tokens = rest
    return _meaning(tokens)


def _meaning(tokens: list[str]) -> Meaning:
    left = [t for t in tokens if not t.isdigit()]
    numbers = frozenset(t for t in tokens if t.isdigit() and t != "1")
    core: set[str] = set()
    for pattern, meaning in _PATTERNS:
        if pattern <= set(left) and not (len(pattern) == 1 and pattern <= _QUALIFIERS and len(left) > 1):
            core.add(meaning)
            left = [t for t in left if t not in pattern]
    qualifiers = frozenset(t for t in left if t in _QUALIFIERS)
    strong = {t for t in left if t not in qualifiers and t not in FAINT}
    faint = frozenset(t for t in left if t in FAINT)
    core |= strong
    if len(core) > 1 and "name" in core and core & _NAMED:
        core.discard("name")
    if not core:
        core, faint = set(faint) or set(qualifiers), frozenset()
        qualifiers = qualifiers - core
    return Meaning(frozenset(core), qualifiers, faint, numbers)


@lru_cache(maxsize=50_000)
def nearness(a: Meaning, b: Meaning) -> Nearness:
    """How near the meaning of a source column, `a`, lies to that of a target column, `b`. Words that exclude
    each other leave at most 0.3."""
    matched = 0.0
    notes: list[str] = []
    for token in a.core:
        best, partner = max(((_near(token, other, NEAR_COLUMNS), other) for other in b.core), default=(0.0, ""))
        matched += best
        if best:
            notes.append(token if best == 1 else f"{token} ~ {partner}")
    back = sum(max((_near(token, other, NEAR_COLUMNS) for other in a.core), default=0.0) for token in b.core)
    total = len(a.core) + len(b.core)
    score = (matched + back) / total if total else 0.0
    conflict = _conflict(a, b)
    if conflict:
        return Nearness(min(score, 0.3), ", ".join(notes), conflict)
    odd = a.qualifiers ^ b.qualifiers
    if b.place in ("home", "alternate", "shipping") and not a.place:
        score *= 0.65  # one place is asked for, any is offered
    elif b.place in ("work", "billing", "direct") and not a.place:
        score *= 0.9
    score *= 1 - 0.08 * min(len(odd), 3) - 0.04 * min(len(a.faint ^ b.faint), 2)
    score *= 0.7 if a.numbers != b.numbers else 1.0
    return Nearness(max(0.0, score), ", ".join(notes))


@lru_cache(maxsize=50_000)
def table_nearness(a: str, b: str) -> float:
    """How near two tables' names lie, 0 to 1."""
    left, right = table_meaning(a).core, table_meaning(b).core
    if not left or not right:
        return 0.0
    if left == right:
        return 1.0
    there = sum(max(_near(t, o, NEAR) for o in right) for t in left)
    back = sum(max(_near(t, o, NEAR) for o in left) for t in right)
    return (there + back) / (len(left) + len(right))


def _near(a: str, b: str, table: dict[frozenset[str], float]) -> float:
    if a == b:
        return 1.0
    known = table.get(frozenset({a, b}))
    if known is not None:
        return known
    if a in WORDS or b in WORDS or a in MEANINGS or b in MEANINGS or min(len(a), len(b)) < 4:
        return 0.0
    ratio = fuzz.ratio(a, b) / 100
    return ratio if ratio >= 0.8 else 0.0


def _conflict(a: Meaning, b: Meaning) -> str:
    for group in EXCLUSIVE:
        left, right = a.qualifiers & group, b.qualifiers & group
        if left and right and not left & right:
            return f"{', '.join(sorted(left))} against {', '.join(sorted(right))}"
    return ""
