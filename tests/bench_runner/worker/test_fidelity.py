"""Fidelity distinguishes exact, lossy, refused and error. The tests use an adapter whose behaviour they control."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from adapters.contract import Native, Stored, TabularFormat
from adapters.losses import Cause, Loss, Relation
from adapters.relations import nulls, texts
from bench_runner.operations.targets import Target, apply_strings
from bench_runner.worker import fidelity
from bench_runner.worker.fidelity import probe
from bench_runner.worker.messages import KindOutcome
from data_generator.generated.kinds import KINDS

ARROW, PANDAS = Target("arrow"), Target("pandas")

DICTIONARY = Loss(
    "categoricals become text",
    "the same values",
    Cause.FORMAT,
    Relation(texts.dictionary_as_values),
    frozenset({"categorical"}),
)


class Memory(TabularFormat):
    """Keeps tables in a dictionary; `change` is applied to the column of one kind when it is read."""

    format = "memory"
    engine = "dict"
    title = "Memory"
    distributions = ()
    native = Native.ARROW
    suffix = ".memory"
    capabilities = frozenset()

    def __init__(self, change: Callable[[pa.Table], pa.Table] = lambda table: table, *losses: Loss) -> None:
        super().__init__()
        self.change = change
        self.declared = losses
        self.kept: dict[Path, pa.Table] = {}

    @property
    def losses(self) -> tuple[Loss, ...]:
        return self.declared

    def load_library(self) -> None:
        """Do nothing."""

    def save(self, table: Any, location: Path) -> None:
        self.kept[location] = table

    def read(self, location: Path) -> Any:
        return self.change(self.kept[location])

    def stored(self, location: Path) -> Stored:
        return Stored()


def found(adapter: TabularFormat, target: Target, folder: Path) -> Mapping[tuple[str, bool], KindOutcome]:
    apply_strings(target)
    return {(record.kind, record.nulls): record for record in probe(adapter, target, folder / "new")}


def without_dictionaries(table: pa.Table) -> pa.Table:
    column = texts.dictionary_as_values(table["value"])
    return table if column is None else table.set_column(1, "value", column)


def test_all_kinds_are_exact_where_nothing_changes(tmp_path: Path) -> None:
    records = found(Memory(), ARROW, tmp_path)
    assert list(records) == [(kind.name, nulls) for kind in KINDS.values() for nulls in kind.nulls]
    assert {record.outcome for record in records.values()} == {"exact"}


def test_a_declared_loss_is_lossy(tmp_path: Path) -> None:
    records = found(Memory(without_dictionaries, DICTIONARY), ARROW, tmp_path)
    record = records["categorical", False]
    assert (record.outcome, record.how, record.bound, record.cause) == (
        "lossy",
        "categoricals become text",
        "the same values",
        "format",
    )
    assert records["string", False].outcome == "exact"


@pytest.mark.rule(12)
def test_an_undeclared_change_is_an_error(tmp_path: Path) -> None:
    record = found(Memory(without_dictionaries), ARROW, tmp_path)["categorical", True]
    assert record.outcome == "error"
    assert record.how.startswith("\"value\" row 0: stored 'red' (dictionary")


@pytest.mark.rule(12)
def test_a_declared_loss_that_does_not_occur_is_an_error(tmp_path: Path) -> None:
    record = found(Memory(lambda table: table, DICTIONARY), ARROW, tmp_path)["categorical", False]
    assert (record.outcome, record.how) == ("error", "declared, but did not occur: categoricals become text")


def test_so_it_is_of_a_kind_that_has_no_value(tmp_path: Path) -> None:
    of_nulls = Loss("no type", "", Cause.FORMAT, Relation(nulls.nulls_as_null), frozenset({"date-null"}))
    record = found(Memory(lambda table: table, of_nulls), ARROW, tmp_path)["date-null", True]
    assert (record.outcome, record.how) == ("error", "declared, but did not occur: no type")


def test_an_error_of_the_call_is_a_refusal(tmp_path: Path) -> None:
    class Picky(Memory):
        def save(self, table: Any, location: Path) -> None:
            if table["value"].type == pa.int8():
                raise ValueError("no int8 here\nreally not")
            super().save(table, location)

    records = found(Picky(), ARROW, tmp_path)
    assert records["int8", False].how == "save: ValueError: no int8 here"
    assert records["int8", False].outcome == records["int8", True].outcome == "refused"
    assert records["int16", False].outcome == "exact"


def test_a_full_disk_is_no_refusal(tmp_path: Path) -> None:
    class Full(Memory):
        def save(self, table: Any, location: Path) -> None:
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        found(Full(), ARROW, tmp_path)


def test_the_result_with_numpy_is_reported_where_masked_is_refused(tmp_path: Path) -> None:
    class Numpy(Memory):
        takes_masked = False
        native = Native.PANDAS

        def save(self, table: Any, location: Path) -> None:
            if str(table["value"].dtype) == "Int8":
                raise TypeError("no Int8")
            super().save(table, location)

    record = found(Numpy(), PANDAS, tmp_path)["int8", True]
    assert (record.outcome, record.how) == ("refused", "save: TypeError: no Int8 (with nulls=numpy: exact)")


def test_what_the_target_loses_by_itself() -> None:
    apply_strings(PANDAS)
    assert fidelity.target_alone("int64", True, PANDAS) == ""
    assert "stored nan (double), came back None" in fidelity.target_alone("float64-nan", True, PANDAS)
    assert fidelity.target_alone("float64-nan", True, ARROW) == ""
    numpy = Target("pandas", nulls="numpy")
    assert "(int64), came back" in fidelity.target_alone("int64", True, numpy)
    assert fidelity.target_alone("map", False, PANDAS).startswith("its Python values do not determine the type")
