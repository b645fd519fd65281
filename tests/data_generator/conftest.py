"""Fixtures of the tests of data_generator, which use neither a network nor the user's cache."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from data_generator.dataset import Dataset


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORMAT_BENCH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def counted() -> Callable[..., tuple[Dataset, list[int]]]:
    """Return a data set of integers and texts, and a list that grows by one each time it is made."""

    def make(rows: int = 1000, batch_rows: int = 300, version: int = 1) -> tuple[Dataset, list[int]]:
        schema = pa.schema([("number", pa.int64()), ("text", pa.string()), ("flag", pa.bool_())])
        made: list[int] = []

        def batches() -> Iterator[pa.RecordBatch]:
            made.append(rows)
            for start in range(0, rows, batch_rows):
                numbers = range(start, min(start + batch_rows, rows))
                yield pa.record_batch(
                    [
                        pa.array([None if n % 7 == 0 else n for n in numbers], pa.int64()),
                        pa.array([f"text {n}" for n in numbers]),
                        pa.array([n % 3 == 0 for n in numbers]),
                    ],
                    schema=schema,
                )

        return Dataset("counted", rows, schema, version, batches), made

    return make
