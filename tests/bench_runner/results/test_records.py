"""The result files: their pinned shape, and what a reader says of a damaged one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench_runner.results.records import (
    Conditions,
    Failure,
    Fidelity,
    RecordError,
    Sample,
    SampleWriter,
    read_run,
    write_run_info,
)

GOLDEN = Path(__file__).parent / "golden"

SAMPLES = (
    Sample(
        suite="tabular",
        operation="save",
        dataset="eq",
        dataset_digest="9f2c",
        rows=1000000,
        variant="parquet[engine=pyarrow,codec=none]",
        library="pyarrow 26.0.0",
        conditions=Conditions(),
        machine="redacted",
        round=0,
        position=0,
        figures={"wall_ns": 390000000, "size_bytes": 47000000},
        codec="none",
        encodings=("PLAIN", "RLE_DICTIONARY"),
    ),
    Sample(
        suite="tabular",
        operation="read",
        dataset="eq",
        dataset_digest="9f2c",
        rows=1000000,
        variant="json[engine=pandas]",
        library="pandas 3.1.0",
        conditions=Conditions(target="arrow", threads="1"),
        machine="redacted",
        round=1,
        position=1,
        figures={"wall_ns": 2680000000},
        fidelity="declared loss",
        losses=("float64 within 1e-10",),
        warnings=("the first call took 9 times the second",),
        unsettled=True,
    ),
    Sample(
        suite="tabular",
        operation="save",
        dataset="eq",
        dataset_digest="9f2c",
        rows=2000000,
        variant="excel[save=xlsxwriter,read=calamine]",
        library="xlsxwriter 3.2.0",
        conditions=Conditions(),
        machine="redacted",
        round=1,
        position=2,
        failure=Failure(kind="refused", reason="Excel holds at most 1,048,576 rows, this table has 2,000,000"),
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


def _folder(tmp_path: Path, *lines: str) -> Path:
    write_run_info(tmp_path, {"id": "x"})
    (tmp_path / "samples.jsonl").write_text("".join(lines))
    return tmp_path


def _line(**changed: object) -> str:
    shape = json.loads((GOLDEN / "samples.jsonl").read_text().splitlines()[1])
    shape.update(changed)
    return json.dumps({key: value for key, value in shape.items() if value is not ...}) + "\n"


def test_records_have_the_pinned_shape(tmp_path: Path) -> None:
    write_run_info(tmp_path, {"id": "2026-03-01T10-00-00-redacted", "partial": False})
    writer = SampleWriter(tmp_path)
    for record in (*SAMPLES, FIDELITY):
        writer.append(record)
    for name in ("run.json", "samples.jsonl", "fidelity.jsonl"):
        assert (tmp_path / name).read_text() == (GOLDEN / name).read_text(), name


def test_what_is_pinned_reads_back_as_it_was() -> None:
    run = read_run(GOLDEN)
    assert run.samples == SAMPLES
    assert run.fidelity == (FIDELITY,)
    assert run.info["id"] == "2026-03-01T10-00-00-redacted"


def test_a_last_line_that_a_crash_cut_short_is_dropped_and_the_writer_goes_on_behind_it(
    tmp_path: Path,
) -> None:
    folder = _folder(tmp_path, _line(), _line(position=7)[:40])
    assert len(read_run(folder).samples) == 1
    SampleWriter(folder).append(SAMPLES[0])
    assert [sample.position for sample in read_run(folder).samples] == [1, 0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{\n", "line 2: .*remove the line"),
        ("[]\n", "line 2: schema is None"),
        (_line(schema=2), "schema is 2, this version reads 1"),
        (_line(suite=...), "field 'suite' is missing"),
        (_line(colour="red"), "unknown field 'colour'"),
        (_line(rows="many"), "field 'rows' is 'many', not int"),
        (_line(round=True), "field 'round' is True"),
        (_line(figures={"wall_ns": 1.5}), "not an integer"),
        (_line(figures={"speed": 1}), "not in the register"),
        (_line(figures=None), "field 'figures' is None"),
        (_line(losses=[1]), "not text"),
        (_line(conditions="warm"), "field 'conditions' is 'warm'"),
        (_line(conditions={"cache": 1}), "field 'cache' is 1"),
        (_line(failure={"kind": "crash"}), "field 'reason' is missing"),
        (_line(failure={"kind": "crash", "reason": "x"}), "a failure has no figures"),
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
    [
        (None, "no run.json here"),
        ("{", "not readable as JSON"),
        ("[]", "schema is 'list'"),
        ("{}", "schema is None"),
    ],
)
def test_a_folder_that_is_no_result_says_so(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(RecordError, match=message):
        read_run(tmp_path)


def test_a_sample_takes_registered_figures_only() -> None:
    with pytest.raises(ValueError, match="speed"):
        Sample(**{**{name: getattr(SAMPLES[0], name) for name in SAMPLES[0].__slots__}, "figures": {"speed": 1}})
