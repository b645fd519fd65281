"""The lines of Python that a recommendation of an image storage ends with need the library alone: they run where this
project cannot be imported, and lines and adapter read what the other has stored."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adapters.contract import Images, ImageStorage
from bench_runner.registries import build_loaded
from format_bench import python_lines
from format_bench.python_lines import lines_of
from image_storages.registry import STORAGES

MOST_LINES = 15
LIBRARIES = {"numpy", "PIL", "h5py", "lance", "lmdb", "pyarrow", "webdataset"}
ENGINES = [engine for name in STORAGES for engine in STORAGES.engines(name)]
VARIANTS = [engine(settings).variant for engine in ENGINES for settings in ({}, *engine.beside)]
MORE = [
    "png[compress_level=1]", "jpeg[quality=90]", "webp[quality=95]", "image-parquet[codec=zstd,level=3]",
    "image-parquet[codec=snappy,arrays=views]",
]  # fmt: skip


def image(*shape: int) -> np.ndarray:
    """Smooth, so that lossy storages keep what it looks like."""
    return np.linspace(0, 200, int(np.prod(shape))).astype(np.uint8).reshape(shape)


SETS = {
    "of several shapes": Images([image(20, 24, 3), image(9, 7), image(1, 1), image(30, 8, 3)], [3, 0, 2**40, 7]),
    "of one shape": Images([np.roll(image(16, 8, 3), number, 1) for number in range(300)], list(range(300))),
    "grey and of one shape": Images([image(5, 6), image(5, 6) // 2], [1, 1]),
}

ALONE = """
import os, pickle, sys

PROJECT = %r


class Guard:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in PROJECT:
            raise ImportError(f"{name} is part of the project")


sys.meta_path.insert(0, Guard())
for name in PROJECT:
    try:
        __import__(name)
    except ImportError:
        continue
    sys.exit(f"{name} can be imported")
with open("given", "rb") as file:
    storages, sets = pickle.load(file)
top = os.getcwd()
for storage, variants in storages.items():
    # Of a storage's variants one imports what the others do, and nothing of other storages.
    child = os.fork()
    if child:
        if os.waitpid(child, 0)[1]:
            sys.exit(f"{storage} fails")
        continue
    for variant, (imports, save, read) in variants.items():
        read_back = {}
        for name, given in sets.items():
            for folder, statements in (("ours", [imports, read]), ("lines", [imports, save, read])):
                os.chdir(os.path.join(top, variant, name, folder))
                names = dict(zip(("arrays", "labels"), given)) if folder == "lines" else {}
                exec(compile("\\n".join(statements), folder, "exec"), names)
                read_back[name, folder] = names["arrays"], names["labels"]
        with open(os.path.join(top, variant, "read"), "wb") as file:
            pickle.dump(read_back, file)
    os._exit(0)
"""


def project() -> tuple[str, ...]:
    """The packages at the top of the project."""
    return tuple(each.parent.name for each in Path(python_lines.__file__).parents[1].glob("*/__init__.py"))


def test_the_lines_run_without_the_project_and_store_what_the_adapter_does(tmp_path: Path) -> None:
    lines = {variant: lines_of(variant, "images") for variant in dict.fromkeys([*VARIANTS, *MORE])}
    for variant in lines:
        storage: ImageStorage = build_loaded(variant)
        assert "arrays=views" in variant or "arrays" not in storage.settings or storage.values["arrays"] == "owned"
        for kind, images in SETS.items():
            (tmp_path / variant / kind / "lines").mkdir(parents=True)
            (tmp_path / variant / kind / "ours").mkdir()
            storage.save(images, tmp_path / variant / kind / "ours" / f"data{storage.suffix}")
    # Labels as numpy has them, because many users do.
    sets = {kind: (images.arrays, np.array(images.labels)) for kind, images in SETS.items()}
    statements: dict[str, dict[str, tuple[str, str, str]]] = {}
    for variant, each in lines.items():
        of_storage = statements.setdefault(variant.partition("[")[0], {})
        of_storage[variant] = "\n".join(each.imports), each.save, each.read
    (tmp_path / "given").write_bytes(pickle.dumps((statements, sets)))
    (tmp_path / "alone.py").write_text(ALONE % (project(),))
    alone = [sys.executable, "-I", "alone.py"]
    done = subprocess.run(alone, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    for variant in lines:
        assert_stored_alike(variant, tmp_path / variant)


def assert_stored_alike(variant: str, place: Path) -> None:
    """By the lines and by the adapter, and read alike by both."""
    storage: ImageStorage = build_loaded(variant)
    read = pickle.loads((place / "read").read_bytes())
    for name, images in SETS.items():
        for folder in ("ours", "lines"):
            stored = place / name / folder / f"data{storage.suffix}"
            arrays, labels = read[name, folder]
            by_adapter = storage.read(stored)
            assert labels == by_adapter.labels == images.labels
            assert all(type(label) is int for label in labels)
            assert_equal(arrays, by_adapter.arrays)
            if storage.least_psnr_db is None:
                assert_equal(arrays, images.arrays)
            # A file that is not what its variant says is an error.
            codec = storage.values.get("codec")
            assert codec is None or storage.stored(stored).codec == codec
    # The lossy ones store the same files.
    assert_equal(read["of one shape", "lines"][0], read["of one shape", "ours"][0])


def assert_equal(first: list[np.ndarray], second: list[np.ndarray]) -> None:
    assert [(each.shape, each.dtype) for each in first] == [(each.shape, each.dtype) for each in second]
    assert all(map(np.array_equal, first, second))


@pytest.mark.parametrize("variant", [*VARIANTS, *MORE])
def test_the_lines_are_few_and_import_the_library_alone(variant: str) -> None:
    lines = lines_of(variant, "images")
    text = lines.text().split("\n")
    assert len(text) <= MOST_LINES
    assert max(map(len, text)) <= 120
    imported = {re.split(r"[ .]", line)[1] for line in lines.imports}
    assert imported <= {*sys.stdlib_module_names, *LIBRARIES}
    assert not re.search(r"\{(path|copy|codec|level|ending|kind|options)\}", lines.text()), "a place is empty"


def test_a_third_partys_storage_without_lines_is_used_by_its_adapter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(type(build_loaded("png")), "calls", None)
    given = SETS["of several shapes"]
    names: dict[str, Any] = {"arrays": given.arrays, "labels": given.labels}
    exec(lines_of("png", "images").text(), names)
    assert names["arrays"] is not given.arrays
    assert_equal(names["arrays"], given.arrays)
    assert names["labels"] == given.labels


@pytest.mark.parametrize("engine", [engine for engine in ENGINES if "arrays" in engine.settings])
def test_arrays_with_their_own_memory_are_copies(engine: type[ImageStorage]) -> None:
    """Raw I/O reads each image into its own memory, whatever is asked for."""
    owned, views = (lines_of(engine({"arrays": how}).variant, "images").read for how in ("owned", "views"))
    assert owned.replace(".copy()", "") == views
    assert (".copy()" in owned) == (engine.format != "image-raw-io")
