"""Content of the user's path: used, skipped, or refused, by names and links alone."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from data_generator.errors import DataError
from data_generator.imported.images import image_input
from data_generator.imported.images.image_input import CACHED, FILES, PARQUET, SAVED, find, find_cached


@pytest.fixture
def place(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that creates empty files with these names below a folder, and returns the folder."""

    def make(*names: str, root: Path = tmp_path / "data") -> Path:
        root.mkdir(parents=True, exist_ok=True)
        for name in names:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).touch()
        return root

    return make


def names(path: Path) -> list[str]:
    return [file.name for file in find(path).files]


def refused(path: Path, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        find(path)
    assert str(caught.value).count("\n") <= 1
    assert str(caught.value).isascii()


def test_folders_are_classes_in_the_order_of_their_names(place) -> None:
    found = find(place("bee/2.png", "bee/10.jpg", "Cat/x.webp", "ant/a.TIFF", "ant/b.jpeg"))
    assert found.kind == FILES
    assert [(file.name, file.label) for file in found.files] == [
        ("Cat/x.webp", 0),
        ("ant/a.TIFF", 1),
        ("ant/b.jpeg", 1),
        ("bee/10.jpg", 2),
        ("bee/2.png", 2),
    ]


def test_images_without_folders_are_of_one_class(place) -> None:
    assert [(file.name, file.label) for file in find(place("b.png", "a.bmp", "notes/read.me")).files] == [
        ("a.bmp", 0),
        ("b.png", 0),
    ]


def test_one_class_is_enough(place) -> None:
    assert {file.label for file in find(place("ant/1.png", "ant/2.png")).files} == {0}


def test_hidden_files_and_files_of_other_kinds_are_skipped(place) -> None:
    root = place("ant/1.png", "ant/._1.png", "ant/Thumbs.db", "ant/labels.csv", ".git/x.png", "README.md", "ant/png")
    assert names(root) == ["ant/1.png"]


def test_the_input_is_distinguished_from_others_and_from_earlier_states(place) -> None:
    root = place("ant/1.png", "ant/2.png")
    first = find(root).about()
    assert first == find(root).about()
    assert (first["path"], first["kind"], first["files"], first["size_bytes"]) == (str(root), FILES, "2", "0")
    (root / "ant/1.png").write_bytes(b"x")
    second = find(root).about()
    os.utime(root / "ant/2.png", (1, 1))
    third = find(root).about()
    (root / "ant/2.png").rename(root / "ant/3.png")
    fourth = find(root).about()
    (root / "ant").rename(root / "bee")
    prints = {about["fingerprint"] for about in (first, second, third, fourth, find(root).about())}
    assert len(prints) == 5


def test_a_link_to_the_folder_is_the_folder(place, tmp_path: Path) -> None:
    root = place("ant/1.png")
    (tmp_path / "link").symlink_to(root)
    assert find(tmp_path / "link") == find(root)


# --- refused -------------------------------------------------------------------------------------------------------


def test_a_path_that_is_missing_or_of_no_use_is_refused(tmp_path: Path) -> None:
    refused(tmp_path / "missing", r"missing: No such file or directory\.\s+Images are read from folders")
    (tmp_path / "faces.h5").touch()
    refused(tmp_path / "faces.h5", "faces.h5 is neither a folder nor a Parquet file")
    (tmp_path / "image.png").touch()
    refused(tmp_path / "image.png", "is neither a folder nor a Parquet file")
    (tmp_path / "loop").symlink_to("loop")
    refused(tmp_path / "loop", "Too many levels of symbolic links")


def test_a_folder_without_images_is_refused(place) -> None:
    refused(place(), "data has no images")
    refused(place("notes/a.txt"), "data has no images")


def test_a_class_without_images_is_refused_because_labels_would_shift(place) -> None:
    refused(place("ant/1.png", "bee/notes.txt"), "bee has no images, unlike the folders of other classes")


def test_images_next_to_class_folders_are_refused(place) -> None:
    refused(place("ant/1.png", "2.png"), r"2.png is next to the class folders \(ant, ..\)")


def test_folders_of_class_folders_are_refused_with_the_one_that_is_meant(place) -> None:
    refused(
        place("train/ant/1.png"), r"data/train .* its subfolder ant\.\s+Name the folder .* e\.g\. .*data/train instead"
    )


@pytest.mark.parametrize("name", ["photo.HEIC", "scan.jp2", "drawing.svg", "a.pgm", "a.webm", "a.ARW", "a.psb"])
def test_images_of_kinds_that_are_not_read_are_not_skipped(place, name: str) -> None:
    refused(place("ant/1.png", f"ant/{name}"), f"{name} has a suffix that is not supported for images")


def test_every_ending_of_pillow_is_read_or_refused(place) -> None:
    """Except suffixes of kinds that image_decoder reads."""
    image = pytest.importorskip("PIL.Image")
    decoder = pytest.importorskip("data_generator.imported.images.image_decoder")
    known = image.registered_extensions()
    assert set(known) <= {*image_input.IMAGE_SUFFIXES, *image_input.UNREAD_SUFFIXES}
    assert not set(image_input.IMAGE_SUFFIXES) & image_input.UNREAD_SUFFIXES
    read = {suffix for suffix, kind in known.items() if kind in (*decoder.FORMATS, "MPO")}
    assert read == set(image_input.IMAGE_SUFFIXES) & set(known)


@pytest.mark.parametrize("name", ["a.jfif", "a.JPE", "a.jif", "a.apng", "a.dib", "a.mpo"])
def test_other_endings_of_kinds_that_are_read_are_taken(place, name: str) -> None:
    assert names(place("1.png", name)) == sorted(["1.png", name])


def test_parquet_files_and_images_together_are_refused(place) -> None:
    refused(
        place("ant/1.png", "x.parquet"), r"has both Parquet files \(e.g. x.parquet\) and image files \(e.g. ant/1.png\)"
    )


def test_links_are_followed_to_files_below_the_path_only(place, tmp_path: Path) -> None:
    root = place("ant/1.png", "bee/2.png")
    (root / "bee/3.png").symlink_to("../ant/1.png")
    assert names(root) == ["ant/1.png", "bee/2.png", "bee/3.png"]
    assert find(root).files[2].path == str(root / "ant/1.png")
    (tmp_path / "secret.png").touch()
    (root / "bee/4.png").symlink_to(tmp_path / "secret.png")
    refused(root, "bee/4.png is a link to a place outside of")
    (root / "bee/4.png").unlink()
    (root / "bee/notes").symlink_to(tmp_path / "secret.png")
    assert len(names(root)) == 3
    (root / "bee/5.png").symlink_to("gone.png")
    refused(root, "bee/5.png: No such file or directory")


def test_links_to_folders_are_refused(place, tmp_path: Path) -> None:
    root = place("ant/1.png")
    (root / "bee").symlink_to("ant")
    refused(root, "bee is a link to a folder")


def test_inputs_other_than_files_are_refused(place) -> None:
    root = place("ant/1.png")
    os.mkfifo(root / "ant/2.png")
    refused(root, "ant/2.png is not a regular file, although its name suggests images")


def test_names_cannot_write_to_the_terminal(place) -> None:
    refused(place("ant/1.png", "bee\x1b[2J\n\udcff/x.txt"), r"bee\\x1b\[2J \\udcff has no images")


# --- Parquet -------------------------------------------------------------------------------------------------------


def test_parquet_files_are_taken_in_the_order_of_their_names(place) -> None:
    root = place("data/b.parquet", "data/a.parquet", "README.md", "logo.svg")
    assert find(root).kind == PARQUET
    assert names(root) == ["data/a.parquet", "data/b.parquet"]


def test_a_single_parquet_file_is_taken(place) -> None:
    found = find(place("b.Parquet", "a.parquet") / "b.Parquet")
    assert (found.kind, [file.name for file in found.files]) == (PARQUET, ["b.Parquet"])


@pytest.mark.parametrize(
    "train",
    [
        ["data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet"],
        ["plain_text/train/0000.parquet", "plain_text/train/0001.parquet"],
        ["train.parquet"],
        ["training.parquet"],
    ],
)
def test_of_several_splits_the_training_data_are_taken(place, train: list[str]) -> None:
    root = place(*train, "data/test-00000-of-00001.parquet", "plain_text/validation/0000.parquet")
    assert names(root) == train


def test_one_split_is_taken_whatever_it_is(place) -> None:
    assert names(place("test-00000-of-00001.parquet")) == ["test-00000-of-00001.parquet"]


def test_splits_that_cannot_be_distinguished_are_refused(place) -> None:
    refused(place("test.parquet", "validation.parquet"), "several splits, .* to read: test, validation")
    refused(place("train.parquet", "other.parquet"), "it is unclear which one to read: files without a split")


def test_parquet_files_in_several_folders_are_refused(place) -> None:
    refused(place("a/train.parquet", "b/train.parquet"), "in several folders: a, b")


def test_the_hubs_own_cache_is_read_through_its_links(place) -> None:
    root = place("blobs/0a1b", "snapshots/f00/README.md")
    (root / "snapshots/f00/train.parquet").symlink_to("../../blobs/0a1b")
    assert names(root) == ["snapshots/f00/train.parquet"]
    refused(root / "snapshots/f00", "is a link to a place outside of .*snapshots/f00")


# --- folders of the library 'datasets' -----------------------------------------------------------------------------

SAVED_FILES = ("data-00000-of-00001.arrow", "dataset_info.json", "state.json")


def test_a_saved_folder_is_known_by_its_files(place) -> None:
    found = find(place(*SAVED_FILES))
    assert (found.kind, [file.name for file in found.files]) == (SAVED, list(SAVED_FILES))


def test_of_saved_splits_the_training_data_are_taken(place) -> None:
    splits = [f"{split}/{name}" for split in ("test", "train") for name in SAVED_FILES]
    root = place("dataset_dict.json", *splits)
    assert (find(root).path, find(root).kind) == (root / "train", SAVED)
    assert find(root / "test").path == root / "test"


def test_saved_splits_without_training_data_are_refused(place) -> None:
    root = place("dataset_dict.json", *[f"{split}/{name}" for split in ("a", "b") for name in SAVED_FILES])
    refused(root, r"has neither a split 'train' nor exactly one split \(its splits: a, b\)\.\s+Name the .*/SPLIT")


def test_a_saved_folder_with_links_to_elsewhere_is_refused(place, tmp_path: Path) -> None:
    root = place(*SAVED_FILES[1:])
    (tmp_path / "other.arrow").touch()
    (root / "data.arrow").symlink_to(tmp_path / "other.arrow")
    refused(root, "data.arrow is a link to a place outside of")


@pytest.fixture
def cached(place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Return a function that creates files in the folder of one version of CIFAR-10 in a cache of `datasets`."""
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "hub"))

    def make(*names: str, version: str = "uoft-cs___cifar10/plain_text/0.0.0/abc") -> Path:
        return place("dataset_info.json", *names, root=tmp_path / "hub" / version)

    return make


def test_the_cache_is_found_by_the_name_on_the_hub(cached) -> None:
    folder = cached("cifar10-train.arrow", "cifar10-test.arrow", "cache-0123-train.arrow")
    found = find_cached(["cifar10", "uoft-cs___cifar10"])
    assert found is not None
    assert (found.path, found.kind, [file.name for file in found.files]) == (folder, CACHED, ["cifar10-train.arrow"])
    assert find_cached(["clane9___imagenet-100"]) is None


def test_all_parts_of_the_training_data_are_taken(cached) -> None:
    parts = [f"cifar10-train-0000{part}-of-00003.arrow" for part in range(3)]
    cached(*parts[:2])
    assert find_cached(["uoft-cs___cifar10"]) is None
    cached(*parts)
    found = find_cached(["uoft-cs___cifar10"])
    assert found is not None
    assert [file.name for file in found.files] == parts


def test_what_datasets_has_not_finished_is_not_taken(cached) -> None:
    cached("cifar10-train.arrow", version="uoft-cs___cifar10/plain_text/0.0.0/abc.incomplete")
    cached("cifar10-test.arrow")
    assert find_cached(["uoft-cs___cifar10"]) is None


def test_the_newest_of_several_is_taken(cached) -> None:
    folders = [cached("cifar10-train.arrow", version=f"{name}/plain_text/1.0.0/x") for name in ("cifar10", "other")]
    os.utime(folders[1] / "dataset_info.json", (1, 1))
    found = find_cached(["other", "cifar10"])
    assert found is not None
    assert found.path == folders[0]


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"HF_DATASETS_CACHE": "/d"}, "/d"),
        ({"HF_HOME": "/h"}, "/h/datasets"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/huggingface/datasets"),
        ({"HOME": "/home/me"}, "/home/me/.cache/huggingface/datasets"),
        ({"HOME": "/home/me", "HF_HOME": "~/h"}, "/home/me/h/datasets"),
    ],
)
def test_the_cache_is_where_datasets_has_it(
    environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HF_DATASETS_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert image_input.datasets_cache() == Path(expected)
