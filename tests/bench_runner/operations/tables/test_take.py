"""The rows of a take follow the requested pattern, are disjoint, and are the same for all variants."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pyarrow as pa
import pytest

from adapters.offers import Offers, Reach
from bench_runner.operations import OperationContext, operation_of
from bench_runner.operations.tables.take import RUN_ROWS, Take
from formats.registry import FORMATS

ROWS = 10_000


def hands(spelled: str, *, rows: int = ROWS, repetitions: int = 31, digest: str = "9f2c") -> list[np.ndarray]:
    operation = cast(Take, operation_of(spelled))
    return operation.inputs(cast(OperationContext, SimpleNamespace(digest=digest)), rows, repetitions)


@pytest.mark.parametrize("pattern", ["uniform", "clustered", "zipf"])
def test_numbers_are_rows_of_the_table(pattern: str) -> None:
    for numbers in hands(f"take[rows=100,pattern={pattern}]"):
        assert numbers.dtype == np.int64
        assert numbers.shape == (100,)
        assert numbers.min() >= 0
        assert numbers.max() < ROWS


def test_the_same_data_is_asked_for_the_same_rows() -> None:
    first, again = hands("take[rows=20]"), hands("take[rows=20]")
    assert all((one == other).all() for one, other in zip(first, again, strict=True))
    others = hands("take[rows=20]", digest="9f2d")
    assert any((one != other).any() for one, other in zip(first, others, strict=True))


def test_the_choice_of_a_known_digest_is_pinned() -> None:
    """If the choice changed, results under the same name would no longer be comparable."""
    assert hands("take[rows=5]", repetitions=1)[0].tolist() == PINNED


PINNED = [6797, 472, 6858, 9801, 6036]


@pytest.mark.parametrize("pattern", ["uniform", "clustered"])
def test_no_row_is_taken_twice_while_there_are_enough(pattern: str) -> None:
    taken = np.concatenate(hands(f"take[rows=300,pattern={pattern}]"))
    assert len(np.unique(taken)) == len(taken) == 9_300


def test_they_begin_anew_when_rows_are_used_up() -> None:
    for numbers in hands("take[rows=100]", rows=250):
        assert len(np.unique(numbers)) == 100


def test_uniform_rows_come_from_everywhere_and_unsorted() -> None:
    taken = np.concatenate(hands("take[rows=300]"))
    assert 800 < np.count_nonzero(taken < 1_000) < 1_000
    assert not (np.diff(taken[:300]) > 0).all()


def test_sorted_ones_ascend() -> None:
    assert all((np.diff(numbers) > 0).all() for numbers in hands("take[rows=300,order=sorted]"))


def test_clustered_rows_have_their_neighbours() -> None:
    numbers = hands("take[rows=100,pattern=clustered]")[0]
    assert np.count_nonzero(np.diff(numbers) == 1) == 100 - 100 // RUN_ROWS


def test_zipf_asks_for_few_rows_often() -> None:
    taken = np.concatenate(hands("take[rows=300,pattern=zipf]"))
    _, times = np.unique(taken, return_counts=True)
    assert times.max() > 500
    assert len(times) > 500


def test_a_primer_with_fewer_rows_takes_them_all() -> None:
    operation = cast(Take, operation_of("take[rows=100]"))
    stage = cast(OperationContext, SimpleNamespace(digest="9f2c"))
    assert sorted(operation.take_input(stage, 7).tolist()) == list(range(7))


@pytest.mark.parametrize(
    ("spelled", "rows", "words"),
    [
        ("take[rows=101]", 100, "it takes 101 rows, but the table has 100"),
        ("take[rows=1,columns=3]", 100, "it reads 3 columns, but the table has 2"),
        ("scan[columns=3]", 100, "it reads 3 columns, but the table has 2"),
        ("append[rows=101]", 100, "it appends 101 rows of the table, which has 100"),
        ("take[rows=100,columns=2]", 100, None),
    ],
)
def test_what_the_data_cannot_give_is_refused(spelled: str, rows: int, words: str | None) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    assert operation_of(spelled).refusal(schema, rows) == words


def test_a_fallback_is_never_kept_open() -> None:
    """Opening would read everything before the clock starts."""
    operation = cast(Take, operation_of("take[handle=kept]"))
    lance, csv = FORMATS.build("lance"), FORMATS.build("csv")
    assert operation.handles(lance)
    assert not operation.handles(csv)
    assert operation.fallback(csv) == "read-all"
    reopened = cast(Take, operation_of("take[handle=reopened]"))
    assert not reopened.handles(lance)


@pytest.mark.parametrize(
    ("spelled", "words"),
    [
        ("take[rows=1,handle=reopened,streams=16]", "streams need a copy that stays open: use handle=kept"),
        ("take[rows=1,streams=257]", "streams=257 is more than the 256 allowed"),
        ("take[rows=1,streams=256]", None),
    ],
)
def test_streams_need_a_handle_and_have_an_end(spelled: str, words: str | None) -> None:
    assert operation_of(spelled).refusal(pa.schema([("a", pa.int64())]), 100) == words


@pytest.mark.parametrize(
    ("variant", "spelled", "words"),
    [
        ("lance", "take[rows=1,streams=16]", None),
        ("parquet[engine=pyarrow]", "take[rows=1,streams=16]", None),
        ("csv", "take[rows=1,streams=16]", "no call to take rows"),
        ("hdf5-table", "take[rows=1,streams=16]", "several threads"),
        ("hdf5-table", "take[rows=1]", None),
        ("vortex[library_cache=off]", "take[rows=1,pattern=zipf]", "use pattern=uniform"),
        ("vortex[library_cache=off]", "take[rows=1]", None),
        ("vortex", "take[rows=1,pattern=zipf]", None),
        ("parquet[engine=polars]", "project[columns=1,handle=kept]", "use handle=reopened"),
        ("parquet[engine=pyarrow]", "project[columns=1,handle=kept]", None),
        ("csv[engine=polars]", "project[columns=1,handle=reopened]", None),
    ],
)
def test_what_a_variant_cannot_do_is_refused_beforehand(variant: str, spelled: str, words: str | None) -> None:
    reason = operation_of(spelled).unfit(FORMATS.build(variant))
    assert reason is None if words is None else words in str(reason)


def test_one_handle_for_all_streams_or_one_for_each() -> None:
    operation = cast(Take, operation_of("take[rows=1,streams=16]"))
    assert operation.handles(FORMATS.build("lance")) == 1
    assert operation.handles(FORMATS.build("orc")) == 16
    assert cast(Take, operation_of("take[rows=1]")).handles(FORMATS.build("orc")) == 1
    assert cast(Take, operation_of("take[rows=1,handle=reopened]")).handles(FORMATS.build("orc")) == 0


def test_what_an_engine_offers_is_listed() -> None:
    assert Offers().names == ()
    assert Offers(project=True, take=Reach.GROUPS, append=True).names == ("project", "take (by groups)", "append")
