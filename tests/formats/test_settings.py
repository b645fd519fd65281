"""Settings are honoured or refused: levels by codec, and the tracks are what the libraries' bare calls write."""

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet
import pytest

from adapters.errors import NotInstalled, RefusedSetting
from adapters.registry import Entry, Registry
from formats.registry import FORMATS
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
        ("avro[codec=snappy]", "allowed: none, deflate, bzip2, xz"),
        ("vortex[codec=zstd]", "no setting is called 'codec'"),
        ("csv[engine=polars]", "allowed: pandas"),
        ("excel[read=xlsxwriter]", "allowed: openpyxl, calamine"),
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
]


@pytest.mark.parametrize("spelled", CODECS)
def test_the_codec_is_read_back_from_the_file(spelled: str, tmp_path: Path) -> None:
    adapter = FORMATS.build(spelled)
    adapter.load_library()
    adapter.save(ordinary_table(), tmp_path / "t")
    assert adapter.stored(tmp_path / "t").codec == adapter.values["codec"]


@pytest.mark.parametrize("spelled", ["parquet[codec=zstd,level=%d]", "feather[codec=zstd,level=%d]"])
def test_the_level_reaches_the_codec(spelled: str, tmp_path: Path) -> None:
    table = ordinary_table(50_000)
    sizes = []
    for level in (1, 22):
        adapter = FORMATS.build(spelled % level)
        adapter.load_library()
        adapter.save(table, tmp_path / str(level))
        sizes.append((tmp_path / str(level)).stat().st_size)
    assert sizes[1] < sizes[0] * 0.98


BARE_CALLS: dict[str, Any] = {
    "parquet": pyarrow.parquet.write_table,
    "feather": pyarrow.feather.write_feather,
    "orc": pyarrow.orc.write_table,
}


@pytest.mark.parametrize("name", BARE_CALLS)
def test_the_track_default_is_the_bare_call(name: str, tmp_path: Path) -> None:
    engine = FORMATS.engines(name)[0]
    adapter = engine(engine.bare_call)
    adapter.load_library()
    BARE_CALLS[name](ordinary_table(), str(tmp_path / "bare"))
    adapter.save(ordinary_table(), tmp_path / "ours")
    assert adapter.stored(tmp_path / "bare") == adapter.stored(tmp_path / "ours")


@pytest.mark.parametrize(("name", "call"), [("parquet", "to_parquet"), ("feather", "to_feather"), ("orc", "to_orc")])
def test_the_bare_call_of_pandas_is_the_same(name: str, call: str, tmp_path: Path) -> None:
    engine = FORMATS.engines(name)[0]
    adapter = engine(engine.bare_call)
    adapter.load_library()
    getattr(pd.DataFrame({"a": [1, 2, 3], "s": ["x", "y", "z"]}), call)(tmp_path / "bare")
    assert adapter.stored(tmp_path / "bare").codec == engine.bare_call["codec"]


def test_what_is_not_installed_is_said_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FORMATS.engines("avro")[0]
    monkeypatch.setattr(engine, "distributions", ("fastavro", "no-such-distribution"))
    with pytest.raises(NotInstalled, match=r"needs no-such-distribution, .* pip install -e '.\[avro\]'"):
        Registry({"avro": Entry("formats.avro:ENGINES", "avro")}, "none").build("avro")
