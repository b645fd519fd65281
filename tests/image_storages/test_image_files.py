"""Folders of image files keep the contract: exact ones, and lossy ones within their declared bound."""

from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from adapters.contract import ImageStorage
from adapters.errors import AdapterError
from image_storages.registry import STORAGES
from tests.contracts.images import ImageStorageContract, colour, grey, mixed, photograph, psnr_db, same, with_labels


class TestPng(ImageStorageContract):
    variant = "png[engine=pillow]"


@pytest.mark.slow
class TestJpeg(ImageStorageContract):
    variant = "jpeg[engine=pillow]"


@pytest.mark.slow
class TestJpegOfHighQuality(ImageStorageContract):
    variant = "jpeg[engine=pillow,quality=95]"


@pytest.mark.slow
class TestWebp(ImageStorageContract):
    variant = "webp[engine=pillow]"


@pytest.mark.slow
class TestWebpLossless(ImageStorageContract):
    variant = "webp[engine=pillow,lossless=true]"


def build(spelled: str) -> ImageStorage:
    adapter = STORAGES.build(spelled)
    adapter.load_library()
    return adapter


ALL = ["png", "jpeg", "webp", "webp[lossless=true]"]


@pytest.mark.parametrize("spelled", ALL)
def test_the_list_names_every_file(spelled: str, tmp_path: Path) -> None:
    build(spelled).save(mixed(), tmp_path / "t")
    lines = [line.split(",") for line in (tmp_path / "t" / "labels.csv").read_text().splitlines()]
    assert lines[0] == ["file", "label", "mode"]
    assert [int(label) for _, label, _ in lines[1:]] == mixed().labels
    assert [mode for _, _, mode in lines[1:4]] == ["RGB", "L", "RGB"]
    assert {path.name for path in (tmp_path / "t").iterdir()} == {name for name, _, _ in lines[1:]} | {"labels.csv"}


@pytest.mark.parametrize(("spelled", "kind"), [("png", "PNG"), ("jpeg", "JPEG"), ("webp", "WEBP")])
def test_a_file_is_an_image_for_everybody(spelled: str, kind: str, tmp_path: Path) -> None:
    build(spelled).save(colour(), tmp_path / "t")
    (first, *_) = sorted(path for path in (tmp_path / "t").iterdir() if path.name != "labels.csv")
    with PIL.Image.open(first) as image:
        assert (image.format, image.size, image.mode) == (kind, (32, 32), "RGB")


@pytest.mark.parametrize(
    ("spelled", "encoding"), [("png", "Deflate"), ("jpeg", "JPEG"), ("webp", "VP8"), ("webp[lossless=true]", "VP8L")]
)
def test_the_encoding_is_read_back_from_the_files(spelled: str, encoding: str, tmp_path: Path) -> None:
    adapter = build(spelled)
    adapter.save(grey(), tmp_path / "t")
    assert adapter.stored(tmp_path / "t").encodings == (encoding,)


def test_a_lossy_file_is_not_lossless(tmp_path: Path) -> None:
    build("webp").save(colour(), tmp_path / "t")
    with pytest.raises(AdapterError, match="not WEBP with the chunk"):
        build("webp[lossless=true]").stored(tmp_path / "t")


@pytest.mark.parametrize("spelled", ["jpeg", "webp"])
def test_quality_reaches_the_writer_and_moves_the_bound(spelled: str, tmp_path: Path) -> None:
    images = with_labels([photograph((64, 64, 3), seed) for seed in range(10)])
    sizes, bounds, reached = [], [], []
    for quality in (50, 75, 95):
        adapter = build(f"{spelled}[quality={quality}]")
        adapter.save(images, tmp_path / str(quality))
        sizes.append(sum(path.stat().st_size for path in (tmp_path / str(quality)).iterdir()))
        bounds.append(adapter.least_psnr_db)
        reached.append(psnr_db(images.arrays, adapter.read(tmp_path / str(quality)).arrays))
    assert sizes == sorted(sizes)
    assert len(set(sizes)) == 3
    assert bounds == sorted(bounds)
    assert all(least is not None and least < found for least, found in zip(bounds, reached, strict=True))


@pytest.mark.parametrize("spelled", ["jpeg", "webp"])
def test_an_image_in_the_place_of_another_is_outside_the_bound(spelled: str, tmp_path: Path) -> None:
    adapter = build(spelled)
    images = with_labels([np.full((16, 16, 3), value, np.uint8) for value in (40, 200)])
    adapter.save(images, tmp_path / "t")
    first, second = sorted(path for path in (tmp_path / "t").iterdir() if path.name != "labels.csv")
    first.rename(tmp_path / "kept")
    second.rename(first)
    (tmp_path / "kept").rename(second)
    with pytest.raises(AssertionError):
        same(images, adapter.read(tmp_path / "t"), adapter.least_psnr_db)


def test_the_level_of_png_reaches_the_writer(tmp_path: Path) -> None:
    sizes = []
    for level in (0, 1, 9):
        build(f"png[compress_level={level}]").save(colour(), tmp_path / str(level))
        sizes.append(sum(path.stat().st_size for path in (tmp_path / str(level)).iterdir()))
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 3


@pytest.mark.parametrize("spelled", ALL)
def test_a_broken_file_is_named(spelled: str, tmp_path: Path) -> None:
    adapter = build(spelled)
    adapter.save(colour(), tmp_path / "t")
    broken = sorted(path for path in (tmp_path / "t").iterdir() if path.name != "labels.csv")[7]
    broken.write_bytes(broken.read_bytes()[:60])
    with pytest.raises(AdapterError, match=rf"{broken.name} cannot be read as"):
        adapter.read(tmp_path / "t")


def test_a_file_of_another_format_is_not_taken_for_this_one(tmp_path: Path) -> None:
    adapter = build("png")
    adapter.save(colour(), tmp_path / "t")
    PIL.Image.fromarray(colour().arrays[0]).save(tmp_path / "t" / "00000000.png", "BMP")
    with pytest.raises(AdapterError, match=r"00000000\.png"):
        adapter.read(tmp_path / "t")
    with pytest.raises(AdapterError, match="is not PNG: it begins with"):
        adapter.stored(tmp_path / "t")


@pytest.mark.parametrize("line", ["00000000.png,five,RGB", "00000000.png,5", ""])
def test_a_damaged_list_is_named_with_its_line(line: str, tmp_path: Path) -> None:
    adapter = build("png")
    adapter.save(colour(), tmp_path / "t")
    (tmp_path / "t" / "labels.csv").write_text(f"file,label,mode\n{line}\n")
    with pytest.raises(AdapterError, match=r"labels\.csv, line 2"):
        adapter.read(tmp_path / "t")


def test_images_beyond_the_limit_of_pillow_are_read_and_the_limit_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = build("png")
    adapter.save(colour(), tmp_path / "t")
    monkeypatch.setattr(PIL.Image, "MAX_IMAGE_PIXELS", 10)
    same(colour(), adapter.read(tmp_path / "t"), None)
    assert PIL.Image.MAX_IMAGE_PIXELS == 10
    (tmp_path / "t" / "00000039.png").write_bytes(b"broken")
    with pytest.raises(AdapterError, match="cannot be read as PNG"):
        adapter.read(tmp_path / "t")
    assert PIL.Image.MAX_IMAGE_PIXELS == 10
