"""The user's and the hub's images: read once, unchanged, or refused with file and reason; never replaced by others."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data_generator import cache, images
from data_generator.catalogue import resolve
from data_generator.dataset import Dataset
from data_generator.errors import DataError
from data_generator.imported.images import image_worker
from tests.data_generator.imported.images.pictures import (
    class_folders,
    colours,
    encoded,
    greys,
    png,
    with_flipped_pixel,
)
from tests.data_generator.imported.refused import refused, table

pytestmark = pytest.mark.slow

pytest.importorskip("PIL.Image")


@pytest.fixture(autouse=True)
def _no_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "hub"))


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    class_folders(tmp_path / "data")
    return tmp_path / "data"


def arrays(made: pa.Table) -> list[np.ndarray]:
    shapes = zip(*(made[column].to_pylist() for column in ("height", "width", "channels")), strict=True)
    return [
        np.frombuffer(pixels, dtype=np.uint8).reshape((height, width, channels) if channels else (height, width))
        for pixels, (height, width, channels) in zip(made["pixels"].to_pylist(), shapes, strict=True)
    ]


def assert_images(dataset: Dataset, expected: list[np.ndarray], labels: list[int]) -> None:
    made = table(dataset)
    assert (dataset.rows, made.num_rows) == (len(expected), len(expected))
    assert images.is_images(dataset.schema)
    assert made["label"].to_pylist() == labels
    got = arrays(made)
    assert all(np.array_equal(one, other) for one, other in zip(got, expected, strict=True))
    assert dataset.largest_side == max(max(image.shape[:2]) for image in expected)


# --- folders of image files by class -------------------------------------------------------------------------------


@pytest.mark.usefixtures("own_process")
def test_folders_are_read_as_they_are(folders: Path, tmp_path: Path) -> None:
    expected = class_folders(tmp_path / "again")
    dataset = resolve("images", {}, source=folders)
    assert_images(dataset, list(expected.values()), [0, 0, 0, 1, 1, 1, 2, 2, 2])
    assert (dataset.source["path"], dataset.source["files"]) == (str(folders), "9")


def test_rows_takes_the_first(folders: Path) -> None:
    first = resolve("images", {}, rows=4, source=folders)
    assert (first.rows, first.source["first"]) == (4, "4")
    assert table(first).equals(table(resolve("images", {}, source=folders)).slice(0, 4).combine_chunks())
    assert resolve("images", {}, rows=100, source=folders).rows == 9


def test_views_that_are_left_out_are_reported_each_time(folders: Path) -> None:
    from PIL import Image

    assert resolve("images", {}, source=folders).remarks == ()
    views = [Image.fromarray(colours(8, 8, seed)) for seed in range(3)]
    for name in ("a", "b"):
        (folders / f"ant/{name}.jpg").write_bytes(encoded(views[0], "MPO", save_all=True, append_images=views[1:]))
    for _ in range(2):
        (remark,) = resolve("images", {}, source=folders).remarks
        assert remark.startswith(f"only the first view of 2 images is used, e.g. of {folders}/ant/a.jpg: ")
        assert remark.count("\n") == 1


def test_progress_is_reported_in_images(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "BATCH_BYTES", 300)
    heard: list[int] = []
    resolve("images", {}, source=folders, on_rows=heard.append)
    assert heard == sorted(heard)
    assert len(heard) > 2
    assert heard[-1] == 9


def test_an_input_that_has_not_changed_is_not_read_again(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = resolve("images", {}, source=folders)
    expected = table(first)

    def started(*_: object) -> None:
        raise AssertionError("the input is read again")

    monkeypatch.setattr(image_worker, "started", started)
    again = resolve("images", {}, source=folders)
    assert (again.rows, again.largest_side, again.source) == (first.rows, first.largest_side, first.source)
    assert table(again).equals(expected)


def test_an_input_that_has_changed_is_read_again(folders: Path) -> None:
    first = cache.prepare(resolve("images", {}, source=folders), cache.default_folder())
    (folders / "cat/9.png").write_bytes(encoded(colours(99, 1)))
    dataset = resolve("images", {}, source=folders)
    second = cache.prepare(dataset, cache.default_folder())
    assert (second.rows, dataset.largest_side) == (10, 99)
    assert first.digest != second.digest


def test_a_damaged_cache_is_made_again(folders: Path) -> None:
    first = resolve("images", {}, source=folders)
    expected = table(first)
    for suffix, left in (
        (".arrow", b"ARROW1"),
        (".facts", b""),
        (".facts", b"[1, 2"),
        (".facts", b"[9, 28]"),
        (".facts", b'{"rows": 9}'),
        (".facts", b'{"rows": "9", "largest_side": 28}'),
    ):
        (kept,) = cache.default_folder().glob(f"*{suffix}")
        kept.write_bytes(left)
        again = resolve("images", {}, source=folders)
        assert (again.rows, again.largest_side) == (first.rows, first.largest_side), left
        assert table(again).equals(expected), left


def test_an_input_that_changes_while_it_is_read_is_refused(folders: Path) -> None:
    def change(rows: int) -> None:
        (folders / "ant/7.png").write_bytes(encoded(colours(3, 3)))

    refused("images", folders, "changed while it was read", on_rows=change)


def test_one_class_of_images_is_enough(tmp_path: Path) -> None:
    (tmp_path / "data/ant").mkdir(parents=True)
    (tmp_path / "data/ant/1.png").write_bytes(encoded(colours(4, 4)))
    assert_images(resolve("images", {}, source=tmp_path / "data"), [colours(4, 4)], [0])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (with_flipped_pixel(encoded(colours(20, 20))), "cannot be decoded"),
        (encoded(colours(20, 20))[:300], "cannot be decoded"),
        (b"", "is empty"),
        (b"no image", "is not an image of a supported kind"),
        (png(0, 0, 8, 2, b""), r"has no pixels \(0 x 0\)"),
        (png(2, 2, 16, 2, bytes(12)), "has 16 bits per channel"),
        (png(20_000, 20_000, 8, 0, b""), "has too many pixels"),
        (png(10_000, 10_000, 8, 0, b""), "has too many pixels"),
    ],
    ids=["damaged", "cut", "empty", "text", "0 x 0", "16-bit", "bomb", "small bomb"],
)
def test_a_bad_image_among_good_ones_is_named(content: bytes, reason: str, folders: Path) -> None:
    (folders / "bee/1.png").write_bytes(content)
    refused("images", folders, rf"data/bee/1.png: {reason}")


def test_an_image_that_cannot_be_opened_is_named(folders: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (folders / "bee/1.png").chmod(0)
    refused("images", folders, "bee/1.png: cannot be opened: Permission denied")


def test_the_users_own_images_need_a_path() -> None:
    said = refused("images", None, r"images needs data\.\s+Images are read from folders of image files by class")
    assert "Parquet files" in said


def test_a_folder_without_images_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    refused("images", tmp_path / "data", "data has no images")


# --- Parquet -------------------------------------------------------------------------------------------------------


def _labels(given: list | pa.Array) -> pa.Array:
    return given if isinstance(given, pa.Array) else pa.array(given)


HUB = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def write_parquet(path: Path, contents: list, labels: list, image: str = "img", label: str = "label") -> Path:
    """Write images as the hub does: a struct of bytes and path, and integers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    held = [content if isinstance(content, dict | None) else {"bytes": content, "path": None} for content in contents]
    made = pa.table({"id": pa.array(range(len(held))), image: pa.array(held, HUB), label: _labels(labels)})
    pq.write_table(made, path, row_group_size=3)
    return path


def test_parquet_as_the_hub_has_it_is_read(tmp_path: Path) -> None:
    expected = [colours(32, 32, seed) for seed in range(7)]
    contents = [encoded(image) for image in expected]
    for part, here in enumerate((slice(0, 4), slice(4, 7))):
        name = f"plain_text/train-0000{part}-of-00002.parquet"
        write_parquet(tmp_path / "data" / name, contents[here], list(range(7))[here])
    write_parquet(tmp_path / "data/plain_text/test-00000-of-00001.parquet", contents[:1], [9])
    assert_images(resolve("cifar10", {}, source=tmp_path / "data"), expected, [0, 1, 2, 3, 4, 5, 6])
    assert resolve("images", {}, rows=5, source=tmp_path / "data").rows == 5


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
@pytest.mark.parametrize("integers", [pa.uint8(), pa.int64()], ids=str)
def test_plain_columns_of_bytes_are_read(kind: pa.DataType, integers: pa.DataType, tmp_path: Path) -> None:
    path = tmp_path / "own.parquet"
    contents = pa.array([encoded(greys(3, 4)), encoded(colours(5, 6))], kind)
    pq.write_table(pa.table({"jpg": contents, "target": pa.array([3, 1], integers)}), path)
    assert_images(resolve("images", {}, source=path), [greys(3, 4), colours(5, 6)], [3, 1])


def test_of_two_labels_the_finer_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "cifar100.parquet"
    contents = pa.array([{"bytes": encoded(colours(2, 2)), "path": "1.png"}], HUB)
    pq.write_table(pa.table({"img": contents, "coarse_label": [1], "fine_label": [42]}), path)
    assert_images(resolve("images", {}, source=path), [colours(2, 2)], [42])


GOOD = encoded(colours(2, 2))


@pytest.mark.parametrize(
    ("contents", "labels", "message"),
    [
        ([GOOD, b"broken"], [0, 0], "x.parquet, row 1: is not an image"),
        ([GOOD] * 70 + [None], [0] * 71, "x.parquet, row 70: has no image"),
        ([{"bytes": None, "path": "a/1.png"}], [0], r"row 0: has no image, only a path \(a/1.png\)"),
        ([GOOD, GOOD], [0, None], "row 1: has no label"),
        ([], pa.array([], pa.int64()), r"x.parquet: has no images \(0 rows\)"),
        (
            [GOOD],
            ["ant"],
            r"x.parquet: has no column of integer labels; its columns: id \(int64\), img \(struct.*label \(string",
        ),
    ],
    ids=["broken", "null", "path", "label", "empty", "text"],
)
def test_rows_that_cannot_serve_are_named(contents: list, labels: list, message: str, tmp_path: Path) -> None:
    refused("images", write_parquet(tmp_path / "x.parquet", contents, labels), message)


@pytest.mark.usefixtures("own_process")
def test_a_table_without_images_is_refused_with_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": [1], "label": [2], "picture": ["x.png"]}), path)
    message = r"x.parquet: has no column of images; its columns: a \(int64\), label \(int64\), picture \(string\)"
    refused("images", path, message)


def test_several_columns_of_images_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"left": [GOOD], "right": [GOOD], "label": [2]}), path)
    refused("images", path, "several columns that may hold images: left, right")


def test_damaged_parquet_is_refused(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "x.parquet", [GOOD] * 9, [0] * 9)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    refused("images", path, "x.parquet: cannot be read: ")
    path.write_bytes(b"PAR1")
    refused("images", path, "x.parquet: cannot be read: ")


# --- the library 'datasets' ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def library() -> Iterator[object]:
    """`datasets`, offline; only for tests: the product never imports it into the run."""
    before = {name: os.environ.get(name) for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")}
    os.environ |= dict.fromkeys(before, "1")
    yield pytest.importorskip("datasets")
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


def made_by(library, expected: list[np.ndarray], labels: list[int]):
    features = library.Features(
        {"img": library.Image(), "label": library.ClassLabel(num_classes=10), "note": library.Value("string")}
    )
    rows = {"img": expected, "label": labels, "note": ["x"] * len(labels)}
    return library.Dataset.from_dict(rows, features=features)


CIFAR = [colours(32, 32, seed) for seed in range(5)]


def test_a_saved_folder_is_read(library, tmp_path: Path) -> None:
    dataset = made_by(library, CIFAR, [3, 1, 4, 1, 5])
    dataset.save_to_disk(tmp_path / "one", num_shards=2)
    assert_images(resolve("cifar10", {}, source=tmp_path / "one"), CIFAR, [3, 1, 4, 1, 5])
    both = library.DatasetDict({"test": dataset.select([0]), "train": dataset.select([4, 2])})
    both.save_to_disk(tmp_path / "both")
    assert_images(resolve("images", {}, source=tmp_path / "both"), [CIFAR[4], CIFAR[2]], [5, 4])
    assert_images(resolve("images", {}, rows=1, source=tmp_path / "both" / "train"), [CIFAR[4]], [5])


def test_a_saved_folder_that_names_files_elsewhere_is_refused(library, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    made_by(library, CIFAR, [0] * 5).save_to_disk(saved)
    state = json.loads((saved / "state.json").read_text())
    state["_data_files"] = [{"filename": "../other.arrow"}]
    (saved / "state.json").write_text(json.dumps(state))
    refused("images", saved, r"state.json: lists files that are missing from its folder: ../other.arrow")
    (saved / "state.json").write_text("[" * 100_000)
    refused("images", saved, "state.json: cannot be read: ")


@pytest.mark.usefixtures("own_process")
def test_the_librarys_own_cache_is_read(library, tmp_path: Path) -> None:
    """The cache is made by the library from Parquet, and moved to where it puts data from the hub."""
    source = write_parquet(tmp_path / "source.parquet", [encoded(image) for image in CIFAR], [3, 1, 4, 1, 5])
    made = tmp_path / "made"
    library.load_dataset("parquet", data_files={"train": str(source)}, cache_dir=str(made))
    (version,) = made.glob("parquet/*/*/*/dataset_info.json")
    place = tmp_path / "hub/uoft-cs___cifar10/plain_text/0.0.0/abc"
    place.parent.mkdir(parents=True)
    version.parent.rename(place)
    dataset = resolve("cifar10", {})
    assert_images(dataset, CIFAR, [3, 1, 4, 1, 5])
    assert dataset.source["path"] == str(place)

    info = json.loads((place / "dataset_info.json").read_text())
    info["splits"]["train"]["num_examples"] = 50_000
    (place / "dataset_info.json").write_text(json.dumps(info))
    (place / "parquet-train.arrow").touch()
    with pytest.raises(DataError, match=r"abc: has 5 images, but dataset_info\.json states 50,000\."):
        resolve("cifar10", {})


@pytest.mark.parametrize(
    ("name", "title", "stand_in"),
    [("cifar10", "CIFAR-10", "cifar-like"), ("imagenet100", "ImageNet-100", "imagenet-like")],
)
def test_without_cache_and_path_the_stand_in_is_named_and_not_taken(
    name: str, title: str, stand_in: str, tmp_path: Path
) -> None:
    said = refused(
        name,
        None,
        rf"{name}: {title} is not in the cache of the library 'datasets' \({tmp_path}/hub\), and data is not given",
    )
    assert f"\n  Use the generated data set '{stand_in}', or set data to a Parquet file" in said


def test_that_answer_needs_no_library_and_no_process() -> None:
    """This makes it fast: importing `datasets` takes over two seconds."""
    code = """
import subprocess, sys
from data_generator.catalogue import resolve
from data_generator.errors import DataError
def no_process(*args, **options):
    raise AssertionError("a process is started")
subprocess.Popen = no_process
try:
    resolve("cifar10", {})
except DataError as error:
    print(error)
print(sorted({"datasets", "huggingface_hub", "PIL", "pandas"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second, imported = done.stdout.splitlines()
    assert first.startswith("cifar10: ")
    assert "cifar-like" in second
    assert imported == "[]"


@pytest.mark.parametrize(
    ("name", "image", "label", "message"),
    [
        ("cifar10", colours(32, 31), 0, r"image 1 has the shape \[32, 31, 3\], but CIFAR-10 has only .* \[32, 32, 3\]"),
        ("cifar10", greys(32, 32), 0, r"image 1 has the shape \[32, 32, 0\]"),
        ("cifar10", colours(32, 32), 10, "image 1 has the label 10, but CIFAR-10 has only labels from 0 to 9"),
        ("imagenet100", colours(160, 200), -1, "image 1 has the label -1, but ImageNet-100 has only labels from 0 to"),
    ],
)
def test_other_data_under_a_known_name_are_refused(
    name: str, image: np.ndarray, label: int, message: str, tmp_path: Path
) -> None:
    path = write_parquet(tmp_path / "x.parquet", [encoded(colours(32, 32)), encoded(image)], [0, label])
    refused(name, path, rf"{name}: {message}.*\s+Use the data set 'images' for images that are not from")


def test_imagenet_100_is_read(tmp_path: Path) -> None:
    expected = [colours(160, 213, 1), greys(200, 160, 2), colours(160, 160, 3)]
    path = tmp_path / "data/train-00000-of-00001.parquet"
    write_parquet(path, [encoded(image) for image in expected], [0, 0, 99], image="image")
    assert_images(resolve("imagenet100", {}, source=tmp_path / "data"), expected, [0, 0, 99])
