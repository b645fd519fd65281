"""Pruning is correct and effective for every chunk of up to three values chosen from critical ones.

For each kind of column, chunks of all choices of values are described by all statistics that Parquet allows for them:
with and without counts, with bounds that are exact, widened, truncated, partial or missing. Every leaf and its negation
is evaluated on all of them, and its value must be allowed by the outcomes.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from libraries.filters.pruning import prune
from libraries.filters.tree import OPERATORS, Comparison, In, IsNull, Known, Literal, Not, Predicate, Prefix
from libraries.near_storage.parquet.compact import CompactMetadata, from_footer
from libraries.near_storage.parquet.footer import Chunk, Footer, RowGroup, Statistics
from libraries.near_storage.tests.parquet.rows import says
from libraries.near_storage.tests.parquet.universes import UNIVERSES, Universe

MOST_VALUES = 3


def is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def chunks_of(universe: Universe) -> list[tuple]:
    """Return all choices of one to three values, including null."""
    values = (*universe.values, None)
    return [choice for size in range(MOST_VALUES + 1) for choice in itertools.combinations(values, size)]


def statistics_of(universe: Universe, values: tuple) -> list[Statistics | None]:
    """Return every description of the chunk that Parquet allows."""
    nulls = values.count(None)
    nans = sum(map(is_nan, values))
    ordinary = [value for value in values if value is not None and not is_nan(value)]
    counts = [(nulls, nans if universe.floating else None), (nulls, None), (None, None)]
    return [None] + [
        Statistics(low, high, exact, exact, *count)
        for count in counts
        for low, high, exact in bounds_of(universe, ordinary, nans)
    ]


def bounds_of(universe: Universe, ordinary: list, nans: int) -> list[tuple[bytes | None, bytes | None, bool | None]]:
    plain = universe.plain
    if not ordinary:
        as_nan = plain(math.nan) if nans else None
        return [(None, None, None), (as_nan, as_nan, None)] if nans else [(None, None, None)]
    low, high = min(ordinary), max(ordinary)
    known = [(plain(low), plain(high), True), (plain(low), plain(high), None)]
    below = [value for value in universe.values if value <= low][:1]
    above = [value for value in universe.values if value >= high][-1:]
    wider = [(plain(below[0]), plain(above[0]), False), (plain(below[0]), plain(high), None)]
    known += [*wider, (plain(low), None, None), (None, plain(high), None), (None, None, None)]
    if universe.floating and low == 0:
        # A writer that treats 0.0 and -0.0 as equal may give either.
        known += [(plain(zero), plain(high), None) for zero in (0.0, -0.0)]
    if universe.floating and high == 0:
        known += [(plain(low), plain(zero), None) for zero in (0.0, -0.0)]
    if nans:
        known += [(plain(math.nan), plain(high), None), (plain(low), plain(math.nan), None)]
    if universe.name in ("text", "binary") and plain(high)[:1] != b"\xff":
        short = plain(low)[:1], plain(high)[:1] + b"\xff"
        known += [(*short, False), (*short, None)]
    return known


def leaves_of(universe: Universe) -> list[tuple[str, Predicate]]:
    """Return the name of the leaf's kind, and the leaf."""
    literals = [Literal(value, universe.type) for value in universe.values]
    found: list[tuple[str, Predicate]] = [(name, Comparison(name, "x", one)) for name in OPERATORS for one in literals]
    null = Literal(None, universe.type)
    found += [("in", In("x", pair)) for pair in itertools.combinations(literals, 2)]
    found += [("in", In("x", literals[:1])), ("in", In("x", tuple(literals))), ("in", In("x", ()))]
    found += [("in with null", In("x", (*some, null))) for some in itertools.combinations(literals, 1)]
    found += [("in with null", In("x", (*literals[:3], null))), ("in with null", In("x", (null,)))]
    found += [("is null", IsNull("x")), ("known", Known("x", True)), ("known", Known("x", False))]
    found += [("null", Comparison("<", "x", null))]
    found += [("prefix", Prefix("x", prefix)) for prefix in universe.prefixes]
    return found + [(f"not {name}", Not(leaf)) for name, leaf in found]


def allowed(metadata: CompactMetadata, leaf: Predicate) -> np.ndarray:
    """Return whether the leaf may be true, false, null: bool[3, groups]."""
    verdict = prune(metadata, leaf)
    return np.array([verdict.may_be_true, verdict.may_be_false, verdict.may_be_null])


def outcomes(universe: Universe, leaf: Predicate) -> np.ndarray:
    """Return whether the leaf is true, false, null for each value of the universe, and for null: bool[3, values]."""
    said = [says(leaf, {"x": value}) for value in (*universe.values, None)]
    return np.array([[outcome is one for outcome in said] for one in (True, False, None)])


@pytest.mark.parametrize("universe", UNIVERSES, ids=lambda universe: universe.name)
def test_nothing_is_pruned_that_matches_and_something_is_that_does_not(universe):
    described = [(choice, stats) for choice in chunks_of(universe) for stats in statistics_of(universe, choice)]
    groups = tuple(RowGroup(len(choice), (Chunk(4, 1, len(choice), stats),)) for choice, stats in described)
    metadata = from_footer(Footer(0, (universe.column,), groups, "", 0, 0, 0))
    values = (*universe.values, None)
    holds = np.array([[any(one is value for one in choice) for value in values] for choice, _ in described])
    has_rows = holds.any(axis=1)
    pruned: set[str] = set()
    for name, leaf in leaves_of(universe):
        may = allowed(metadata, leaf)
        does = (holds @ outcomes(universe, leaf).T).T
        wrong = np.flatnonzero((does & ~may).any(axis=0))
        assert not len(wrong), f"{leaf} is {does[:, wrong[0]]} of {described[wrong[0]]}, allowed is {may[:, wrong[0]]}"
        if (has_rows & ~may[0]).any():
            pruned.add(name)
    assert pruned == {name for name, _ in leaves_of(universe)}


def is_told_by_its_code(value: object) -> bool:
    if isinstance(value, Decimal):
        return abs(value) < 2**63 // 100
    raw = value.encode() if isinstance(value, str) else value
    return not isinstance(raw, bytes) or (len(raw) < 8 and not raw.endswith(b"\0"))


@pytest.mark.parametrize("universe", UNIVERSES, ids=lambda universe: universe.name)
def test_one_value_gets_the_verdict_that_it_deserves(universe):
    """For a fully described chunk of one value, the outcome is exact if codes distinguish values."""
    told = tuple(value for value in universe.values if is_told_by_its_code(value) or universe.name == "fixed 3")
    prefixes = tuple(prefix for prefix in universe.prefixes if is_told_by_its_code(prefix))
    universe = replace(universe, values=told, prefixes=prefixes)
    stats = [statistics_of(universe, (value, value))[1] for value in (*told, None)]
    groups = tuple(RowGroup(2, (Chunk(4, 1, 2, one),)) for one in stats)
    metadata = from_footer(Footer(0, (universe.column,), groups, "", 0, 0, 0))
    for _, leaf in leaves_of(universe):
        assert np.array_equal(allowed(metadata, leaf), outcomes(universe, leaf)), leaf
