"""Images as a target, and every kind of fault that verification finds in exact and in lossy storages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from adapters.contract import Images
from bench_runner.operations import targets
from bench_runner.operations.targets import PAGE_BYTES, Target, touch
from bench_runner.worker import image_verify
from bench_runner.worker.verify import Mismatch
from data_generator.images import SCHEMA

SHAPES = [(4, 5, 3), (1, 1), (7, 3), (64, 65, 3), (2, 2, 3)]


def table(shapes: list[tuple[int, ...]] = SHAPES, *, rows_a_batch: int = 2) -> pa.Table:
    source = np.random.default_rng(7)
    arrays = [source.integers(0, 256, shape, dtype=np.uint8) for shape in shapes]
    columns = {
        "pixels": [array.tobytes() for array in arrays],
        "height": [array.shape[0] for array in arrays],
        "width": [array.shape[1] for array in arrays],
        "channels": [array.shape[2] if array.ndim == 3 else 0 for array in arrays],
        "label": [place * 7 - 3 for place in range(len(arrays))],
    }
    whole = pa.table(columns, SCHEMA)
    return pa.Table.from_batches(whole.to_batches(max_chunksize=rows_a_batch))


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    path = tmp_path / "images.arrow"
    stored = table()
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, SCHEMA) as writer:
        writer.write_table(stored)
    return path


def held() -> Images:
    made = targets.make(table(), Target("images"))
    assert isinstance(made, Images)
    return made


def compared(
    dataset: Path, result: object, *, owned: bool = True, least_psnr_db: float | None = None
) -> tuple[str, ...]:
    return image_verify.compare(dataset, len(SHAPES), result, owned=owned, least_psnr_db=least_psnr_db)


def test_the_user_holds_arrays_of_their_own_and_whole_labels() -> None:
    images = held()
    assert [array.shape for array in images.arrays] == SHAPES
    assert all(array.flags.owndata and array.flags.writeable and array.dtype == np.uint8 for array in images.arrays)
    assert images.labels == [-3, 4, 11, 18, 25]
    assert {type(label) for label in images.labels} == {int}


def test_nothing_is_converted_inside_the_clock() -> None:
    images, target = held(), Target("images")
    assert targets.to_native(images, target, None) is images  # type: ignore[arg-type]
    assert targets.from_native(images, target, None) is images  # type: ignore[arg-type]


@pytest.mark.rule(7)
def test_touching_reads_a_byte_of_each_page() -> None:
    """All bytes are 0, except that every byte that has to be read is 1. The sum counts the bytes that were read."""
    large = np.zeros((3, PAGE_BYTES), np.uint8)
    large.reshape(-1)[::PAGE_BYTES] = 1
    small = np.zeros((5, 5, 3), np.uint8)
    small[0, 0, 0] = small[-1, -1, -1] = 1
    assert touch(Images([large], [0])) == 3
    assert touch(Images([small, small.copy()], [0, 1])) == 4


def test_every_array_is_a_buffer_of_the_result() -> None:
    images = held()
    found = list(targets.buffers(images))
    assert [size for _, size in found] == [array.nbytes for array in images.arrays]
    assert found[0][0] == images.arrays[0].ctypes.data


def test_what_was_stored_is_exact(dataset: Path) -> None:
    assert compared(dataset, held()) == ()


def test_only_the_first_images_are_compared_where_only_they_were_stored(dataset: Path) -> None:
    images = held()
    first = Images(images.arrays[:3], images.labels[:3])
    assert image_verify.compare(dataset, 3, first, owned=True, least_psnr_db=None) == ()


def _swap(images: Images) -> None:
    images.arrays[0], images.arrays[4] = images.arrays[4], images.arrays[0]


def _one_pixel(images: Images) -> None:
    images.arrays[3][10, 10, 1] ^= 1


def _text_labels(images: Images) -> None:
    images.labels[:] = [str(label) for label in images.labels]  # type: ignore[misc]


def _numpy_label(images: Images) -> None:
    images.labels[1] = np.int64(4)  # type: ignore[call-overload]


def _swap_labels(images: Images) -> None:
    images.labels[0], images.labels[1] = images.labels[1], images.labels[0]


def _wider(images: Images) -> None:
    images.arrays[2] = images.arrays[2].astype(np.uint16)


def _grey_as_rgb(images: Images) -> None:
    images.arrays[1] = np.repeat(images.arrays[1][:, :, None], 3, axis=2)


def _flat(images: Images) -> None:
    images.arrays[2] = images.arrays[2].reshape(3, 7)


def _drop(images: Images) -> None:
    images.arrays.pop()
    images.labels.pop()


FAULTS: list[tuple[Callable[[Images], None], str]] = [
    (_swap, "image 0: stored (4, 5, 3)"),
    (_one_pixel, "image 3: pixel (10, 10, 1)"),
    (_text_labels, "label 0: stored -3, came back '-3' (str)"),
    (_numpy_label, "label 1"),
    (_swap_labels, "label 0: stored -3, came back 4"),
    (_wider, "of uint16"),
    (_grey_as_rgb, "image 1: stored (1, 1) of uint8, came back (1, 1, 3)"),
    (_flat, "image 2"),
    (_drop, "stored 5, came back 4"),
]


@pytest.mark.parametrize(("fault", "words"), FAULTS, ids=lambda value: getattr(value, "__name__", ""))
@pytest.mark.parametrize("least_psnr_db", [None, 30.0], ids=["exact", "lossy"])
def test_a_planted_fault_is_found(
    dataset: Path, fault: Callable[[Images], None], words: str, least_psnr_db: float | None
) -> None:
    images = held()
    fault(images)
    if fault is _one_pixel and least_psnr_db is not None:
        assert compared(dataset, images, least_psnr_db=least_psnr_db), "within the bound"
        return
    with pytest.raises(Mismatch) as raised:
        compared(dataset, images, least_psnr_db=least_psnr_db)
    assert words in str(raised.value)


def test_two_images_of_one_shape_that_changed_places_are_found_in_a_lossy_storage(tmp_path: Path) -> None:
    """A storage may change pixels by a few levels, but must not return another image."""
    stored = table([(16, 16, 3)] * 20)
    path = tmp_path / "images.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, SCHEMA) as writer:
        writer.write_table(stored)
    images = targets.make(stored, Target("images"))
    noise = np.random.default_rng(1).integers(-4, 5, (16, 16, 3))
    noisy = Images([np.clip(array + noise, 0, 255).astype(np.uint8) for array in images.arrays], images.labels)
    (loss,) = image_verify.compare(path, 20, noisy, owned=True, least_psnr_db=38.0)
    assert "38 dB" in loss
    noisy.arrays[0], noisy.arrays[1] = noisy.arrays[1], noisy.arrays[0]
    with pytest.raises(Mismatch, match=r"image 0: .* dB, declared: at least 28\.0"):
        image_verify.compare(path, 20, noisy, owned=True, least_psnr_db=38.0)


def test_a_loss_beyond_the_bound_over_all_images_is_found(dataset: Path) -> None:
    images = held()
    coarse = Images([(array & 0xF0).astype(np.uint8) for array in images.arrays], images.labels)
    with pytest.raises(Mismatch, match="the PSNR of all images is"):
        compared(dataset, coarse, least_psnr_db=34.0)


def test_differences_do_not_overflow_the_type_of_pixels(dataset: Path) -> None:
    """The square of 16 is 0 in eight bits. Images whose pixels differ by 16 have a PSNR of 24 dB."""
    images = held()
    off = Images([array ^ 16 for array in images.arrays], images.labels)
    assert compared(dataset, off, least_psnr_db=24.0)
    with pytest.raises(Mismatch, match=r"all images is 24\.0 dB"):
        compared(dataset, off, least_psnr_db=25.0)


def test_the_bound_over_all_images_counts_those_that_came_back_exactly(dataset: Path) -> None:
    images = held()
    images.arrays[2] ^= 16
    assert compared(dataset, images, least_psnr_db=30.0)


@pytest.mark.parametrize("spoil", ["view", "readonly"])
@pytest.mark.rule(7)
def test_arrays_that_are_not_owned_are_found(dataset: Path, spoil: str) -> None:
    images = held()
    if spoil == "view":
        images.arrays[2] = images.arrays[2][:]
    else:
        images.arrays[2].flags.writeable = False
    with pytest.raises(Mismatch, match="image 2: must own its memory"):
        compared(dataset, images)
    assert compared(dataset, images, owned=False) == ()


def test_something_else_than_images_is_found(dataset: Path) -> None:
    with pytest.raises(Mismatch, match="came back as list"):
        compared(dataset, [1, 2, 3])


def chosen(dataset: Path, handed: list[int], asked: list[int]) -> tuple[str, ...]:
    """Compare the images with the first numbers, which were returned, with those with the second numbers, which were
    requested."""
    images = held()
    some = Images([images.arrays[number] for number in handed], [images.labels[number] for number in handed])
    numbers = np.array(asked, np.int64)
    return image_verify.compare(dataset, len(SHAPES), some, owned=True, least_psnr_db=None, numbers=numbers)


@pytest.mark.parametrize("numbers", [[4, 0, 3, 1, 2], [3, 1], [2]])
def test_images_in_another_order_are_those_that_were_asked_for(dataset: Path, numbers: list[int]) -> None:
    assert chosen(dataset, numbers, numbers) == ()


@pytest.mark.parametrize(
    ("handed", "words"),
    [
        ([0, 1, 2, 3, 4], "label 0"),  # a loader that does not shuffle
        ([4, 0, 3, 1, 1], "label 2"),  # a loader that repeats an image
        ([4, 0, 3, 1], "stored 5, came back 4"),  # a loader that drops the last image
    ],
)
def test_images_that_were_not_asked_for_are_found(dataset: Path, handed: list[int], words: str) -> None:
    with pytest.raises(Mismatch, match=words):
        chosen(dataset, handed, [4, 0, 3, 1, 2])
