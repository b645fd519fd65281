"""Codecs with which pandas compresses whole files, for CSV, JSON Lines and Pickle."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from adapters.contract import Setting

SETTINGS: Mapping[str, Setting] = {
    "codec": Setting(("none", "gzip", "bz2", "xz", "zstd"), "none", "compression of the whole file"),
    "level": Setting(range(1, 23), None, "level of the codec; by default the codec's own default level"),
}
LEVELS: Mapping[str, range] = {"gzip": range(1, 10), "bz2": range(1, 10), "xz": range(1, 10), "zstd": range(1, 23)}
DISTRIBUTIONS: Mapping[str, str] = {"zstd": "zstandard"}
_LEVEL_ARGUMENTS = {"gzip": "compresslevel", "bz2": "compresslevel", "xz": "preset", "zstd": "level"}
_MODULES = {"gzip": "gzip", "bz2": "bz2", "xz": "lzma", "zstd": "zstandard"}
_MAGICS = {"gzip": b"\x1f\x8b", "bz2": b"BZh", "xz": b"\xfd7zXZ\x00", "zstd": b"\x28\xb5\x2f\xfd"}


def for_save(values: Mapping[str, object]) -> dict[str, object] | None:
    """Return the argument `compression` for pandas' save calls; None if the file is not compressed."""
    compression = for_read(values)
    if compression is not None and values["level"] is not None:
        compression[_LEVEL_ARGUMENTS[str(values["codec"])]] = values["level"]
    return compression


def for_read(values: Mapping[str, object]) -> dict[str, object] | None:
    """Return the argument `compression` for pandas' read calls, which take no level; None if the file is not
    compressed."""
    return None if values["codec"] == "none" else {"method": values["codec"]}


def argument(compression: Mapping[str, object] | None) -> str:
    """Return the argument `compression` as code after a comma; an empty string if the file is not compressed."""
    return "" if compression is None else f", compression={dict(compression)}"


def load(values: Mapping[str, object] | None = None) -> None:
    """Import the module that the codec of these settings needs, so that the first save does not import it.

    This function also imports zstandard if it is installed, because pandas tries to import zstandard when it opens a
    file.
    """
    if find_spec("zstandard") is not None:
        import_module("zstandard")
    if values is not None and values.get("codec") in _MODULES:
        import_module(_MODULES[str(values["codec"])])


def codec_of(location: Path) -> str:
    """Return the codec of a file by its first bytes; 'none' if they match no codec."""
    with location.open("rb") as file:
        start = file.read(max(map(len, _MAGICS.values())))
    return next((codec for codec, magic in _MAGICS.items() if start.startswith(magic)), "none")
