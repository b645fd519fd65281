"""Image files for these tests: ordinary ones by Pillow, and PNGs that Pillow would not write."""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def colours(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Return an RGB image that differs by seed."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def greys(height: int, width: int, seed: int = 0) -> np.ndarray:
    return colours(height, width, seed)[..., 0]


def encoded(image: np.ndarray | Image.Image, kind: str = "PNG", **options: object) -> bytes:
    """Return the image as a file of this kind."""
    made = image if isinstance(image, Image.Image) else Image.fromarray(image)
    buffer = io.BytesIO()
    made.save(buffer, kind, **options)
    return buffer.getvalue()


def chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def png(width: int, height: int, depth: int, colour: int, row: bytes) -> bytes:
    """Return a PNG of any size, depth and colour type whose rows are all the same."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    pixels = zlib.compress((b"\0" + row) * min(height, 1000))
    return SIGNATURE + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def with_flipped_pixel(content: bytes) -> bytes:
    """Return the PNG with one bit of its pixels changed."""
    damaged = bytearray(content)
    damaged[content.index(b"IDAT") + 4 + 200] ^= 1
    return bytes(damaged)


def class_folders(root: Path, count: int = 3) -> dict[str, np.ndarray]:
    """Create folders of the classes ant, bee and cat below `root`, each with `count` images of various shapes; return
    the images in reading order."""
    written: dict[str, np.ndarray] = {}
    for label, name in enumerate(("ant", "bee", "cat")):
        (root / name).mkdir(parents=True)
        for number in range(count):
            seed = 10 * label + number
            image = greys(7 + seed, 5, seed) if number == 1 else colours(4, 6 + seed, seed)
            (root / name / f"{number}.png").write_bytes(encoded(image))
            written[f"{name}/{number}.png"] = image
    return written


def tiff(pixel: bytes, **tags: list[int]) -> bytes:
    """Return a TIFF of one pixel with these additional tags: bits, colour, samples, extra, palette, format."""
    numbers = {"bits": 258, "colour": 262, "samples": 277, "palette": 320, "extra": 338, "format": 339}
    given = {256: [1], 257: [1], 259: [1], 273: [8], 278: [1], 279: [len(pixel)]}
    given.update({numbers[name]: values for name, values in tags.items()})
    beginning = pixel + bytes(-len(pixel) % 8)
    directory = 8 + len(beginning)
    entries, values_behind = b"", b""
    for tag in sorted(given):
        values = struct.pack(f"<{len(given[tag])}H", *given[tag])
        if len(values) > 4:
            place = directory + 2 + 12 * len(given) + 4 + len(values_behind)
            values_behind += values
            values = struct.pack("<I", place)
        entries += struct.pack("<HHI", tag, 3, len(given[tag])) + values.ljust(4, b"\0")
    header = struct.pack("<2sHI", b"II", 42, directory)
    return header + beginning + struct.pack("<H", len(given)) + entries + bytes(4) + values_behind
