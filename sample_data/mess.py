"""How a clean value is dirtied: each function takes clean columns and gives what the legacy system holds.

Every change here can be undone by someone who knows the record (its country, its column's habits); values
that cannot be right on the other side are put in by name where a table is written, never here.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from . import clock
from .clean_shared import SAFE_LETTERS
from .columns import Text, cents_text, join, numbers_text, only, pick, present, put, where
from .draw import Index, Mask
from .lists import PACKINGS, packed
from .phones import WAYS, Numbers
from .places import SPELLINGS
from .world import World

_ESCAPES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#039;"))
_NAMED = (("ä", "&auml;"), ("ö", "&ouml;"), ("ü", "&uuml;"), ("ß", "&szlig;"), ("é", "&eacute;"), ("ó", "&oacute;"))
_SAFE = f"^[ -~{SAFE_LETTERS}]*[{SAFE_LETTERS}][ -~{SAFE_LETTERS}]*$"


def escaped(text: Text) -> Text:
    """As a web form stored it: & < > quotes and some letters as entities."""
    for plain, entity in (*_ESCAPES, *_NAMED):
        text = pc.replace_substring(text, plain, entity)
    return text


def misread(text: Text) -> Text:
    """UTF-8 that was read as cp1252, where that can be told afterwards; other texts stay as they are."""
    for letter in sorted(SAFE_LETTERS):
        # Letters of SAFE_LETTERS become two characters that are not themselves in SAFE_LETTERS, but for Ã.
        text = pc.replace_substring(text, letter, letter.encode().decode("cp1252").replace("Ã", "\ue000"))
    return pc.replace_substring(text, "\ue000", "Ã")


def text(world: World, column: str, index: Index, clean: Text, *, blanks: bool = True) -> Text:
    """A text column (`table:column`) with the mess of its lanes; with `blanks`, half of its NULLs are empty."""
    kinds = world.lanes(column)
    here = present(clean)
    out = clean
    for name in kinds.lanes:
        rows = kinds.has(index, name) & here
        if not rows.any():
            continue
        some = clean.filter(pa.array(rows))
        if name == "html":
            some = escaped(some)
        elif name == "html_twice":
            some = pc.replace_substring(escaped(some), "&", "&amp;")
        elif name == "mojibake":
            some = pc.if_else(pc.match_substring_regex(some, _SAFE), misread(some), some)
        else:
            some = join("", " ", some, "  ")
        out = put(out, rows, some)
    if blanks:
        out = blank(world, column, index, out)
    return out


def blank(world: World, stream: str, index: Index, clean: Text) -> Text:
    """Half of the NULLs as the empty string."""
    return where(~present(clean) & world.draw.chance(f"{stream}/blank", index, 0.5), "", clean)


def spelling(world: World, stream: str, index: Index, clean: Text, values: dict[str, tuple[str, ...]]) -> Text:
    """A picklist value in one of its spellings, the first being the commonest."""
    names = list(values)
    flat = [s for spellings in values.values() for s in spellings]
    start = np.cumsum([0, *(len(s) for s in values.values())])[:-1]
    size = np.array([len(s) for s in values.values()])
    code = np.asarray(pc.index_in(clean, pa.array(names)).fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)
    other = world.draw.below(f"{stream}/spelling", index, 1 << 30) % size[code]
    usual = world.draw.chance(f"{stream}/usual", index, 0.6)
    return only(present(clean), pick(flat, start[code] + np.where(usual, 0, other)))


def phone(world: World, stream: str, index: Index, clean: Numbers, has: Mask, home: Mask) -> Text:
    """Numbers in many ways of writing; without the country on record (`home`) only in ways that name it."""
    weights = [0.22, 0.2, 0.22, 0.08, 0.07, 0.08, 0.06, 0.07]
    way = world.draw.pick(f"{stream}/way", index, weights)
    named = np.isin(way, [WAYS.index("e164"), WAYS.index("spaced"), WAYS.index("bracket_zero")])
    way = np.where(home | named, way, way % 2)
    # Not each country knows the bracketed zero; what it falls back to names the country too.
    written = clean.write(way)
    padded = where(world.draw.chance(f"{stream}/pad", index, 0.02), join("", " ", written, " "), written)
    return blank(world, stream, index, only(has, padded))


def country(world: World, stream: str, index: Index, clean: Index, known: Mask) -> Text:
    """A country in one of its spellings."""
    size = np.asarray(SPELLINGS.size)[clean]
    start = np.asarray(SPELLINGS.start)[clean]
    other = world.draw.below(f"{stream}/spelling", index, 1 << 30) % size
    usual = world.draw.chance(f"{stream}/usual", index, 0.5)
    written = pick(SPELLINGS.values, start + np.where(usual, 0, other))
    written = where(world.draw.chance(f"{stream}/pad", index, 0.02), join("", written, " "), written)
    return blank(world, stream, index, only(known, written))


def email(world: World, stream: str, index: Index, clean: Text, shout: Mask) -> Text:
    """Addresses in mixed case, with blanks, with mailto: or a name in front; in capitals where `shout`."""
    way = np.where(shout, 2, world.draw.pick(f"{stream}/way", index, [0.62, 0.15, 0.1, 0.06, 0.03, 0.04]))
    titled = pc.utf8_title(clean)
    out = where(way == 1, titled, clean)
    out = where(way == 2, pc.utf8_upper(clean), out)
    out = where(way == 3, join("", " ", clean, " "), out)
    out = where(way == 4, join("", "mailto:", clean), out)
    shown = pc.utf8_title(pc.replace_substring_regex(clean, r"[.0-9]*@.*$", ""))
    shown = pc.replace_substring(shown, ".", " ")
    out = where(way == 5, join("", shown, " <", clean, ">"), out)
    return only(present(clean), out)


def money(world: World, stream: str, index: Index, cents: Index, has: Mask) -> Text:
    """Amounts of cents as people typed them, always with both decimals."""
    rows = np.flatnonzero(has)
    way = world.draw.below(f"{stream}/way", index[rows], 6)
    grouped = [f"{int(c) // 100:,}.{int(c) % 100:02}" for c in cents[rows]]
    out: list[str] = []
    for style, value in zip(way.tolist(), grouped, strict=True):
        if style == 0:
            out.append(value.replace(",", ""))
        elif style == 1:
            out.append(value)
        elif style == 2:
            out.append("$" + value)
        elif style == 3:
            out.append(value.replace(",", "x").replace(".", ",").replace("x", "."))
        elif style == 4:
            out.append("€ " + value.replace(",", "x").replace(".", ",").replace("x", "."))
        else:
            out.append(value.replace(",", "'"))
    base = only(np.zeros(len(index), dtype=bool), pick([""], np.zeros(len(index), dtype=np.int64)))
    return blank(world, stream, index, put(base, has, pa.array(out, pa.string())))


def double(cents: Index) -> Text:
    """Amounts as a DOUBLE column prints them: no trailing zeros."""
    return pc.utf8_rtrim(pc.replace_substring_regex(cents_text(cents), r"(\.\d*?)0+$", r"\1"), ".")


def spreadsheet_date(world: World, stream: str, index: Index, clean: clock.Days, has: Mask) -> Text:
    """Dates as ISO text or, from an import, as spreadsheet serial numbers."""
    serial = world.draw.chance(f"{stream}/serial", index, 0.3)
    return blank(world, stream, index, only(has, where(serial, clock.excel_text(clean), clock.date_text(clean))))


def multiselect(world: World, stream: str, index: Index, code: Index, lists: list[tuple[str, ...]], has: Mask) -> Text:
    """Lists packed into strings in one of four ways; empty ones are empty or NULL."""
    way = world.draw.pick(f"{stream}/packing", index, [0.86, 0.06, 0.05, 0.03])
    flat = [packed(items, packing) for items in lists for packing in PACKINGS]
    written = pick(flat, code * len(PACKINGS) + way)
    bare = np.array([not items for items in lists])[code] & world.draw.chance(f"{stream}/null", index, 0.5)
    return only(has & ~bare, written)


def flag(mask: Mask) -> Text:
    """1 and 0."""
    return numbers_text(mask.astype(np.int64))
