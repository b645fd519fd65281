"""The lines of Python that a recommendation ends with run as printed, and store what was measured."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from bench_runner.registries import REGISTRIES, build_loaded
from format_bench.python_lines import lines_of

TABLE = pa.table({"i": [1, 2, 3], "f": [0.5, 1.5, -2.0], "b": [True, False, True], "s": ["a", "b", "c d"]})
IMAGES = [np.arange(48, dtype=np.uint8).reshape(4, 4, 3), np.arange(16, dtype=np.uint8).reshape(4, 4)]
MORE = [
    "csv[engine=pandas,keep_default_na=false,codec=gzip,level=1]",
    "json[engine=pandas,double_precision=15,codec=zstd]",
    "pickle[engine=pandas,codec=xz]",
    "parquet[engine=pyarrow,codec=zstd,level=3]",
    "feather[engine=pyarrow,codec=zstd,level=1]",
    "feather[engine=pyarrow,codec=none]",
    "orc[engine=pyarrow,codec=zstd]",
    "hdf5-table[engine=pandas,codec=blosc:zstd,level=1]",
    "avro[engine=fastavro,codec=deflate,level=6]",
    "lance[engine=pylance,codec=none]",
    "vortex[engine=vortex-data,codec=compact]",
    "hdf5-fixed[engine=pandas,nulls=numpy]",
]
EXAMPLE = Path(__file__).parents[1] / "contracts" / "example"
FORMATS, STORAGES = REGISTRIES
TABULAR = [*(engine().variant for name in FORMATS for engine in FORMATS.engines(name)), *MORE]
STORAGE = [engine().variant for name in STORAGES for engine in STORAGES.engines(name)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("target", ["pandas", "arrow"])
@pytest.mark.parametrize("variant", [name for name in TABULAR if not name.startswith(("faulty", "example", "raw-io"))])
def test_the_lines_of_a_format_run_and_store_what_was_measured(variant: str, target: str, folder: Path) -> None:
    lines = lines_of(variant, target)
    held = {"df": TABLE.to_pandas()} if target == "pandas" else {"table": TABLE}
    names: dict[str, object] = dict(held)
    exec(lines.text(), names)
    if target == "pandas":
        pd.testing.assert_frame_equal(names["df"], held["df"], check_dtype=False)  # type: ignore[arg-type]
    else:
        assert names["table"].to_pydict() == TABLE.to_pydict()  # type: ignore[attr-defined]
    (stored,) = folder.iterdir()
    adapter = build_loaded(variant.replace(",nulls=numpy", ""))
    assert adapter.read(stored) is not None
    if adapter.values.get("codec") not in (None, "auto"):
        assert adapter.stored(stored).codec == adapter.values["codec"]


@pytest.mark.parametrize("target", ["pandas", "arrow"])
def test_the_lines_of_a_third_partys_format_of_records_run(
    target: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no calls to show, and gives rows without a schema."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    importlib.invalidate_caches()
    FORMATS.__dict__.pop("entries", None)
    try:
        test_the_lines_of_a_format_run_and_store_what_was_measured("json-document[engine=json]", target, folder)
    finally:
        monkeypatch.undo()
        FORMATS.__dict__.pop("entries", None)


@pytest.mark.parametrize("variant", [name for name in STORAGE if not name.startswith("image-raw-io")])
def test_the_lines_of_a_storage_run(variant: str, folder: Path) -> None:
    names: dict[str, object] = {"arrays": IMAGES, "labels": [3, 7]}
    exec(lines_of(variant, "images").text(), names)
    read = names["images"]
    assert read.labels == [3, 7]  # type: ignore[attr-defined]
    assert [image.shape for image in read.arrays] == [(4, 4, 3), (4, 4)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("variant", TABULAR)
def test_two_lines_are_two_lines(variant: str) -> None:
    for target in ("pandas", "arrow"):
        lines = lines_of(variant, target)
        assert "\n" not in lines.save + lines.read
        assert all(line.startswith(("import ", "from ")) for line in lines.imports)
