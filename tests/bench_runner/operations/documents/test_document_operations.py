"""The inputs of operations on documents depend only on the data and are the same everywhere. Two independent counts of
the right answers agree."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest

from adapters.contract import TabularFormat
from adapters.document_store import DocumentLoss, DocumentStoreAdapter, TypedField, table_of_values
from adapters.errors import RefusedData
from adapters.losses import Cause
from bench_runner.clock import Laps
from bench_runner.data_kinds import DOCUMENTS
from bench_runner.operations import Calls, operation_of
from bench_runner.operations.documents import source
from bench_runner.operations.documents.ask import Ask, Asking
from bench_runner.operations.documents.fields import Fields
from bench_runner.operations.documents.get import MISSING_OF, Get
from bench_runner.operations.documents.ingest import Ingest, after
from bench_runner.operations.documents.ranges import Range
from bench_runner.operations.operation import REPETITIONS, OperationContext
from bench_runner.operations.targets import Documents, DocumentTable, Target
from bench_runner.suites import SUITES
from bench_runner.worker.sampling.block import open_copy
from data_generator import documents
from data_generator.cache import prepare
from data_generator.catalogue import resolve
from data_generator.dataset import Dataset
from document_stores.registry import DOCUMENT_STORES
from document_stores.shared.json_losses import without_nulls
from document_stores.sqlite_json import SqliteHandle
from libraries.document_queries import from_json, run_over_documents

SUITE = SUITES["documents"]


def stage_of(dataset: Dataset, folder: Path) -> OperationContext:
    stored = prepare(dataset, folder)
    adapter = cast(TabularFormat, None)
    return OperationContext(adapter, Target("documents"), stored.path, stored.digest, stored.rows, dataset.name)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> OperationContext:
    return stage_of(resolve("tweets-2016", {}, rows=1_100), tmp_path_factory.mktemp("cache"))


def own(lines: list[dict[str, object]], folder: Path) -> OperationContext:
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    batch = documents.batch(text, "id")
    return stage_of(Dataset("own", len(lines), documents.schema("id"), 1, lambda: iter([batch])), folder)


@pytest.mark.parametrize("spelled", [*SUITE.operations, *SUITE.operations_on_request])
def test_the_suite_spells_operations_as_they_are_named(spelled: str) -> None:
    operation = operation_of(spelled)
    assert operation.spelled == spelled
    assert operation.kinds in ((DOCUMENTS,), None)
    assert operation.refusal(pa.schema([("a", pa.int64())]), 10**6) is not None or operation.name in ("save", "read")


class Serving:
    """Reports when its server is started and stopped."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Path]] = []

    def begin(self, location: Path) -> None:
        self.seen.append(("begin", location))

    def end(self, location: Path) -> None:
        self.seen.append(("end", location))


@pytest.mark.parametrize(
    ("spelled", "place"),
    [
        *(("save", "stored/table"), ("read", "stored/table")),
        ("ingest[updates=0.5,indexes=2]", "stored-ingest/table"),
        *(("get[documents=1]", None), ("fields[paths=1]", None), ("ask[query=q1]", None)),
    ],
)
def test_a_server_runs_before_what_would_start_it_inside_the_clock(
    spelled: str, place: str | None, stage: OperationContext, tmp_path: Path
) -> None:
    """Operations on an open store start its server when they open the store, which is not timed."""
    served, operation = Serving(), operation_of(spelled)
    asked = replace(stage, adapter=cast(TabularFormat, served))
    operation.begin(asked, tmp_path / "stored/table")
    operation.end(asked, tmp_path / "stored/table")
    around = [] if place is None else [("begin", tmp_path / place), ("end", tmp_path / place)]
    assert served.seen == around


def test_one_key_in_ten_is_unknown_and_the_others_are_there(stage: OperationContext) -> None:
    asked = Get(documents=50).inputs(stage, stage.rows, 3)
    known = source.lines_by_key(stage).keys()
    for keys in asked:
        missing = [place for place, key in enumerate(keys) if key not in known]
        assert missing == list(range(MISSING_OF - 1, 50, MISSING_OF))
    assert asked[0] != asked[1]
    assert asked == Get(documents=50).inputs(stage, stage.rows, 3)


@pytest.mark.parametrize("name", ["cell", "sensors", "bluesky-events", "tweets-2016", "wos"])
@pytest.mark.rule(19)
def test_missing_keys_are_between_existing_ones(name: str, tmp_path: Path) -> None:
    """A store that knows its smallest and largest key could reject keys outside this range without looking for them."""
    made = stage_of(resolve(name, {}, rows=1_100), tmp_path)
    known = source.lines_by_key(made).keys()
    asked = Get(documents=30).inputs(made, made.rows, 1 + REPETITIONS)
    missing = [key for keys in asked for key in keys if key not in known]
    assert len(set(missing)) == len(missing) == 31 * 3
    assert all(min(known) < key < max(known) for key in missing)  # type: ignore[type-var, operator]
    present = [key for keys in asked for key in keys if key in known]
    assert len(set(present)) == len(present), "no call asks for what another one has read"


def test_keys_without_gaps_have_missing_ones_beyond_the_last(tmp_path: Path) -> None:
    made = own([{"id": number} for number in range(200)], tmp_path)
    hands = Get(documents=100).inputs(made, made.rows, 3)
    missing = [key for hand in hands for key in hand[MISSING_OF - 1 :: MISSING_OF]]
    assert sorted(missing) == list(range(200, 230))


@pytest.mark.rule(19)
def test_no_part_that_is_asked_for_meets_another(stage: OperationContext) -> None:
    plans = Range(selectivity=0.03).inputs(stage, stage.rows, 1 + REPETITIONS)
    conditions = [json.loads(plan)[0]["condition"]["conditions"] for plan in plans]
    bounds = sorted((low["right"]["value"], high["right"]["value"]) for low, high in conditions)
    assert all(high < low for (_, high), (low, _) in itertools.pairwise(bounds))


def test_ranges_are_of_the_time_and_hold_the_share_that_was_asked_for(stage: OperationContext) -> None:
    operation = Range(selectivity=0.1, paths=3)
    for plan in operation.inputs(stage, stage.rows, 4):
        condition, counting = json.loads(plan)
        low, high = (bound["right"]["value"] for bound in condition["condition"]["conditions"])
        assert condition["condition"]["conditions"][0]["left"]["path"] == ["timestamp_ms"]
        (times,) = source.values(stage, stage.rows, ("timestamp_ms",))
        assert sum(low <= time <= high for time in times) == 110
        assert len(counting["aggregates"]) == 3


def test_an_index_and_a_scan_are_asked_the_same(stage: OperationContext) -> None:
    scan, index = (Range(selectivity=0.01, paths=2, by=way).inputs(stage, stage.rows, 3) for way in ("scan", "index"))
    assert scan == index


@pytest.mark.parametrize(
    "spelled",
    [
        "get[documents=10]",
        "fields[paths=2]",
        "ask[query=q1]",
        "range[selectivity=0.01,paths=1,by=scan]",
        "range[selectivity=0.01,paths=1,by=index]",
    ],
)
@pytest.mark.rule(19)
def test_the_data_set_is_not_decoded_while_a_clock_runs(
    stage: OperationContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelled: str
) -> None:
    """The data set is not decoded during priming either, nor while the copy is opened. Inputs are made before (rule
    19)."""
    engine, settings = DOCUMENT_STORES.engine("sqlite-json")
    store = cast(DocumentStoreAdapter, engine(settings))
    store.load_library()
    store.ingest([documents.json_lines(stage.table(stage.rows))], tmp_path / "stored")
    stored = replace(stage, adapter=cast(TabularFormat, store))
    operation = operation_of(spelled)
    assert isinstance(operation, Calls)
    held = operation.inputs(stored, stored.rows, 3)

    def refused(*_: object) -> Iterator[dict[str, object]]:
        raise AssertionError("the data set is decoded")

    monkeypatch.setattr(source, "documents", refused)
    operation.run(stored, held[0], tmp_path / "stored", Laps())
    asked: list[str] = []
    monkeypatch.setattr(SqliteHandle, "settle", lambda self: asked.append("settle"))
    monkeypatch.setattr(SqliteHandle, "prepare", lambda self, plan: asked.append("prepare"))
    monkeypatch.setattr(SqliteHandle, "index", lambda self, path: asked.append("index"))
    opened = open_copy(operation, stored, tmp_path / "stored")
    assert asked == [], "opening is not making ready"
    operation.make_ready(stored, opened.handles[0], held)
    assert "settle" in asked
    assert ("index" in asked) == ("by=index" in spelled)
    assert ("prepare" in asked) == isinstance(operation, Asking)
    opened.handles[0].close()


def test_two_ways_of_counting_a_range_agree(stage: OperationContext) -> None:
    operation = Range(selectivity=0.3, paths=10)
    (plan,) = operation.inputs(stage, stage.rows, 1)
    right = operation.right(stage, plan)
    assert right == run_over_documents(source.documents(stage, stage.rows), from_json(plan))
    assert len(set(right[0].values())) > 1


def test_fields_that_are_chosen_have_values_and_are_never_the_key(stage: OperationContext) -> None:
    chosen = source.chosen_paths(stage, 10_000, "any")
    assert len(chosen) > 50
    assert ("id",) not in chosen
    for column in source.values(stage, source.LOOKED_AT, *chosen):
        assert sum(value is not None for value in column) >= source.FEWEST_OF_LOOKED_AT


def test_fields_of_a_table_have_one_kind_in_all_documents(tmp_path: Path) -> None:
    """Also if only a document beyond those that are inspected has another kind."""
    lines: list[dict[str, object]] = [
        {"id": n, "n": n, "x": n / 2, "t": str(n), "ok": n > 5, "mixed": n if n % 2 else "a", "a": [n], "late": n}
        for n in range(1_500)
    ]
    lines[1_400] |= {"late": 0.5, "n": None}
    stage = own(lines, tmp_path)
    key, *others = source.typed_fields(stage, 10, "fields")
    assert key == TypedField(("id",), "integer")
    assert {(".".join(field.path), field.kind) for field in others} == {
        *{("n", "integer"), ("x", "double"), ("t", "text"), ("ok", "boolean")}
    }
    assert len(source.typed_fields(stage, 2, "fields")) == 3


@pytest.mark.parametrize("fault", ["none", "swapped", "type", "missing row", "column"])
def test_a_table_of_fields_is_compared_with_the_documents(fault: str, tmp_path: Path) -> None:
    lines: list[dict[str, object]] = [{"id": n, "a": n, "b": None if n % 3 == 0 else n + 1} for n in range(60)]
    stage = own(lines, tmp_path)
    operation = Fields(paths=2, form="table")
    (fields,) = operation.inputs(stage, stage.rows, 1)
    columns = [[line[field.path[0]] for line in reversed(lines)] for field in fields]
    if fault == "swapped":
        columns[1], columns[2] = columns[2], columns[1]
    table = table_of_values(fields, columns)
    if fault == "type":
        table = table.set_column(1, table.field(1).name, table.column(1).cast(pa.float64()))
    table = {"missing row": table.slice(1), "column": table.select([0, 1])}.get(fault, table)
    found = operation.difference(stage, fields, DocumentTable([], table), ())
    assert (found is None) == (fault == "none"), found


def test_documents_without_integers_have_no_ranges_and_no_indexes(tmp_path: Path) -> None:
    made = own([{"id": number, "a": "text", "b": number if number % 2 else 0.5} for number in range(60)], tmp_path)
    with pytest.raises(RefusedData, match=r"needs 1 fields that hold only integers.*have 0"):
        Range().inputs(made, made.rows, 1)


def test_what_is_there_after_updates_is_what_the_calls_left(stage: OperationContext) -> None:
    calls = Ingest(updates=0.5).take_input(stage, stage.rows)
    there = after(calls, "id")
    deleted = {key for each in calls for key in each.deletes}
    assert deleted
    assert len(there) < stage.rows
    assert not deleted - set(source.lines_by_key(stage))


def test_a_question_concerns_the_documents_that_it_is_about() -> None:
    asked = {
        name: [Ask(query=f"q{n}").concerns(name) for n in range(1, 6)] for name in ("cell", "wos", "documents[key=x]")
    }
    assert asked == {
        "cell": [True, True, True, False, False],
        "wos": [True, True, True, True, False],
        "documents[key=x]": [True, False, False, False, False],
    }


def test_our_library_and_its_language_are_not_loaded_before_a_worker_asks_for_them() -> None:
    """The import of the store is timed. The package of the query language imports its modules only when one is used."""
    loaded = "[name for name in sys.modules if name.startswith('libraries.document')]"
    code = f"import sys, bench_runner.worker.sample; print({loaded})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['libraries.document_queries']\n"


@pytest.mark.parametrize("count", [400, 3_000])
def test_half_are_changed_however_few_there_are(tmp_path: Path, count: int) -> None:
    stage = own([{"id": number, "text": f"{number}"} for number in range(count)], tmp_path)
    calls = Ingest(updates=0.5).take_input(stage, stage.rows)
    changes = sum(call.upserts.count(b"\n") + len(call.deletes) for call in calls) - count
    assert 0.35 * count <= changes <= 0.55 * count


NULLS_ARE_MISSING = DocumentLoss("a", "b", Cause.FORMAT, frozenset(), without_nulls)


@pytest.mark.parametrize(
    ("found", "with_loss", "without"),
    [
        ({}, True, True),
        ({"a": {"b": None}}, True, False),
        ({"a": {"b": {"c": None}}}, True, False),
        ({"a": {}}, True, False),
        ({"a": {"b": {"c": 0}}}, False, False),
        ({"a": {"x": {}}}, False, False),
        ({"c": {}}, False, False),
        ({"d": {}}, False, False),
    ],
)
def test_an_object_that_is_null_is_missing_in_its_fields_where_stores_cannot_tell(
    found: dict[str, object], with_loss: bool, without: bool, tmp_path: Path
) -> None:
    """Tables of nested columns return the fields of an object even if the document lacks the object."""
    stage = own([{"id": 0, "a": {"b": {"c": 1}}, "d": {}}, {"id": 1}], tmp_path)
    held = [("id",), ("a", "b", "c"), ("d",)]
    rows = Documents([{"id": 0, "a": {"b": {"c": 1}}, "d": {}}, {"id": 1, **found}])
    for losses, is_right in (((NULLS_ARE_MISSING,), with_loss), ((), without)):
        assert (Fields().difference(stage, held, rows, losses) is None) == is_right
