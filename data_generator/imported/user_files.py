"""Find the user's files by their names, sizes and times. This module opens no file.

The processes of data_generator.imported.import_process read the content of the files.
"""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from data_generator.errors import DataError
from data_generator.imported.refusal import printable


@dataclass(frozen=True)
class InputFile:
    """A file of the user: name relative to the user's path, full path, size, time of change, and, for an image, the
    label."""

    name: str
    path: str
    size_bytes: int
    mtime_ns: int
    label: int | None = None


@dataclass(frozen=True)
class UserInput:
    """The user's path, which is absolute and without links, and its files in the order in which they are read."""

    path: Path
    kind: str
    files: tuple[InputFile, ...]

    def about(self) -> dict[str, str]:
        """Return facts that identify these files in their current state. The facts change if a file is changed."""
        digest = hashlib.sha256()
        for file in self.files:
            digest.update(os.fsencode(file.name) + f"\0{file.size_bytes}\0{file.mtime_ns}\0{file.label}\0".encode())
        return {
            "path": str(self.path),
            "kind": self.kind,
            "files": str(len(self.files)),
            "size_bytes": str(sum(file.size_bytes for file in self.files)),
            "fingerprint": digest.hexdigest(),
        }


def located(given: Path, taken: str) -> tuple[Path, os.stat_result]:
    """Return the user's path as an absolute path without links, and the os.stat_result of this path.

    Raises DataError if the path does not exist or is not accessible. The message ends with `taken`, a description of
    the supported inputs.
    """
    try:
        path = Path(os.path.realpath(given, strict=True))
        return path, path.stat()
    except (OSError, ValueError) as error:
        raise DataError(f"{printable(given)}: {strerror(error)}.", taken) from None


def entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return the entries of a folder, without hidden ones, sorted by name. Raises DataError if the folder cannot be
    listed."""
    try:
        with os.scandir(folder) as found:
            return sorted((entry for entry in found if not entry.name.startswith(".")), key=lambda entry: entry.name)
    except OSError as error:
        raise DataError(
            f"{printable(folder)} cannot be listed: {strerror(error)}.", "Change its permissions, or move it."
        ) from None


def taken_file(root: Path, entry: os.DirEntry[str], holds: str) -> InputFile:
    """Return the file that a folder entry names, or to which it links.

    Raises DataError for a link to a file outside of `root`, and for an entry that is not a regular file. `holds` is the
    kind of content for the message, such as 'Parquet'.
    """
    try:
        path = inside(root, Path(entry.path)) if entry.is_symlink() else Path(entry.path)
        about = os.stat(path, follow_symlinks=False)
    except OSError as error:
        raise DataError(f"{printable(entry.path)}: {strerror(error)}.", "Repair it, or leave it out.") from None
    if not stat.S_ISREG(about.st_mode):
        raise DataError(
            f"{printable(entry.path)} is not a regular file, although its name suggests {holds}.", "Remove it."
        )
    return input_file(path, below(root, entry.path), about)


def below(root: Path, path: str) -> str:
    """Return `path` relative to `root`, which contains it."""
    return path[len(str(root)) :].lstrip(os.sep)


def input_file(path: Path, name: str, about: os.stat_result) -> InputFile:
    """Return an InputFile for the file at `path`, with the name `name`, and size and time from `about`."""
    return InputFile(name, str(path), about.st_size, about.st_mtime_ns)


def inside(root: Path, link: Path) -> Path:
    """Return the target of a link. Raises DataError if the target is outside of `root`, OSError if it does not
    exist."""
    path = Path(os.path.realpath(link, strict=True))
    if not path.is_relative_to(root):
        raise DataError(
            f"{printable(link)} is a link to a place outside of {printable(root)}.",
            "Replace the link by a copy (cp -L), or name a folder that contains the link and its target.",
        )
    return path


def strerror(error: Exception) -> str:
    """Return the operating system's text for an error, without number and path."""
    return printable(getattr(error, "strerror", None) or error)
