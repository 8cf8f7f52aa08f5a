"""From a compiled expression to the text that the target stores, with a reason where it can't be stored.

Each target kind has one rule, written as DuckDB SQL over a value: it gives the canonical text (what the
target's own `::text` shows, so that checksums can be recomputed there), a reason, and the change made to
the value, if any. Nothing here may round, cut or guess.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from connectors.protocols import Column, Kind
from engine.expressions import Piece
from engine.query import literal
from workspace.errors import PlanError

HASHED_KINDS = frozenset(
    {Kind.TEXT, Kind.INTEGER, Kind.DECIMAL, Kind.BOOLEAN, Kind.DATE, Kind.DATETIME, Kind.INSTANT, Kind.UUID,
     Kind.ENUM, Kind.ARRAY, Kind.BINARY}
)  # fmt: skip
"""Kinds whose canonical text equals the target's `::text`; of the others the checksum holds only whether
there is a value."""


@dataclass(frozen=True)
class Cast:
    """DuckDB SQL: `value` is VARCHAR or NULL; `reason` VARCHAR or NULL; `change` VARCHAR or NULL.

    A reason that begins with `soft ` lets a nullable column take NULL. `change` names what was done to the
    value (`nul removed`, `blank to null`).
    """

    value: str
    reason: str | None
    change: str | None


def cast_to(column: Column, piece: Piece, where: str) -> Cast:
    """The cast of a piece to a target column. PlanError where no value of that type could ever go there."""
    is_list = piece.type.endswith("[]")
    if is_list != (column.kind is Kind.ARRAY) and piece.type != "NULL":
        raise PlanError(
            f"{'a list' if is_list else 'a single value'} cannot go to {column.name} ({column.type})",
            where=where,
            advice="multiselect(column) makes a list" if not is_list else "the target column is not an array",
        )
    if piece.type == "BLOB" and column.kind not in (Kind.BINARY, Kind.UUID):
        raise PlanError(
            f"binary cannot go to {column.name} ({column.type})",
            where=where,
            advice="map it to a bytea column",
        )
    return _RULES.get(column.kind, _other)(column, piece)


def _text(column: Column, piece: Piece) -> Cast:
    raw = f"CAST({piece.sql} AS VARCHAR)"
    value = f"replace({raw}, chr(0), '')"
    if column.padded:
        value = f"rtrim({value}, ' ')"
    reason = (
        f"CASE WHEN length({value}) > {column.length} THEN {literal(f'length {column.length}')} END"
        if column.length
        else None
    )
    return Cast(value, reason, f"CASE WHEN contains({raw}, chr(0)) THEN 'nul removed' END")


def _blank(piece: Piece) -> tuple[str, str | None]:
    """Trimmed text, blank as NULL; and the change that this is."""
    if piece.type != "VARCHAR":
        return f"CAST({piece.sql} AS VARCHAR)", None
    text = f"nullif(trim({piece.sql}), '')"
    return text, f"CASE WHEN {piece.sql} IS NOT NULL AND {text} IS NULL THEN 'blank to null' END"


def _integer(column: Column, piece: Piece) -> Cast:
    if piece.type == "BOOLEAN":
        return Cast(f"CAST(CAST({piece.sql} AS INTEGER) AS VARCHAR)", None, None)
    text, change = _blank(piece)
    number = f"TRY_CAST(regexp_replace({text}, '\\.0*$', '') AS HUGEINT)"
    whole = rf"regexp_full_match({text}, '[+-]?[0-9]+(\.0*)?')"
    bits = column.bits or 32
    low, high = (0, (1 << bits) - 1) if column.unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
    name = column.type if column.unsigned else {16: "smallint", 32: "integer", 64: "bigint"}.get(bits, column.type)
    reason = (
        f"CASE WHEN NOT {whole} THEN 'cast {name}' "
        f"WHEN {text} IS NOT NULL AND ({number} IS NULL OR {number} NOT BETWEEN {low} AND {high}) THEN 'range {name}' END"
    )
    return Cast(f"CAST({number} AS VARCHAR)", reason, change)


def _decimal(column: Column, piece: Piece) -> Cast:
    text, change = _blank(piece)
    if piece.type == "BOOLEAN":
        text = f"CAST(CAST({piece.sql} AS INTEGER) AS VARCHAR)"
    shaped = rf"regexp_full_match({text}, '[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{{1,2}})?')"
    written = _written_out(text, shaped)
    if column.precision is None:
        plain = _plain_number(written)
        if column.bare:
            plain = rf"regexp_replace(regexp_replace({plain}, '([.][0-9]*?)0+$', '\1'), '[.]$', '')"
        return Cast(plain, f"CASE WHEN NOT {shaped} THEN 'cast numeric' END", change)
    precision, scale = column.precision, column.scale or 0
    name = f"numeric({precision},{scale})"
    # DECIMAL casts round; a value with more digits than the column keeps is a reason, never rounded in silence.
    if scale >= 0:
        lossy = rf"regexp_matches({written}, '\.[0-9]{{{scale}}}[0-9]*[1-9]')"
    else:
        lossy = rf"regexp_matches({written}, '\.[0-9]*[1-9]|[1-9][0-9]{{0,{-scale - 1}}}(\.[0-9]*)?$')"
    if precision <= 38 and 0 <= scale <= precision:
        value = f"CAST(TRY_CAST({written} AS DECIMAL({precision},{scale})) AS VARCHAR)"
        if scale == precision:
            value = f"regexp_replace({value}, '^(-?)[.]', '\\10.')"
        beyond = f"{text} IS NOT NULL AND {value} IS NULL"
    else:
        scaled, counting = _scaled_number("p", scale)
        value = _with("w", written, _with("p", _plain_number("w"), scaled))
        beyond = _with("w", written, _with("p", _plain_number("w"), f"length({counting}) > {precision}"))
    reason = (
        f"CASE WHEN NOT {shaped} THEN 'cast numeric' WHEN {lossy} THEN {literal('range ' + name + ' digits')} "
        f"WHEN {beyond} THEN {literal('range ' + name)} END"
    )
    return Cast(value, reason, change)


def _written_out(text: str, shaped: str) -> str:
    """A number's text without an exponent, digit for digit: 1.25e-3 is 0.00125."""
    sign = f"regexp_extract({text}, '^-')"
    digits = f"replace(regexp_extract({text}, '^[+-]?([0-9.]+)', 1), '.', '')"
    point = f"(length(regexp_extract({text}, '^[+-]?([0-9]*)', 1)) + CAST(regexp_extract({text}, '[eE](.*)$', 1) AS INTEGER))"
    moved = (
        f"CASE WHEN {point} <= 0 THEN '0.' || repeat('0', -{point}) || {digits} "
        f"WHEN {point} >= length({digits}) THEN {digits} || repeat('0', {point} - length({digits})) "
        f"ELSE left({digits}, {point}) || '.' || substr({digits}, {point} + 1) END"
    )
    return f"CASE WHEN contains(lower({text}), 'e') THEN CASE WHEN {shaped} THEN {sign} || {moved} END ELSE {text} END"


def _plain_number(text: str) -> str:
    """As PostgreSQL shows a numeric: no plus, no needless zero in front, a digit before the point, no minus zero."""
    bare = f"ltrim({text}, '+')"
    for pattern, put in ((r"^(-?)0+([0-9])", r"\1\2"), (r"^(-?)[.]", r"\10."), (r"[.]$", ""), (r"^-([0.]+)$", r"\1")):
        bare = f"regexp_replace({bare}, '{pattern}', '{put}')"
    plain = r"0(\.[0-9]+)?|[1-9][0-9]*(\.[0-9]+)?|-[1-9][0-9]*(\.[0-9]+)?"
    whole = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)"
    return f"CASE WHEN regexp_full_match({text}, '{plain}') THEN {text} WHEN regexp_full_match({text}, '{whole}') THEN {bare} END"


def _with(name: str, sql: str, body: str) -> str:
    """`body` with `name` standing for `sql`, which is written and planned once."""
    return f"list_transform([{sql}], lambda {name}: {body})[1]"


def _scaled_number(text: str, scale: int) -> tuple[str, str]:
    """A plain number with exactly `scale` digits after the point; and its digits that count against the precision."""
    whole, fraction = f"split_part({text}, '.', 1)", f"split_part({text}, '.', 2)"
    if scale <= 0:
        value = f"regexp_replace({whole}, '^-0$', '0')"
        return value, f"left(ltrim({whole}, '-'), greatest(length(ltrim({whole}, '-')) - {-scale}, 0))"
    kept = f"rpad(left({fraction}, {scale}), {scale}, '0')"
    value = f"regexp_replace({whole} || '.' || {kept}, '^-([0.]+)$', '\\1')"
    return value, f"ltrim(ltrim({whole}, '-') || {kept}, '0')"


def _float(column: Column, piece: Piece) -> Cast:
    text, change = _blank(piece)
    number = f"TRY_CAST({text} AS DOUBLE)"
    largest = "3.4028235e38" if column.type == "real" else "1.7976931348623157e308"
    endless = f"regexp_matches({text}, '^[+-]?[iI]')"
    reason = (
        f"CASE WHEN {text} IS NOT NULL AND {number} IS NULL THEN 'cast float' "
        f"WHEN NOT isnan({number}) AND abs({number}) > {largest} AND NOT {endless} THEN 'range float' END"
    )
    return Cast(f"CASE WHEN {number} IS NOT NULL THEN {text} END", reason, change)


def _boolean(column: Column, piece: Piece) -> Cast:
    if piece.type == "BOOLEAN":
        return Cast(f"CAST({piece.sql} AS VARCHAR)", None, None)
    text, change = _blank(piece)
    if piece.type == "NUMBER":
        text = f"regexp_replace({text}, '\\.0*$', '')"
    value = f"CASE WHEN lower({text}) IN ('1', 't', 'true') THEN 'true' WHEN lower({text}) IN ('0', 'f', 'false') THEN 'false' END"
    return Cast(value, f"CASE WHEN {text} IS NOT NULL AND ({value}) IS NULL THEN 'cast boolean' END", change)


def _zero(text: str) -> str:
    return f"starts_with({text}, '0000-00-00')"


def _day(text: str, rest: str) -> str:
    """True where the text is a day of the years 1 to 9999, with `rest` (a pattern) after it. There is no year
    0, whatever MySQL stores and DuckDB makes of it."""
    return f"(regexp_full_match({text}, '[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}{rest}') AND NOT starts_with({text}, '0000'))"


def _date(column: Column, piece: Piece) -> Cast:
    if piece.type == "DATE":
        return Cast(f"CAST({piece.sql} AS VARCHAR)", None, None)
    text, change = _blank(piece)
    shaped = _day(text, r"([ T]00:00(:00(\.0+)?)?)?")
    date = f"TRY_CAST(left({text}, 10) AS DATE)"
    value = f"CASE WHEN {shaped} THEN CAST({date} AS VARCHAR) END"
    reason = (
        f"CASE WHEN {_zero(text)} THEN 'soft zero date' "
        f"WHEN {text} IS NOT NULL AND ({value}) IS NULL THEN 'cast date' END"
    )
    return Cast(f"CASE WHEN NOT {_zero(text)} THEN {value} END", reason, change)


def _moment(type_: str, name: str) -> Callable[[Column, Piece], Cast]:
    def rule(column: Column, piece: Piece) -> Cast:
        kept = column.precision
        if piece.type == type_:
            value, zero, reason, change = f"CAST({piece.sql} AS VARCHAR)", "false", "", None
        else:
            text, change = _blank(piece)
            # An instant without its offset could be that of any place: it's for `local_time` to say which.
            local = r"[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6}0*)?)?"
            zoned = type_ == "TIMESTAMPTZ"
            shaped = _day(text, rf"{local}(Z|[+-](0[0-9]|1[0-5])(:?[0-5][0-9])?)" if zoned else f"({local})?")
            value, zero = f"CASE WHEN {shaped} THEN CAST(TRY_CAST({text} AS {type_}) AS VARCHAR) END", _zero(text)
            lacking = f"WHEN {_day(text, f'({local})?')} THEN 'cast {name} without offset' " if zoned else ""
            reason = (
                f"WHEN {zero} THEN 'soft zero date' {lacking}"
                f"WHEN {text} IS NOT NULL AND ({value}) IS NULL THEN 'cast {name}' "
            )
        if kept is not None:
            # The target would round what it has no room for.
            reason += (
                rf"WHEN regexp_matches({value}, '\.[0-9]{{{kept}}}[0-9]*[1-9]') THEN 'range {name}({kept}) digits' "
            )
        return Cast(f"CASE WHEN NOT {zero} THEN {value} END", f"CASE {reason}END" if reason else None, change)

    return rule


def _tried(type_: str, name: str) -> Callable[[Column, Piece], Cast]:
    def rule(column: Column, piece: Piece) -> Cast:
        text, change = _blank(piece)
        value = f"CAST(TRY_CAST({text} AS {type_}) AS VARCHAR)"
        return Cast(value, f"CASE WHEN {text} IS NOT NULL AND {value} IS NULL THEN 'cast {name}' END", change)

    return rule


def _time(column: Column, piece: Piece) -> Cast:
    text, change = _blank(piece)
    shaped = rf"regexp_full_match({text}, '[0-9]{{1,2}}:[0-9]{{2}}(:[0-9]{{2}}(\.[0-9]{{1,6}}0*)?)?')"
    value = f"CASE WHEN {shaped} THEN CAST(TRY_CAST({text} AS TIME) AS VARCHAR) END"
    kept = 6 if column.precision is None else column.precision
    return Cast(
        value,
        f"CASE WHEN {text} IS NOT NULL AND {value} IS NULL THEN 'cast time' "
        rf"WHEN regexp_matches({value}, '\.[0-9]{{{kept}}}[0-9]*[1-9]') THEN 'range time({kept}) digits' END",
        change,
    )


def _uuid(column: Column, piece: Piece) -> Cast:
    if piece.type == "BLOB":
        text = f"lower(hex({piece.sql}))"
        return Cast(
            f"CAST(TRY_CAST({text} AS UUID) AS VARCHAR)",
            f"CASE WHEN {piece.sql} IS NOT NULL AND TRY_CAST({text} AS UUID) IS NULL THEN 'cast uuid' END",
            None,
        )
    return _tried("UUID", "uuid")(column, piece)


def _enum(column: Column, piece: Piece) -> Cast:
    raw = f"CAST({piece.sql} AS VARCHAR)"
    labels = "(" + ", ".join(literal(label) for label in column.labels) + ")"
    value = f"CASE WHEN {raw} IN {labels} THEN {raw} WHEN trim({raw}) IN {labels} THEN trim({raw}) END"
    reason = f"CASE WHEN trim({raw}) <> '' AND ({value}) IS NULL THEN {literal('enum ' + column.type)} END"
    return Cast(value, reason, f"CASE WHEN trim({raw}) = '' AND ({value}) IS NULL THEN 'blank to null' END")


def _array(column: Column, piece: Piece) -> Cast:
    if piece.type == "NULL":
        return Cast("CAST(NULL AS VARCHAR)", None, None)
    # PostgreSQL's array_out quotes an element that is empty, spells NULL, or holds one of {}," \ or white space.
    item = "replace(x, chr(0), '')"
    plain = rf"""regexp_full_match({item}, '[^{{}},"\\\s\v]+') AND lower({item}) <> 'null'"""
    quoted = rf"""'"' || replace(replace({item}, '\', '\\'), '"', '\"') || '"'"""
    body = f"list_transform({piece.sql}, lambda x: CASE WHEN x IS NULL THEN 'NULL' WHEN {plain} THEN {item} ELSE {quoted} END)"
    return Cast(f"'{{' || array_to_string({body}, ',') || '}}'", None, None)


def _binary(column: Column, piece: Piece) -> Cast:
    raw = piece.sql if piece.type == "BLOB" else f"encode(CAST({piece.sql} AS VARCHAR))"
    shown = rf"'\x' || lower(hex({raw}))"
    if column.padded and column.length:
        shown = f"rpad({shown}, CAST(greatest({2 + 2 * column.length}, length({shown})) AS INTEGER), '0')"
    return Cast(shown, None, None)


def _json(column: Column, piece: Piece) -> Cast:
    text, change = _blank(piece)
    return Cast(
        f"CASE WHEN json_valid({text}) THEN {text} END",
        f"CASE WHEN {text} IS NOT NULL AND NOT json_valid({text}) THEN 'cast json' END",
        change,
    )


def _other(column: Column, piece: Piece) -> Cast:
    text, change = _blank(piece)
    return Cast(f"replace({text}, chr(0), '')", None, change)


_RULES: dict[Kind, Callable[[Column, Piece], Cast]] = {
    Kind.TEXT: _text,
    Kind.INTEGER: _integer,
    Kind.DECIMAL: _decimal,
    Kind.FLOAT: _float,
    Kind.BOOLEAN: _boolean,
    Kind.DATE: _date,
    Kind.DATETIME: _moment("TIMESTAMP", "timestamp"),
    Kind.INSTANT: _moment("TIMESTAMPTZ", "timestamptz"),
    Kind.TIME: _time,
    Kind.UUID: _uuid,
    Kind.ENUM: _enum,
    Kind.ARRAY: _array,
    Kind.BINARY: _binary,
    Kind.JSON: _json,
}
