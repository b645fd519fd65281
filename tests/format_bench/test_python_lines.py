"""The lines of Python that a recommendation ends with run as printed, and store what was measured."""

from __future__ import annotations

import importlib
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from adapters.contract import TabularFormat
from adapters.predicate import Kind
from bench_runner.operations import operation_of
from bench_runner.registries import REGISTRIES, build_loaded
from format_bench.python_lines import OWN_CODE, lines_of, part_lines_of

TABLE = pa.table({"i": [1, 2, 3], "f": [0.5, 1.5, -2.0], "b": [True, False, True], "s": ["a", "b", "c d"]})
LARGER = pa.table({"i": range(40), "f": [n / 2 for n in range(40)], "s": [f"{'ab'[n % 2]} {n}" for n in range(40)]})
"""Without nulls: conditions on them are tested elsewhere."""
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
SMALL_GROUPS = [
    "parquet[engine=pyarrow,codec=none,row_group_rows=7]",
    "feather[engine=pyarrow,codec=none,batch_rows=7]",
    "feather[engine=pyarrow,codec=none,mapped=true]",
    "f3[codec=none,rows_per_unit=7]",
]
NAMES = {
    "columns": ["s", "i"],
    "rows": [31, 2, 39, 2, 0],
    **{"low": 10, "high": 20, "value": 7, "values": [5, 33], "prefix": "a"},
}
CONDITIONS = {
    Kind.RANGE: ("i", list(range(10, 20))),
    Kind.EQUAL: ("i", [7]),
    Kind.IN: ("i", [5, 33]),
    Kind.NULL: ("i", []),
    Kind.PREFIX: ("s", [n for n in range(40) if n % 2 == 0]),
}
"""The column that each kind of condition is about, and the rows that meet it."""
EXAMPLE = Path(__file__).parents[1] / "contracts" / "example"
FORMATS = REGISTRIES["tables"]
TABULAR = [*(engine().variant for name in FORMATS for engine in FORMATS.engines(name)), *MORE]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


STORES = [
    "json-lines",
    "json-lines[engine=msgspec,codec=zstd,level=7]",
    "sqlite-json",
    "document-store[layout=amax]",
    "document-store[layout=vector,codec=none,merges=late,pages=kept]",
]


@pytest.mark.parametrize("variant", STORES)
def test_the_lines_of_a_store_give_the_documents_back(variant: str, folder: Path) -> None:
    names: dict[str, object] = {"lines": b'{"id":1,"a":{"b":[1,2.0]}}\n{"id":2,"a":null}\n'}
    lines = lines_of(variant, "documents")
    exec(lines.text(), names)
    # What needs the adapter says so, and files are those that were measured.
    assert ("bench_runner" in lines.text()) == (OWN_CODE in lines.text()) == (variant == "sqlite-json")
    (stored,) = folder.iterdir()
    adapter = build_loaded(variant)
    assert adapter.stored(stored).codec == adapter.values.get("codec")
    opened = adapter.open(stored, "id")  # type: ignore[attr-defined]
    assert opened.count() == 2
    opened.close()
    assert sorted(names["documents"], key=lambda each: each["id"]) == [
        {"id": 1, "a": {"b": [1, 2.0]}},
        {"id": 2, "a": None},
    ]


@pytest.mark.parametrize("variant", STORES)
def test_the_lines_of_a_part_of_documents_run_behind_those_of_all(variant: str, folder: Path) -> None:
    names: dict[str, object] = {"lines": b'{"n":1,"a":{"b":2}}\n{"n":2}\n', "keys": [2, 3], "paths": [("a", "b")]}
    exec(lines_of(variant, "documents", "n").text(), names)
    exec(part_lines_of(variant, "documents", "get[documents=1]", "n").text(), names)
    assert names["documents"] == [{"n": 2}, None]
    if "opened" in names:
        names.pop("opened").close()  # type: ignore[attr-defined]
    exec(lines_of(variant, "documents", "n").read, names)
    exec(part_lines_of(variant, "documents", "fields[paths=1]", "n").text(), names)
    assert sorted(map(str, names["documents"])) == ["{'a': {'b': 2}}", "{}"]  # type: ignore[call-overload]


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


@pytest.mark.parametrize("variant", TABULAR)
def test_two_lines_are_two_lines(variant: str) -> None:
    for target in ("pandas", "arrow"):
        lines = lines_of(variant, target)
        assert "\n" not in lines.save + lines.read
        assert all(line.startswith(("import ", "from ")) for line in lines.imports)


@pytest.mark.parametrize("target", ["pandas", "arrow"])
@pytest.mark.parametrize(
    "variant", [name for name in [*TABULAR, *SMALL_GROUPS] if not name.startswith(("faulty", "example", "raw-io"))]
)
def test_the_lines_for_a_part_run_and_give_what_the_operation_does(variant: str, target: str, folder: Path) -> None:
    """Both for variants with a call for it, and for those without."""
    held = "df" if target == "pandas" else "table"
    whole = LARGER.to_pandas() if target == "pandas" else LARGER
    exec(lines_of(variant, target).text(), {held: whole})

    def rows_of(text: str, **names: object) -> list[dict[str, object]]:
        told: dict[str, object] = {**NAMES, **names}
        exec(text, told)
        result = told[held]
        return result.to_dict("records") if target == "pandas" else result.to_pylist()  # type: ignore[attr-defined]

    everything = LARGER.select(["s", "i"]).to_pylist()
    assert rows_of(part_lines_of(variant, target, "project[columns=2]").text()) == everything
    taken = rows_of(part_lines_of(variant, target, "take").text())
    assert taken == [everything[number] for number in (31, 2, 39, 2, 0)], "in the order asked, one of them twice"
    for kind, (column, met) in CONDITIONS.items():
        scanned = rows_of(part_lines_of(variant, target, f"scan[kind={kind.value}]").text(), column=column)
        assert scanned == [everything[number] for number in met], kind
    # A format of records has no schema for what it reads: nothing is cast to text by adding it.
    more = whole[:3] if target == "pandas" else whole.slice(0, 3)
    exec(part_lines_of(variant, target, "append").text(), {"more": more})
    grown = rows_of("\n".join((*lines_of(variant, target).imports, lines_of(variant, target).read)))
    assert grown == [*LARGER.to_pylist(), *LARGER.slice(0, 3).to_pylist()]


def test_the_lines_are_calls_of_the_library_wherever_it_has_one() -> None:
    """Our own code is printed only for engines that need more than a few lines."""
    ours: dict[str, set[str]] = {}
    for variant in TABULAR:
        adapter = build_loaded(variant.replace(",nulls=numpy", "")) if "raw-io" not in variant else None
        if not isinstance(adapter, TabularFormat) or adapter.calls is None:
            continue
        for spelled in ("project[columns=2]", "take", "scan", "append"):
            own = not operation_of(spelled).fallback(adapter)
            if own and "build_loaded" in part_lines_of(variant, "arrow", spelled).text():
                ours.setdefault(adapter.format, set()).add(spelled.partition("[")[0])
    assert ours == {"avro": {"project", "take", "append"}, "feather": {"take"}, "orc": {"take"}, "parquet": {"take"}}


def test_the_lines_of_vortex_give_lists_of_text_that_pandas_takes(folder: Path) -> None:
    lists = pa.table({"words": [["a", "b"], [], ["c d" * 20]], "number": [1, 2, 3]})
    names: dict[str, object] = {"df": lists.to_pandas(), "columns": ["words"], "rows": [2, 0]}
    exec(lines_of("vortex[engine=vortex-data]", "pandas").text(), names)
    assert [list(each) for each in names["df"]["words"]] == lists["words"].to_pylist()  # type: ignore[index]
    exec(part_lines_of("vortex[engine=vortex-data]", "pandas", "take").text(), names)
    assert [list(each) for each in names["df"]["words"]] == [["c d" * 20], ["a", "b"]]  # type: ignore[index]


@pytest.mark.parametrize("variant", ["parquet[engine=pyarrow,codec=none]", "lance[engine=pylance,codec=none]"])
def test_an_index_is_not_a_column(variant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the measurement, whose tables have only the default index."""
    monkeypatch.chdir(tmp_path)
    found = lines_of(variant, "pandas")
    names = {"df": pd.DataFrame({"a": [1, 2]}, index=[7, 5])}
    exec("\n".join([*found.imports, found.save, found.read]), names)
    assert names["df"].equals(pd.DataFrame({"a": [1, 2]}))
