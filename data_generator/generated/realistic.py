"""The tables core, bi, classic, geo, log and ml. Each has 20 columns that are similar to columns of real tables.

Uniform random data favours some formats and handicaps others. In these tables, the number of distinct values, their
skew, runs of equal values, order, missing values and widths follow measurements of real columns (profiles.py). A test
checks this for every table. recipes.py, which calibrate.py writes, has the parameters of each column.

A column is made batch by batch. A batch is divided into windows of 512 rows. The recipe states which share of the
windows has a single value. The other windows are divided at random rows into slots, which are sequences of equal
values. In a batch, every distinct value fills at least one slot, and frequent values fill more. The order of the slots
is random, but in some windows the slots are sorted. Only integers and correctly rounded operations (+ * / sqrt) are
used, because powers and logarithms differ between machines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from data_generator.dataset import Dataset, batch_sizes
from data_generator.generated import columns, streams, vocabulary
from data_generator.generated.recipe import Recipe

VERSION = 1
WINDOW_ROWS = 512
SMALL_SET = 100
"""The limit for small sets. A column with at most this many distinct values has the same values in tables of any
length. In other columns, the number of distinct values grows with the number of rows."""

_WEIGHT = 1 << 28
_TYPES = {"float64": pa.float64(), "int64": pa.int64(), "string": pa.string()}
Integers = NDArray[np.int64]


def build(name: str, rows: int, parameters: Mapping[str, str]) -> Dataset:
    """Return the table `name` with `rows` rows."""
    # Imported here because calibrate.py needs this module while it rewrites the recipes.
    from data_generator.generated.recipes import RECIPES

    recipes = RECIPES[name]
    schema = pa.schema([(recipe.name, _TYPES[recipe.kind]) for recipe in recipes])

    def batches() -> Iterator[pa.RecordBatch]:
        for number, size in enumerate(batch_sizes(rows)):
            arrays = [column(recipe, size, number, (name, recipe.name, VERSION)) for recipe in recipes]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return Dataset(name, rows, schema, VERSION, batches)


def column(recipe: Recipe, rows: int, batch: int, path: tuple[object, ...]) -> pa.Array:
    """Return the rows of a column in one batch. `path` identifies the random streams of the column.

    `rows` is the number of rows of the batch.
    """
    here = (*path, batch)
    lengths, constant, ordered = _slots(recipe, rows, here)
    slots = len(lengths)
    distinct = min(recipe.distinct(rows), slots)
    weights = rank_weights(distinct, recipe.exponent, recipe.top_share)
    ranks = _ranks(weights, constant, here)
    place_of_rank = streams.permutation(distinct, *path, "places", distinct)
    place = place_of_rank[ranks]
    window = (np.cumsum(lengths) - lengths) // WINDOW_ROWS
    keys = window[ordered] * distinct + place[ordered]
    keys.sort()
    place[ordered] = keys % distinct
    valid = _valid(recipe.null_ratio, rows, here)
    own = np.zeros(distinct, dtype=np.bool_)
    if distinct > SMALL_SET:
        own[place_of_rank[distinct // 4 :]] = True
    values = vocabulary.values(recipe.kind, own, recipe.width_bytes, path, batch)
    return _spread(values, np.repeat(place, lengths), valid)


def rank_weights(distinct: int, exponent: float, top_share: float) -> Integers:
    """Return the weight of each distinct value, with the most frequent value first.

    The weights follow the power law k ** -exponent, but the first value has the share `top_share` of the sum. If the
    power law gives the first value less, its weight is raised. If the power law gives it more, the largest weights are
    lowered to a common maximum.
    """
    law = np.maximum((_WEIGHT / _power(np.arange(1, distinct + 1), exponent)).astype(np.int64), 1)
    share = int(top_share * _WEIGHT)
    rest = int(law[1:].sum())
    if share >= _WEIGHT or distinct == 1:
        return law
    raised = rest * share // (_WEIGHT - share)
    if distinct == 2 or raised >= law[1]:
        law[0] = max(raised, 1)
        return law
    low, high = 1, _WEIGHT
    while low < high:
        height = (low + high) // 2
        if height * _WEIGHT > share * int(np.minimum(law, height).sum()):
            high = height
        else:
            low = height + 1
    return np.minimum(law, max(low, int(law[-1])))


def _power(base: Integers, exponent: float) -> NDArray[np.float64]:
    """Return base ** exponent. Only square roots and products are used; the exponent is rounded to 12 binary places."""
    whole, places = divmod(round(exponent * 4096), 4096)
    root = base.astype(np.float64)
    result = np.ones(len(base))
    for _ in range(whole):
        result *= root
    for bit in range(11, -1, -1):
        root = np.sqrt(root)
        if places >> bit & 1:
            result *= root
    return result


def _slots(
    recipe: Recipe, rows: int, path: tuple[object, ...]
) -> tuple[Integers, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return three arrays with an item for each slot, which is a sequence of rows with the same value.

    The arrays state the number of rows of each slot, whether the slot is a whole window (one with a single value), and
    whether the window of the slot is sorted.
    """
    windows = -(-rows // WINDOW_ROWS)
    order = streams.permutation(windows, *path, "windows")
    constants = round(recipe.constant_share * windows)
    is_constant = np.zeros(windows, dtype=np.bool_)
    is_constant[order[:constants]] = True
    is_ordered = np.zeros(windows, dtype=np.bool_)
    is_ordered[order[constants : constants + round(recipe.sorted_share * windows)]] = True
    chance = np.uint64(min(int(recipe.boundary * 2**32), 2**32 - 1))
    starts = (streams.raw_words(windows * WINDOW_ROWS, *path, "slots") >> np.uint64(32)) < chance
    starts = starts.reshape(windows, WINDOW_ROWS)
    starts[is_constant] = False
    starts[:, 0] = True
    first = np.flatnonzero(starts.reshape(-1)[:rows])
    window = first // WINDOW_ROWS
    return np.append(first[1:], rows) - first, is_constant[window], is_ordered[window]


def _ranks(weights: Integers, constant: NDArray[np.bool_], path: tuple[object, ...]) -> Integers:
    """Return, for each slot, the rank of its value. Each rank occurs in proportion to its weight.

    Slots that fill a whole window (`constant`) and all other slots are treated separately.
    """
    ranks = np.empty(len(constant), dtype=np.int64)
    for name, where, least in (("constant", constant, 0), ("others", ~constant, 1)):
        slots = int(where.sum())
        drawn = np.repeat(np.arange(len(weights)), _counts(weights, slots, least))
        shuffled = streams.permutation(slots, *path, "ranks", name)
        ranks[where] = drawn[shuffled]
    return ranks


def _counts(weights: Integers, slots: int, least: int) -> Integers:
    """Return how many slots each rank gets, in proportion to the weight of the rank. The numbers add up to `slots`.

    Each rank gets at least `least` slots, if there are enough slots.
    """
    if slots < least * len(weights) or not least:
        ends = np.floor(np.cumsum(weights) / float(weights.sum()) * slots + 0.5).astype(np.int64)
        return ends - np.append(0, ends[:-1])
    low, high = 0, (1 << 34)
    while low < high:
        scale = (low + high + 1) // 2
        if int(np.maximum((weights * scale) >> 34, least).sum()) > slots:
            high = scale - 1
        else:
            low = scale
    counts = np.maximum((weights * low) >> 34, least)
    left = slots - int(counts.sum())
    counts[: left % len(counts)] += 1
    return counts + left // len(counts)


def _valid(null_ratio: float, rows: int, path: tuple[object, ...]) -> columns.Valid | None:
    """Return whether each row has a value; None if all rows have one. `null_ratio` is the share of rows without a
    value."""
    missing = round(null_ratio * rows)
    if not missing:
        return None
    words = streams.raw_words(rows, *path, "nulls")
    valid: columns.Valid = words > np.partition(words, missing - 1)[missing - 1]
    return valid


def _spread(values: pa.Array, places: Integers, valid: columns.Valid | None) -> pa.Array:
    """Return the item of `values` at each index in `places`, with nulls where `valid` is False."""
    if pa.types.is_string(values.type):
        mask = None if valid is None else ~valid
        return values.take(pa.array(places, mask=mask))
    return columns.numbers(values.to_numpy()[places], valid)
