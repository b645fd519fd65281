"""A plan is complete and checked before anything runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from adapters.offers import Parts
from adapters.registry import Availability
from bench_runner.errors import PlanError
from bench_runner.plan.chain import Plan
from bench_runner.plan.nulls import with_null_variants
from bench_runner.plan.planning import make_plan
from bench_runner.request import Request
from bench_runner.suites import SUITES
from data_generator.errors import DataError
from formats.registry import FORMATS

TABULAR = [SUITES["tabular"]]


def plan(**request: object) -> Plan:
    return make_plan(TABULAR, Request(**{"rows": 1000, **request}))  # type: ignore[arg-type]


def test_the_tabular_suite_holds_every_format_on_six_tables() -> None:
    made = plan()
    plain = [chain for chain in made.chains if chain.conditions.track == "plain"]
    assert {chain.dataset for chain in plain} == {"eq", "int", "float", "bool", "str", "core"}
    for dataset in made.datasets:
        formats = [chain.variant.partition("[")[0] for chain in plain if chain.dataset == dataset]
        left_out = {"duckdb-table", "hdf5-pytables", "sqlite-table"}
        assert sorted(set(formats)) == [name for name in FORMATS if name not in left_out]


def test_a_call_that_loses_values_comes_with_its_lossless_sibling() -> None:
    """A loss caused by a call's defaults is not a loss of the format, so a lossless variant is measured too
    (rule 12)."""
    variants = {chain.variant for chain in plan(datasets=("eq",)).chains}
    assert {"csv[engine=pandas]", "csv[engine=pandas,keep_default_na=false]"} <= variants
    assert {"json[engine=pandas]", "json[engine=pandas,double_precision=15]"} <= variants


def test_the_equal_track_is_zstd_for_all_that_have_it() -> None:
    variants = [chain.variant for chain in plan(datasets=("eq",), tracks=("equal",)).chains if not chain.is_raw_io]
    assert {variant.partition("[")[0] for variant in variants} == {
        *("avro", "f3", "feather", "hdf5-fixed", "hdf5-table", "lance", "orc", "parquet")
    }
    assert all("zstd" in variant or "zstandard" in variant for variant in variants)


def test_a_variant_spelled_in_full_names_itself() -> None:
    made = plan(datasets=("eq",), formats=("parquet[engine=pyarrow,codec=snappy]",))
    assert [chain.variant for chain in made.chains if not chain.is_raw_io] == ["parquet[engine=pyarrow,codec=snappy]"]


def test_a_variant_spelled_in_part_names_the_one_that_its_settings_make() -> None:
    made = plan(datasets=("eq",), formats=("f3[decoder=wasm]", "parquet[codec=snappy]"))
    assert [chain.variant for chain in made.chains if not chain.is_raw_io] == [
        "parquet[engine=pyarrow,codec=snappy]",
        "f3[codec=adaptive,decoder=wasm]",
    ]


def test_a_plain_call_comes_with_the_settings_that_its_engine_adds() -> None:
    made = plan(datasets=("eq",), formats=("^f3",))
    assert [(chain.variant, chain.conditions.track) for chain in made.chains if not chain.is_raw_io] == [
        ("f3[codec=none]", "plain"),
        ("f3[codec=none,decoder=wasm]", "plain"),
        ("f3[codec=adaptive]", "default"),
    ]


def test_a_variant_spelled_in_full_names_no_other_one() -> None:
    """The brackets of a variant are not a character class. In some variants they would be an invalid regular
    expression."""
    odd = plan(formats=("vortex[engine=vortex-data]",), datasets=("^eq$",))
    assert {chain.variant for chain in odd.chains if not chain.is_raw_io} == {"vortex[engine=vortex-data]"}
    images = make_plan([SUITES["image"]], Request(formats=("sqlite[engine=sqlite3]",), rows=10))
    assert {chain.variant for chain in images.chains if not chain.is_raw_io} == {"sqlite[engine=sqlite3]"}


def test_webface_is_added_to_the_requested_data_sets(tmp_path: Path) -> None:
    path = tmp_path / "faces.h5"
    with h5py.File(path, "w") as file:
        file["table"] = np.zeros(10, dtype=[("age", "i8")])
    assert list(plan(datasets=("^eq$",), webface=path).datasets) == ["eq", "webface"]
    assert list(plan(datasets=("^eq$",), generated_webface=True).datasets) == ["eq", "webface"]


@pytest.mark.rule(10)
def test_the_default_track_holds_what_differs_from_plain() -> None:
    default = {chain.variant for chain in plan().chains if chain.conditions.track == "default"}
    assert "parquet[engine=pyarrow,codec=snappy]" in default
    assert "feather[engine=pyarrow,codec=lz4]" in default
    assert not any(variant.startswith(("csv", "raw-io")) for variant in default)


def test_every_variant_names_its_engine() -> None:
    for chain in plan().chains:
        assert "engine=" in chain.variant or {"save=", "read="} <= {part + "=" for part in ("save", "read")}
        assert "[" in chain.variant


@pytest.mark.rule(16)
def test_raw_io_stays_and_never_converts() -> None:
    made = plan(formats=("parquet",), datasets=("eq",))
    yardsticks = [chain for chain in made.chains if chain.is_raw_io]
    assert len(yardsticks) == 1
    assert yardsticks[0].target.kind == yardsticks[0].conditions.target == "arrow"


def test_formats_are_chosen_and_dropped() -> None:
    made = plan(formats=("parquet|csv",), formats_not=("snappy",), datasets=("^eq$",))
    assert {chain.variant.partition("[")[0] for chain in made.chains} == {"csv", "parquet", "raw-io"}
    assert not any("snappy" in chain.variant for chain in made.chains)


def test_on_request_means_by_name() -> None:
    assert "webface" not in plan(datasets=(".*",)).datasets
    assert list(plan(datasets=("webface",)).datasets) == ["webface"]
    assert list(plan(datasets=("^eq$", "bi")).datasets) == ["eq", "bi"]
    assert list(plan(datasets=("synthetic[int=2,str=1]",)).datasets) == ["synthetic[int=2,str=1]"]


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"datasets": ("nosuch",)}, "matches no data set"),
        ({"datasets": ("(",)}, "not a regular expression"),
        ({"formats": ("[",)}, "not a regular expression"),
        ({"formats": ("nosuchformat",)}, "matches no variant"),
        ({"operations": ("fly",)}, "matches no operation"),
    ],
)
def test_a_wrong_request_lists_what_exists(request_: dict[str, object], words: str) -> None:
    with pytest.raises(PlanError, match=words) as raised:
        plan(**request_)
    assert raised.value.next_step
    assert raised.value.parameter in request_


def test_a_wrong_parameter_of_a_data_set() -> None:
    with pytest.raises(DataError):
        plan(datasets=("synthetic[ints=5]",))


def test_excel_refuses_too_many_rows_with_a_reason() -> None:
    made = plan(rows=1_100_000, datasets=("eq",), formats=("excel",))
    (excluded,) = made.excluded
    assert excluded.failure.kind == "refused"
    assert "1,048,575" in excluded.failure.reason
    assert all("excel" not in chain.variant for chain in made.chains)


def test_a_missing_library_is_a_row_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    real = FORMATS.availability

    def availability(engine: type, codec: object = None) -> Availability:
        found = real(engine, codec)
        return replace(found, missing=("pylance",)) if engine.format == "lance" else found  # type: ignore[attr-defined]

    monkeypatch.setattr(FORMATS, "availability", availability)
    (excluded,) = plan(datasets=("eq",)).excluded
    assert excluded.failure.kind == "not installed"
    assert "pip install" in excluded.failure.reason


@pytest.mark.parametrize("kind", ["int", "bool"])
@pytest.mark.rule(8)
def test_masked_nulls_are_refused_and_measured_apart(kind: str) -> None:
    data = f"synthetic[{kind}=1,str=1,nulls=0.1]"
    planned = plan(datasets=(data,), formats=("hdf5-table", "csv"), tracks=("plain",))
    made = with_null_variants(planned, {data: frozenset({f"{kind}_1", "str_1"})})
    (excluded,) = made.excluded
    assert excluded.chain.variant == "hdf5-table[engine=pandas]"
    assert "Int64" in excluded.failure.reason
    apart = next(chain for chain in made.chains if "hdf5" in chain.variant)
    assert apart.variant == "hdf5-table[engine=pandas,nulls=numpy]"
    assert apart.target.nulls == "numpy"
    assert apart.spelled == "hdf5-table[engine=pandas]"


def test_text_with_nulls_is_no_reason_to_refuse() -> None:
    made = plan(datasets=("synthetic[int=1,str=1,nulls=0.1]",), formats=("hdf5-table",))
    again = with_null_variants(made, {"synthetic[int=1,str=1,nulls=0.1]": frozenset({"str_1"})})
    assert again == made


def test_a_save_without_a_read_is_verified_by_one_in_service() -> None:
    chains = plan(operations=("save",)).chains
    assert {chain.operations for chain in chains} == {("save",)}
    assert chains[0].needed_for(("save",)) == ("save", "read")


def test_what_sees_all_of_the_data_is_enough_to_verify_a_save() -> None:
    (chain, *_) = plan(operations=("save", "read", "project")).chains
    assert chain.needed_for(chain.operations) == ("save", "read", "project[columns=4]")
    assert chain.needed_for(("save", "project[columns=4]")) == ("save", "project[columns=4]", "read")
    assert chain.needed_for(("project[columns=4]",)) == ("save", "project[columns=4]")


def test_a_pattern_means_a_format_with_all_of_its_settings() -> None:
    kept = {chain.variant for chain in plan(datasets=("eq",), formats=("^csv$",)).chains}
    assert kept == {"csv[engine=pandas]", "csv[engine=pandas,keep_default_na=false]", "raw-io[engine=readinto]"}
    left = {chain.variant.partition("[")[0] for chain in plan(datasets=("eq",), formats_not=("^csv$",)).chains}
    assert "csv" not in left
    assert {"avro", "xml"} <= left


def test_a_pattern_means_a_data_set_with_its_parameters() -> None:
    request = Request(rows=1000, datasets=("^tpch-lineitem$",), formats=("feather",))
    made = make_plan([SUITES["compression"]], request)
    assert list(made.datasets) == ["tpch-lineitem[scale=1]"]


@pytest.mark.parametrize(
    ("asked", "operations"),
    [
        ((), ("save", "read")),
        (("read",), ("save", "read")),
        (("project",), ("save", "project[columns=4]")),
        (("project[columns=2]|read",), ("save", "read", "project[columns=2]")),
        (("project[columns=2]", "project"), ("save", "project[columns=4]", "project[columns=2]")),
        (("^(save|read)$",), ("save", "read")),
        (("^project$",), ("save", "project[columns=4]")),
    ],
)
def test_operations_are_named_spelled_or_searched_for(asked: tuple[str, ...], operations: tuple[str, ...]) -> None:
    assert {chain.operations for chain in plan(datasets=("^eq$",), operations=asked).chains} == {operations}


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("raed", r"'raed' matches no operation of the suite tabular \(did you mean 'read'\?\)\.\n  It has save, read"),
        ("read|raed", "'raed' matches no operation"),
        ("projekt[columns=2]", r"matches no operation of the suite tabular \(did you mean 'project'\?\)"),
        ("project[colums=2]", r"no parameter 'colums' \(did you mean 'columns'\?\)"),
        ("project[columns=none]", r"columns must be a number from 1 on \(got 'project\[columns=none\]'"),
    ],
)
def test_a_wrong_operation_lists_what_exists(asked: str, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        plan(operations=(asked,))


def test_an_operation_of_tables_is_refused_for_images() -> None:
    with pytest.raises(PlanError, match="applies to tables, but the suite image measures images"):
        images(operations=("project",))


def test_an_operation_that_the_data_refuse_costs_only_its_own_cell() -> None:
    made = plan(datasets=("^eq$",), formats=("csv",), tracks=("plain",), operations=("read", "project[columns=50]"))
    assert {chain.operations for chain in made.chains} == {("save", "read")}
    assert {each.chain.operations for each in made.excluded} == {("project[columns=50]",)}
    assert {(each.failure.kind, each.failure.reason) for each in made.excluded} == {
        ("refused", "it reads 50 columns, but the table has 8")
    }
    assert {each.chain.variant for each in made.excluded} == {chain.variant for chain in made.chains}


def test_work_dirs_are_conditions() -> None:
    made = plan(datasets=("eq",), formats=("csv",), work_dirs=("default", "/mnt/other"))
    assert {chain.conditions.work_dir for chain in made.chains} == {"default", "/mnt/other"}


# --- codecs --------------------------------------------------------------------------------------------------------


def codecs(**request: object) -> Plan:
    return make_plan([SUITES["compression"]], Request(**{"rows": 1000, "datasets": ("eq",), **request}))  # type: ignore[arg-type]


def test_the_compression_suite_is_the_thesiss_and_f3() -> None:
    made = make_plan([SUITES["compression"]], Request())
    assert list(made.datasets) == ["eq", "core", "tpch-lineitem[scale=1]", "webface"]
    assert {dataset.rows for dataset in made.datasets.values()} == {1_000_000}
    variants = [chain.variant for chain in made.chains if chain.dataset == "eq" and not chain.is_raw_io]
    assert variants == [
        "f3[codec=none]",
        "f3[codec=lz4]",
        "f3[codec=zstd]",
        "feather[engine=pyarrow,codec=none]",
        "feather[engine=pyarrow,codec=lz4,level=1]",
        "feather[engine=pyarrow,codec=zstd,level=1]",
        "hdf5-table[engine=pandas]",
        "hdf5-table[engine=pandas,codec=blosc:lz4,level=1]",
        "hdf5-table[engine=pandas,codec=blosc:zstd,level=1]",
        "orc[engine=pyarrow,codec=none]",
        "orc[engine=pyarrow,codec=lz4]",
        "orc[engine=pyarrow,codec=zstd]",
        "parquet[engine=pyarrow,codec=none]",
        "parquet[engine=pyarrow,codec=lz4]",
        "parquet[engine=pyarrow,codec=zstd,level=1]",
    ]
    assert {chain.conditions.track for chain in made.chains} == {"codecs"}


def test_the_data_sets_of_the_compression_suite_answer_to_their_names() -> None:
    assert list(codecs(datasets=("tpch-lineitem",)).datasets) == ["tpch-lineitem[scale=1]"]


def test_all_codecs_of_all_formats() -> None:
    variants = {chain.variant for chain in codecs(codecs=("all",)).chains}
    formats = {variant.partition("[")[0] for variant in variants}
    with_codecs = {name for name in FORMATS if "codec" in FORMATS.engines(name)[0].settings}
    assert formats == {*with_codecs, "raw-io"}
    for codec in ("gzip", "bz2", "xz", "zstd"):
        assert f"csv[engine=pandas,codec={codec},level=1]" in variants
    assert "avro[engine=fastavro,codec=xz]" in variants
    assert "hdf5-table[engine=pandas,codec=blosc2:zstd,level=1]" in variants
    assert "vortex[engine=vortex-data,codec=compact]" in variants


def test_a_codec_comes_with_its_format_without_one() -> None:
    made = codecs(codecs=("gzip",), formats=("parquet",))
    assert [chain.variant for chain in made.chains if not chain.is_raw_io] == [
        "parquet[engine=pyarrow,codec=none]",
        "parquet[engine=pyarrow,codec=gzip,level=1]",
    ]


def test_a_level_that_a_writer_does_not_take_is_refused_in_the_plan() -> None:
    made = codecs(codecs=("gzip", "snappy"), levels=(1, 12), formats=("parquet",))
    refused = {excluded.chain.variant: excluded.failure for excluded in made.excluded}
    assert {failure.kind for failure in refused.values()} == {"refused"}
    assert "allowed: 1 to 9" in refused["parquet[engine=pyarrow,codec=gzip,level=12]"].reason
    assert "takes no level" in refused["parquet[engine=pyarrow,codec=snappy,level=1]"].reason
    assert "parquet[engine=pyarrow,codec=snappy]" in {chain.variant for chain in made.chains}


@pytest.mark.parametrize(
    ("suite", "request_", "words"),
    [
        ("compression", {"codecs": ("zstandart",)}, "did you mean 'zstandard'"),
        ("compression", {"tracks": ("plain",)}, "tracks does not apply"),
        ("tabular", {"codecs": ("zstd",)}, "codecs and levels apply to the suite compression only"),
        ("engines", {"tracks": ("default",)}, "tracks does not apply to the suite engines"),
        ("tabular", {"levels": (3,)}, "codecs and levels apply to the suite compression only"),
        ("image", {"target": "arrow"}, "target applies to tables only"),
        ("image", {"strings": "object"}, "strings applies to tables only"),
        ("image", {"datasets": ("eq",)}, "holds tables, but the suite image measures images"),
        ("tabular", {"datasets": ("cifar-like",)}, "Choose the suite image"),
    ],
)
def test_options_that_do_not_belong_to_the_suite(suite: str, request_: dict[str, object], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        make_plan([SUITES[suite]], Request(**request_))  # type: ignore[arg-type]


# --- calls ---------------------------------------------------------------------------------------------------------

ENGINES = SUITES["engines"]


def calls(**request: object) -> Plan:
    return make_plan([ENGINES], Request(**{"rows": 1000, **request}))  # type: ignore[arg-type]


def test_the_engines_suite_spells_its_calls_as_they_are_honoured() -> None:
    for spelled in ENGINES.variants.spelled:
        assert FORMATS.build(spelled).variant == spelled


def test_every_format_of_the_engines_suite_has_more_than_one_call() -> None:
    formats = [spelled.partition("[")[0] for spelled in ENGINES.variants.spelled]
    assert {name: formats.count(name) for name in formats if formats.count(name) < 2} == {}
    elsewhere = {FORMATS.engine("parquet[engine=near-storage]")[0]}
    offered = {
        name: {engine for engine in FORMATS.engines(name) if engine.parts is not Parts.DASK} - elsewhere
        for name in FORMATS
    }
    with_a_choice = {name for name, engines in offered.items() if len(engines) > 1}
    assert with_a_choice <= set(formats)
    engines = {FORMATS.engine(spelled)[0] for spelled in ENGINES.variants.spelled}
    assert {engine for name in with_a_choice for engine in offered[name]} <= engines


def test_calls_are_measured_under_both_conditions_of_threads() -> None:
    made = calls(datasets=("^eq$",))
    by_threads = {
        threads: [chain.variant for chain in made.chains if chain.conditions.threads == threads]
        for threads in ("default", "1")
    }
    assert by_threads["default"] == by_threads["1"]
    assert by_threads["1"][1:] == list(ENGINES.variants.spelled)
    assert {chain.conditions.track for chain in made.chains} == {"plain"}


@pytest.mark.parametrize("threads", ["default", "1"])
def test_threads_of_the_request_replace_those_of_the_suite(threads: str) -> None:
    assert {chain.conditions.threads for chain in calls(threads=threads).chains} == {threads}
    assert {chain.conditions.threads for chain in plan(threads=threads).chains} == {threads}


def test_other_suites_leave_threads_to_the_libraries() -> None:
    for suite in SUITES.values():
        if suite is not ENGINES:
            assert suite.threads == ("default",)


# --- images --------------------------------------------------------------------------------------------------------


def images(**request: object) -> Plan:
    return make_plan([SUITES["image"]], Request(**{"rows": 100, **request}))  # type: ignore[arg-type]


def test_the_image_suite_holds_the_thesiss_storages() -> None:
    made = images()
    assert list(made.datasets) == ["cifar-like"]
    names = {chain.variant.partition("[")[0] for chain in made.chains}
    assert names == {"png", "base64", "image-hdf5", "image-parquet", "sqlite", "lmdb", "image-raw-io"}
    assert {chain.target.kind for chain in made.chains} == {"images"}
    assert len([chain for chain in made.chains if chain.is_raw_io]) == 2, "one for owned arrays, one for views"


def test_views_are_planned_in_addition_to_owned_arrays() -> None:
    variants = [chain.variant for chain in images(formats=("lmdb",)).chains if not chain.is_raw_io]
    assert len(variants) == 2
    assert ["arrays=views" in variant for variant in variants] == [False, True]


def test_other_storages_are_asked_for() -> None:
    names = {chain.variant.partition("[")[0] for chain in images(formats=("webdataset|webp",)).chains}
    assert names == {"webdataset", "webp", "image-raw-io"}


def test_two_suites_in_one_plan_take_the_data_sets_that_are_theirs() -> None:
    made = make_plan([SUITES["tabular"], SUITES["image"]], Request(rows=100, datasets=("^eq$", "cifar-like")))
    assert {(chain.suite, chain.dataset) for chain in made.chains} == {("tabular", "eq"), ("image", "cifar-like")}


def test_one_data_set_has_one_number_of_rows_in_a_run() -> None:
    both = [SUITES["tabular"], SUITES["compression"]]
    with pytest.raises(PlanError, match="webface: 10,000,000 and 1,000,000"):
        make_plan(both, Request(datasets=("webface",)))
    assert list(make_plan(both, Request(datasets=("webface",), rows=1000)).datasets) == ["webface"]


# --- the user's own table ------------------------------------------------------------------------------------------


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FORMAT_BENCH_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "mine.csv"
    path.write_text("number,text\n" + "1,x\n" * 5000)
    return path


@pytest.mark.parametrize("suite", ["tabular", "compression"])
def test_a_table_of_ones_own_is_measured_in_place_of_ours(suite: str, own: Path) -> None:
    made = make_plan([SUITES[suite]], Request(data=own))
    assert list(made.datasets) == ["table"]
    assert made.datasets["table"].rows == 5000


def test_two_sizes_of_the_users_own_table_are_measured_with_ours(own: Path) -> None:
    made = plan(data=own, datasets=("^eq$", "table", "table[share=0.25]"))
    # The sample has the first 16 rows of each of 16 blocks, which have 62 or 63 rows.
    assert {name: dataset.rows for name, dataset in made.datasets.items()} == {
        **{"eq": 1000, "table": 1000},
        "table[share=0.25]": 256,
    }


def test_data_that_nothing_reads_are_not_left_aside(own: Path) -> None:
    with pytest.raises(PlanError, match="None of the data sets in datasets uses data="):
        plan(data=own, datasets=("^eq$",))


def test_a_table_without_a_path_names_the_missing_option() -> None:
    with pytest.raises(DataError, match="The data set table needs data\\.\n  A table is read from CSV"):
        plan(datasets=("table",))


def test_a_table_for_images_and_images_for_a_table_say_where_they_go(own: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"mine\.csv .*\n  Images are read from .*the suite tabular"):
        make_plan([SUITES["image"]], Request(data=own))
    (tmp_path / "one.png").write_bytes(b"x")
    with pytest.raises(DataError, match="use the suite image"):
        plan(data=tmp_path / "one.png")
