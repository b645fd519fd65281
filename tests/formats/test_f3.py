"""F3 keeps the contract, by its native library, by the code in its files, and with codecs."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from adapters.errors import RefusedData
from formats.registry import FORMATS
from libraries.f3.decoders import native
from tests.contracts.tabular import SettingContract, TabularFormatContract


class TestF3(TabularFormatContract):
    variant = "f3[codec=adaptive]"


@pytest.mark.slow
class TestF3ByWasm(TabularFormatContract):
    variant = "f3[codec=none,decoder=wasm]"


class TestF3Zstd(SettingContract):
    variant = "f3[codec=zstd]"


class TestF3WithoutCodec(SettingContract):
    variant = "f3[codec=none,dictionary=none]"


def test_a_short_name_is_one_of_these() -> None:
    assert FORMATS.build("f3").variant == "f3[codec=adaptive]"
    assert FORMATS.build("f3[decoder=wasm]").variant == "f3[codec=adaptive,decoder=wasm]"


def test_what_cannot_be_stored_is_refused_with_column_and_type(tmp_path: Path) -> None:
    adapter = FORMATS.build("f3")
    adapter.load_library()
    table = pa.table({"kind": pa.array(["a", "b"]).dictionary_encode()})
    with pytest.raises(RefusedData, match=r"column kind.*dictionary"):
        adapter.save(table, tmp_path / "t.f3")
    assert list(tmp_path.iterdir()) == []


def test_a_codec_that_saves_nothing_is_not_measured_under_its_name(tmp_path: Path) -> None:
    adapter = FORMATS.build("f3[codec=lz4]")
    adapter.load_library()
    noise = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 10_000)
    adapter.save(pa.table({"n": noise}), tmp_path / "t.f3")
    with pytest.raises(RefusedData, match="codec=lz4 makes no encoding unit"):
        adapter.stored(tmp_path / "t.f3")


def test_without_the_native_library_its_figures_are_not_made_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "library", lambda: None)
    with pytest.raises(RefusedData, match=r"not built.*\[decoder=wasm\]"):
        FORMATS.build("f3").load_library()
    FORMATS.build("f3[decoder=wasm]").load_library()


def test_a_file_says_what_it_is_encoded_as(tmp_path: Path) -> None:
    adapter = FORMATS.build("f3")
    adapter.load_library()
    table = pa.table(
        {"same": pa.array([7] * 5000), "count": pa.array(range(5000)), "text": pa.array(["a", None] * 2500)}
    )
    adapter.save(table, tmp_path / "t.f3")
    encodings = adapter.stored(tmp_path / "t.f3").encodings
    assert "constant" in encodings
    assert set(encodings) <= {"plain", "constant", "packed", "runs", "delta", "dictionary", "patched", "widened"}
