"""Contiguous pixels become images according to their shapes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from adapters.errors import AdapterError
from image_storages import arrays

SETS = {
    "one shape": [(2, 3, 3)] * 4,
    "grey": [(5, 2)] * 3,
    "one size, but several shapes": [(2, 6), (6, 2), (3, 4), (2, 2, 3)],
    "several sizes": [(1, 1), (4, 4, 3), (2, 3)],
    "one": [(7, 1)],
    "none": [],
}
PLACE = Path("images")


def made(shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    generator = np.random.default_rng(4)
    return [generator.integers(0, 256, shape, np.uint8) for shape in shapes]


@pytest.mark.parametrize("shapes", SETS.values(), ids=SETS)
def test_images_are_what_was_packed(shapes: list[tuple[int, ...]]) -> None:
    images = made(shapes)
    shape = arrays.common_shape(images)
    table = arrays.shape_table(images, shape)
    block = np.empty(int(arrays.sizes_bytes(table).sum()), np.uint8)
    if images:
        arrays.packed(images, shape, block)
    found = arrays.split(block, table, PLACE)
    assert [array.shape for array in found] == shapes
    assert all(np.array_equal(one, other) for one, other in zip(images, found, strict=True))
    assert [arrays.shape_of(numbers) for numbers in table] == shapes


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ([(2, 3, 0), (1, 1, 0)], "it has 5 bytes of pixels, but the shapes of its images need 7"),
        ([(2, 2, 0), (0, 3, 0)], "an image has no pixels"),
        ([(2, 2, 0), (-1, -1, 0)], "an image has no pixels"),
    ],
)
def test_shapes_of_other_pixels_are_refused(wrong: list[tuple[int, int, int]], reason: str) -> None:
    with pytest.raises(AdapterError, match=f"images is damaged: {reason}"):
        arrays.split(np.zeros(5, np.uint8), np.array(wrong, np.int32), PLACE)


@pytest.mark.parametrize(
    ("sizes", "parts"),
    [([], []), ([50], [1]), ([4, 4, 4, 4, 4], [2, 2, 1]), ([4, 6, 1], [2, 1]), ([1, 50, 1, 1], [1, 1, 2])],
)
def test_groups_are_of_about_so_many_bytes_one_image_at_least(sizes: list[int], parts: list[int]) -> None:
    found = list(arrays.groups(np.array(sizes, np.int64), 10))
    assert [part.stop - part.start for part in found] == parts
    assert [place for part in found for place in range(part.start, part.stop)] == list(range(len(sizes)))
