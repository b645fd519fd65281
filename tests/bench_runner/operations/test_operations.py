"""Operations: their spelling, the arguments that they reject, and the columns that a projection reads."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pyarrow as pa
import pytest

from adapters.spelling import parse
from bench_runner.errors import PlanError
from bench_runner.operations import OPERATIONS, SAVE, VERIFYING, OperationContext, operation_of
from bench_runner.operations.tables.append import as_stored
from bench_runner.operations.tables.project import Project, chosen_columns

ROOT = Path(__file__).parents[3]
SCHEMA = pa.schema(
    [
        *((f"int_{number}", pa.int64()) for number in range(6)),
        *((f"float_{number}", pa.float64()) for number in range(3)),
        ("text", pa.string()),
        ("flag", pa.bool_()),
    ]
)
DIGESTS = [f"{number:016x}" for number in range(100)]


# --- which columns -------------------------------------------------------------------------------------------------


def test_the_same_digest_chooses_the_same_columns_in_every_call() -> None:
    assert all(chosen_columns(SCHEMA, digest, 4) == chosen_columns(SCHEMA, digest, 4) for digest in DIGESTS)


def test_the_same_digest_chooses_the_same_columns_in_every_process() -> None:
    """Python's hashes of strings differ between processes, so the choice must not depend on them."""
    code = (
        "import pyarrow as pa; from bench_runner.operations.tables.project import chosen_columns\n"
        "schema = pa.schema([(f'c{n}', pa.int64() if n % 2 else pa.string()) for n in range(9)])\n"
        "print(chosen_columns(schema, '9f2c', 5))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    command = [sys.executable, "-c", code]
    told = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
    here = pa.schema([(f"c{n}", pa.int64() if n % 2 else pa.string()) for n in range(9)])
    assert told == f"{chosen_columns(here, '9f2c', 5)}\n"


def test_the_choice_of_a_known_digest_is_pinned() -> None:
    """If the choice changed, results under the same name would no longer be comparable."""
    assert chosen_columns(SCHEMA, "9f2c", 4) == ["text", "float_0", "int_3", "flag"]


def test_another_digest_chooses_others() -> None:
    assert len({tuple(chosen_columns(SCHEMA, digest, 4)) for digest in DIGESTS}) > 50


@pytest.mark.parametrize("count", range(1, len(SCHEMA) + 1))
def test_as_many_columns_as_are_asked_for_each_once(count: int) -> None:
    chosen = chosen_columns(SCHEMA, "9f2c", count)
    assert len(chosen) == len(set(chosen)) == count
    assert set(chosen) <= set(SCHEMA.names)


@pytest.mark.parametrize("digest", DIGESTS[:20])
def test_every_type_is_there_before_one_is_there_twice(digest: str) -> None:
    def types(count: int) -> list[int]:
        return sorted(Counter(str(SCHEMA.field(name).type) for name in chosen_columns(SCHEMA, digest, count)).values())

    assert types(2) == [1, 1]
    assert types(4) == [1, 1, 1, 1]
    assert types(6) == [1, 1, 2, 2]
    assert types(8) == [1, 1, 3, 3]


@pytest.mark.parametrize("count", [2, 3, 4, len(SCHEMA)])
def test_the_columns_do_not_come_in_the_stored_order(count: int) -> None:
    for digest in DIGESTS:
        chosen = chosen_columns(SCHEMA, digest, count)
        assert chosen != [name for name in SCHEMA.names if name in chosen]


def test_a_table_of_one_column_has_one_order() -> None:
    assert chosen_columns(pa.schema([("a", pa.int64())]), "9f2c", 1) == ["a"]


# --- how they are spelled ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spelled", "honoured", "title"),
    [
        ("save", "save", "save"),
        ("read", "read", "read"),
        ("project", "project[columns=4]", "project 4 columns"),
        ("project[columns=1]", "project[columns=1]", "project 1 column"),
        ("project[columns=10]", "project[columns=10]", "project 10 columns"),
        ("take", "take[rows=100,handle=kept]", "take 100 rows"),
        ("take[pattern=uniform,rows=100]", "take[rows=100,handle=kept]", "take 100 rows"),
        (
            "take[handle=reopened,rows=1,order=sorted,columns=2]",
            "take[rows=1,order=sorted,handle=reopened,columns=2]",
            "take 1 row, sorted, reopened, 2 columns",
        ),
        ("scan", "scan[selectivity=0.01,kind=range]", "scan 1% by range"),
        (
            "scan[kind=in,selectivity=0.0001,stored=sorted]",
            "scan[selectivity=0.0001,kind=in,stored=sorted]",
            "scan 0.01% by in of a sorted column",
        ),
        ("append", "append[rows=1000]", "append 1,000 rows"),
        ("stream-save", "stream-save[rows=8192]", "stream-save by 8,192 rows"),
        ("stream-read[rows=1]", "stream-read[rows=1]", "stream-read by 1 row"),
    ],
)
def test_an_operation_is_spelled_with_all_its_parameters(spelled: str, honoured: str, title: str) -> None:
    operation = operation_of(spelled)
    assert (operation.spelled, operation.title) == (honoured, title)
    assert operation_of(operation.spelled) == operation


@pytest.mark.parametrize(
    ("spelled", "words", "allowed"),
    [
        ("raed", "no operation 'raed' (did you mean 'read'?)", tuple(OPERATIONS)),
        ("projekt[columns=2]", "no operation 'projekt' (did you mean 'project'?)", tuple(OPERATIONS)),
        ("fly", "no operation 'fly'.", tuple(OPERATIONS)),
        (
            "project[colums=2]",
            "project has no parameter 'colums' (did you mean 'columns'?) (got 'project[colums=2]')",
            ("columns", "handle"),
        ),
        ("read[columns=2]", "read has no parameter 'columns'", ()),
        *((f"project[columns={value}]", "columns", "a number from 1 on") for value in ("0", "-1", "many", "1.5")),
        *(
            (f"scan[selectivity={value}]", "selectivity", "a share over 0 and at most 1")
            for value in ("0", "1.01", "-0.5", "half", "nan", "inf")
        ),
        ("take[pattern=random]", "pattern", "uniform or clustered or zipf"),
        ("take[columns=none]", "columns", "a number from 1 on or all"),
    ],
)
def test_a_wrong_name_parameter_or_value_is_named_with_what_is_allowed(
    spelled: str, words: str, allowed: str | tuple[str, ...]
) -> None:
    with pytest.raises(PlanError) as raised:
        operation_of(spelled)
    error = raised.value
    assert str(error).startswith("operations: ")
    assert words in str(error)
    assert error.allowed == allowed
    assert error.given in (spelled, spelled.partition("[")[0])
    if isinstance(allowed, str):
        assert f"{words} must be {allowed} (got {spelled!r})." in str(error)


@pytest.mark.parametrize("spelled", ["project[columns]", "project[columns=2", "Read", "project[columns=1,columns=2]"])
def test_what_is_no_spelling_is_named(spelled: str) -> None:
    with pytest.raises(PlanError, match="operations: '"):
        operation_of(spelled)


def test_a_read_verifies_a_save() -> None:
    assert (operation_of(SAVE).sampling, operation_of(VERIFYING).sampling) == ("write", "once")


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_is_found_under_its_name(name: str) -> None:
    operation = operation_of(name)
    assert parse(operation.spelled)[0] == name
    assert operation.meaning


def test_more_columns_than_there_are_is_refused_with_both_numbers() -> None:
    assert Project(columns=len(SCHEMA)).refusal(SCHEMA, 10) is None
    assert Project(columns=50).refusal(SCHEMA, 10) == "it reads 50 columns, but the table has 11"


def test_projections_of_one_handle_are_disjoint_while_there_are_columns() -> None:
    """The first projection has the columns of `project[columns=3]`, so single and repeated projections begin alike."""
    schema = pa.schema([(f"c{number}", pa.float64() if number % 2 else pa.string()) for number in range(10)])
    stage = cast(OperationContext, SimpleNamespace(schema=schema, digest="9f2c"))
    operation = cast(Project, operation_of("project[columns=3,handle=kept]"))
    hands = operation.inputs(stage, 100, 5)
    assert list(hands[0]) == chosen_columns(schema, "9f2c", 3)
    assert [len(hand) for hand in hands] == [3] * 5
    assert len({name for hand in hands[:3] for name in hand}) == 9
    assert hands == operation.inputs(stage, 100, 5)
    assert [operation.expected_columns(stage, hand) for hand in hands] == [list(hand) for hand in hands]


def test_a_projection_is_repeated_where_its_handle_is_named() -> None:
    named = [operation_of(f"project[columns=3{more}]") for more in ("", ",handle=reopened", ",handle=kept")]
    assert [operation.sampling for operation in named] == ["once", "calls", "calls"]
    assert [operation.spelled for operation in named][1:] == [
        "project[columns=3,handle=reopened]",
        "project[columns=3,handle=kept]",
    ]
    assert named[2].title == "project 3 columns, handle kept"


# --- appending rows --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", [pa.string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_rows_get_the_types_that_came_back(wanted: pa.DataType) -> None:
    rows = pa.table({"n": [1, 2, 3], "word": pa.array(["a", None, "a"]).dictionary_encode()})
    schema = pa.schema([("n", pa.int64()), ("word", wanted)])
    grown = as_stored(rows, schema)
    assert grown.schema == schema
    assert grown["word"].to_pylist() == ["a", None, "a"]
