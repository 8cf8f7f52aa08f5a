"""From a source column to a target column: which expression carries the values over, and how well they fit.

Rules from the pair of types and from what the values look like; nothing here decides whether the columns
mean the same. A conversion that needs to know what no value tells (a time zone) says so in `needs`.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

from agent.lexicon import Meaning, column_meaning
from agent.phones import INTERNATIONAL, international
from agent.profile import PICKLIST_MAX, ColumnProfile
from agent.value_lexicon import label_for
from connectors.protocols import Column, Kind, Source, Table

_PHONES = {"phone", "mobile", "fax"}
_CODES = {"number", "code", "external_id", "tax_id", "postal_code", "phone", "mobile", "fax", "house_number"}
_WORDY = {"first_name", "last_name", "full_name", "name", "city", "street", "job_title", "department", "subject",
          "body", "description", "note", "region", "salutation", "organisation"}  # fmt: skip


@dataclass(frozen=True)
class Conversion:
    """How a column's values would go over.

    `fit` is the estimated share of values that arrive, 0 to 1; `evidence` how telling that is (an e-mail column that
    holds e-mails: near 1; any text in a text column: 0). Exactly one of `column` (as it is) and `sql` is set.
    `needs` names what has to be known first: `zone`, `values`, `country`, `date_format`.
    """

    fit: float
    evidence: float = 0.0
    column: str = ""
    sql: str = ""
    needs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def convert(
    name: str, source: ColumnProfile, target: Column, table: Table, country: str = "", meaning: Meaning | None = None
) -> Conversion:
    """The conversion of column `name` of an entity to a target column. `country` is the entity's own column
    of countries, if there is one, that phone numbers are read by; `meaning` is what the target column says,
    where more than its own name tells it."""
    rule = {
        Kind.BOOLEAN: _boolean, Kind.DATE: _date, Kind.DATETIME: _instant, Kind.INSTANT: _instant,
        Kind.INTEGER: _number, Kind.DECIMAL: _number, Kind.FLOAT: _number, Kind.ENUM: _enum, Kind.ARRAY: _array,
        Kind.UUID: _uuid, Kind.BINARY: _binary, Kind.TIME: _as_is, Kind.JSON: _json,
    }.get(target.kind, _as_is)  # fmt: skip
    if source.filled == 0:
        return Conversion(0.5, column=name, notes=("the column is empty",))
    if target.kind is Kind.TEXT:
        return _text(name, source, target, table, country, meaning or column_meaning(target.name, table.name))
    return rule(name, source, target, table, country)


def quoted(name: str) -> str:
    """A column as an expression names it: bare where it can stand bare."""
    return (
        name
        if re.fullmatch(r"[a-z_][a-z0-9_]*", name) and name not in _RESERVED
        else '"' + name.replace('"', '""') + '"'
    )


# Words that some system's SQL keeps for itself.
_RESERVED = frozenset(
    (  # noqa: SIM905
        "add all alter analyse analyze and any array as asc asymmetric authorization before between both by "
        "call cascade case cast change character check collate column condition constraint continue convert "
        "create cross current current_date current_role current_time current_timestamp current_user cursor "
        "database databases date day default delayed delete desc describe distinct div do double drop each "
        "else elseif end escaped except exists exit explain false fetch float for force foreign freeze from "
        "full fulltext function grant group groups having if ignore in index inner inout insert int intersect "
        "interval into is isnull join key keys kill lateral leading leave left like limit lines load "
        "localtime localtimestamp lock loop match mod month natural not notnull null of offset on only "
        "optimize option or order out outer over overlaps partition placing primary procedure range rank read "
        "recursive references regexp release rename repeat replace require restrict return returning revoke "
        "right row rows schema schemas select separator session_user set show similar some sql starting "
        "system table tablesample terminated then time timestamp to trailing trigger true type union unique "
        "unlock unsigned update usage use user using values variadic verbose view when where while window "
        "with write xor year zerofill"
    ).split()
)


def quoted_for(source: Source, name: str) -> str:
    """An identifier as a plan's SELECT says it: bare where every system reads it so, else as the source quotes."""
    return name if quoted(name) == name else source.quote(name)


def clean_text(name: str, source: ColumnProfile) -> str:
    """The text of a column with what the old system did to it undone: entities, mojibake, stray white space."""
    sql = quoted(name)
    if "entities" in source.undo:
        sql = f"html_text({sql})"
    if "mojibake" in source.undo:
        sql = f"mojibake({sql})"
    if "spaces" in source.undo or source.trailing or source.blanks:
        sql = f"nullif(trim({sql}), '')"  # nothing but white space is no value, for a required column too
    return sql


def _text(name: str, source: ColumnProfile, target: Column, table: Table, country: str, meaning: Meaning) -> Conversion:
    if "email" in meaning.core and not meaning.core & {"opt_out", "opt_in"}:
        share = source.trait("email")
        return Conversion(share if share >= 0.5 else share * 0.3, share, sql=f"email({quoted(name)})")
    if meaning.core & _PHONES:
        share = source.trait("phone")
        sql = f"phone({quoted(name)}, {quoted(country)})" if country else f"phone({quoted(name)})"
        needs = () if country or international(source) >= INTERNATIONAL else ("country",)
        return Conversion(share if share >= 0.4 else share * 0.3, 0.5 * share, sql=sql, needs=needs)
    if "website" in meaning.core:
        return _website(name, source, target, table)
    if "domain" in meaning.core and source.trait("url") > 0.5:
        return _host(name, source)
    if "country" in meaning.core and target.length == 2:
        wordy = source.trait("letters")
        return Conversion(min(1.0, wordy), 0.0, sql=f"country({quoted(name)})")
    if "currency" in meaning.core and target.length == 3:
        codes = sum(n for v, n in source.top if re.fullmatch(r"[A-Z]{3}", v)) / max(1, sum(n for _, n in source.top))
        return Conversion(codes, 0.6 * codes, column=name)
    fit, notes = _plain_fit(source, meaning, target)
    sql = clean_text(name, source)
    return Conversion(
        fit, 0.0, column=name if sql == quoted(name) else "", sql="" if sql == quoted(name) else sql, notes=notes
    )


def _plain_fit(source: ColumnProfile, meaning: Meaning, target: Column) -> tuple[float, tuple[str, ...]]:
    notes: list[str] = []
    fit = 1.0
    if source.trait("uuid") > 0.8:
        fit = 0.1
    elif (
        source.column.kind in (Kind.DATE, Kind.DATETIME, Kind.INSTANT)
        or source.trait("date") > 0.8
        or source.trait("datetime") > 0.8
    ):
        fit = 0.25
    elif source.trait("boolean") == 1 and source.distinct <= 3:
        fit = 0.3
    elif source.column.kind in (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT) or source.trait("decimal") > 0.95:
        fit = 0.98 if meaning.core & _CODES or meaning.faint & {"number", "code", "id"} else 0.5
    elif source.trait("email") > 0.8 or source.trait("url") > 0.8:
        fit = 0.4
    if meaning.core & _WORDY and source.trait("letters") < 0.5:
        fit = min(fit, 0.3)
    if target.length and source.longest > target.length:
        long = sum(n for v, n in source.top if len(v) > target.length) / max(1, sum(n for _, n in source.top))
        notes.append(f"up to {source.longest} characters, the target takes {target.length}")
        fit *= 1 - min(0.9, 2 * max(0.0, long - 0.05))  # a few that are too long say nothing about the match
    return fit, tuple(notes)


def _website(name: str, source: ColumnProfile, target: Column, table: Table) -> Conversion:
    """A web address. Where the target wants a scheme, what has none gets http://, as such addresses always meant;
    letters become small where no value has large ones beyond the host, which knows none."""
    share = source.trait("url")
    wants_scheme = any(target.name in c and "http" in c for c in table.checks)
    if not wants_scheme:
        sql = clean_text(name, source)
        plain = sql == quoted(name)
        return Conversion(share, share, column=name if plain else "", sql="" if plain else sql)
    small = not any(re.search(r"/.*[A-Z]", v.split("://")[-1]) for v, _ in source.top)
    text = f"lower(trim({quoted(name)}))" if small else f"trim({quoted(name)})"
    nothing = f"case when lower(trim({quoted(name)})) in ('', 'http://', 'https://') then null"
    sql = f"{nothing} when lower(trim({quoted(name)})) like 'http%' then {text} else 'http://' || {text} end"
    return Conversion(share, share, sql=sql, notes=("the target wants a scheme",))


def _host(name: str, source: ColumnProfile) -> Conversion:
    """The host of a web address, without www."""
    text = f"lower(trim({quoted(name)}))"
    host = f"nullif(regexp_extract({text}, '^(?:https?://)?(?:www[.])?([^/:?#]+)', 1), '')"
    sql = f"case when {text} in ('', 'http://', 'https://') then null else {host} end"
    return Conversion(source.trait("url"), 0.3, sql=sql, notes=("the host of the address",))


def _boolean(name: str, source: ColumnProfile, target: Column, table: Table, country: str) -> Conversion:
    total = sum(n for _, n in source.top)
    if source.minus_one:
        inner = _or_default(f"replace({quoted(name)}, '-', '')", source, target)
        return Conversion(1.0, 0.2, sql=f"boolean({inner})", notes=("yes is written as -1",))
    inner = _or_default(quoted(name), source, target)
    good = sum(n for v, n in source.top if v.casefold() in _TRUTHS) / max(1, total)
    fit = good if good >= 0.9 else good * 0.3
    return Conversion(fit, 0.2 * good, sql=f"boolean({inner})")


_TRUTHS = frozenset("0 1 true false t f yes no y n on off ja nein oui non si sí no".split())  # noqa: SIM905


def _or_default(sql: str, source: ColumnProfile, target: Column) -> str:
    """A column that may be NULL, for a target that takes none but has a constant of its own for it."""
    constant = constant_default(target)
    if target.nullable or constant is None:
        return sql
    inner = f"nullif(trim({sql}), '')" if source.blanks else sql
    return f"coalesce({inner}, {constant})"


def constant_default(target: Column) -> str | None:
    """The target's own default as a SQL literal in text, or None where it is no constant."""
    default = (target.default or "").strip()
    if default.lower() in ("true", "false"):
        return "'1'" if default.lower() == "true" else "'0'"
    if re.fullmatch(r"-?\d+(\.\d+)?", default):
        return f"'{default}'"
    found = re.fullmatch(r"'((?:[^']|'')*)'(::[\w\s.\"]+)?", default)
    return f"'{found[1]}'" if found else None


def _date(name: str, source: ColumnProfile, target: Column, table: Table, country: str) -> Conversion:
    dated = max(source.trait("date"), source.trait("datetime")) + source.trait("zero_date")
    if source.trait("serial") + source.trait("date") > 0.8 and source.trait("serial") > 0.05:
        return Conversion(
            1.0, 0.3, sql=f"excel_date({quoted(name)})", notes=("numbers of days, as spreadsheets keep dates",)
        )
    iso = all(re.match(r"^\d{4}-\d{2}-\d{2}", v) or v.startswith("0000") for v, _ in source.top[:100])
    if dated <= 0.5 and re.search(r"\d", source.samples[0] if source.samples else "") and _dotted(source) > 0.8:
        return Conversion(0.92, 0.1, column=name, needs=("date_format",), notes=("dates in a form that is not told",))
    if dated > 0.8 and not iso:
        return Conversion(
            0.97, 0.3, column=name, needs=("date_format",), notes=("dates in a form whose order is not told",)
        )
    if dated > 0.8 and source.trait("datetime") > 0.5:
        return Conversion(0.85, 0.3, column=name, notes=("the time of day is dropped",))
    return Conversion(min(1.0, dated) if dated > 0.5 else dated * 0.2, 0.3, column=name)


def _dotted(source: ColumnProfile) -> float:
    """The share of values made of figures and the marks that dates are written with."""
    total = sum(n for _, n in source.top)
    return sum(n for v, n in source.top if re.fullmatch(r"\d[\d./: -]{5,18}", v)) / total if total else 0.0


def _instant(name: str, source: ColumnProfile, target: Column, table: Table, country: str) -> Conversion:
    timed = source.trait("datetime") + source.trait("zero_date")
    share = max(timed, 0.7 * source.trait("date"))
    if target.kind is Kind.DATETIME or source.trait("zoned") > 0.9 or source.column.kind is Kind.INSTANT:
        return Conversion(share if share > 0.5 else share * 0.2, 0.3, column=name)
    sql = f"local_time({quoted(name)}, '{{zone}}')"
    return Conversion(share if share > 0.5 else share * 0.2, 0.3, sql=sql, needs=("zone",))


def _number(name: str, source: ColumnProfile, target: Column, table: Table, country: str) -> Conversion:
    numeric = source.column.kind in (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)
    if numeric and (
        target.kind is not Kind.INTEGER or source.column.kind is Kind.INTEGER or source.trait("integer") > 0.99
    ):
        return Conversion(0.2 if source.trait("boolean") == 1 and source.distinct <= 2 else 1.0, 0.15, column=name)
    if target.kind is Kind.INTEGER:
        whole = source.trait("integer")
        if whole > 0.9:
            return Conversion(whole, 0.15, column=name)
        grouped = source.trait("money")
        return Conversion(
            0.95 * grouped, 0.1, sql=f"replace(trim({quoted(name)}), ',', '')", notes=("thousands set apart by commas",)
        )
    plain = source.trait("decimal")
    if plain > 0.995 and not any("," in v for v, _ in source.top):
        return Conversion(plain, 0.15, column=name)
    money = source.trait("money")
    return Conversion(money if money > 0.6 else money * 0.3, 0.2 * money, sql=f"money({quoted(name)})")


def _enum(name: str, source: ColumnProfile, target: Column, table: Table, country: str) -> Conversion:
    """Fit and evidence from how many of the values find a label, by count and by label."""
    total = sum(n for _, n in source.top)
    hits = {v: label_for(html.unescape(v), target.labels) for v, _ in source.top}
    covered = sum(n for v, n in source.top if hits[v].sure) / max(1, total)
    if not source.listlike and (covered < 0.5 or source.distinct > PICKLIST_MAX):
        return Conversion(0.3 + 0.4 * covered, 0.0, column=name, needs=("values",))
    labels = {h.label for h in hits.values() if h.sure}
    telling = min(1.0, len(labels - {"other"}) / 4) * (len(labels) / max(1, min(len(target.labels), 8)))
    plain = "entities" not in source.undo
    return Conversion(
        0.3 + 0.7 * covered, covered * min(1.0, telling), column=name if plain else "", sql="" if plain else f"html_text({quoted(name)})",
        needs=("values",), notes=(f"{covered:.0%} of the values find one of {len(target.labels)} labels",),
    )  # fmt: skip


def _array(name: str, source: ColumnProfile, target: Column, table: Table, country: str) -> Conversion:
    packed = source.trait("multi")
    separated = sum(";" in v for v, _ in source.top) / max(1, len(source.top))
    return Conversion(max(0.4, packed, separated), 0.8 * max(packed, separated), sql=f"multiselect({quoted(name)})")


def _uuid(name: str, source: ColumnProfile, target: Column, table: Table, country: str) -> Conversion:
    return Conversion(source.trait("uuid"), 0.1, column=name)


def _binary(name: str, source: ColumnProfile, target: Column, table: Table, country: str) -> Conversion:
    return Conversion(1.0 if source.column.kind is Kind.BINARY else 0.05, 0.2, column=name)


def _json(name: str, source: ColumnProfile, target: Column, table: Table, country: str) -> Conversion:
    braces = sum(v[:1] in "[{" for v, _ in source.top) / max(1, len(source.top))
    return Conversion(braces, 0.5 * braces, column=name)


def _as_is(name: str, source: ColumnProfile, target: Column, table: Table, country: str) -> Conversion:
    return Conversion(0.6, 0.0, column=name)
