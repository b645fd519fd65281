"""Represent a text column by its distinct values, so that each distinct value is examined only once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

MISSING = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"),
    *("NULL", "NaN", "None", "n/a", "nan", "null"),
)
"""Texts that mean a missing value. They are the defaults of the parameter na_values of pandas.read_csv."""


@dataclass(frozen=True)
class Matched:
    """A selection of values: whether each distinct value is selected, and the number of rows with a selected value."""

    distinct: NDArray[np.bool_]
    rows: int


class DistinctTexts:
    """The distinct values of a text column, without the texts that mean a missing value.

    The argument `texts` must not have nulls.
    """

    def __init__(self, texts: pa.ChunkedArray, missing: tuple[str, ...] = MISSING) -> None:
        encoded = texts.combine_chunks().dictionary_encode()
        encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
        codes = encoded.indices.to_numpy()
        counts = np.bincount(codes, minlength=len(encoded.dictionary))
        is_missing = pc.is_in(encoded.dictionary, value_set=pa.array(missing, pa.string())).to_numpy(False)
        place_of = np.cumsum(~is_missing) - 1
        self.values: pa.Array = encoded.dictionary.filter(pa.array(~is_missing))
        """The distinct values in the order in which they first occur."""
        self.counts: NDArray[np.int64] = counts[~is_missing]
        self.rows = int(self.counts.sum())
        """Number of rows with a value that is not missing."""
        self._all, self._codes = encoded.dictionary, codes
        self._numbers = np.where(is_missing[codes], -1, place_of[codes])
        spelled = encoded.dictionary.filter(pa.array(is_missing)).to_pylist()
        self.missing: dict[str, int] = dict(zip(spelled, counts[is_missing].tolist(), strict=True))
        """Text that means a missing value -> number of rows with this text."""

    def matching(self, pattern: str) -> Matched:
        """Return a selection: the values in which the regular expression (RE2) finds a match."""
        return self.chosen(pc.match_substring_regex(self.values, pattern).to_numpy(False))

    def chosen(self, distinct: NDArray[np.bool_]) -> Matched:
        """Return a selection of values. `distinct` states for each distinct value whether it is selected."""
        return Matched(distinct, int(self.counts[distinct].sum()))

    def where(self, condition: Callable[[str], bool], among: NDArray[np.bool_]) -> Matched:
        """Return a selection: the values for which `condition` is true, out of those that `among` selects.

        `condition` is called for each of these values, so this is only fast if `among` selects few values.
        """
        chosen = np.zeros(len(self.values), bool)
        for at in np.flatnonzero(among):
            chosen[at] = condition(self.values[int(at)].as_py())
        return self.chosen(chosen)

    def first(self, matched: Matched) -> tuple[int, str]:
        """Return the first row whose value is selected, and this value. At least one value must be selected."""
        at = int(np.argmax(matched.distinct))
        return int(np.argmax(self._numbers == at)), self.values[at].as_py()

    def spread(self, values: pa.Array) -> pa.Array:
        """Return the column with each text replaced. `values` has the replacement of each distinct value.

        Rows without a value are null.
        """
        return values.take(pa.array(self._numbers, mask=self._numbers < 0))

    def first_missing(self, spelled: str) -> int:
        """Return the first row whose text is `spelled`, a text that means a missing value."""
        return int(np.argmax(self._codes == self._all.index(spelled).as_py()))

    @cached_property
    def texts(self) -> pa.Array:
        """Return the column as text. Rows without a value are null."""
        return self.spread(self.values)


def missing_text(spelled: Counter[str]) -> str:
    """Return the texts that mean a missing value, with the number of rows of each, e.g. "12 empty, 3 'NA'"."""
    return (
        ", ".join(f"{rows:,} {text!r}" if text else f"{rows:,} empty" for text, rows in spelled.most_common()) or "none"
    )
