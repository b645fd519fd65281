"""Files of the user's, by names, sizes and times alone: no file is opened here.

What they hold is looked at by the processes of data_generator.imported.import_process.
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
    """One file: its name below the input, where it lies, and, for an image file, its class."""

    name: str
    path: str
    size_bytes: int
    mtime_ns: int
    label: int | None = None


@dataclass(frozen=True)
class UserInput:
    """Files that are there, in the order in which they are read. `path` is real and absolute."""

    path: Path
    kind: str
    files: tuple[InputFile, ...]

    def about(self) -> dict[str, str]:
        """What tells this input from others, and from itself before a change."""
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
    """The real path of what the user names, and what it is. Raises DataError, which ends with what is `taken`."""
    try:
        path = Path(os.path.realpath(given, strict=True))
        return path, path.stat()
    except (OSError, ValueError) as error:
        raise DataError(f"{printable(given)}: {strerror(error)}\n  {taken}") from None


def entries(folder: Path) -> list[os.DirEntry[str]]:
    """What a folder holds, sorted by name, without what is hidden. Raises DataError."""
    try:
        with os.scandir(folder) as found:
            return sorted((entry for entry in found if not entry.name.startswith(".")), key=lambda entry: entry.name)
    except OSError as error:
        raise DataError(f"{printable(folder)}: cannot be listed: {strerror(error)}\n  allow it, or move it") from None


def taken_file(root: Path, entry: os.DirEntry[str], holds: str) -> InputFile:
    """The file as it is read. Raises DataError for one that leads outside of `root`, or is none; `holds` says what its
    name promises."""
    try:
        path = inside(root, Path(entry.path)) if entry.is_symlink() else Path(entry.path)
        about = os.stat(path, follow_symlinks=False)
    except OSError as error:
        raise DataError(f"{printable(entry.path)}: {strerror(error)}\n  repair it, or leave it out") from None
    if not stat.S_ISREG(about.st_mode):
        raise DataError(f"{printable(entry.path)}: is named as a file with {holds} and is no regular file\n  remove it")
    return input_file(path, below(root, entry.path), about)


def below(root: Path, path: str) -> str:
    """The part of `path` behind `root`."""
    return path[len(str(root)) :].lstrip(os.sep)


def input_file(path: Path, name: str, about: os.stat_result) -> InputFile:
    """The file at `path`, called `name`."""
    return InputFile(name, str(path), about.st_size, about.st_mtime_ns)


def inside(root: Path, link: Path) -> Path:
    """Where a link ends. Raises DataError when that is outside of `root`, OSError when it is nowhere."""
    path = Path(os.path.realpath(link, strict=True))
    if not path.is_relative_to(root):
        raise DataError(
            f"{printable(link)}: is a link that leads out of {printable(root)}\n"
            "  put a copy in its place (cp -L), or name a folder that holds both"
        )
    return path


def strerror(error: Exception) -> str:
    """The system's words for an error, without number and path."""
    return printable(getattr(error, "strerror", None) or error)
