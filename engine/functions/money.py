"""Amounts as people and spreadsheets write them, to a plain decimal.

It must never guess which of point and comma is the decimal one: where the digits leave both readings open,
that is the reason. Nothing is rounded or converted either.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
import pycountry

from engine.functions.columns import cleaned, left, matched, placed
from engine.functions.protocol import Answers, DomainFunction, Outcome, Reason
from engine.functions.text import trimmed

_NOT_AN_AMOUNT = Reason("not an amount")
_AMBIGUOUS = Reason("ambiguous amount")
_OUT_OF_RANGE = Reason("amount out of range")
_TOO_FINE = Reason("amount with more than 9 decimals")
_OTHER_CURRENCY = Reason("amount in another currency")

_LONGEST = 100
_DECIMALS, _DIGITS_BEFORE = 9, 29  # of DECIMAL(38,9)

# What every database writes, but for three decimals, which may be thousands (1.234).
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]{0,28})(?:\.(?:[0-9]{1,2}|[0-9]{4,9}))?")

_ONE_MARK = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-") | dict.fromkeys("\u2018\u2019\u00b4`", "'")
)
_DASHED = re.compile(r"(.*[0-9])[.,]-{1,2}", re.DOTALL)  # 12.- and 12,-- say that there are no cents
_MARK = r"[A-Za-z]{0,3}\$|[£¥€฿₡₦₩₪₫₱₲₴₸₹₺₼₽₾]|[^\W\d_]{1,8}\.?"
_LEADING_MARK, _TRAILING_MARK = re.compile(_MARK), re.compile(rf"(?:{_MARK})\Z")
_GROUPED = {mark: re.compile(rf"[0-9]{{1,3}}(?:{re.escape(mark)}[0-9]{{3}})+") for mark in ".,' "}
_LAKHS = re.compile(r"[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}")  # 1,23,45,678, as in India

_SYMBOLS = {
    "€": "EUR", "EURO": "EUR", "EUROS": "EUR", "£": "GBP", "¥": "JPY CNY", "₹": "INR", "RS": "INR PKR LKR NPR MUR",
    "₽": "RUB", "₺": "TRY", "TL": "TRY", "₩": "KRW", "₫": "VND", "₪": "ILS", "฿": "THB", "₴": "UAH", "₦": "NGN", "₱": "PHP",
    "₡": "CRC", "₲": "PYG", "₸": "KZT", "₼": "AZN", "₾": "GEL", "KR": "DKK SEK NOK ISK", "ZŁ": "PLN", "FR": "CHF",
    "SFR": "CHF", "KČ": "CZK", "FT": "HUF", "LEI": "RON", "R$": "BRL", "US$": "USD", "C$": "CAD NIO", "A$": "AUD",
    "AU$": "AUD", "CA$": "CAD", "NZ$": "NZD", "HK$": "HKD", "NT$": "TWD", "S$": "SGD", "MX$": "MXN",
}  # fmt: skip


@lru_cache(maxsize=1)
def _currencies() -> dict[str, frozenset[str]]:
    """What marks an amount's currency, in upper case, to the ISO codes that it may mean."""
    codes = {c.alpha_3: frozenset([c.alpha_3]) for c in pycountry.currencies if not c.alpha_3.startswith("X")}
    dollars = frozenset(c.alpha_3 for c in pycountry.currencies if re.search("Dollar|Peso", c.name))
    return codes | {symbol: frozenset(c.split()) for symbol, c in _SYMBOLS.items()} | {"$": dollars}


def _unsigned(body: str) -> tuple[str, str] | Reason:
    """The digits before and behind the decimal mark of a text of digits and separators, or why there is none."""
    groups = {c for c in body if c in " '"}
    points, commas = body.count("."), body.count(",")
    if groups:
        if len(groups) > 1 or points + commas > 1:
            return _NOT_AN_AMOUNT
        group = groups.pop()
        whole, _, decimals = body.replace(",", ".").partition(".")
        return (whole.replace(group, ""), decimals) if _GROUPED[group].fullmatch(whole) else _NOT_AN_AMOUNT
    if points and commas:
        mark, group = (".", ",") if body.rindex(".") > body.rindex(",") else (",", ".")
        whole, _, decimals = body.rpartition(mark)
        if _GROUPED[group].fullmatch(whole) or (group == "," and _LAKHS.fullmatch(whole)):
            return whole.replace(group, ""), decimals
        return _NOT_AN_AMOUNT
    if points + commas > 1:
        mark = "." if points else ","
        if _GROUPED[mark].fullmatch(body) or (mark == "," and _LAKHS.fullmatch(body)):
            return body.replace(mark, ""), ""
        return _NOT_AN_AMOUNT
    whole, _, decimals = body.replace(",", ".").partition(".")
    if len(decimals) == 3 and 1 <= len(whole) <= 3 and whole[0] != "0":
        return _AMBIGUOUS
    return whole, decimals


def _stripped(text: str) -> tuple[bool, str, list[str]] | None:
    """Whether it is negative, the digits and separators, the currency marks; None for two signs."""
    signs: list[str] = []
    marks: list[str] = []
    before = None
    while text != before:
        before = text
        if text[:1] == "(" and text[-1:] == ")":
            signs.append("-")
            text = text[1:-1].strip()
        if text[:1] in ("+", "-"):
            signs.append(text[0])
            text = text[1:].lstrip()
        if mark := _LEADING_MARK.match(text):
            marks.append(mark[0])
            text = text[mark.end() :].lstrip()
        if dashed := _DASHED.fullmatch(text):
            text = dashed[1]
        elif text[-1:] == "-":
            signs.append("-")
            text = text[:-1].rstrip()
        if mark := _TRAILING_MARK.search(text):
            marks.append(mark[0])
            text = text[: mark.start()].rstrip()
    return ("-" in signs, text, marks) if len(signs) <= 1 else None


def money(value: str | None, currency: str | None = None) -> Outcome:
    """The amount as a plain decimal (`-1234.5`), of at most 29 digits before and 9 behind the point.

    Takes `1.234,56`, `1,234.56`, `1'234.50`, `1 234,56`, `1,23,456.00`, `12.-`; a minus before or behind, or
    brackets. `1.234` and `1,234` are ambiguous. A currency's sign or code is dropped; where amounts of several
    currencies are mixed, name the column's `currency`, and another one in the value is a reason. NULL for
    NULL and blank text. Reasons: not an amount; ambiguous; another currency; out of range; too many decimals.
    """
    if value is not None and _PLAIN.fullmatch(value):
        return (value if value[0] != "-" or value.strip("-0.") else value[1:]), None
    text = trimmed(value)
    if not text:
        return None, None
    if len(text) > _LONGEST:
        return None, _NOT_AN_AMOUNT
    text = " ".join(unicodedata.normalize("NFKC", text).translate(_ONE_MARK).split())
    stripped = _stripped(text)
    if stripped is None:
        return None, _NOT_AN_AMOUNT
    negative, body, marks = stripped
    if not body or not body[-1:].strip(" '") or body.strip("0123456789., '") or not body.strip("., '"):
        return None, _NOT_AN_AMOUNT
    meant = [_currencies().get(mark.upper().rstrip("."), frozenset[str]()) for mark in marks]
    if meant and not frozenset.intersection(*meant):
        return None, _NOT_AN_AMOUNT
    expected = trimmed(currency).upper()
    if expected and any(expected not in codes for codes in meant):
        return None, _OTHER_CURRENCY
    parts = _unsigned(body)
    if isinstance(parts, Reason):
        return None, parts
    whole, decimals = parts[0].lstrip("0") or "0", parts[1]
    if decimals[_DECIMALS:].strip("0"):
        return None, _TOO_FINE
    if len(whole) > _DIGITS_BEFORE:
        return None, _OUT_OF_RANGE
    amount = f"{whole}.{decimals[:_DECIMALS]}" if decimals else whole
    return (f"-{amount}" if negative and amount.strip("0.") else amount), None


# Whole columns: nothing below zero but what begins with another digit, since -0.00 loses its sign.
_PLAIN_MARK = "(?:[$€£] ?)?"
_POINTED = (
    r"\A(?:-?{mark}(?:[1-9][0-9]{{0,28}}|[1-9][0-9]{{0,2}}(?:(?:,[0-9]{{3}}){{2,8}}|(?:'[0-9]{{3}}){{1,8}}))"
    r"|{mark}0)(?:\.[0-9]{{1,2}})?\z|\A-?{mark}[1-9][0-9]{{0,2}},[0-9]{{3}}\.[0-9]{{1,2}}\z"
)
_COMMAED = r"\A(?:-?{mark}[1-9](?:[0-9]{{0,28}}|[0-9]{{0,2}}(?:\.[0-9]{{3}}){{1,8}})|{mark}0),[0-9]{{1,2}}\z"
_IN_POINTED, _IN_COMMAED = ",' $€£".encode(), ". $€£".encode()  # a byte of € and £ is in nothing else that matches


def amounts(values: pa.Array, currencies: pa.Array | None = None) -> Answers:
    """The amounts of at most two decimals as databases and most countries write them; with $, € or £ before
    them where no currency is wanted."""
    mark = _PLAIN_MARK if currencies is None else ""
    pointed = matched(values, _POINTED.format(mark=mark))
    commaed = matched(values, _COMMAED.format(mark=mark))
    amounts = placed(pointed, pa.array(cleaned(values.filter(pointed).to_pylist(), _IN_POINTED), pa.string()))
    if commaed.true_count:
        with_comma = pa.array(cleaned(values.filter(commaed).to_pylist(), _IN_COMMAED), pa.string())
        amounts = pc.replace_with_mask(amounts, commaed, pc.replace_substring(with_comma, ",", "."))
    return amounts, left(values, amounts.is_valid())


MONEY = DomainFunction("money", ("value", "currency"), 1, "DECIMAL(38,9)", money, columns=amounts)
