"""Telephone calls: flat documents of 7 fields with texts, integers and doubles (`cell` in table 1 of Alkowaileet and
Carey, VLDB 2022)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from data_generator.dataset import Dataset
from data_generator.generated.documents.random_values import BLOCK, KEY_STEP, Draws, dataset

VERSION = 2

_CALLERS = 200_000
_TOWERS = 20_000
_LONGEST_S = 7_200
_DOCUMENT = (
    '{"id":%d,"caller":"+4206%08d","callee":"+4207%08d","tower":%d,"duration":%d,"latitude":%.7f,"longitude":%.7f}'
)


def build(name: str, rows: int, parameters: Mapping[str, str]) -> Dataset:
    """Return `rows` calls with caller, callee, position and duration. A quarter of the calls take over ten minutes."""
    return dataset(name, rows, "id", VERSION, _calls)


def _calls(draws: Draws, first: int) -> Iterator[str]:
    uniform = draws.unit_floats("caller")
    callers = (uniform * uniform * uniform * _CALLERS).astype(np.int64) * 499
    towers = draws.integers("tower", 1, _TOWERS)
    long = draws.unit_floats("duration")
    for _ in range(3):
        long = long * long
    # A tower has a fixed position.
    latitudes = 48.5 + (towers * 7919 % _TOWERS) * (2.553719 / _TOWERS)
    longitudes = 12.1 + (towers * 104_729 % _TOWERS) * (6.759137 / _TOWERS)
    columns = (
        range(KEY_STEP * first, KEY_STEP * (first + BLOCK), KEY_STEP),
        callers.tolist(),
        draws.integers("callee", 0, 99_999_999).tolist(),
        towers.tolist(),
        (long * _LONGEST_S).astype(np.int64).tolist(),
        latitudes.tolist(),
        longitudes.tolist(),
    )
    return map(_DOCUMENT.__mod__, zip(*columns, strict=True))
