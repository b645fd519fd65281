"""From the engine's call to the end of the timed part, for all operations that read."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from adapters.contract import Native
from adapters.predicate import Kind, Predicate
from bench_runner.clock import Laps
from bench_runner.operations import targets
from bench_runner.operations.operation import OperationContext
from bench_runner.operations.tables import selection
from bench_runner.operations.targets import Target
from formats.registry import FORMATS


def test_what_the_engine_gave_is_gone_before_the_answer_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    # Otherwise the peak memory would include the result twice.
    given: list[weakref.ref[Any]] = []

    def call() -> pa.Table:
        table = pa.table({"number": [1, 2, 3]})
        given.append(weakref.ref(table))
        return table

    alive: list[bool] = []
    monkeypatch.setattr(targets, "touch", lambda result: alive.append(given[0]() is not None))
    adapter = FORMATS.build("parquet[engine=pyarrow,codec=none]")
    stage = OperationContext(adapter, Target("pandas"), Path("nowhere"), digest="9f2c", rows=3)
    laps = Laps()
    laps.start()
    answer = stage.answer(call, laps)
    assert answer["number"].tolist() == [1, 2, 3]
    assert alive == [False]
    assert set(laps.parts) == {"engine_ns", "convert_ns", "touch_ns"}


def test_rows_are_selected_of_views_too() -> None:
    views = pa.table(
        {"word": pa.array(["a", None, "abc"], pa.string_view()), "blob": pa.array([b"x"] * 3, pa.binary_view())}
    )
    taken = selection.rows_of(views, Native.ARROW, np.array([2, 0]))
    assert taken.to_pydict() == {"word": ["abc", "a"], "blob": [b"x", b"x"]}
    met = selection.matching(views, Native.ARROW, Predicate("word", Kind.PREFIX, ("ab",)), ["blob", "word"])
    assert met.to_pydict() == {"blob": [b"x"], "word": ["abc"]}
