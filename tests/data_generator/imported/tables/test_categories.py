"""Parts of a table with different categories get one common set."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from data_generator import cache
from data_generator.dataset import Dataset
from data_generator.imported.refusal import Refused
from data_generator.imported.tables.categories import Coder, Decoder


def part(values: list[Any], categories: list[Any], kind: pa.DataType) -> pa.RecordBatch:
    codes = [None if value is None else categories.index(value) for value in values]
    dictionary = pa.array(categories, kind.value_type)
    array = pa.DictionaryArray.from_arrays(pa.array(codes, kind.index_type), dictionary, ordered=kind.ordered)
    return pa.record_batch([pa.array(range(len(values))), array], names=["n", "c"])


def sent(parts: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return the parts as the other process receives them."""
    coder, decoder = Coder(parts[0].schema), Decoder(parts[0].schema)
    came = []
    for each in parts:
        messages, codes = coder.add(each)
        for message in messages:
            decoder.learn(message)
        came.append(decoder.decoded(pa.ipc.read_record_batch(codes.serialize(), decoder.codes)))
    return came


TEXT = pa.dictionary(pa.int8(), pa.string())
PARTS = [(["b", "a", None], ["b", "a", "unused"]), (["a", "c", "b"], ["a", "c", "b"]), (["c"], ["c"])]


def test_all_parts_get_the_codes_of_one_growing_set() -> None:
    came = sent([part(*each, TEXT) for each in PARTS])
    assert [each["c"].to_pylist() for each in came] == [values for values, _ in PARTS]
    assert [each["c"].dictionary.to_pylist() for each in came] == [
        ["b", "a", "unused"],
        ["b", "a", "unused", "c"],
        ["b", "a", "unused", "c"],
    ]
    assert {each.schema for each in came} == {part(*PARTS[0], TEXT).schema}


def test_a_cached_table_has_them_all_in_each_part(tmp_path: Path) -> None:
    parts = sent([part(*each, TEXT) for each in PARTS])
    dataset = Dataset("table", 7, parts[0].schema, 1, lambda: iter(parts))
    made = cache.prepare(dataset, tmp_path)
    assert cache.prepare(dataset, tmp_path) == made
    column = cache.read_table(made.path, 5, ["c"])["c"]
    assert column.to_pylist() == ["b", "a", None, "a", "c"]
    assert {tuple(chunk.dictionary.to_pylist()) for chunk in column.chunks} == {("b", "a", "unused", "c")}
    (few,) = cache.read_rows(made.path, 4, 2)
    assert few["c"].to_pylist() == ["c", "b"]


def test_the_digest_tells_categories_apart(tmp_path: Path) -> None:
    digests = set()
    for place, categories in enumerate((["a", "b"], ["b", "a"], ["a", "c"], ["a", "b", "c"])):
        batch = part([categories[0], categories[1]], categories, TEXT)
        dataset = Dataset(f"table {place}", 2, batch.schema, 1, lambda batch=batch: iter([batch]))
        digests.add(cache.prepare(dataset, tmp_path).digest)
    assert len(digests) == 4


def test_a_missing_value_is_not_a_category() -> None:
    floats = pa.dictionary(pa.int32(), pa.float64())
    codes = pa.array([0, 1, 2], pa.int32())
    array = pa.DictionaryArray.from_arrays(codes, pa.array([0.5, float("nan"), None]))
    (came,) = sent([pa.record_batch([array], names=["c"])])
    assert came.schema.field("c").type == floats
    assert came["c"].to_pylist() == [0.5, None, None]
    assert came["c"].dictionary.to_pylist() == [0.5]


def test_ordered_categories_have_one_order() -> None:
    ordered = pa.dictionary(pa.int8(), pa.string(), ordered=True)
    longer = sent([part(["a"], ["a"], ordered), part(["b"], ["a", "b"], ordered), part(["a"], ["a"], ordered)])
    assert [each["c"].to_pylist() for each in longer] == [["a"], ["b"], ["a"]]
    with pytest.raises(Refused, match="column 'c' has ordered categories, and the order differs"):
        sent([part(["a"], ["a", "b"], ordered), part(["b"], ["b", "a"], ordered)])


def test_more_categories_than_there_are_codes_are_refused() -> None:
    halves = [[f"{half} {number}" for number in range(100)] for half in "ab"]
    with pytest.raises(Refused, match=r"'c' has 200 categories in all .*, but its codes \(int8\) allow at most 128"):
        sent([part(half, half, TEXT) for half in halves])
    assert len(sent([part(half[:64], half[:64], TEXT) for half in halves])[1]["c"].dictionary) == 128


@pytest.mark.parametrize(
    "message",
    [
        b"",
        struct.pack("<I", 0),
        struct.pack("<I", 1) + b"rubbish",
        struct.pack("<I", 1) + pa.record_batch([["a", "a"]], names=["values"]).serialize().to_pybytes(),
        struct.pack("<I", 1) + pa.record_batch([["a", None]], names=["values"]).serialize().to_pybytes(),
    ],
    ids=["nothing", "another column", "rubbish", "twice", "missing"],
)
def test_messages_that_make_no_sense_are_errors(message: bytes) -> None:
    decoder = Decoder(part(["a"], ["a"], TEXT).schema)
    with pytest.raises((ValueError, struct.error, OSError, pa.ArrowException)):
        decoder.learn(message)


def test_codes_without_a_category_are_errors() -> None:
    decoder = Decoder(part(["a"], ["a"], TEXT).schema)
    with pytest.raises((IndexError, ValueError)):
        decoder.decoded(pa.record_batch([pa.array([0]), pa.array([1], pa.int8())], schema=decoder.codes))
