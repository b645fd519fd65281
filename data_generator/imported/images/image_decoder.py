"""From the bytes of an image file to its pixels, 8 bits a channel, RGB or grey; or the reason why not.

What a file says is kept as it is or refused: colours of a palette and black and white become RGB and grey without loss;
more bits, CMYK and transparency would be changed by that, and are refused. The only module that opens images, run by
data_generator.imported.images.image_import in a process of its own, because a damaged or hostile file may take its
decoder with it.
"""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass

from PIL import ExifTags, Image, ImageFile, ImageOps, TiffImagePlugin

from data_generator.imported.refusal import REPAIR, Refused

CONVERT = "convert it to 8-bit RGB or grey without transparency (PNG keeps it as it is), or leave it out"

FORMATS = ("BMP", "DIB", "GIF", "JPEG", "PNG", "TIFF", "WEBP")
"""Pillow reads more, by decoders that are less used, and one that starts another program (EPS)."""

_BECOMES = {"1": "L", "L": "L", "LA": "L", "P": "RGB", "PA": "RGB", "RGB": "RGB", "RGBA": "RGB"}
"""Mode of an image (Pillow's concepts, 'Modes') -> mode of the same pixels here."""
_CHANNELS = {"L": 0, "RGB": 3}
_BITS_PER_SAMPLE, _SAMPLES_PER_PIXEL, _COLOUR_MAP, _SAMPLE_FORMAT = 258, 277, 320, 339
"""Tags of TIFF."""
_SIGNED = 2
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Picture:
    """The pixels of one image, as a row of images.SCHEMA has them."""

    pixels: bytes
    height: int
    width: int
    channels: int
    frames_left_out: int = 0
    """Of an MPO: previews or other views behind the photograph."""


def be_strict() -> None:
    """Make Pillow's warning of an image with very many pixels (over 89 million) an error, for good."""
    warnings.simplefilter("error", Image.DecompressionBombWarning)


def decode(content: bytes) -> Picture:
    """The pixels of an image file, turned as its EXIF orientation says, which is how `datasets` gives them.

    Raises Refused. MemoryError is passed on.
    """
    if not content:
        raise Refused("is empty (0 bytes)")
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            return _picture(image, content)
    except (Refused, MemoryError):
        raise
    except Image.UnidentifiedImageError:
        raise _unidentified(content) from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise Refused(f"has too many pixels: {error}", "make it smaller, or leave it out") from None
    except Exception as error:
        # Damage shows in Pillow as OSError, SyntaxError, ValueError, struct.error, KeyError and others.
        raise Refused(f"cannot be decoded: {error or type(error).__name__}") from None


def _picture(image: ImageFile.ImageFile, content: bytes) -> Picture:
    mode = _BECOMES.get(image.mode)
    bits = _bits(image)
    if bits > 8:
        raise Refused(f"has {bits} bits a channel; 8 would be other data", CONVERT)
    if mode is None:
        raise Refused(f"is {image.mode}; as RGB it would be other data", CONVERT)
    if isinstance(image, TiffImagePlugin.TiffImageFile):
        _check_tiff(image)
    # A JPEG in an MPO has previews or other views behind it: its first image is the photograph.
    is_mpo = image.format == "MPO"
    if getattr(image, "is_animated", False) and not is_mpo:
        raise Refused("holds several images (frames or pages)", "save each as a file of its own, or leave it out")
    if image.format == "PNG":
        # Pillow does not compare the checksums of the pixels as it loads them.
        with Image.open(io.BytesIO(content), formats=("PNG",)) as again:
            again.verify()
    image.load()
    if image.has_transparency_data and _least_alpha(image) < 255:
        raise Refused("has transparent pixels; without transparency it would be other data", CONVERT)
    is_turned = image.getexif().get(ExifTags.Base.Orientation, 1) != 1
    upright = ImageOps.exif_transpose(image) if is_turned else image
    width, height = upright.size
    plain = upright if upright.mode == mode else upright.convert(mode)
    return Picture(plain.tobytes(), height, width, _CHANNELS[mode], getattr(image, "n_frames", 1) - 1 if is_mpo else 0)


def _check_tiff(image: TiffImagePlugin.TiffImageFile) -> None:
    """Raises Refused for what Pillow leaves out or takes for something else without a word."""
    channels, taken = image.tag_v2.get(_SAMPLES_PER_PIXEL, 1), len(image.getbands())
    if channels > taken:
        raise Refused(f"has {channels} channels a pixel, of which {taken} would be read", CONVERT)
    if _SIGNED in image.tag_v2.get(_SAMPLE_FORMAT, ()):
        raise Refused("has pixels with a sign; without it they would be other data", CONVERT)
    # Colours of a palette have 16 bits; written are those of 8 bits, times 256 or 257.
    colours = image.tag_v2.get(_COLOUR_MAP, ())
    if any(colour % 256 not in (0, colour // 256) for colour in colours):
        raise Refused("has a palette of 16 bits a channel; 8 would be other data", CONVERT)


def _bits(image: ImageFile.ImageFile) -> int:
    """Bits of the deepest channel, as far as a mode of 8 bits would hide them: Pillow cuts 16-bit RGB down."""
    if isinstance(image, TiffImagePlugin.TiffImageFile):
        return max(image.tag_v2.get(_BITS_PER_SAMPLE, (1,)))
    if image.format == "PNG":
        return 16 if any(";16" in str(tile.args) for tile in image.tile) else 8
    return 8


def _least_alpha(image: Image.Image) -> int:
    lowest, _ = image.convert("RGBA").getchannel("A").getextrema()
    assert isinstance(lowest, int)
    return lowest


def _unidentified(content: bytes) -> Refused:
    """Pillow says nothing of why it does not know a file; one reason can be found."""
    if content.startswith(_PNG_SIGNATURE) and content[12:16] == b"IHDR" and len(content) >= 24:
        width, height = (int.from_bytes(content[start : start + 4], "big") for start in (16, 20))
        if not width or not height:
            return Refused(f"has no pixels ({width} x {height})", "leave it out")
    return Refused(f"is no image of a kind that is read ({', '.join(FORMATS)}), or its beginning is damaged", REPAIR)
