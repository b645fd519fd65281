"""What lies between an engine's call and the end of the clock, for all operations that read alike."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bench_runner.clock import Laps
from bench_runner.operations import targets
from bench_runner.operations.operation import Stage
from bench_runner.operations.targets import Target
from formats.registry import FORMATS


def test_what_the_engine_gave_is_gone_before_the_answer_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    # Otherwise the peak of memory would hold it twice.
    given: list[weakref.ref[Any]] = []

    def call() -> pa.Table:
        table = pa.table({"number": [1, 2, 3]})
        given.append(weakref.ref(table))
        return table

    alive: list[bool] = []
    monkeypatch.setattr(targets, "touch", lambda result: alive.append(given[0]() is not None))
    adapter = FORMATS.build("parquet[engine=pyarrow,codec=none]")
    stage = Stage(adapter, Target("pandas"), Path("nowhere"), digest="9f2c", rows=3)
    laps = Laps()
    laps.start()
    answer = stage.answer(call, laps)
    assert answer["number"].tolist() == [1, 2, 3]
    assert alive == [False]
    assert set(laps.parts) == {"engine_ns", "convert_ns", "touch_ns"}
