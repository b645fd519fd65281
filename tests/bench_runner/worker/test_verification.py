"""What a variant that sorts rows must return: the rows of the table in the order of the column (rule 11)."""

from __future__ import annotations

import pytest

from bench_runner.operations.operation import OperationContext
from bench_runner.operations.targets import Target
from bench_runner.operations.whole import Read
from bench_runner.results.records import Sample
from bench_runner.run.chains import Bench, execute
from bench_runner.worker import verification
from bench_runner.worker.verification import Pair
from bench_runner.worker.verify import Mismatch
from data_generator.cache import StoredDataset, read_table
from formats.registry import FORMATS
from tests.bench_runner.conftest import chain_of


@pytest.fixture
def run(bench: Bench, dataset: StoredDataset):
    def made(target: str) -> list[Sample]:
        return execute(
            bench,
            chain_of("parquet[order=0]", target),
            dataset,
            rows=dataset.rows,
            round_number=1,
            position=0,
            need_bytes=dataset.size_bytes,
            wanted=None,
        )

    return made


@pytest.mark.rule(11)
@pytest.mark.parametrize("target", ["arrow", "pandas"])
def test_sorted_rows_are_compared_with_the_sorted_table(run, target: str) -> None:
    save, read = run(target)
    assert (save.failure, read.failure, read.fidelity) == (None, None, "exact")


@pytest.mark.rule(11)
def test_rows_that_are_not_sorted_are_found(dataset: StoredDataset) -> None:
    adapter = FORMATS.build("parquet[order=0]")
    stage = OperationContext(adapter, Target("arrow"), dataset.path, dataset.digest, dataset.rows, "test")
    table = read_table(dataset.path)
    name = table.schema.names[0]
    for given in (table.sort_by(name), table, table.sort_by([(name, "descending")])):
        pair = Pair(None, given, table.schema.names, None)
        if given.equals(table.sort_by(name)):
            assert verification.COMPARISONS["tables"](stage, Read(), pair) == ()
        else:
            with pytest.raises(Mismatch, match="round trip differs"):
                verification.COMPARISONS["tables"](stage, Read(), pair)
