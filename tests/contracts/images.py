"""Contract of image storages. A storage's test file inherits it and names the variant:

    class TestSqlite(ImageStorageContract):
        variant = "sqlite[engine=sqlite3]"

Storages declare their limits (`max_side`, `least_psnr_db`); they do not override tests.
"""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from adapters.contract import Can, Images, ImageStorage
from adapters.errors import AdapterError
from adapters.offers import ImageHandle
from adapters.registry import Registry
from bench_runner.machine.linux import file_mappings
from image_storages.registry import STORAGES
from tests.contracts.adapters import AdapterContract, left_mapped, left_open, only_for, open_below
from tests.contracts.fresh import run_fresh
from tests.contracts.projection import rchar

EACH_LOWER_DB = 10.0
"""How far the PSNR of a single image may be below `least_psnr_db`, which is declared for all images together."""

LABELS = (7, -1, 3, 3, 2**31 + 5, 0, 2**63 - 1, -(2**63), 9)
"""Labels that are neither sorted nor distinct, and exceed 32 bits."""

NUMBERS = {
    "one": [7],
    "ascending": [0, 3, 4, 12, 29],
    "unsorted": [12, 3, 29, 0, 4],
    "repeated": [5, 5, 2, 5, 2],
    "repeated and ascending": [2, 5, 5, 9],
    "none": [],
    "all backwards": list(range(29, -1, -1)),
}
WRONG_NUMBERS = {"too large": [0, 30], "far too large": [2**40], "negative": [5, -1]}

SHARED = """
import numpy as np
from adapters.contract import Images
from image_storages.registry import STORAGES
"""

LOADS_NOTHING = """
import sys, warnings
from pathlib import Path
import numpy as np
from adapters.contract import Images
from image_storages.registry import STORAGES

warnings.simplefilter("ignore")
variant, location = sys.argv[1:3]
adapter = STORAGES.build(variant)
adapter.load_library()

def held(*shapes):
    return Images([np.full(shape, 7, np.uint8) for shape in shapes], list(range(len(shapes))))

alike, mixed = held((4, 5, 3), (4, 5, 3)), held((4, 5, 3), (7, 2), (1, 1))
before = set(sys.modules)
for name, images in (("alike", alike), ("mixed", mixed)):
    adapter.save(images, Path(location + name))
    adapter.read(Path(location + name))
    handle = adapter.open(Path(location + name))
    if handle.take is not None:
        handle.take(np.array([1, 0]))
    if handle.batches is not None:
        list(handle.batches(1))
    handle.close()
print(",".join(sorted(set(sys.modules) - before)))
"""

TELLS_ITS_ERROR = """
import sys
from pathlib import Path
from image_storages.registry import STORAGES

adapter = STORAGES.build(sys.argv[1])
adapter.load_library()
try:
    adapter.read(Path(sys.argv[2]))
except Exception as error:
    print(type(error).__name__, error)
"""


# --- images --------------------------------------------------------------------------------------------------------


def photograph(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Return a smooth uint8 image of this shape with a little noise, as lossy formats expect."""
    return _photographed(shape, seed).copy()


@cache
def _photographed(shape: tuple[int, ...], seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    channels = shape[2] if len(shape) == 3 else 1
    planes = []
    for _ in range(channels):
        slope, phase = generator.uniform(0.02, 0.08, 2), generator.uniform(0, 6, 2)
        planes.append(128 + 50 * np.sin(slope[0] * rows + phase[0]) + 50 * np.cos(slope[1] * columns + phase[1]))
    noisy = np.stack(planes, axis=-1) + generator.normal(0, 3, (*shape[:2], channels))
    return np.clip(noisy, 0, 255).astype(np.uint8).reshape(shape)


def with_labels(arrays: list[np.ndarray]) -> Images:
    return Images(arrays, [LABELS[place % len(LABELS)] for place in range(len(arrays))])


def colour() -> Images:
    """Return RGB images that all have the same shape."""
    return with_labels([photograph((32, 32, 3), seed) for seed in range(40)])


def grey() -> Images:
    """Return grey images that all have the same shape, with odd sides."""
    return with_labels([photograph((17, 23), seed) for seed in range(40)])


SHAPES: tuple[tuple[int, ...], ...] = (
    (31, 37, 3),
    (1, 1),
    (1, 1, 3),
    (7, 11),
    # This shape has as many bytes as the one before it.
    (11, 7),
    (13, 5, 3),
    (1, 97, 3),
    (101, 1),
    (160, 213, 3),
    (64, 48),
)


def mixed() -> Images:
    """Return grey and RGB images. The smallest has one pixel, the largest exceeds a buffer of 64 KiB."""
    return with_labels([photograph(shape, seed) for seed, shape in enumerate(SHAPES * 3)])


def many() -> Images:
    """Return so many images that numbers ordered as text, or by their lowest byte, are noticed. Neighbours differ in
    value."""
    return Images(
        [np.full((2, 3), place * 97 % 251, np.uint8) for place in range(334)],
        [place * 31 % 1_009 - 500 for place in range(334)],
    )


def one() -> Images:
    return with_labels([photograph((19, 29, 3), 1)])


def none() -> Images:
    return Images([], [])


SETS: tuple[Callable[[], Images], ...] = (colour, grey, mixed, many, one, none)


def psnr_db(stored: list[np.ndarray], found: list[np.ndarray]) -> float:
    squared = sum(int(np.square(a.astype(np.int32) - b).sum()) for a, b in zip(stored, found, strict=True))
    pixels = sum(array.size for array in stored)
    return float(10 * np.log10(255**2 * pixels / squared)) if squared else float("inf")


def same(stored: Images, found: Images, least_psnr_db: float | None) -> None:
    """Assert that labels, shapes and dtypes are equal, and that pixels are equal or within the declared loss."""
    assert found.labels == stored.labels
    assert {type(label) for label in found.labels} <= {int}
    assert [array.shape for array in found.arrays] == [array.shape for array in stored.arrays]
    assert {array.dtype for array in found.arrays} <= {np.dtype(np.uint8)}
    if least_psnr_db is None:
        assert all(np.array_equal(a, b) for a, b in zip(stored.arrays, found.arrays, strict=True))
        return
    assert psnr_db(stored.arrays, found.arrays) >= least_psnr_db
    each = [psnr_db([a], [b]) for a, b in zip(stored.arrays, found.arrays, strict=True)]
    assert min(each, default=np.inf) >= least_psnr_db - EACH_LOWER_DB


# --- the contract --------------------------------------------------------------------------------------------------


takes_images = only_for(lambda adapter: adapter.offers.take is not None)
gives_batches = only_for(lambda adapter: adapter.offers.batches)


@pytest.mark.filterwarnings("ignore")
class ImageStorageContract(AdapterContract):
    """Contract of an image storage. Inherit it and set `variant`."""

    registry: ClassVar[Registry] = STORAGES

    @pytest.fixture
    def location(self, adapter: ImageStorage, place: Path) -> Path:
        return place / f"images{adapter.suffix}"

    def save(self, adapter: ImageStorage, images: Images, location: Path) -> None:
        adapter.save(images, location)

    def read(self, adapter: ImageStorage, location: Path) -> Images:
        return adapter.read(location)

    # --- what comes back -------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("images", SETS)
    def test_images_come_back_in_their_order(
        self, images: Callable[[], Images], adapter: ImageStorage, location: Path
    ) -> None:
        self.save(adapter, images(), location)
        same(images(), self.read(adapter, location), adapter.least_psnr_db)

    def test_images_come_back_with_one_thread(self, location: Path) -> None:
        adapter = self.registry.build(self.variant, threads=1)
        adapter.load_library()
        self.save(adapter, mixed(), location)
        same(mixed(), self.read(adapter, location), adapter.least_psnr_db)

    def test_a_new_adapter_reads_what_another_saved(self, adapter: ImageStorage, location: Path) -> None:
        self.save(adapter, mixed(), location)
        again = self.registry.build(adapter.variant)
        again.load_library()
        same(mixed(), self.read(again, location), adapter.least_psnr_db)

    def test_a_declared_loss_occurs(self, adapter: ImageStorage, location: Path) -> None:
        self.save(adapter, colour(), location)
        lost = psnr_db(colour().arrays, self.read(adapter, location).arrays) < float("inf")
        assert lost == (adapter.least_psnr_db is not None)

    @pytest.mark.parametrize("images", [colour, mixed])
    def test_arrays_own_their_memory_unless_views_are_declared(
        self, images: Callable[[], Images], adapter: ImageStorage, location: Path
    ) -> None:
        self.save(adapter, images(), location)
        result = adapter.read(location)
        assert all(array.flags.c_contiguous for array in result.arrays)
        if adapter.values.get("arrays") == "views":
            assert not any(array.flags.owndata for array in result.arrays)
        else:
            assert all(array.flags.owndata and array.flags.writeable for array in result.arrays)

    @pytest.mark.parametrize("images", [colour, mixed])
    def test_a_result_is_in_private_memory(
        self, images: Callable[[], Images], adapter: ImageStorage, location: Path, place: Path
    ) -> None:
        self.save(adapter, images(), location)
        result = self.read(adapter, location)
        stored = [(start, end) for start, end, path in file_mappings() if path.startswith(str(place))]
        for array in result.arrays:
            address = array.__array_interface__["data"][0]
            assert not any(address < end and start < address + array.nbytes for start, end in stored)
        assert left_mapped(place) == []
        shutil.rmtree(place)
        same(images(), result, adapter.least_psnr_db)

    def test_reads_unseen_is_declared_if_and_only_if_read_calls_miss_bytes(
        self, adapter: ImageStorage, location: Path
    ) -> None:
        self.save(adapter, mixed(), location)
        adapter.read(location)
        before = rchar()
        adapter.read(location)
        asked = rchar() - before
        least = sum(path.stat().st_size for path in (location, *location.rglob("*")) if path.is_file()) / 2
        assert (asked > least) != adapter.reads_unseen, (asked, least)

    # --- takes and batches -----------------------------------------------------------------------------------------

    @pytest.fixture
    def handle(self, adapter: ImageStorage, location: Path, place: Path) -> Iterator[ImageHandle]:
        self.save(adapter, mixed(), location)
        opened = adapter.open(location)
        yield opened
        opened.close()
        assert left_open(place) == []

    def test_the_handle_has_the_calls_that_are_offered(self, adapter: ImageStorage, handle: ImageHandle) -> None:
        assert callable(handle.take) == (adapter.offers.take is not None)
        assert callable(handle.batches) == adapter.offers.batches
        assert set(adapter.offers.names) <= {"take (by rows)", "take (by groups)", "batches"}

    @takes_images
    @pytest.mark.parametrize("images", [colour, mixed])
    def test_images_come_in_the_order_asked(
        self, images: Callable[[], Images], adapter: ImageStorage, location: Path, subtests: pytest.Subtests
    ) -> None:
        self.save(adapter, images(), location)
        held = images()
        for name, numbers in NUMBERS.items():
            wanted = Images([held.arrays[number] for number in numbers], [held.labels[number] for number in numbers])
            with subtests.test(name):
                handle = adapter.open(location)
                assert handle.take is not None
                found = [handle.take(np.array(numbers, np.int64)) for _ in range(2)]
                handle.close()
                for each in found:
                    same(wanted, each, adapter.least_psnr_db)
                    assert all(array.flags.owndata and array.flags.writeable for array in each.arrays)

    @takes_images
    def test_a_number_out_of_range_raises_an_error_that_names_it(
        self, handle: ImageHandle, subtests: pytest.Subtests
    ) -> None:
        assert handle.take is not None
        for name, numbers in WRONG_NUMBERS.items():
            with subtests.test(name), pytest.raises(IndexError, match=str(numbers[-1])):
                handle.take(np.array(numbers, np.int64))

    @gives_batches
    @pytest.mark.parametrize(
        ("images", "counts"), [(colour, (1, 7, 5_000)), (mixed, (1, 7, 5_000)), (many, (7,)), (one, (1,)), (none, (1,))]
    )
    def test_batches_are_all_images_in_their_order(
        self, images: Callable[[], Images], counts: tuple[int, ...], adapter: ImageStorage, location: Path
    ) -> None:
        self.save(adapter, images(), location)
        for count in counts:
            self.gives_all_in_batches(adapter.open(location), count, images(), adapter.least_psnr_db)

    def gives_all_in_batches(
        self, handle: ImageHandle, count: int, images: Images, least_psnr_db: float | None
    ) -> None:
        assert handle.batches is not None
        for _ in range(2):
            found = list(handle.batches(count))
            sizes = [len(batch.arrays) for batch in found]
            assert sizes[:-1] == [count] * (len(found) - 1)
            assert 0 not in sizes
            # Compare at the end, because later batches must not change earlier ones.
            all_of_them = Images([], [])
            for batch in found:
                all_of_them.arrays.extend(batch.arrays)
                all_of_them.labels.extend(batch.labels)
            same(images, all_of_them, least_psnr_db)
            assert all(array.flags.owndata and array.flags.writeable for array in all_of_them.arrays)
        handle.close()

    @gives_batches
    def test_an_iterator_of_batches_may_be_closed_early(self, handle: ImageHandle) -> None:
        assert handle.batches is not None
        begun: Any = handle.batches(4)
        first = next(begun)
        begun.close()
        assert [array.shape for array in first.arrays] == list(SHAPES[:4])

    # --- input -------------------------------------------------------------------------------------------------------

    def test_a_save_does_not_change_its_input(self, adapter: ImageStorage, location: Path) -> None:
        images = mixed()
        for array in images.arrays:
            array.flags.writeable = False
        self.save(adapter, images, location)
        same(mixed(), images, None)

    def test_arrays_that_are_not_contiguous_are_accepted(self, adapter: ImageStorage, location: Path) -> None:
        mirrored = Images([array[:, ::-1] for array in mixed().arrays], mixed().labels)
        self.save(adapter, mirrored, location)
        same(mirrored, self.read(adapter, location), adapter.least_psnr_db)

    # --- files -------------------------------------------------------------------------------------------------------

    def test_writes_only_at_its_location(
        self, adapter: ImageStorage, location: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        working, temporary = tmp_path / "working", tmp_path / "temporary"
        working.mkdir()
        temporary.mkdir()
        monkeypatch.chdir(working)
        monkeypatch.setenv("TMPDIR", str(temporary))
        self.save(adapter, mixed(), location)
        self.read(adapter, location)
        assert list(location.parent.iterdir()) == [location]
        assert list(working.iterdir()) == []
        assert list(temporary.iterdir()) == []

    def test_it_stores_regular_files_without_holes(self, adapter: ImageStorage, location: Path) -> None:
        self.save(adapter, colour(), location)
        found = [location, *location.rglob("*")]
        assert all(path.is_dir() or path.is_file() for path in found)
        assert not any(path.is_symlink() for path in found)
        files = [path.stat() for path in found if path.is_file()]
        os.sync()
        assert sum(file.st_size for file in files) > 0
        # A sparse file has far fewer allocated bytes than its size.
        assert all(file.st_blocks * 512 >= file.st_size * 0.9 - 4096 for file in files)

    def test_saves_again_at_another_place(self, adapter: ImageStorage, place: Path) -> None:
        locations = {place / f"first{adapter.suffix}": colour(), place / f"second{adapter.suffix}": mixed()}
        for location, images in locations.items():
            self.save(adapter, images, location)
        for location, images in locations.items():
            same(images, self.read(adapter, location), adapter.least_psnr_db)

    def test_leaves_no_handle_open(self, adapter: ImageStorage, location: Path, place: Path) -> None:
        self.save(adapter, mixed(), location)
        assert list(open_below(place)) == []
        self.read(adapter, location)
        assert left_open(place) == []
        adapter.stored(location)
        assert left_open(place) == []

    def test_nothing_is_pickled(self, adapter: ImageStorage, location: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: Any, **__: Any) -> None:
            raise AssertionError("pickled")

        for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
            monkeypatch.setattr(pickle, name, refuse)
        self.save(adapter, mixed(), location)
        self.read(adapter, location)
        assert Can.NO_PICKLE in adapter.capabilities

    def test_the_stored_codec_is_that_of_the_variant(self, adapter: ImageStorage, location: Path) -> None:
        self.save(adapter, colour(), location)
        stored = adapter.stored(location)
        assert stored.codec == adapter.values.get("codec", stored.codec)
        assert (stored.codec or "none") in (str(adapter.values.get("codec", "none")), "none", "auto")

    # --- missing or damaged copies -----------------------------------------------------------------------------------

    def test_a_missing_copy_is_named_in_the_error_and_not_created(self, adapter: ImageStorage, location: Path) -> None:
        with pytest.raises((AdapterError, OSError, ValueError), match=location.stem):
            adapter.read(location)
        assert not location.exists()

    @pytest.mark.slow
    def test_a_truncated_copy_raises_an_error_without_a_crash(self, adapter: ImageStorage, location: Path) -> None:
        self.save(adapter, colour(), location)
        files = [path for path in (location, *location.rglob("*")) if path.is_file() and path.name != "labels.csv"]
        largest = max(files, key=_size_bytes)
        os.truncate(largest, _size_bytes(largest) // 2)
        done = run_fresh(SHARED, TELLS_ITS_ERROR, self.variant, str(location))
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() != "", "the truncated copy was read without an error"

    # --- what it declares --------------------------------------------------------------------------------------------

    @pytest.mark.slow
    def test_save_and_read_import_nothing(self, location: Path) -> None:
        done = run_fresh(SHARED, LOADS_NOTHING, self.variant, str(location))
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == ""

    def test_variants_measured_along_with_it_can_be_built(self, adapter: ImageStorage) -> None:
        for settings in adapter.beside:
            type(adapter)(settings)

    def test_a_side_longer_than_max_side_is_refused(self, adapter: ImageStorage) -> None:
        assert adapter.refusal(1) is None
        if adapter.max_side is not None:
            assert adapter.refusal(adapter.max_side) is None
            assert f"{adapter.max_side:,}" in str(adapter.refusal(adapter.max_side + 1))


def _size_bytes(path: Path) -> int:
    return path.stat().st_size
