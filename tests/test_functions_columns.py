"""The functions that answer for whole columns, against their own answers one by one: never another one."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.functions import FUNCTIONS
from engine.functions import register as registering
from engine.functions.protocol import DomainFunction
from engine.functions.register import arities, vectorised
from tests.test_functions import arguments, cases
from tests.test_functions_any_text import anything, lookalikes

COLUMNWISE = [(name, arity) for name, f in FUNCTIONS.items() if f.columns for arity in arities(f)]
ENOUGH = registering._WORTH_PLANNING
Row = Sequence[str | None]


def agree(function: DomainFunction, rows: Iterable[Row]) -> int:
    """Each row that is answered as a column is answered as by itself; gives how many with a value."""
    rows = list(rows)
    assert function.columns is not None
    values, left = function.columns(*(pa.array(column, pa.string()) for column in zip(*rows, strict=True)))
    assert (len(values), len(left), left.null_count) == (len(rows), len(rows), 0)
    answered = 0
    for row, value, is_left in zip(rows, values.to_pylist(), left.to_pylist(), strict=True):
        if not is_left:
            assert function.call(*row) == (value, None), (function.name, row)
            answered += value is not None
    return answered


def test_some_functions_are_columnwise() -> None:
    assert {name for name, _ in COLUMNWISE} == {"email", "excel_date", "local_time", "mojibake", "money", "phone"}


@pytest.mark.parametrize("name", sorted({name for name, _ in COLUMNWISE}))
def test_every_case(name: str) -> None:
    for arity in arities(FUNCTIONS[name]):
        rows = [arguments(case) for case in cases(name) if len(arguments(case)) == arity]
        assert not rows or agree(FUNCTIONS[name], rows)


@pytest.mark.parametrize(("name", "arity"), COLUMNWISE)
@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_text(name: str, arity: int, data: st.DataObject) -> None:
    agree(FUNCTIONS[name], data.draw(st.lists(st.tuples(*[anything | lookalikes] * arity), min_size=1, max_size=20)))


@pytest.mark.parametrize(("name", "arity"), COLUMNWISE)
def test_columns_and_leftovers_are_put_together_in_their_rows(name: str, arity: int) -> None:
    """All roads at once: answered as a column, asked for alone, asked for twice, NULL, and any slice of it."""
    function = FUNCTIONS[name]
    rows = [(*arguments(case), None)[:arity] for case in cases(name)] * 2 + [(None,) * arity, ("",) * arity]
    rows = [row + (None,) * (arity - len(row)) for row in rows]
    random.Random(name).shuffle(rows)
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    over = vectorised(function, arity)
    assert len(rows) >= ENOUGH
    for start, length in ((0, len(rows)), (3, ENOUGH), (1, ENOUGH + 5), (5, ENOUGH - 1)):
        got = over(*(column.slice(start, length) for column in columns))
        got.validate(full=True)
        for row, out in zip(rows[start : start + length], got.to_pylist(), strict=True):
            value, reason = function.call(*row)
            assert out == {"v": value, "r": reason and reason.code, "soft": bool(reason and reason.soft)}, row


def test_a_column_that_raises_is_asked_for_one_by_one() -> None:
    def columns(*_: pa.Array) -> None:
        raise ZeroDivisionError

    function = DomainFunction("broken", ("value",), 0, "VARCHAR", lambda value: (value, None), None, columns)  # type: ignore[arg-type]
    texts = [str(i) for i in range(ENOUGH)]
    assert vectorised(function, 1)(pa.array(texts)).field("v").to_pylist() == texts


def grouped(whole: str, mark: str) -> str:
    return mark.join(re.findall("..?.?(?=(?:...)*$)", whole)) if mark else whole


amounts = st.builds(
    lambda sign, currency, whole, mark, decimals: f"{sign}{currency}{grouped(whole, mark)}{decimals}",
    st.sampled_from(["", "", "-", "+", "("]),
    st.sampled_from(["", "$", "€ ", "£", "£ ", "EUR ", "US$", "€€", "R$"]),
    st.from_regex("0|[1-9][0-9]{0,9}|0[0-9]{1,3}|[1-9][0-9]{26,30}", fullmatch=True),
    st.sampled_from(["", "", ",", ".", "'", " "]),
    st.from_regex("|[.,][0-9]{1,4}|[.,]|[.,]00|[.,][0-9]{8,11}", fullmatch=True),
)
loose_amounts = st.text("01234.,'$€£ -\u00a0", max_size=14)


@settings(max_examples=100, deadline=None)
@given(st.lists(amounts | loose_amounts, min_size=1, max_size=20), st.sampled_from(["", " ", "\n", "9", ".", "-", "$"]))
def test_columns_of_amounts(texts: list[str], more: str) -> None:
    for written in (texts, [text + more for text in texts], [more + text for text in texts]):
        agree(FUNCTIONS["money"], [(text,) for text in written])
        agree(FUNCTIONS["money"], [(text, currency) for text in written for currency in ("USD", None, "CHF")])


def test_usual_amounts_are_answered() -> None:
    """Else the test above would prove nothing."""
    texts = [
        "5",
        "0",
        "0.50",
        "1234.5",
        "-1,234.50",
        "1,234,567",
        "1'234",
        "$1,234.56",
        "€ 1.234.567,89",
        "-£5,0",
        "0,5",
    ]
    assert agree(FUNCTIONS["money"], [(text,) for text in texts]) == len(texts)
    assert agree(FUNCTIONS["money"], [(text, "USD") for text in texts]) == len(texts) - 3


mails = st.builds(
    lambda local, domain, at: f"{local}{at}{domain}",
    st.from_regex(r"[A-Za-z0-9_.+'-]{1,12}|[a-z]{60,66}", fullmatch=True),
    st.from_regex(
        r"(?:[A-Za-z0-9-]{1,8}\.){1,3}[A-Za-z0-9]{1,5}|[a-z]{30,66}\.com|(?:[a-z]{60}\.){2,5}de", fullmatch=True
    ),
    st.sampled_from(["@", "@", "@", "@", "@@", " @", "(at)"]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(mails, min_size=1, max_size=10), st.sampled_from(["", " ", "  ", "\t", "\n", ",", "\u200b", "\u0130"]))
def test_columns_of_mails(texts: list[str], more: str) -> None:
    for written in (texts, [text + more for text in texts], [more + text for text in texts]):
        agree(FUNCTIONS["email"], [(text,) for text in written])


def test_usual_mails_are_answered() -> None:
    texts = ["ana@x.com", " Ana.Diaz+a@mail.X-Y.co.uk ", f"{'a' * 248}@b.co", f"{'a' * 250}@b.co"]
    assert agree(FUNCTIONS["email"], [(text,) for text in texts]) == 3
    assert agree(FUNCTIONS["email"], [(text,) for text in texts[:2]]) == 2
