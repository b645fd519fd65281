"""CSV output in the form that the thesis uses."""

from __future__ import annotations

import io
import tempfile
from dataclasses import replace
from pathlib import Path

import pandas as pd

from bench_runner.results.records import Conditions, Failure, Run, changed
from reports.text.thesis_csv import HEADER, OPERATIONS_HEADER, write_csv
from tests.reports.factory import make_run, make_sample

GOLDEN = Path(__file__).parents[1] / "golden"


def written(run: Run) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        return {path.name: path.read_text() for path in write_csv(run, Path(folder))}


def test_a_table_is_written_as_pinned() -> None:
    golden = GOLDEN / "results-core-plain.csv"
    assert written(make_run(datasets=("core",)))[golden.name] == golden.read_text()


def test_one_file_for_each_data_set_and_track() -> None:
    assert sorted(written(make_run(datasets=("eq", "int")))) == [
        *("results-eq-default.csv", "results-eq-plain.csv", "results-int-default.csv", "results-int-plain.csv")
    ]


def test_figures_are_medians_in_seconds_and_megabytes_of_a_million_bytes() -> None:
    samples = [
        make_sample(
            operation=operation,
            round=number,
            figures={
                "wall_ns": number * 1_000_000_000,
                "peak_private_bytes": number * 1_000_000,
                **({"size_bytes": 1_500_000} if operation == "save" else {}),
            },
        )
        for number in range(1, 6)
        for operation in ("save", "read")
    ]
    (text,) = written(replace(make_run(info={"probe": {}}), samples=tuple(samples))).values()
    table = pd.read_csv(io.StringIO(text))
    assert tuple(table.columns) == HEADER
    assert table.iloc[0].tolist() == ["parquet[engine=pyarrow,codec=none]", 3, 3, 3, 3, 1.5]


def test_failed_cells_and_memory_below_the_probe_are_empty() -> None:
    table = pd.read_csv(io.StringIO(written(make_run(datasets=("core",)))["results-core-plain.csv"]))
    table = table.set_index("format_name")
    assert table.loc["avro[engine=fastavro,codec=none]"].isna().all()
    assert pd.isna(table.loc["raw-io", "save_peak_mem (MB)"])
    assert table.dtypes.eq("float64").all()


def test_tables_that_differ_in_other_conditions_have_separate_files() -> None:
    samples = tuple(
        make_sample(round=number, conditions=conditions, rows=rows, dataset="synthetic[int=5]")
        for number in range(1, 3)
        for conditions, rows in ((Conditions(), 10), (Conditions(target="arrow"), 10), (Conditions(), 20))
    )
    names = sorted(written(replace(make_run(rounds=1), samples=samples)))
    assert names == [
        "results-synthetic_int_5_-plain-10rows-arrow.csv",
        "results-synthetic_int_5_-plain-10rows-pandas.csv",
        "results-synthetic_int_5_-plain-20rows-pandas.csv",
    ]


def test_rows_of_operations_name_why_they_are_not_ranked() -> None:
    """Rules 11 and 19: a program that reads the file must be able to leave out cached and wrong cells."""
    take = "take[rows=100]"
    mismatch = Failure(kind="mismatch", reason="row 3 came back as None")
    samples = [
        make_sample(operation=take, variant=variant, round=number, cached=variant == "orc", saw_all=False)
        for variant in ("csv", "orc", "lance")
        for number in range(1, 6)
    ]
    failed = {"figures": {}, "fidelity": None, "failure": mismatch}
    samples = [changed(each, **failed) if (each.variant, each.round) == ("lance", 5) else each for each in samples]
    (text,) = (
        text
        for name, text in written(replace(make_run(datasets=()), samples=tuple(samples))).items()
        if name.startswith("operations-")
    )
    table = pd.read_csv(io.StringIO(text)).set_index("format_name")
    assert tuple(table.reset_index().columns) == OPERATIONS_HEADER
    assert tuple(table.columns[-2:]) == ("cached", "wrong")
    assert table["cached"].fillna("").to_dict() == {"csv": "", "orc": "yes", "lance": ""}
    assert table["wrong"].fillna("").to_dict() == {"csv": "", "orc": "", "lance": "yes"}
