"""Numbers of columns in names of variants."""

import re

import pytest

from adapters.column_numbers import COLUMN_NUMBERS, numbers_of, spelled


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([0], "0"), ([3, 0, 7, 8, 9], "0+3+7-9"), ([1, 2], "1-2"), ([5, 5, 4], "4-5"), ([2, 4], "2+4")],
)
def test_numbers_are_spelled_shortly_and_read_back(numbers: list[int], text: str) -> None:
    assert spelled(numbers) == text
    assert numbers_of(text) == tuple(sorted({*numbers}))


def test_other_spellings_mean_the_same() -> None:
    assert COLUMN_NUMBERS.canonical("9+7-8+0+3+3") == "0+3+7-9"


@pytest.mark.parametrize("text", ["1++2", "a", "1+", "+1", "3-1", "1 2", "-1", "1-2-3", "123456"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        numbers_of(text)
