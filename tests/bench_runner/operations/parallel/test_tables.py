"""Operations on partitions: what is refused in the plan, and how the table is divided."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from bench_runner.conditions import Conditions
from bench_runner.errors import PlanError
from bench_runner.operations import operation_of
from bench_runner.operations.parallel.tables import joined, parts_of
from bench_runner.operations.targets import Target
from bench_runner.registries import build

SCHEMA = pa.schema([("i", pa.int64())])


def test_partitions_cover_the_table_once() -> None:
    stage: Any = SimpleNamespace(
        adapter=build("csv[engine=pandas]"), target=Target(), dataset=Path("x"), digest="", name="eq"
    )
    found = [(part.number, part.first, part.last) for part in parts_of(stage, 10, 4)]
    assert found == [(0, 0, 2), (1, 2, 5), (2, 5, 7), (3, 7, 10)]


def test_more_partitions_than_rows_or_processes_are_refused() -> None:
    operation = operation_of("save-parallel[partitions=12]")
    assert operation.refusal(SCHEMA, 12) is None
    assert operation.refusal(SCHEMA, 11) == "12 partitions need as many rows, and the table has 11"
    assert "at most 64" in str(operation_of("save-parallel[partitions=65]").refusal(SCHEMA, 1_000))
    with pytest.raises(PlanError, match="partitions must be a number from 1 on"):
        operation_of("save-parallel[partitions=0]")


@pytest.mark.parametrize("variant", ["sqlite-table[engine=sqlite3]", "pickle[engine=pandas]"])
def test_formats_with_one_writer_say_why_they_take_no_part(variant: str) -> None:
    reason = operation_of("save-parallel[partitions=2]").unfit(build(variant))
    assert reason == build(variant).parts


def test_threads_need_a_reader_of_folders_and_one_process() -> None:
    threads = operation_of("read-parallel[partitions=2,by=threads,result=gathered]")
    assert threads.unfit(build("parquet[engine=pyarrow]")) is None
    assert "by=processes" in str(threads.unfit(build("csv[engine=pandas]")))
    left = operation_of("read-parallel[partitions=2,by=threads,result=left]")
    assert "result=gathered" in str(left.unfit(build("parquet[engine=pyarrow]")))


def test_a_cold_cache_and_one_thread_are_refused() -> None:
    operation = operation_of("read-parallel[partitions=2,result=left]")
    assert operation.refused_under(Conditions()) is None
    assert "measure it warm" in str(operation.refused_under(Conditions(cache="cold")))
    assert "--threads default" in str(operation.refused_under(Conditions(threads="1")))
    assert operation.refused_under(Conditions(target="images")) is not None


def test_joined_frames_keep_categories() -> None:
    frames = [pd.DataFrame({"c": pd.Categorical(words)}) for words in (["a", "b"], ["b", "z"])]
    result = joined(frames, Target("pandas"))
    assert list(result["c"]) == ["a", "b", "b", "z"]
    assert isinstance(result["c"].dtype, pd.CategoricalDtype)
    assert list(result.index) == [0, 1, 2, 3]
