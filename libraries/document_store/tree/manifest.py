"""The manifest, a small file that names the valid components. It is replaced atomically after the components are
durable.

Files that the manifest does not name are unfinished or were replaced. They are removed when the store is opened.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import xxhash

from libraries.document_store.errors import CorruptError, DocumentStoreError
from libraries.document_store.files import UNFINISHED, FileReader, told_as, written
from libraries.document_store.layouts.layout import CompressionName, KeyKind, LayoutName
from libraries.document_store.tree.log import DIGITS
from libraries.document_store.tree.log import PREFIX as LOG
from libraries.durable.calls import FileCalls

NAME = "manifest"
COMPONENT, INDEX = "component-", "index-"
FORMAT = 2
_MAGIC = b"DSMF"
_MOST_BYTES = 64 << 20
_MOST_DIGITS = 18
"""Maximum digits of file numbers of the store. A name with more digits is not a file of the store."""
_OURS = re.compile(rf"(?:{NAME}|(?:{COMPONENT}|{INDEX}|{LOG})\d{{{DIGITS},}})(?:{re.escape(UNFINISHED)})?", re.ASCII)


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of the store, and its valid files.

    `components` are file numbers, newest first. `indexes` maps the path of each secondary index to the file numbers of
    its components. `next_number` is above all file numbers. `log` is the number of the first log with batches that no
    component has. `key_kind` is None until the first flush.
    """

    format: int = FORMAT
    key: str
    layout: LayoutName
    compression: CompressionName
    key_kind: KeyKind | None = None
    next_number: int
    log: int
    components: tuple[int, ...] = ()
    indexes: dict[str, tuple[int, ...]] = {}


def component_path(folder: Path, number: int) -> Path:
    """Return the path of a component of the primary index."""
    return folder / f"{COMPONENT}{number:0{DIGITS}}"


def index_path(folder: Path, number: int) -> Path:
    """Return the path of a component of a secondary index."""
    return folder / f"{INDEX}{number:0{DIGITS}}"


def write_manifest(calls: FileCalls, folder: Path, manifest: Manifest) -> None:
    """Write the manifest durably. If this raises `OSError`, the next open may find either the old or the new
    manifest."""
    data = msgspec.json.encode(manifest)
    unfinished = folder / f"{NAME}{UNFINISHED}"
    if unfinished.name in calls.listdir(folder):
        calls.unlink(unfinished)
    with written(calls, folder / NAME) as writer:
        writer.write(_MAGIC + xxhash.xxh3_64_intdigest(data).to_bytes(8, "little") + data)


def read_manifest(calls: FileCalls, folder: Path) -> Manifest | None:
    """Return the manifest; None in a new folder. Raises CorruptError if the manifest was changed, or if it is missing
    although there are components."""
    names = calls.listdir(folder)
    if NAME not in names:
        ours = sorted(name for name in names if _OURS.fullmatch(name) and not name.endswith(UNFINISHED))
        stored = [name for name in ours if name.startswith((COMPONENT, INDEX))]
        if stored:
            raise CorruptError(
                f"the store's manifest is missing, but {stored[0]} exists. Restore the manifest from a copy."
            )
        return None
    with told_as(NAME):
        reader = FileReader(calls, folder / NAME)
        try:
            data = reader.read(min(reader.size_bytes, _MOST_BYTES), 0)
        finally:
            reader.close()
    return decode_manifest(data)


def is_manifest(calls: FileCalls, folder: Path, manifest: Manifest) -> bool:
    """Return whether the folder certainly has this manifest. Return False if the folder cannot be read."""
    try:
        return read_manifest(calls, folder) == manifest
    except (OSError, DocumentStoreError):
        return False


def decode_manifest(data: bytes) -> Manifest:
    """Decode a manifest. Raises CorruptError for bytes that `write_manifest` cannot have written."""
    content = data[12:]
    if data[:4] != _MAGIC or int.from_bytes(data[4:12], "little") != xxhash.xxh3_64_intdigest(content):
        raise CorruptError("the store's manifest was changed after it was stored. Restore the manifest from a copy.")
    try:
        manifest = msgspec.json.decode(content, type=Manifest)
    except (msgspec.MsgspecError, ValueError) as error:
        raise CorruptError(f"the store's manifest cannot be read: {error}") from None
    if manifest.format != FORMAT:
        raise CorruptError(
            f"the store has format {manifest.format}, but this release reads only format {FORMAT}; open the store with "
            "the release that wrote it, or store the documents again in a new folder"
        )
    return manifest


def leftovers(names: list[str], manifest: Manifest | None, logs: set[int]) -> list[str]:
    """Return the names of files of the store that neither the manifest nor `logs` name. Other files, e.g. of users, are
    not included."""
    kept = {NAME, *(f"{LOG}{number:0{DIGITS}}" for number in logs)}
    if manifest is not None:
        kept |= {f"{COMPONENT}{number:0{DIGITS}}" for number in manifest.components}
        kept |= {f"{INDEX}{number:0{DIGITS}}" for numbers in manifest.indexes.values() for number in numbers}
    return sorted(name for name in names if _OURS.fullmatch(name) and name not in kept)


def highest_number(names: list[str]) -> int:
    """Return the highest number in a file name, or 0. Files that are created later must have higher numbers."""
    ours = (name.removesuffix(UNFINISHED).rpartition("-")[2] for name in names if _OURS.fullmatch(name))
    return max((int(number) for number in ours if number.isdecimal() and len(number) <= _MOST_DIGITS), default=0)
