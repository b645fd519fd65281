"""How outcomes combine, and what is unknown: missing, nested and doubled columns, other types, empty row groups."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pyarrow as pa
import pytest

from libraries.filters.pruning import GroupOutcomes, prune
from libraries.filters.tree import And, Comparison, Constant, In, IsNull, Known, Literal, Not, Or, Predicate, Prefix
from libraries.near_storage.parquet.compact import CompactMetadata, from_footer, load, together
from libraries.near_storage.parquet.footer import Chunk, Footer, RowGroup, Statistics
from libraries.near_storage.parquet.schema import Column

SEED = 2100


def int_column(*path: str, repeats: int = 0) -> Column:
    return Column(path, "INT64", 0, None, "type", 1, repeats)


def described(groups: list[list[tuple[int | None, ...]]], columns: list[Column]) -> CompactMetadata:
    """Return metadata of row groups from the values of their columns' chunks, described in full."""
    made = [RowGroup(len(columns_[0]), tuple(full(values) for values in columns_)) for columns_ in groups]
    return from_footer(Footer(0, tuple(columns), tuple(made), "", 0, 0, 0))


def full(values: tuple[int | None, ...]) -> Chunk:
    known = [value for value in values if value is not None]
    low, high = (plain(min(known)), plain(max(known))) if known else (None, None)
    return Chunk(4, 1, len(values), Statistics(low, high, True, True, values.count(None), None))


def plain(value: int) -> bytes:
    return value.to_bytes(8, "little", signed=True)


def compared(operator: str, value: int | None, column: str = "x") -> Comparison:
    return Comparison(operator, column, Literal(value, pa.int64()))  # type: ignore[arg-type]


def told(verdict: GroupOutcomes) -> list[str]:
    """Return for each group which of true, false and null are possible: 't', 'f', 'n' or several."""
    rows = zip(verdict.may_be_true, verdict.may_be_false, verdict.may_be_null, strict=True)
    return ["".join(name for name, may in zip("tfn", row, strict=True) if may) for row in rows]


X = described([[(1, 2)], [(5, 5)], [(5, None)], [(8, 9)], [(None, None)], [()]], [int_column("x")])
"""Groups of the column x: 1 to 2, only 5, 5 and null, 8 to 9, only null, none."""

LEAVES = [
    (compared("==", 5), ["f", "t", "tn", "f", "n", ""]),
    (compared("!=", 5), ["t", "f", "fn", "t", "n", ""]),
    (compared("<", 5), ["t", "f", "fn", "f", "n", ""]),
    (compared("<=", 5), ["t", "t", "tn", "f", "n", ""]),
    (compared(">", 5), ["f", "f", "fn", "t", "n", ""]),
    (compared(">=", 5), ["f", "t", "tn", "t", "n", ""]),
    (compared("<", 2), ["tf", "f", "fn", "f", "n", ""]),
    (compared("==", None), ["n", "n", "n", "n", "n", ""]),
    (In("x", (Literal(2, pa.int64()), Literal(5, pa.int64()))), ["tf", "t", "tn", "f", "n", ""]),
    (In("x", (Literal(5, pa.int64()), Literal(None, pa.int64()))), ["n", "t", "tn", "n", "n", ""]),
    (In("x", (Literal(None, pa.int64()),)), ["n", "n", "n", "n", "n", ""]),
    (In("x", ()), ["f", "f", "fn", "f", "n", ""]),
    (IsNull("x"), ["f", "f", "tf", "f", "t", ""]),
    (Known("x", True), ["t", "t", "tn", "t", "n", ""]),
    (Known("x", False), ["f", "f", "fn", "f", "n", ""]),
    (Constant(True), ["t", "t", "t", "t", "t", ""]),
    (Constant(False), ["f", "f", "f", "f", "f", ""]),
    (Constant(None), ["n", "n", "n", "n", "n", ""]),
    (And(()), ["t", "t", "t", "t", "t", ""]),
    (Or(()), ["f", "f", "f", "f", "f", ""]),
    (And((compared(">=", 2), compared("<=", 5))), ["tf", "t", "tn", "f", "n", ""]),
    (Or((compared("<", 2), compared(">", 8))), ["tf", "f", "fn", "tf", "n", ""]),
    (Or((IsNull("x"), compared(">", 5))), ["f", "f", "tfn", "t", "t", ""]),
    (Not(And((compared(">=", 5), compared("<=", 5)))), ["t", "f", "fn", "t", "n", ""]),
    (And((Constant(None), compared("==", 5))), ["f", "n", "n", "f", "n", ""]),
    (Or((Constant(None), compared("==", 5))), ["n", "t", "tn", "n", "n", ""]),
]


@pytest.mark.parametrize(("predicate", "expected"), LEAVES, ids=lambda part: str(part)[:60])
def test_verdicts(predicate, expected):
    assert told(prune(X, predicate)) == expected
    swapped = ["".join(sorted(one.translate(str.maketrans("tf", "ft")), key="tfn".index)) for one in expected]
    assert told(prune(X, Not(predicate))) == swapped
    assert told(prune(X, Not(Not(predicate)))) == expected


def test_certain():
    assert prune(X, compared("<=", 5)).certain.tolist() == [True, True, False, False, False, False]


def test_kleene_by_every_combination():
    """Two leaves, each true, false or null in each row of a group: AND, OR and NOT of the outcomes cover all rows."""
    values = (True, False, None)
    stored = {True: 1, False: 0, None: None}
    rows = list(itertools.product(values, values))
    groups = [choice for size in (1, 2) for choice in itertools.combinations(rows, size)]
    metadata = described(
        [[tuple(stored[row[column]] for row in group) for column in (0, 1)] for group in groups],
        [int_column("x"), int_column("y")],
    )
    x, y = compared("==", 1, "x"), compared("==", 1, "y")
    both = {(True, True): True} | {(one, other): False for one, other in rows if False in (one, other)}
    verdict = told(prune(metadata, And((x, y))))
    for group, may in zip(groups, verdict, strict=True):
        outcomes = {both.get(row) for row in group}
        assert {"t": True, "f": False, "n": None}.keys() >= set(may)
        assert outcomes <= {{"t": True, "f": False, "n": None}[name] for name in may}
        if len(group) == 1:
            assert len(may) == 1
    negated = told(prune(metadata, Not(Or((Not(x), Not(y))))))
    assert negated == verdict


UNKNOWN = {
    "a column that is not there": compared("==", 5, "z"),
    "a nested column by its dotted name": compared("==", 5, "s.x"),
    "the group that holds it": compared("==", 5, "s"),
    "a list": compared("==", 5, "r"),
    "a name that comes twice": compared("==", 5, "d"),
    "a literal of another type": Comparison("==", "x", Literal(5.0, pa.float64())),
    "one such in a list": In("x", (Literal(5, pa.int64()), Literal(7.0, pa.float64()))),
    "a prefix of a number": Prefix("x", "5"),
    "whether a nested column is null": IsNull("s"),
    "whether a list is null": IsNull("r"),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_is_not_known_prunes_nothing(case):
    columns = [int_column("x"), int_column("s", "x"), int_column("r", repeats=1), int_column("d"), int_column("d")]
    metadata = described([[(1, 2)] * 5, [(5, 5)] * 5], columns)
    for predicate in (UNKNOWN[case], Not(UNKNOWN[case])):
        assert told(prune(metadata, predicate)) == ["tfn", "tfn"]


def test_a_flat_column_with_a_dot_in_its_name():
    metadata = described([[(1, 2)] * 2, [(5, 5)] * 2], [int_column("s.x"), int_column("s", "x")])
    assert told(prune(metadata, compared("==", 5, "s.x"))) == ["f", "t"]


def test_what_is_not_known_beside_what_is():
    unknown = compared("==", 5, "z")
    assert told(prune(X, And((unknown, compared("==", 5)))))[:2] == ["f", "tfn"]
    assert told(prune(X, Or((unknown, compared("==", 5)))))[:2] == ["tfn", "t"]


def test_all_files_at_once_are_as_each_alone():
    rng = random.Random(SEED)
    parts = []
    for _ in range(20):
        groups = [
            [tuple(rng.choice([None, *range(start, start + 4)]) for _ in range(3)) for _ in "xy"]
            for start in rng.choices(range(20), k=rng.randrange(12))
        ]
        parts.append(described(groups, [int_column("x"), int_column("y")]))
    metadata = load(together(parts).save())
    for _ in range(100):
        predicate = random_predicate(rng, 3)
        verdict = prune(metadata, predicate)
        alone = [prune(part, predicate) for part in parts]
        for name in ("may_be_true", "may_be_false", "may_be_null"):
            apart = np.concatenate([getattr(one, name) for one in alone])
            assert np.array_equal(getattr(verdict, name), apart), predicate


def random_predicate(rng: random.Random, depth: int) -> Predicate:
    column = rng.choice("xy")
    if depth and rng.random() < 0.6:
        parts = tuple(random_predicate(rng, depth - 1) for _ in range(rng.randrange(1, 4)))
        return rng.choice([And(parts), Or(parts), Not(parts[0])])
    if rng.random() < 0.2:
        return In(column, tuple(Literal(rng.randrange(24), pa.int64()) for _ in range(rng.randrange(1, 6))))
    if rng.random() < 0.1:
        return IsNull(column)
    return compared(rng.choice(["==", "!=", "<", "<=", ">", ">="]), rng.randrange(24), column)


def test_nothing_to_prune():
    assert told(prune(described([], [int_column("x")]), compared("==", 5))) == []
