"""The result files: their pinned schema, and the errors for damaged files."""

from __future__ import annotations

import json
import resource
from functools import partial
from pathlib import Path

import pytest

from bench_runner.request import Request
from bench_runner.results.information import (
    DataSetInfo,
    FolderInfo,
    KnownAnswer,
    MachineInfo,
    OperationInfo,
    ProbeInfo,
    RooflineInfo,
    RooflineLine,
    RunInfo,
    RunWarning,
    VariantInfo,
)
from bench_runner.results.records import (
    Conditions,
    Failure,
    Fidelity,
    RecordError,
    Sample,
    SampleWriter,
    changed,
    read_run,
    write_run_info,
)

GOLDEN = Path(__file__).parent / "golden" / "schema-2"
SCHEMA_1 = Path(__file__).parent / "golden" / "schema-1"

_sample = partial(Sample, suite="tabular", dataset="eq", dataset_digest="9f2c", machine="redacted")
SAMPLES = (
    _sample(
        operation="save",
        rows=1000000,
        variant="parquet[engine=pyarrow,codec=none]",
        library="pyarrow 26.0.0",
        conditions=Conditions(),
        round=0,
        position=0,
        figures={"wall_ns": 390000000, "size_bytes": 47000000},
        codec="none",
        encodings=("PLAIN", "RLE_DICTIONARY"),
    ),
    _sample(
        operation="read",
        rows=1000000,
        variant="json[engine=pandas]",
        library="pandas 3.1.0",
        conditions=Conditions(target="arrow", threads="1"),
        round=1,
        position=1,
        figures={"wall_ns": 2680000000},
        fidelity="declared loss",
        saw_all=True,
        losses=("float64 within 1e-10",),
        warnings=("the first call took 9 times the second",),
        unsettled=True,
    ),
    _sample(
        operation="save",
        rows=2000000,
        variant="excel[save=xlsxwriter,read=calamine]",
        library="xlsxwriter 3.2.0",
        conditions=Conditions(),
        round=1,
        position=2,
        failure=Failure(kind="refused", reason="Excel holds at most 1,048,576 rows, this table has 2,000,000"),
    ),
    _sample(
        operation="project[columns=4]",
        rows=1000000,
        variant="csv[engine=pandas]",
        library="pandas 3.1.0",
        conditions=Conditions(track="spelled"),
        round=1,
        position=3,
        figures={"wall_ns": 680000000},
        fidelity="exact",
        fallback="read-all",
    ),
    _sample(
        operation="read",
        rows=1000000,
        variant="raw-io[engine=readinto]",
        library="",
        conditions=Conditions(target="arrow"),
        round=1,
        position=4,
        figures={"wall_ns": 20000000},
        fidelity="exact",
        saw_all=True,
        in_service=True,
    ),
)
FIDELITY = Fidelity(
    variant="csv[engine=pandas]",
    target="pandas",
    strings="str",
    kind="string",
    nulls=False,
    outcome="lossy",
    how="'NA' becomes missing",
    bound="no other text",
    cause="call",
)

INFO = RunInfo(
    id="2026-03-01T10-00-00-redacted",
    command=("run", "tabular", "--formats", "csv"),
    started="2026-03-01T10:00:00+00:00",
    finished="2026-03-01T10:20:00+00:00",
    resumed=("2026-03-01T10:10:00+00:00",),
    seed=7,
    rounds_asked=7,
    budget_s=600.0,
    timeout_s=60.0,
    isolate="forkserver",
    request=Request(formats=("csv",), operations=("save",), rows=1000000),
    machine=MachineInfo(name="redacted", cpu="invented", cores=2, cpu_limit_cores=1.5, turbo=False),
    libraries={"pandas": "3.1.0"},
    commit="5e1f",
    dirty=True,
    changes="9a0b",
    load_before={"1 min": 0.5},
    load_after={"1 min": 1.0},
    warnings=[RunWarning(text="swap is in use", remedy="close other programs")],
    suites={"tabular": "Which format?"},
    operations={"save": OperationInfo(title="save", writes=True, meaning="store all of the data in a fresh place")},
    variants={
        "csv[engine=pandas]": VariantInfo(
            title="CSV",
            format="csv",
            library="pandas 3.1.0",
            capabilities=("single file",),
            partial_reads=(),
            import_ns=0,
        )
    },
    datasets={"eq": DataSetInfo(digest="9f2c", rows=1000000, size_bytes=60000000, title="equal shares")},
    work_dirs={"default": FolderInfo(path="redacted", filesystem="ext4", rotational=False)},
    rooflines=[
        RooflineInfo(
            dataset="eq",
            work_dir="default",
            when="before",
            measured="2026-03-01T10:01:00+00:00",
            copy_bytes=60000000,
            guest=True,
            compiled=True,
            lines=(
                RooflineLine(kind="random", size_bytes=4096, depth=16, reads=2000, wall_ns=200000000, at_least=True),
            ),
        ),
        RooflineInfo(dataset="eq", work_dir="default", when="after", why_none="the disk is full"),
    ],
    probe=ProbeInfo(
        error_bytes=40000,
        known_answers=(
            KnownAnswer(how="touched", size_bytes=1000000, peak_private_bytes=1040000, peak_rss_bytes=1040000),
        ),
    ),
    stages_ns={"rounds": 1000000000},
)


def _folder(tmp_path: Path, *lines: str) -> Path:
    write_run_info(tmp_path, {"id": "x"})
    (tmp_path / "samples.jsonl").write_text("".join(lines))
    return tmp_path


def _line(**fields: object) -> str:
    shape = json.loads((GOLDEN / "samples.jsonl").read_text().splitlines()[1])
    shape.update(fields)
    return json.dumps({key: value for key, value in shape.items() if value is not ...}) + "\n"


def test_records_have_the_pinned_shape(tmp_path: Path) -> None:
    write_run_info(tmp_path, INFO)
    writer = SampleWriter(tmp_path)
    for record in (*SAMPLES, FIDELITY):
        writer.append(record)
    for name in ("run.json", "samples.jsonl", "fidelity.jsonl"):
        assert (tmp_path / name).read_text() == (GOLDEN / name).read_text(), name


def test_a_line_that_the_disk_takes_in_part_leaves_nothing_behind(tmp_path: Path) -> None:
    """Otherwise the next line would be appended to half a line."""
    writer = SampleWriter(tmp_path)
    writer.append(SAMPLES[0])
    before = (tmp_path / "samples.jsonl").read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, limits[1]))
    try:
        with pytest.raises(OSError, match="no space left"):
            writer.append(SAMPLES[1])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tmp_path / "samples.jsonl").read_bytes() == before


def test_what_is_pinned_reads_back_as_it_was() -> None:
    run = read_run(GOLDEN)
    assert run.samples == SAMPLES
    assert run.fidelity == (FIDELITY,)
    assert run.info == INFO


def test_what_the_first_schema_pinned_is_read_as_records_of_today() -> None:
    """The first schema had only one reading operation, which returned all data."""
    run = read_run(SCHEMA_1)
    assert run.samples == SAMPLES[:3]
    assert run.fidelity == (FIDELITY,)
    assert run.info == RunInfo(id="2026-03-01T10-00-00-redacted")


@pytest.mark.parametrize(
    ("variant", "today"),
    [
        ("floor", "raw-io"),
        ("floor[engine=readinto]", "raw-io[engine=readinto]"),
        ("image-floor[engine=readinto,arrays=views]", "image-raw-io[engine=readinto,arrays=views]"),
        ("floorboard[engine=x]", "floorboard[engine=x]"),
    ],
)
def test_the_yardstick_of_the_first_schema_has_its_name_of_today(tmp_path: Path, variant: str, today: str) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"schema": 1, "variants": {variant: {"title": "x"}}}))
    (tmp_path / "samples.jsonl").write_text(_line(schema=1, variant=variant, saw_all=...))
    run = read_run(tmp_path)
    assert [sample.variant for sample in run.samples] == [today]
    assert run.info.variants == {today: VariantInfo(title="x", maturity=None, partial_reads=None)}


def test_of_the_first_schema_only_a_read_that_was_verified_saw_all(tmp_path: Path) -> None:
    old = {"schema": 1, "saw_all": ..., "losses": ..., "fidelity": ..., "unsettled": ...}
    lines = [
        _line(**{**old, "fidelity": "exact"}),
        _line(**{**old, "round": 2}),
        _line(**{**old, "round": 3, "operation": "save"}),
    ]
    assert [sample.saw_all for sample in read_run(_folder(tmp_path, *lines)).samples] == [True, False, False]


def test_both_schemas_may_be_in_one_folder(tmp_path: Path) -> None:
    """A run that began with the first schema and is resumed today continues with the second."""
    folder = _folder(tmp_path, _line(schema=1, saw_all=...))
    SampleWriter(folder).append(SAMPLES[0])
    assert [sample.schema for sample in read_run(folder).samples] == [2, 2]


def test_names_that_are_values_are_stored_as_their_text(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    cell = SAMPLES[0].cell
    SampleWriter(folder).append(changed(SAMPLES[0], operation=cell.operation, variant=cell.variant))
    assert read_run(folder).samples == (SAMPLES[0],)
    assert RunInfo(request=Request(baseline=cell.variant)).shape()["request"]["baseline"] == str(cell.variant)


def test_a_last_line_that_a_crash_cut_short_is_dropped_and_the_writer_goes_on_behind_it(tmp_path: Path) -> None:
    folder = _folder(tmp_path, _line(), _line(position=7)[:40])
    assert len(read_run(folder).samples) == 1
    SampleWriter(folder).append(SAMPLES[0])
    assert [sample.position for sample in read_run(folder).samples] == [1, 0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{\n", r"line 2: .*\s+Remove the line"),
        ("[]\n", "line 2: its schema is 'list', but this version of Format Bench reads only 1, 2"),
        (_line(schema=3), "schema is 3, but this version of Format Bench reads only 1, 2"),
        (_line(schema=True), "schema is True"),
        (_line(schema=...), "schema is None"),
        (_line(suite=...), "missing required field 'suite'"),
        (_line(colour="red"), "unknown field 'colour'"),
        (_line(rows="many"), r"Expected 'int', got 'str' - at '\$.rows'"),
        (_line(round=True), r"got 'bool' - at '\$.round'"),
        (_line(figures={"wall_ns": 1.5}), r"Expected 'int', got 'float' - at '\$.figures"),
        (_line(figures={"speed": 1}), "not registered"),
        (_line(figures=None), r"Expected 'object', got 'null' - at '\$.figures'"),
        (_line(losses=[1]), r"Expected 'str', got 'int' - at '\$.losses\[0\]'"),
        (_line(saw_all=1), r"Expected 'bool', got 'int' - at '\$.saw_all'"),
        (_line(in_service="no"), r"at '\$.in_service'"),
        (_line(fallback=None), r"Expected 'str', got 'null' - at '\$.fallback'"),
        (_line(conditions="warm"), r"got 'str' - at '\$.conditions'"),
        (_line(conditions={"cache": 1}), r"got 'int' - at '\$.conditions.cache'"),
        (_line(conditions={"weather": "fair"}), "unknown field 'weather'"),
        (_line(failure={"kind": "crash"}), r"missing required field 'reason' - at '\$.failure'"),
        (_line(failure={"kind": "crash", "reason": "x"}), "a failure must not have figures"),
        (_line(), "line 2: repeats line 1"),
    ],
)
def test_a_damaged_line_is_named_with_its_number(tmp_path: Path, line: str, message: str) -> None:
    folder = _folder(tmp_path, _line(), line)
    with pytest.raises(RecordError, match=message) as caught:
        read_run(folder)
    assert "samples.jsonl, line 2" in str(caught.value)


def test_a_line_that_is_not_text_is_named(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    (folder / "samples.jsonl").write_bytes(b'{"a": "\xff"}\n')
    with pytest.raises(RecordError, match="line 1"):
        read_run(folder)


def test_a_round_measured_again_is_no_repetition(tmp_path: Path) -> None:
    assert len(read_run(_folder(tmp_path, _line(), _line(position=99))).samples) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, r"no run\.json"), ("{", "not readable as JSON"), ("[]", "schema is 'list'"), ("{}", "schema is None")],
)
def test_a_folder_that_is_not_a_result_is_refused(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(RecordError, match=message):
        read_run(tmp_path)


def test_a_sample_takes_registered_figures_only() -> None:
    with pytest.raises(ValueError, match="speed"):
        changed(SAMPLES[0], figures={"speed": 1})
