"""Settings are honoured or refused: levels by codec; the default track writes what the libraries write by default."""

import importlib.metadata
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet
import pytest

from adapters import registry
from adapters.errors import AdapterError, NotInstalled, RefusedSetting
from adapters.registry import Entry, Registry
from bench_runner.machine.linux import files_below
from bench_runner.operations import targets
from bench_runner.operations.targets import Target
from bench_runner.worker import verify
from formats.registry import FORMATS
from tests.contracts.streams import fed
from tests.contracts.tabular import ordinary_table


@pytest.mark.parametrize(
    ("spelled", "reason"),
    [
        ("parquet[codec=snappy,level=3]", "codec=snappy takes no level"),
        ("parquet[codec=none,level=1]", "codec=none takes no level"),
        ("parquet[level=1]", "codec=snappy takes no level"),
        ("parquet[codec=gzip,level=10]", "allowed: 1 to 9"),
        ("parquet[codec=zstd,level=0]", "allowed: 1 to 22"),
        ("feather[codec=lz4,level=20]", "allowed: 1 to 12"),
        ("orc[codec=zstd,level=1]", "no setting is called 'level'"),
        ("orc[codec=brotli]", "allowed: none, snappy, zlib, lz4, zstd"),
        ("avro[codec=lz4]", "allowed: none, deflate, snappy, bzip2, xz, zstandard"),
        ("avro[codec=xz,level=1]", "codec=xz takes no level"),
        ("vortex[codec=zstd]", "allowed: auto, compact"),
        ("lance[codec=lz4,level=1]", "codec=lz4 takes no level"),
        ("hdf5-table[codec=zlib]", "needs a level"),
        ("hdf5-fixed[codec=blosc2:zstd,level=1]", "codec=blosc2:zstd is not possible"),
        ("csv[codec=lz4]", "allowed: none, gzip, bz2, xz, zstd"),
        ("csv[codec=gzip,level=10]", "allowed: 1 to 9"),
        ("csv[engine=modin]", "allowed: pandas, pyarrow, polars, duckdb, dask"),
        ("csv[parser=pyarrow,keep_default_na=false]", "requires keep_default_na=true"),
        ("csv[engine=polars,codec=gzip]", "no setting is called 'codec'"),
        ("json[parser=pyarrow,codec=zstd]", "needs codec=none"),
        ("json[engine=pyarrow]", "allowed: pandas, polars, duckdb"),
        ("orc[engine=polars]", "allowed: pyarrow, pandas"),
        ("parquet[engine=duckdb,codec=gzip,level=1]", "codec=gzip takes no level"),
        ("feather[engine=polars,codec=zstd,level=1]", "no setting is called 'level'"),
        ("avro[engine=polars,codec=xz]", "allowed: none, deflate, snappy"),
        ("excel[read=xlsxwriter]", "allowed: openpyxl, calamine, polars"),
        ("excel[engine=openpyxl]", "engine=openpyxl is not possible"),
    ],
)
def test_what_cannot_be_honoured_is_refused(spelled: str, reason: str) -> None:
    with pytest.raises(RefusedSetting, match=reason.replace("[", r"\[")):
        FORMATS.build(spelled)


CODECS = [
    *(f"parquet[codec={codec}]" for codec in ("none", "snappy", "gzip", "brotli", "lz4", "zstd")),
    *(f"feather[codec={codec}]" for codec in ("none", "lz4", "zstd")),
    *(f"orc[codec={codec}]" for codec in ("none", "snappy", "zlib", "lz4", "zstd")),
    *(f"lance[codec={codec}]" for codec in ("auto", "none", "lz4", "zstd")),
    *(f"vortex[codec={codec}]" for codec in ("auto", "compact")),
    *(f"parquet[engine=duckdb,codec={codec}]" for codec in ("none", "snappy", "gzip", "brotli", "lz4", "zstd")),
]


@pytest.mark.parametrize("spelled", CODECS)
@pytest.mark.rule(10)
def test_the_codec_is_read_back_from_the_file(spelled: str, tmp_path: Path) -> None:
    adapter = FORMATS.build(spelled)
    adapter.load_library()
    adapter.save(ordinary_table(), tmp_path / "t")
    assert adapter.stored(tmp_path / "t").codec == adapter.values["codec"]


FRAME_CODECS = [
    *(f"parquet[engine=pandas,codec={codec}]" for codec in ("none", "snappy", "gzip", "brotli", "lz4", "zstd")),
    *(f"parquet[engine=fastparquet,codec={codec}]" for codec in ("none", "snappy", "gzip", "brotli", "lz4", "zstd")),
    *(f"feather[engine=pandas,codec={codec}]" for codec in ("none", "lz4", "zstd")),
    *(f"orc[engine=pandas,codec={codec}]" for codec in ("none", "snappy", "zlib", "lz4", "zstd")),
    *(f"{name}[codec={codec}]" for name in ("csv", "json", "pickle") for codec in ("none", "gzip", "bz2", "zstd")),
    *(f"{name}[codec=xz]" for name in ("csv", "json", "pickle")),
    *(f"hdf5-{name}[codec={codec},level=1]" for name in ("fixed", "table") for codec in ("zlib", "bzip2", "blosc:lz4")),
    "hdf5-table[codec=blosc2:zstd,level=9]",
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("spelled", FRAME_CODECS)
def test_codecs_of_pandas_calls_are_read_back_and_come_back(spelled: str, tmp_path: Path) -> None:
    frame = ordinary_table().to_pandas()
    adapter = FORMATS.build(spelled)
    adapter.load_library()
    location = tmp_path / f"t{adapter.suffix}"
    adapter.save(frame, location)
    assert adapter.stored(location).codec == adapter.values["codec"]
    assert adapter.read(location).equals(frame)


POLARS_CODECS = [
    *(f"parquet[engine=polars,codec={codec}]" for codec in ("none", "snappy", "gzip", "brotli", "lz4", "zstd")),
    *(f"feather[engine=polars,codec={codec}]" for codec in ("none", "lz4", "zstd")),
    *(f"avro[engine=polars,codec={codec}]" for codec in ("none", "deflate", "snappy")),
]


@pytest.mark.parametrize("spelled", POLARS_CODECS)
def test_codecs_of_polars_are_read_back_and_come_back(spelled: str, tmp_path: Path) -> None:
    adapter = FORMATS.build(spelled)
    adapter.load_library()
    location = tmp_path / f"t{adapter.suffix}"
    target = Target("arrow")
    adapter.save(targets.to_native(ordinary_table(), target, adapter.native), location)
    assert adapter.stored(location).codec == adapter.values["codec"]
    got = targets.from_native(adapter.read(location), target, adapter.native_read)
    assert verify.compare(ordinary_table(), got, target).problems == ()


@pytest.mark.parametrize("codec", ["deflate", "snappy", "bzip2", "xz", "zstandard"])
def test_codecs_of_avro_are_read_back_and_come_back(codec: str, tmp_path: Path) -> None:
    adapter = FORMATS.build(f"avro[codec={codec}]")
    adapter.load_library()
    table = ordinary_table()
    adapter.save(targets.to_native(table, Target("arrow"), adapter.native), tmp_path / "t")
    assert adapter.stored(tmp_path / "t").codec == codec
    assert list(adapter.read(tmp_path / "t").rows) == table.to_pylist()


LEVELS = [
    ("parquet[codec=zstd,level=%d]", 1, 22),
    ("feather[codec=zstd,level=%d]", 1, 22),
    ("lance[codec=zstd,level=%d]", 1, 19),
    ("csv[codec=zstd,level=%d]", 1, 19),
    ("csv[codec=gzip,level=%d]", 1, 9),
    ("pickle[codec=xz,level=%d]", 1, 9),
    ("json[codec=bz2,level=%d]", 1, 9),
    ("hdf5-table[codec=blosc:zstd,level=%d]", 1, 9),
    ("avro[codec=zstandard,level=%d]", 1, 19),
    ("avro[codec=deflate,level=%d]", 1, 9),
    ("parquet[engine=pandas,codec=zstd,level=%d]", 1, 22),
    ("parquet[engine=polars,codec=zstd,level=%d]", 1, 22),
    ("parquet[engine=polars,codec=gzip,level=%d]", 1, 9),
    ("parquet[engine=duckdb,codec=zstd,level=%d]", 1, 22),
    ("parquet[engine=fastparquet,codec=zstd,level=%d]", 1, 19),
    ("parquet[engine=fastparquet,codec=gzip,level=%d]", 1, 9),
    ("feather[engine=pandas,codec=zstd,level=%d]", 1, 22),
    ("parquet[engine=dask,codec=zstd,level=%d]", 1, 22),
    ("hdf5-table[engine=dask,codec=blosc:zstd,level=%d]", 1, 9),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("spelled", "low", "high"), LEVELS)
@pytest.mark.rule(10)
def test_the_level_reaches_the_codec(spelled: str, low: int, high: int, tmp_path: Path) -> None:
    """A level that is ignored, as fastavro does for bzip2 and xz, would give figures under a false name."""
    # For some codecs sizes differ clearly only with more rows.
    few = {"avro[codec=deflate": 50_000, "avro[codec=zstandard": 20_000, "lance[codec=zstd": 20_000}
    table = ordinary_table(few.get(spelled.partition(",")[0], 5_000))
    sizes: dict[str, list[int]] = {}
    for level in (low, high):
        adapter = FORMATS.build(spelled % level)
        adapter.load_library()
        saved, streamed = (tmp_path / f"{name}-{level}{adapter.suffix}" for name in ("saved", "streamed"))
        adapter.save(targets.to_native(table, Target("arrow"), adapter.native), saved)
        if adapter.offers.save_stream:
            adapter.save_stream(table.schema, fed(adapter, table, table.num_rows), streamed)
        for location in filter(Path.exists, (saved, streamed)):
            size_bytes = sum(path.stat().st_size for path in files_below(location))
            sizes.setdefault(location.name.partition("-")[0], []).append(size_bytes)
    # The level of bz2 is the size of its blocks; larger blocks need not be denser.
    assert all(abs(of_high - of_low) > of_low * 0.01 for of_low, of_high in sizes.values()), sizes


BARE_CALLS: dict[str, Any] = {
    "parquet": pyarrow.parquet.write_table,
    "feather": pyarrow.feather.write_feather,
    "orc": pyarrow.orc.write_table,
}


@pytest.mark.parametrize("name", BARE_CALLS)
@pytest.mark.rule(10)
def test_the_track_default_is_the_library_default(name: str, tmp_path: Path) -> None:
    engine = FORMATS.engines(name)[0]
    adapter = engine(engine.library_default)
    adapter.load_library()
    BARE_CALLS[name](ordinary_table(), str(tmp_path / "bare"))
    adapter.save(ordinary_table(), tmp_path / "ours")
    assert adapter.stored(tmp_path / "bare") == adapter.stored(tmp_path / "ours")


@pytest.mark.parametrize(("name", "call"), [("parquet", "to_parquet"), ("feather", "to_feather"), ("orc", "to_orc")])
@pytest.mark.rule(10)
def test_the_library_default_of_pandas_is_the_same(name: str, call: str, tmp_path: Path) -> None:
    engine = FORMATS.engines(name)[0]
    adapter = engine(engine.library_default)
    adapter.load_library()
    getattr(pd.DataFrame({"a": [1, 2, 3], "s": ["x", "y", "z"]}), call)(tmp_path / "bare")
    assert adapter.stored(tmp_path / "bare").codec == engine.library_default["codec"]


def test_what_is_not_installed_is_said_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FORMATS.engines("avro")[0]
    monkeypatch.setattr(engine, "distributions", ("fastavro", "no-such-distribution"))
    with pytest.raises(NotInstalled, match=r"needs no-such-distribution, .* pip install -e '.\[avro\]'"):
        Registry({"avro": Entry("formats.avro:ENGINES", "avro")}, "none").build("avro")


@pytest.mark.parametrize(
    ("spelled", "missing", "remedy"),
    [
        ("xml[parser=lxml]", "lxml", ".[xml]"),
        ("xml[parser=etree]", "lxml", None),
        ("excel[save=xlsxwriter,read=polars]", "fastexcel", ".[engines]"),
        ("excel[save=xlsxwriter,read=calamine]", "fastexcel", None),
        ("excel[save=xlsxwriter,read=polars]", "xlsxwriter", ".[excel]"),
        ("avro[engine=polars]", "polars", ".[engines]"),
        ("csv[engine=duckdb]", "duckdb", ".[engines]"),
        ("csv[engine=pandas,codec=zstd]", "zstandard", ".[codecs]"),
    ],
)
def test_a_setting_needs_its_own_libraries_alone(
    spelled: str, missing: str, remedy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = registry._version

    def version(name: str) -> str:
        if name == missing:
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(registry, "_version", version)
    engine, settings = FORMATS.engine(spelled)
    found = FORMATS.availability(engine, engine(settings).values)
    assert found.installed == (remedy is None)
    assert remedy is None or remedy in found.install


def test_a_listing_shows_what_the_defaults_need() -> None:
    assert "lxml" in FORMATS.availability(FORMATS.engines("xml")[0]).versions


@pytest.mark.parametrize(
    ("honoured", "other", "words"),
    [
        ("orc[codec=none,stripe_bytes=65536]", "orc[codec=none]", "more than twice the requested stripe_bytes=65536"),
        ("f3[row_group_rows=1000]", "f3", "the file has 1 row groups, but row_group_rows=1000 needs at least"),
    ],
)
def test_a_file_of_larger_units_than_was_asked_for_is_found(
    honoured: str, other: str, words: str, tmp_path: Path
) -> None:
    adapter, careless = FORMATS.build(honoured), FORMATS.build(other)
    table = ordinary_table(30_000)
    for each in (adapter, careless):
        each.load_library()
        each.save(table, tmp_path / f"{each.variant}{each.suffix}")
    adapter.stored(tmp_path / f"{adapter.variant}{adapter.suffix}")
    with pytest.raises(AdapterError, match=words):
        adapter.stored(tmp_path / f"{careless.variant}{careless.suffix}")
    streamed = tmp_path / f"streamed{adapter.suffix}"
    adapter.save_stream(table.schema, iter(table.to_batches(max_chunksize=300)), streamed)
    adapter.stored(streamed)
