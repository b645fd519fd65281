"""Find the user's images by names, sizes and times of files. This module opens no file.

Four kinds of input are accepted: a folder with a folder of image files for each class, Parquet files, a folder saved by
the `datasets` library, and the cache folder of the `datasets` library. data_generator.imported.images.image_import
reads the content in a separate process.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from data_generator.errors import DataError
from data_generator.imported.refusal import printable
from data_generator.imported.user_files import (
    InputFile,
    UserInput,
    below,
    entries,
    input_file,
    inside,
    located,
    taken_file,
)

FILES, PARQUET, SAVED, CACHED = "image files", "parquet", "saved by datasets", "cache of datasets"

IMAGE_SUFFIXES = (
    *(".apng", ".bmp", ".dib", ".gif", ".jfi", ".jfif", ".jif", ".jpe", ".jpeg", ".jpg", ".mpo", ".png", ".tif"),
    *(".tiff", ".webp"),
)
_OF_PILLOW = """
    .avif .avifs .blp .bufr .bw .cur .dcx .dds .emf .eps .fit .fits .flc .fli .ftc .ftu .gbr .grib .h5 .hdf
    .icb .icns .ico .iim .im .j2c .j2k .jp2 .jpc .jpf .jpx .mpeg .mpg .msp .palm .pbm .pcd .pcx .pdf .pfm .pgm
    .pnm .ppm .ps .psd .pxr .qoi .ras .rgb .rgba .sgi .tga .vda .vst .wmf .xbm .xpm
"""
_OTHER_IMAGES = """
    .ai .bpg .cdr .dcm .djvu .exr .flif .hdr .heic .heics .heif .heifs .hif .jls .jng .jpm .jxl .jxr .kra .mng
    .psb .svg .svgz .tgs .wdp .xcf
"""
_RAW = """
    .3fr .arw .cr2 .cr3 .crw .dcr .dng .erf .iiq .k25 .kdc .mef .mos .mrw .nef .nrw .orf .pef .raf .raw .rw2
    .rwl .sr2 .srf .srw .x3f
"""
_VIDEOS = """
    .3gp .avi .flv .gifv .m2ts .m4v .mj2 .mkv .mov .mp4 .mts .ogv .webm .wmv .y4m
"""
UNREAD_SUFFIXES = frozenset(f"{_OF_PILLOW} {_OTHER_IMAGES} {_RAW} {_VIDEOS}".split())
"""Suffixes of images and videos that are not supported. In a folder of images, files with these suffixes cause an error
instead of being skipped."""
_PARQUET_SUFFIX = ".parquet"

DEPTH = 4
"""Number of folder levels that are searched. The caches of the Hugging Face hub need this depth."""

TAKEN = (
    "Images are read from folders of image files by class, Parquet files, or a folder saved by 'datasets'. "
    "For a table, use the suite tabular."
)


def find(given: Path) -> UserInput:
    """Return the images at the user's path.

    Hidden files and folders are skipped, and so are files with suffixes of other kinds. Links are followed only to
    files below the path. Raises DataError for a path that is missing, has no images or several kinds of images, or is
    ambiguous.
    """
    path, about = located(given, TAKEN)
    if stat.S_ISREG(about.st_mode) and path.suffix.lower() == _PARQUET_SUFFIX:
        return UserInput(path, PARQUET, (input_file(path, path.name, about),))
    if not stat.S_ISDIR(about.st_mode):
        raise DataError(f"{printable(path)} is neither a folder nor a Parquet file.", TAKEN)
    return _saved(path) or _by_suffix(path)


def find_cached(folders: Sequence[str]) -> UserInput | None:
    """Return the training images in the cache of `datasets` under one of these folder names; None if there are none.

    If there are several copies, return the newest.
    """
    found: list[tuple[int, str, UserInput]] = []
    for folder in folders:
        # <name>/<configuration>/<version>/<hash of the builder>
        for info in sorted(datasets_cache().glob(f"{folder}/*/*/*/dataset_info.json")):
            place = Path(os.path.realpath(info.parent))
            files = [file for file in _flat(place) if _CACHED_TRAIN.match(file.name)]
            if files and not place.name.endswith(".incomplete") and _all_shards(files):
                found.append((info.stat().st_mtime_ns, str(place), UserInput(place, CACHED, tuple(files))))
    return max(found, key=lambda each: each[:2])[2] if found else None


def datasets_cache() -> Path:
    """Return the cache folder of the `datasets` library, from the same environment variables that the library uses."""
    xdg = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    home = os.environ.get("HF_HOME", os.path.join(xdg, "huggingface"))
    return Path(os.path.expanduser(os.environ.get("HF_DATASETS_CACHE", os.path.join(home, "datasets"))))


_CACHED_TRAIN = re.compile(r"(?!cache-).+-train(?:-\d{5}-of-(?P<shards>\d{5}))?\.arrow$")


def _all_shards(files: Sequence[InputFile]) -> bool:
    match = _CACHED_TRAIN.match(files[0].name)
    return match is not None and int(match["shards"] or 1) == len(files)


# --- a folder saved by datasets ------------------------------------------------------------------------------------


def _saved(path: Path) -> UserInput | None:
    """Return a folder that the `datasets` library saved; None if `path` is not such a folder.

    If the folder contains splits, such as 'train' and 'test', return the split 'train' or the only split. Raises
    DataError if there is neither.
    """
    if _is_saved(path):
        return UserInput(path, SAVED, tuple(_flat(path)))
    if not (path / "dataset_dict.json").is_file():
        return None
    splits = [entry.name for entry in entries(path) if _is_saved(Path(entry.path))]
    if "train" in splits or len(splits) == 1:
        split = path / ("train" if "train" in splits else splits[0])
        return _saved(inside(path, split))
    raise DataError(
        f"{printable(path)} has neither a split 'train' nor exactly one split "
        f"(its splits: {printable(', '.join(splits) or 'none')}).",
        f"Name the folder of one split: {printable(path)}/SPLIT",
    )


def _is_saved(folder: Path) -> bool:
    return (folder / "state.json").is_file() and (folder / "dataset_info.json").is_file()


def _flat(folder: Path) -> list[InputFile]:
    """Return the .arrow and .json files directly in the folder. Raises DataError for a link out of the folder."""
    found = [entry for entry in entries(folder) if _suffix(entry.name) in (".arrow", ".json")]
    return [taken_file(folder, entry, "images") for entry in found]


# --- what the suffixes say -----------------------------------------------------------------------------------------


def _by_suffix(path: Path) -> UserInput:
    unread: list[str] = []
    files = list(_walk(path, path, 0, unread))
    parquet = [file for file in files if _suffix(file.name) == _PARQUET_SUFFIX]
    pictures = [file for file in files if _suffix(file.name) != _PARQUET_SUFFIX]
    if parquet and pictures:
        raise DataError(
            f"{printable(path)} has both Parquet files (e.g. {printable(parquet[0].name)}) and image files "
            f"(e.g. {printable(pictures[0].name)}).",
            "Name a folder that has only Parquet files or only image files.",
        )
    if parquet:
        return UserInput(path, PARQUET, tuple(_one_split(path, parquet)))
    if unread:
        kinds = ", ".join(suffix.removeprefix(".") for suffix in IMAGE_SUFFIXES)
        more = f" (and {len(unread) - 1:,} more)" if len(unread) > 1 else ""
        raise DataError(
            f"{printable(path / unread[0])}{more} has a suffix that is not supported for images (supported: {kinds}).",
            "Convert such files to PNG, or move them out of the folder.",
        )
    if not pictures:
        raise DataError(f"{printable(path)} has no images (searched {DEPTH} levels of folders).", TAKEN)
    return UserInput(path, FILES, tuple(_classed(path, pictures)))


def _walk(root: Path, folder: Path, depth: int, unread: list[str]) -> Iterator[InputFile]:
    """Yield the image files and Parquet files below the folder, ordered by folder and name.

    Append the names of images in unsupported formats to `unread`.
    """
    for entry in entries(folder):
        suffix = _suffix(entry.name)
        if entry.is_dir(follow_symlinks=False):
            if depth < DEPTH:
                yield from _walk(root, Path(entry.path), depth + 1, unread)
        elif entry.is_symlink() and os.path.isdir(entry.path):
            raise DataError(
                f"{printable(entry.path)} is a link to a folder, which is not followed.",
                "Replace the link by a copy of the folder, or remove the link.",
            )
        elif suffix in UNREAD_SUFFIXES:
            unread.append(below(root, entry.path))
        elif suffix == _PARQUET_SUFFIX or suffix in IMAGE_SUFFIXES:
            yield taken_file(root, entry, "images")


def _suffix(name: str) -> str:
    return os.path.splitext(name)[1].lower()


def _classed(path: Path, pictures: Sequence[InputFile]) -> Iterator[InputFile]:
    """Yield the files with labels. Each class has a folder.

    The label is the index of this folder in alphabetical order. Without class folders, every label is 0.
    """
    names = sorted({file.name.split(os.sep)[0] for file in pictures if os.sep in file.name})
    classes = {name: label for label, name in enumerate(names)}
    for file in pictures:
        parts = file.name.split(os.sep)
        if len(parts) > 2:
            raise DataError(
                f"{printable(path / parts[0])} is read as one class, but has images in its subfolder "
                f"{printable(parts[1])}.",
                "Name the folder whose direct subfolders are the classes, e.g. "
                f"{printable(path / parts[0])} instead of {printable(path)}.",
            )
        if len(parts) == 1 and classes:
            raise DataError(
                f"{printable(file.path)} is next to the class folders ({printable(names[0])}, ..), not in one of them.",
                "Move it into a class folder, or remove it.",
            )
        yield replace(file, label=classes.get(parts[0], 0))
    if classes:
        _check_folders(path, classes)


def _check_folders(path: Path, classes: Container[str]) -> None:
    """Raise DataError if a folder has no images.

    The images of a class may have been lost. If such a folder were skipped, the other classes would get wrong labels.
    """
    for entry in entries(path):
        if entry.is_dir(follow_symlinks=False) and entry.name not in classes:
            raise DataError(
                f"{printable(entry.path)} has no images, unlike the folders of other classes.",
                "Add images, or remove the folder.",
            )


_SPLITS = ("train", "training", "test", "testing", "validation", "valid", "val", "dev")
_SPLIT_NAME = re.compile(rf"(?P<split>{'|'.join(_SPLITS)})(?:[-_.].*)?\.parquet$", re.IGNORECASE)


def _one_split(path: Path, files: Sequence[InputFile]) -> Sequence[InputFile]:
    """Return the files of the training data, if names of files or folders distinguish splits; otherwise all files.

    The Hugging Face hub uses names such as 'train-00000-of-00002.parquet' and 'train/0.parquet'. Raises DataError if it
    is unclear which files belong together.
    """
    groups: dict[str | None, list[InputFile]] = {}
    for file in files:
        groups.setdefault(_split(file.name), []).append(file)
    if len(groups) > 1 and (None in groups or "train" not in groups):
        names = ", ".join(split or "files without a split" for split in groups)
        raise DataError(
            f"{printable(path)} has Parquet files of several splits, and it is unclear which one to read: "
            f"{printable(names)}.",
            "Name the folder of one split, or one file.",
        )
    chosen = groups["train"] if len(groups) > 1 else files
    folders = sorted({os.path.dirname(file.name) or "." for file in chosen})
    if len(folders) > 1:
        raise DataError(
            f"{printable(path)} has Parquet files in several folders: {printable(', '.join(folders))}.",
            "Name one of these folders.",
        )
    return chosen


def _split(name: str) -> str | None:
    match = _SPLIT_NAME.match(os.path.basename(name))
    folder = os.path.basename(os.path.dirname(name)).lower()
    found = match["split"].lower() if match else folder if folder in _SPLITS else None
    return "train" if found == "training" else found
