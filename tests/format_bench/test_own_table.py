"""Tables in memory are measured like files, and reports name them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from bench_runner.plan.chain import Plan
from bench_runner.request import Request
from bench_runner.results.records import read_run
from data_generator.errors import DataError
from format_bench import recommend, run
from format_bench.api import recommend as recommending
from format_bench.api import run as running
from format_bench.progress import Silent
from tests.reports.factory import make_run, write_run

FRAME = pd.DataFrame(
    {
        "n": range(400),
        "word": pd.Categorical(["low", "high"] * 200, categories=["off", "low", "high"], ordered=True),
        "half": np.arange(400, dtype=np.float16),
    }
)


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("FORMAT_BENCH_CACHE", str(folder))
    return folder


def test_a_run_of_a_dataframe_is_planned_from_a_file_that_is_there_meanwhile(
    tmp_path: Path, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = write_run(make_run(datasets=("eq",), rounds=7), tmp_path / "stored")
    asked: list[tuple[Plan, Request, Any]] = []

    def measure(plan: Plan, request: Request, how: Any, folder: Path, command: Any, *rest: Any) -> Any:
        assert request.data is not None
        assert request.data.is_file()
        asked.append((plan, request, command))
        return read_run(stored), False

    notes: list[str] = []
    monkeypatch.setattr(running, "measure", measure)
    monkeypatch.setattr(Silent, "note", lambda self, text: notes.append(text))
    run("tabular", data=FRAME, datasets=["table", "table[share=0.5]"], formats="csv", out=tmp_path / "out")
    ((plan, request, command),) = asked
    assert {name: each.rows for name, each in plan.datasets.items()} == {"table": 400, "table[share=0.5]": 200}
    word = pa.dictionary(pa.int8(), pa.string(), ordered=True)
    assert plan.datasets["table"].schema == pa.schema([("n", pa.int64()), ("word", word), ("half", pa.float16())])
    assert request.data_title == "pandas DataFrame in memory"
    assert "data=<pandas DataFrame in memory>" in command[0]
    assert notes[0].startswith("pandas DataFrame in memory, 400 rows, 3 columns\n")
    assert not request.data.exists()
    assert list((cache_folder / "in-memory").iterdir()) == []


@pytest.mark.parametrize("data", [FRAME.head(0), FRAME[[]].reset_index()[[]]], ids=["no rows", "no columns"])
def test_errors_name_the_table_and_not_its_file(data: pd.DataFrame) -> None:
    for ask in (lambda: run("tabular", data=data), lambda: recommend(data)):
        with pytest.raises(DataError, match=r"^pandas DataFrame in memory: has no (rows|columns)"):
            ask()


def test_a_table_in_memory_has_no_baseline_file(monkeypatch: pytest.MonkeyPatch) -> None:
    import polars

    asked: list[Request] = []
    monkeypatch.setattr(recommending, "measured_answer", lambda request, *rest, **named: asked.append(request))
    recommend(polars.DataFrame({"n": [1, 2], "word": ["a", "b"]}))
    recommend(data=FRAME)
    assert [request.data_title for request in asked] == ["polars DataFrame in memory", "pandas DataFrame in memory"]
    assert [request.baseline for request in asked] == [None, None]


def test_no_command_can_name_a_table_in_memory() -> None:
    assert Request(data_title="pandas DataFrame in memory").data_path == "FILE"
    assert Request(data=Path("/home/me/sales.csv")).data_path == "/home/me/sales.csv"
    assert Request().data_path is None


@pytest.mark.slow
def test_a_run_of_a_dataframe_is_resumed(runs_at_rest: None, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"formats": "feather.*none", "tracks": "plain", "fidelity": False, "out": tmp_path / "out"}
    first = run("tabular", data=FRAME, rounds=1, **asked)
    asked_for = first.run.info.request
    assert (first.failed, asked_for.data, asked_for.data_title) == (False, None, "pandas DataFrame in memory")
    assert {sample.fidelity for sample in first.run.samples if sample.operation == "read"} == {"exact"}
    more = run("tabular", data=FRAME.copy(), rounds=1, resume=True, **asked)
    assert len(more.run.info.resumed) == 1
    assert more.run.info.datasets == first.run.info.datasets
