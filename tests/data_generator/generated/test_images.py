"""Images as a table: batches over memory that is not copied, and what a valid batch is."""

import numpy as np
import pyarrow as pa
import pytest

from data_generator import images


def of(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int32)


def batch(heights=(2, 1), widths=(2, 3), channels=(3, 0), labels=(7, -1), pixels: int = 15) -> pa.RecordBatch:
    memory = np.arange(pixels, dtype=np.uint8)
    return images.batch(memory, of(*heights), of(*widths), of(*channels), np.array(labels, dtype=np.int64))


def test_a_batch_cuts_the_pixels_by_the_shapes() -> None:
    made = batch()
    made.validate(full=True)
    assert images.is_images(made.schema)
    assert made["pixels"].to_pylist() == [bytes(range(12)), bytes(range(12, 15))]
    assert made["label"].to_pylist() == [7, -1]
    assert images.is_sound(made)


def test_a_batch_uses_the_given_memory() -> None:
    memory = bytearray(3)
    made = images.batch(memory, of(1), of(1), of(3), np.array([0]))
    assert made["pixels"].buffers()[2].address == pa.py_buffer(memory).address


@pytest.mark.parametrize("pixels", [14, 16])
def test_pixels_that_the_shapes_do_not_ask_for_are_refused(pixels: int) -> None:
    with pytest.raises(ValueError, match=rf"need 15 bytes of pixels \(got {pixels}\)"):
        batch(pixels=pixels)


def planted(column: str, values: list) -> pa.RecordBatch:
    made = batch()
    place = made.schema.get_field_index(column)
    arrays = list(made.columns)
    arrays[place] = pa.array(values, made.schema.field(column).type)
    return pa.RecordBatch.from_arrays(arrays, schema=made.schema)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("pixels", [bytes(12), bytes(4)]),
        ("pixels", [None, bytes(3)]),
        ("height", [2, 0]),
        ("height", [-2, 1]),
        ("width", [3, 2]),
        ("channels", [3, 1]),
        ("channels", [4, 0]),
        ("label", [7, None]),
    ],
)
def test_a_batch_that_breaks_the_schema_is_not_sound(column: str, values: list) -> None:
    assert not images.is_sound(planted(column, values))


def test_other_tables_are_no_images() -> None:
    assert not images.is_images(pa.schema([("pixels", pa.large_binary())]))
