"""From image files to pixels: what is kept, what is rotated, and what is refused because it would change."""

import io

import numpy as np
import pytest

from data_generator.imported.refusal import Refused
from tests.data_generator.imported.images.pictures import chunk, colours, encoded, greys, png, tiff, with_flipped_pixel

Image = pytest.importorskip("PIL.Image")
image_decoder = pytest.importorskip("data_generator.imported.images.image_decoder")


def pixels(content: bytes) -> np.ndarray:
    picture = image_decoder.decode(content)
    shape = (picture.height, picture.width, picture.channels) if picture.channels else (picture.height, picture.width)
    return np.frombuffer(picture.pixels, dtype=np.uint8).reshape(shape)


def refused(content: bytes, message: str) -> None:
    with pytest.raises(Refused, match=message) as caught:
        image_decoder.decode(content)
    assert caught.value.step


@pytest.mark.parametrize(
    "image", [colours(5, 9), greys(5, 9), colours(1, 1), greys(300, 2)], ids=["rgb", "grey", "dot", "bar"]
)
@pytest.mark.parametrize(
    ("kind", "options"), [("PNG", {}), ("BMP", {}), ("DIB", {}), ("TIFF", {}), ("TIFF", {"compression": "tiff_lzw"})]
)
def test_lossless_files_come_back_exactly(kind: str, options: dict[str, str], image: np.ndarray) -> None:
    assert np.array_equal(pixels(encoded(image, kind, **options)), image)


def test_lossless_webp_comes_back_exactly() -> None:
    assert np.array_equal(pixels(encoded(colours(5, 9), "WEBP", lossless=True)), colours(5, 9))


@pytest.mark.parametrize("image", [colours(16, 9), greys(16, 9)], ids=["rgb", "grey"])
def test_jpeg_comes_back_as_pillow_decodes_it(image: np.ndarray) -> None:
    content = encoded(image, "JPEG")
    assert np.array_equal(pixels(content), np.asarray(Image.open(io.BytesIO(content))))


def test_a_palette_becomes_rgb_without_loss() -> None:
    image = Image.fromarray(colours(8, 8)).quantize(16)
    for kind in ("PNG", "GIF", "BMP", "TIFF"):
        assert np.array_equal(pixels(encoded(image, kind)), np.asarray(image.convert("RGB"))), kind


def test_black_and_white_becomes_grey_without_loss() -> None:
    bits = greys(9, 11) > 127
    for kind in ("PNG", "TIFF", "BMP"):
        assert np.array_equal(pixels(encoded(Image.fromarray(bits), kind)), bits * np.uint8(255)), kind


def test_fewer_bits_of_grey_are_spread_over_eight() -> None:
    assert pixels(png(4, 1, 2, 0, bytes([0b00011011]))).tolist() == [[0, 85, 170, 255]]


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF"])
def test_an_alpha_channel_that_hides_nothing_is_left_out(kind: str) -> None:
    image = Image.fromarray(colours(6, 4)).convert("RGBA")
    options = {"lossless": True} if kind == "WEBP" else {}
    assert np.array_equal(pixels(encoded(image, kind, **options)), colours(6, 4))


def test_grey_with_an_alpha_channel_that_hides_nothing_is_grey() -> None:
    image = Image.merge("LA", [Image.fromarray(greys(6, 4)), Image.new("L", (4, 6), 255)])
    assert np.array_equal(pixels(encoded(image)), greys(6, 4))


def test_transparent_pixels_are_refused() -> None:
    hidden = Image.fromarray(colours(6, 4)).convert("RGBA")
    hidden.putpixel((1, 2), (1, 2, 3, 254))
    refused(encoded(hidden), "has transparent pixels")
    palette = Image.fromarray(colours(8, 8)).quantize(16)
    used = palette.getpixel((0, 0))
    refused(encoded(palette, transparency=used), "has transparent pixels")
    keyed = Image.fromarray(np.full((2, 2, 3), 9, dtype=np.uint8))
    refused(encoded(keyed, transparency=(9, 9, 9)), "has transparent pixels")
    faint = Image.merge("LA", [Image.fromarray(greys(6, 4)), Image.new("L", (4, 6), 9)])
    refused(encoded(faint), "has transparent pixels")


def test_a_transparent_colour_that_no_pixel_has_hides_nothing() -> None:
    keyed = np.full((2, 2, 3), 9, dtype=np.uint8)
    assert np.array_equal(pixels(encoded(Image.fromarray(keyed), transparency=(9, 9, 8))), keyed)


@pytest.mark.parametrize(
    "content",
    [
        png(2, 2, 16, 0, bytes(4)),
        png(2, 2, 16, 2, bytes(12)),
        png(2, 2, 16, 4, bytes(8)),
        png(2, 2, 16, 6, bytes(16)),
        encoded(Image.new("I;16", (3, 3)), "TIFF"),
    ],
    ids=["grey", "rgb", "grey-alpha", "rgba", "tiff"],
)
def test_sixteen_bits_are_refused(content: bytes) -> None:
    refused(content, r"has 16 bits per channel \(supported: 8\), and a conversion would change the data")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (tiff(b"\x81", bits=[8], colour=[1], format=[2]), "has signed pixels"),
        (
            tiff(b"\1\2\3\4", bits=[8] * 4, colour=[2], samples=[4], extra=[0]),
            "has 4 channels per pixel, of which only 3",
        ),
        (tiff(b"\1\4", bits=[8] * 2, colour=[1], samples=[2], extra=[0]), "has 2 channels per pixel, of which only 1"),
        (
            tiff(b"\1\2\3\xff\5", bits=[8] * 5, colour=[2], samples=[5], extra=[2, 0]),
            "has 5 channels per pixel, of which only 4",
        ),
        (tiff(b"\1", bits=[8], colour=[3], palette=[0x1234] * 768), "has a palette of 16 bits per channel"),
    ],
    ids=["signed", "rgb and more", "grey and more", "rgba and more", "palette"],
)
def test_what_pillow_leaves_out_of_a_tiff_is_refused(content: bytes, message: str) -> None:
    refused(content, message)


@pytest.mark.parametrize("times", [256, 257])
def test_a_palette_of_a_tiff_is_that_of_eight_bits(times: int) -> None:
    content = tiff(b"\1", bits=[8], colour=[3], palette=[times * value for value in range(256)] * 3)
    assert pixels(content).tolist() == [[[1, 1, 1]]]


def test_white_as_zero_is_turned_round() -> None:
    assert pixels(tiff(b"\1", bits=[8], colour=[0])).tolist() == [[254]]


def test_floats_are_refused() -> None:
    refused(encoded(Image.new("F", (3, 3)), "TIFF"), "has 32 bits per channel")


@pytest.mark.parametrize(
    ("mode", "kind"), [("CMYK", "JPEG"), ("CMYK", "TIFF"), ("LAB", "TIFF")], ids=["jpeg", "tiff", "lab"]
)
def test_other_colours_than_rgb_are_refused(mode: str, kind: str) -> None:
    refused(
        encoded(Image.new(mode, (3, 3)), kind),
        rf"is {mode} \(supported: RGB and grey\), and a conversion would change the data",
    )


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "TIFF"])
def test_several_images_in_a_file_are_refused(kind: str) -> None:
    frames = [Image.fromarray(colours(4, 4, seed)) for seed in range(3)]
    refused(encoded(frames[0], kind, save_all=True, append_images=frames[1:]), "has several images")


def test_a_photograph_with_other_views_behind_it_is_its_first_image() -> None:
    first, second = (Image.fromarray(greys(16, 16, seed)) for seed in range(2))
    content = encoded(first, "MPO", save_all=True, append_images=[second])
    assert np.array_equal(pixels(content), np.asarray(Image.open(io.BytesIO(encoded(first, "JPEG")))))
    assert image_decoder.decode(content).frames_left_out == 1
    assert image_decoder.decode(encoded(first, "JPEG")).frames_left_out == 0


TURNS = {
    1: lambda plain: plain,
    2: np.fliplr,
    3: lambda plain: np.rot90(plain, 2),
    4: np.flipud,
    5: np.transpose,
    6: lambda plain: np.rot90(plain, -1),
    7: lambda plain: np.rot90(plain, 2).T,
    8: np.rot90,
}
"""Orientation (EXIF 2.3, tag 274) -> its effect on a grey image."""


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize("orientation", TURNS)
def test_an_image_is_turned_as_its_exif_says(kind: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    content = encoded(greys(5, 9), kind, exif=exif)
    plain = np.asarray(Image.open(io.BytesIO(content)))
    assert np.array_equal(pixels(content), TURNS[orientation](plain))


@pytest.mark.parametrize(("kind", "options"), [("TIFF", {}), ("WEBP", {"lossless": True})])
def test_an_image_is_turned_once(kind: str, options: dict[str, bool]) -> None:
    """Pillow itself rotates TIFF when it loads it."""
    exif = Image.Exif()
    exif[0x0112] = 6
    image = colours(5, 9)
    assert np.array_equal(pixels(encoded(image, kind, exif=exif, **options)), np.rot90(image, -1))


def test_damage_is_refused() -> None:
    whole = encoded(colours(20, 20))
    refused(whole[: len(whole) // 2], "cannot be decoded: ")
    refused(with_flipped_pixel(whole), "cannot be decoded: ")
    refused(whole[:-12], "cannot be decoded: ")
    refused(encoded(colours(20, 20), "JPEG")[:-200], "cannot be decoded: ")
    refused(whole[:20], "cannot be decoded: ")


def test_files_other_than_images_are_refused() -> None:
    refused(b"", r"is empty \(0 bytes\)")
    refused(b"hello, world" * 10, r"is not an image of a supported kind \(BMP, DIB, GIF, JPEG, PNG, TIFF, WEBP\)")
    refused(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n", "is not an image of a supported kind")


@pytest.mark.parametrize(("width", "height"), [(0, 0), (0, 3), (3, 0)])
def test_an_image_without_pixels_is_refused(width: int, height: int) -> None:
    refused(png(width, height, 8, 2, b""), rf"has no pixels \({width} x {height}\)")


@pytest.mark.parametrize("side", [10_000, 20_000])
def test_very_many_pixels_are_refused_before_they_are_decoded(side: int) -> None:
    image_decoder.be_strict()
    refused(png(side, side, 8, 0, b""), "has too many pixels")


def test_text_that_grows_is_refused() -> None:
    import zlib

    bomb = chunk(b"zTXt", b"Comment\0\0" + zlib.compress(bytes(50_000_000)))
    content = encoded(colours(4, 4))
    place = content.index(b"IDAT") - 4
    refused(content[:place] + bomb + content[place:], "cannot be decoded: ")
