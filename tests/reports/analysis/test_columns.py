"""Columns are found by operation and role, and have a fixed order."""

from __future__ import annotations

from bench_runner.results.information import OperationInfo
from reports.analysis.columns import READ_TIME, SAVE_TIME, SIZE, THESIS_METRICS, Column, Role, columns_of, joined
from reports.analysis.tables import tables
from tests.reports.factory import PROJECT_10, make_run

SAVE, READ = OperationInfo(title="save", writes=True), OperationInfo(title="read")
PROJECT = OperationInfo(title="project 10 columns")
APPEND = OperationInfo(title="append 1,000 rows", writes=True)


def titles(columns: object) -> list[str]:
    return [column.title for column in columns]  # type: ignore[attr-defined]


def test_save_and_read_alone_have_the_five_metrics_of_the_thesis() -> None:
    found = columns_of({"save": SAVE, "read": READ})
    assert tuple(found) == THESIS_METRICS
    assert titles(found) == ["save time", "read time", "size", "save peak memory", "read peak memory"]
    assert tuple(columns_of({"read": READ, "save": SAVE})) == THESIS_METRICS


def test_what_writes_comes_first_then_read_then_the_others() -> None:
    found = columns_of({"project": PROJECT, "read": READ, "append": APPEND, "save": SAVE})
    assert titles(found) == [
        *("save time", "append 1,000 rows time", "read time", "project 10 columns time"),
        *("size", "append 1,000 rows size"),
        *("save peak memory", "append 1,000 rows peak memory", "read peak memory", "project 10 columns peak memory"),
    ]
    assert found.main == ("save", "read")
    assert found.further == ("append", "project")
    assert found.leading == READ_TIME


def test_a_column_that_is_not_there_is_none() -> None:
    found = columns_of({"project": PROJECT})
    assert found.find("read", Role.TIME) is None
    assert found.find("project", Role.SIZE) is None
    project = found.find("project", Role.TIME)
    assert project == found.leading
    assert found.main == ("project",)


def test_a_column_is_the_same_whatever_its_title() -> None:
    assert Column("save", "wall_ns", Role.TIME, "writing") == SAVE_TIME


def test_tables_with_different_operations_have_all_columns_together() -> None:
    both = joined([columns_of({"save": SAVE, "project": PROJECT}), columns_of({"save": SAVE, "read": READ})])
    assert both.operations == ("save", "read", "project")
    assert SIZE in tuple(both)


def test_a_table_has_the_columns_of_what_was_measured() -> None:
    (table,) = tables(make_run(datasets=("eq",), tracks=("plain",), rounds=5, project=True))
    assert table.columns.operations == ("save", "read", PROJECT_10)
    project = table.columns.find(PROJECT_10, Role.TIME)
    assert project is not None
    ranked = table.ranks(project)
    assert "parquet[engine=pyarrow,codec=none]" in ranked
    assert not any(variant.startswith(("pickle", "avro", "raw-io")) for variant in ranked)
    (without,) = tables(make_run(datasets=("eq",), tracks=("plain",), rounds=5))
    assert without.ranks(project) == {}
