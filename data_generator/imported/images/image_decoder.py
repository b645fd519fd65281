"""Decode an image file to pixels with 8 bits per channel, RGB or grey, or refuse the file with a reason.

Pixels are kept exactly, or the image is refused. Palettes become RGB and black-and-white becomes grey without loss.
Images with more bits, CMYK or transparency are refused, because decoding would change their pixels. Only this module
opens images. data_generator.imported.images.image_import runs it in a separate process, because a damaged or hostile
file may crash the decoder.
"""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass

from PIL import ExifTags, Image, ImageFile, ImageOps, TiffImagePlugin

from data_generator.imported.refusal import REPAIR, Refused

CONVERT = "Save it as 8-bit RGB or grey without transparency, e.g. in a PNG file, or leave it out."

FORMATS = ("BMP", "DIB", "GIF", "JPEG", "PNG", "TIFF", "WEBP")
"""Accepted formats. Pillow reads more formats, but their decoders are used less, and the decoder of EPS starts a
program."""

_BECOMES = {"1": "L", "L": "L", "LA": "L", "P": "RGB", "PA": "RGB", "RGB": "RGB", "RGBA": "RGB"}
"""Pillow's mode of an image -> the mode to which it is converted without loss (Pillow documentation, "Concepts")."""
_CHANNELS = {"L": 0, "RGB": 3}
_BITS_PER_SAMPLE, _SAMPLES_PER_PIXEL, _COLOUR_MAP, _SAMPLE_FORMAT = 258, 277, 320, 339
"""Tags of TIFF."""
_SIGNED = 2
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Picture:
    """The pixels of one image, as a row of images.SCHEMA."""

    pixels: bytes
    height: int
    width: int
    channels: int
    frames_left_out: int = 0
    """Number of omitted frames of an MPO file: previews or other views after the photograph."""


def be_strict() -> None:
    """Turn Pillow's warning about very large images (over 89 million pixels) into an error, permanently."""
    warnings.simplefilter("error", Image.DecompressionBombWarning)


def decode(content: bytes) -> Picture:
    """Return the pixels of an image file, rotated by the EXIF orientation, as the library `datasets` does.

    Raises Refused for a file that is damaged, has too many pixels, or would change. Raises MemoryError if memory runs
    out.
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
        raise Refused(f"has too many pixels: {error}", "Reduce its size, or leave it out.") from None
    except Exception as error:
        # Pillow reports damage as OSError, SyntaxError, ValueError, struct.error, KeyError and others.
        raise Refused(f"cannot be decoded: {error or type(error).__name__}") from None


def _picture(image: ImageFile.ImageFile, content: bytes) -> Picture:
    mode = _BECOMES.get(image.mode)
    bits = _bits(image)
    if bits > 8:
        raise Refused(f"has {bits} bits per channel (supported: 8), and a conversion would change the data", CONVERT)
    if mode is None:
        raise Refused(f"is {image.mode} (supported: RGB and grey), and a conversion would change the data", CONVERT)
    if isinstance(image, TiffImagePlugin.TiffImageFile):
        _check_tiff(image)
    # The first image in an MPO file is the photograph. Previews or other views follow.
    is_mpo = image.format == "MPO"
    if getattr(image, "is_animated", False) and not is_mpo:
        raise Refused(
            "has several images (frames or pages)", "Save each image as a separate file, or leave the file out."
        )
    if image.format == "PNG":
        # Pillow does not verify the checksums of the pixels when it loads them.
        with Image.open(io.BytesIO(content), formats=("PNG",)) as again:
            again.verify()
    image.load()
    if image.has_transparency_data and _least_alpha(image) < 255:
        raise Refused("has transparent pixels, and removing the transparency would change the data", CONVERT)
    is_turned = image.getexif().get(ExifTags.Base.Orientation, 1) != 1
    upright = ImageOps.exif_transpose(image) if is_turned else image
    width, height = upright.size
    plain = upright if upright.mode == mode else upright.convert(mode)
    return Picture(plain.tobytes(), height, width, _CHANNELS[mode], getattr(image, "n_frames", 1) - 1 if is_mpo else 0)


def _check_tiff(image: TiffImagePlugin.TiffImageFile) -> None:
    """Raise Refused for TIFF files that Pillow reads incompletely or wrongly without an error."""
    channels, taken = image.tag_v2.get(_SAMPLES_PER_PIXEL, 1), len(image.getbands())
    if channels > taken:
        raise Refused(f"has {channels} channels per pixel, of which only {taken} would be read", CONVERT)
    if _SIGNED in image.tag_v2.get(_SAMPLE_FORMAT, ()):
        raise Refused("has signed pixels (supported: unsigned), and a conversion would change the data", CONVERT)
    # Palette colours in TIFF have 16 bits. 8-bit colours are stored multiplied by 256 or 257.
    colours = image.tag_v2.get(_COLOUR_MAP, ())
    if any(colour % 256 not in (0, colour // 256) for colour in colours):
        raise Refused(
            "has a palette of 16 bits per channel (supported: 8), and a conversion would change the data", CONVERT
        )


def _bits(image: ImageFile.ImageFile) -> int:
    """Return the largest number of bits of any channel in the file. Pillow itself reduces 16-bit RGB to 8 bits
    silently."""
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
    """Return the error for a file that Pillow does not recognize.

    Pillow gives no reason. One possible reason, an image without pixels, is detected here.
    """
    if content.startswith(_PNG_SIGNATURE) and content[12:16] == b"IHDR" and len(content) >= 24:
        width, height = (int.from_bytes(content[start : start + 4], "big") for start in (16, 20))
        if not width or not height:
            return Refused(f"has no pixels ({width} x {height})", "Leave it out.")
    return Refused(
        f"is not an image of a supported kind ({', '.join(FORMATS)}), or is damaged at its beginning", REPAIR
    )
