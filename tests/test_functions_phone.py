"""The fast path of phone() against phonenumbers itself, in every region and calling code."""

from __future__ import annotations

import random
from itertools import product

import phonenumbers
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from phonenumbers import COUNTRY_CODE_TO_REGION_CODE, PhoneMetadata, PhoneNumberType

from engine.functions.phone import PHONE, _by_library, phone
from engine.functions.phone_plans import plain_international, plain_national
from tests.test_functions_columns import agree

REGIONS = sorted(phonenumbers.SUPPORTED_REGIONS)
CODES = sorted(COUNTRY_CODE_TO_REGION_CODE)
TYPES = PhoneNumberType.values()


def agree_international(digits: str) -> bool:
    fast = plain_international(digits)
    assert fast is None or fast == _by_library("+" + digits, None)[0], digits
    return fast is not None


def agree_national(digits: str, region: str) -> bool:
    fast = plain_national(digits, region)
    assert fast is None or fast == _by_library(digits, region)[0], (digits, region)
    return fast is not None


def near(digits: str, rng: random.Random) -> str:
    """The digits with one or two changed, added or taken away, so that they stand at a pattern's edge."""
    text = list(digits)
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(len(text)) if text else 0
        match rng.randrange(3):
            case 0 if text:
                text[at] = str(rng.randrange(10))
            case 1:
                text.insert(at, str(rng.randrange(10)))
            case _ if len(text) > 1:
                del text[at]
    return "".join(text)


def examples(region: str) -> list[str]:
    numbers = (phonenumbers.example_number_for_type(region, kind) for kind in TYPES)
    return [phonenumbers.national_significant_number(n) for n in numbers if n is not None]


@pytest.mark.parametrize("region", REGIONS)
def test_examples_and_their_neighbours(region: str) -> None:
    rng = random.Random(region)
    code = phonenumbers.country_code_for_region(region)
    metadata = PhoneMetadata.metadata_for_region(region)
    assert metadata is not None
    trunks = {"", metadata.national_prefix or "", "0", "1", "8", "00", "011", str(code)}
    answered = 0
    for nsn, trunk in product(examples(region), sorted(trunks)):
        for digits in (nsn, near(nsn, rng), near(nsn, rng)):
            answered += agree_national(trunk + digits, region)
            answered += agree_international(f"{code}{trunk}{digits}")
    assert answered, region  # else the fast path answers nothing and proves nothing


@pytest.mark.parametrize("code", CODES)
def test_random_numbers_of_every_calling_code(code: int) -> None:
    rng = random.Random(code)
    regions = [r for r in COUNTRY_CODE_TO_REGION_CODE[code] if r != "001"]
    for _ in range(60):
        digits = "".join(rng.choices("0123456789", k=rng.randint(3, 15)))
        agree_international(f"{code}{digits}")
        for region in regions:
            agree_national(digits, region)
            agree_national("0" + digits, region)


SHARED = [code for code in CODES if len(COUNTRY_CODE_TO_REGION_CODE[code]) > 1]


@pytest.mark.parametrize("code", SHARED)
def test_numbers_dialled_in_another_region_of_the_code(code: int) -> None:
    rng = random.Random(code)
    regions = COUNTRY_CODE_TO_REGION_CODE[code]
    for dialled, caller in product(regions, regions):
        for nsn in examples(dialled):
            for trunk in ("", "0", "1", str(code)):
                agree_national(trunk + nsn, caller)
                agree_national(trunk + near(nsn, rng), caller)


@settings(max_examples=300, deadline=None)
@given(st.text("0123456789", min_size=3, max_size=18), st.sampled_from(REGIONS))
def test_any_digits(digits: str, region: str) -> None:
    agree_international(digits)
    agree_national(digits, region)


@pytest.mark.parametrize("region", REGIONS)
def test_written_as_people_write(region: str) -> None:
    """What phonenumbers formats, nationally and internationally, is read back as the same number."""
    for kind in (PhoneNumberType.FIXED_LINE, PhoneNumberType.MOBILE):
        number = phonenumbers.example_number_for_type(region, kind)
        if number is None or not phonenumbers.is_valid_number(number):
            continue
        wanted = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
        if phone(wanted)[1] is not None:  # a placeholder among the examples
            continue
        international = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.INTERNATIONAL)
        national = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL)
        assert phone(international) == (wanted, None)
        assert phone("00" + international[1:]) == (wanted, None)
        assert phone(national, region) == (wanted, None), national


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(REGIONS), st.randoms(use_true_random=False), st.sampled_from(["", " ", "-", ".", "/", " - ", ") ("])
)
def test_separators_change_nothing(region: str, rng: random.Random, separator: str) -> None:
    digits = near(rng.choice(examples(region)), rng)
    if len(digits) < 6:
        return
    at = rng.randrange(1, 4)
    assert phone(f"{digits[:at]}{separator}{digits[at:]}", region) == phone(digits, region)


def written(digits: str, rng: random.Random) -> str:
    """The digits with separators between them, in front and behind, as people and machines put them, and worse."""
    text = digits
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(text) + 1)
        text = (
            text[:at]
            + rng.choice((" ", " ", "-", ".", "/", " / ", "(", ")", "(0)", "\t", "\n", "x", "\u200b", "\u0663"))
            + text[at:]
        )
    return text


BEGINNINGS = ("+49", "+490", "+49(0)", "(+49) ", "0049", "01149", "0", "1", "8", "")


@pytest.mark.parametrize("region", REGIONS)
def test_a_column_as_one_by_one(region: str) -> None:
    rng = random.Random(f"column {region}")
    code = phonenumbers.country_code_for_region(region)
    rows = []
    for nsn in examples(region):
        for begin in (beginning.replace("49", str(code)) for beginning in BEGINNINGS):
            usual = f"{nsn[:-3]}{rng.randrange(1000):03d}"  # examples end in 234567, which phone() looks at closer
            for digits in (nsn, usual, near(usual, rng)):
                country = rng.choice((region, region, region, None, "Germany", "nowhere", rng.choice(REGIONS)))
                rows += [(begin + digits, country), (written(begin + digits, rng), country)]
    numbers = [number for number in (phone(*row)[0] for row in rows) if isinstance(number, str) and len(number) > 9]
    assert agree(PHONE, rows) >= len(numbers) // 6, region  # else the column proves too little


RUNS = ["0000000000", "1111111111", "0123456789", "1234567890", "9876543210", "999999"]


def test_columns_of_placeholders() -> None:
    rng = random.Random(9)
    rows: list[tuple[str, str]] = [("+358088888", "FI")]  # a placeholder once its 0 is gone, of five digits only
    for region in REGIONS:
        code = phonenumbers.country_code_for_region(region)
        for run in RUNS:
            for nsn in (run[rng.randrange(5) :], near(rng.choice(examples(region)), rng)[:4] + run, "0" * 7 + run[:3]):
                rows += [(nsn, region), (f"0{nsn}", region), (f"+{code}{nsn}", region), (f"00{code} {nsn}", region)]
    agree(PHONE, rows)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.text("0123456789+00/ -().\t\n", max_size=20), st.sampled_from([*REGIONS, None])), min_size=1)
)
def test_columns_of_any_digits(rows: list[tuple[str, str | None]]) -> None:
    agree(PHONE, rows)
    agree(PHONE, [(text,) for text, _ in rows])
