"""The stand-ins compress like photographs, and have the shapes and order of the originals."""

import io

import numpy as np
import pyarrow as pa
import pytest

from data_generator import images
from data_generator.catalogue import resolve
from data_generator.generated import photographs

Image = pytest.importorskip("PIL.Image")

NAMES = ("cifar-like", "imagenet-like")


def table(name: str, rows: int) -> pa.Table:
    made = pa.Table.from_batches(resolve(name, {}, rows=rows).batches())
    made.validate(full=True)
    return made


def arrays(name: str, rows: int) -> list[np.ndarray]:
    made = table(name, rows)
    shapes = zip(*(made[column].to_pylist() for column in ("height", "width", "channels")), strict=True)
    return [
        np.frombuffer(pixels, dtype=np.uint8).reshape((height, width, channels) if channels else (height, width))
        for pixels, (height, width, channels) in zip(made["pixels"].to_pylist(), shapes, strict=True)
    ]


@pytest.fixture(scope="module")
def sample() -> dict[str, list[np.ndarray]]:
    return {"cifar-like": arrays("cifar-like", 300), "imagenet-like": arrays("imagenet-like", 15)}


def saved(image: np.ndarray, kind: str, **options: int) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, kind, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("name", NAMES)
def test_png_makes_of_them_what_it_makes_of_photographs(name: str, sample: dict[str, list[np.ndarray]]) -> None:
    """The thesis: 113 of 154 MB, 0.74."""
    ratios = [len(saved(image, "PNG")) / image.size for image in sample[name]]
    assert 0.68 < sum(ratios) / len(ratios) < 0.78
    assert min(ratios) > 0.5
    assert max(ratios) < 0.9
    assert max(ratios) - min(ratios) > 0.05, "some images have more grain than others"


@pytest.mark.parametrize("name", NAMES)
def test_jpeg_changes_them_as_little_as_photographs(name: str, sample: dict[str, list[np.ndarray]]) -> None:
    for image in sample[name][:30]:
        content = saved(image, "JPEG", quality=90)
        error = np.asarray(Image.open(io.BytesIO(content)), dtype=np.float64) - image
        psnr_db = 10 * np.log10(255**2 / np.mean(error**2))
        assert 32 < psnr_db < 50
        assert len(content) < 0.5 * image.size


@pytest.mark.parametrize("name", NAMES)
def test_no_two_images_are_equal_and_none_is_flat(name: str, sample: dict[str, list[np.ndarray]]) -> None:
    assert len({image.tobytes() for image in sample[name]}) == len(sample[name])
    for image in sample[name]:
        assert image.std() > 8
        assert np.mean((image == 0) | (image == 255)) < 0.2


@pytest.mark.parametrize("name", NAMES)
def test_neighbours_are_alike_and_colours_go_together(name: str, sample: dict[str, list[np.ndarray]]) -> None:
    for image in [image for image in sample[name] if image.ndim == 3][:20]:
        values = image.astype(np.float64)
        far = np.abs(values - values[::-1, ::-1]).mean()
        assert np.abs(np.diff(values, axis=1)).mean() < far
        between = values.reshape(-1, 3)
        assert np.abs(between[:, 0] - between[:, 1]).std() < 0.9 * max(between[:, 0].std(), between[:, 1].std()) + 12


def test_cifar_like_has_the_shapes_of_cifar_10() -> None:
    dataset = resolve("cifar-like", {})
    assert (dataset.rows, dataset.largest_side, images.is_images(dataset.schema)) == (50_000, 32, True)
    made = table("cifar-like", 600)
    for column, value in (("height", 32), ("width", 32), ("channels", 3)):
        assert set(made[column].to_pylist()) == {value}


def test_cifar_like_has_ten_classes_in_no_order() -> None:
    labels = table("cifar-like", 3000)["label"].to_numpy()
    counts = np.bincount(labels)
    assert len(counts) == 10
    assert counts.min() > 230
    assert counts.max() < 370
    assert abs(np.mean(np.diff(labels) == 0) - 0.1) < 0.03


def test_imagenet_like_is_sorted_by_a_hundred_classes() -> None:
    labels = table("imagenet-like", 200)["label"].to_pylist()
    assert labels == [number for number in range(100) for _ in range(2)]


def test_imagenet_like_has_many_shapes_and_a_shorter_side_of_160() -> None:
    dataset = resolve("imagenet-like", {})
    shapes = photographs._imagenet_shapes("imagenet-like", dataset.rows)
    longer = np.maximum(shapes.height, shapes.width)
    assert dataset.rows == 2_000
    assert set(np.minimum(shapes.height, shapes.width).tolist()) == {160}
    assert longer.min() < 165
    assert 300 < longer.max() <= 320
    assert dataset.largest_side == longer.max()
    assert len(set(longer.tolist())) > 100
    assert 0.15 < np.mean(shapes.height > shapes.width) < 0.35
    assert 0.01 < np.mean(shapes.channels == 0) < 0.03
    assert set(shapes.channels.tolist()) == {0, 3}
    # Table 6.11: 12,500 MB in Parquet, of 126,689 images.
    assert 90_000 < shapes.size_bytes.mean() < 108_000


def test_declared_shapes_are_the_shapes_made() -> None:
    shapes = photographs._imagenet_shapes("imagenet-like", 60)
    made = table("imagenet-like", 60)
    for column in ("height", "width", "channels"):
        assert made[column].to_pylist() == getattr(shapes, column).tolist()
    assert resolve("imagenet-like", {}, rows=60).largest_side == max(shapes.height.max(), shapes.width.max())
    assert all(images.is_sound(batch) for batch in made.to_batches())


def test_the_first_images_of_a_long_data_set_are_a_short_one() -> None:
    whole = ["pixels", "height", "width", "channels"]
    for name, columns, rows in (("cifar-like", [*whole, "label"], (300, 700)), ("imagenet-like", whole, (7, 12))):
        short, long = (table(name, count).select(columns) for count in rows)
        assert short.equals(long.slice(0, rows[0]))


@pytest.mark.parametrize(("name", "rows"), [("cifar-like", 1_300), ("imagenet-like", 12)])
def test_batches_hold_about_so_many_bytes_and_change_nothing(
    name: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = table(name, rows).combine_chunks()
    monkeypatch.setattr(images, "BATCH_BYTES", 400_000)
    # Two of the blocks in which they are drawn.
    monkeypatch.setattr(photographs, "_CIFAR_BATCH", 512)
    batches = list(resolve(name, {}, rows=rows).batches())
    assert len(batches) > 2
    sizes = [sum(map(len, batch["pixels"].to_pylist())) for batch in batches]
    assert max(sizes) < 1_600_000
    assert pa.Table.from_batches(batches).combine_chunks().equals(whole)


def test_a_batch_of_cifar_like_is_64_mb() -> None:
    assert 0.95 < photographs._CIFAR_BATCH * 3072 / images.BATCH_BYTES <= 1
