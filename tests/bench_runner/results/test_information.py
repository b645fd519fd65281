"""run.json as types: fields have the declared type, and a wrong type is reported with its location."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench_runner.request import Over, Request
from bench_runner.results.information import MachineInfo, OperationInfo, ProbeInfo, RunInfo, RunWarning, information
from bench_runner.results.records import RecordError, read_run
from data_generator.imported.read_options import ReadOptions

SCALARS = (
    msgspec.inspect.StrType,
    msgspec.inspect.IntType,
    msgspec.inspect.FloatType,
    msgspec.inspect.BoolType,
    msgspec.inspect.NoneType,
)


def wrong_shapes(kind: msgspec.inspect.Type, place: str) -> Iterator[tuple[str, Any]]:
    """Yield (location, value of another type) for this type and for every part of it."""
    if isinstance(kind, msgspec.inspect.UnionType):
        for part in kind.types:
            if not isinstance(part, msgspec.inspect.NoneType):
                yield from wrong_shapes(part, place)
    elif isinstance(kind, msgspec.inspect.StructType):
        yield place, "text"
        for field in kind.fields:
            for where, shape in wrong_shapes(field.type, f"{place}.{field.encode_name}"):
                yield where, {field.encode_name: shape}
    elif isinstance(kind, msgspec.inspect.DictType):
        yield place, ["a list"]
        for where, shape in wrong_shapes(kind.value_type, f"{place}[...]"):
            yield where, {"name": shape}
    elif isinstance(kind, (msgspec.inspect.ListType, msgspec.inspect.VarTupleType)):
        yield place, {"an": "object"}
        for where, shape in wrong_shapes(kind.item_type, f"{place}[0]"):
            yield where, [shape]
    elif isinstance(kind, msgspec.inspect.CustomType):
        assert kind.cls is Path
        yield place, 1
    else:
        assert isinstance(kind, SCALARS), kind
        yield place, ["a list"]
        # Reading converts nothing: a number is not accepted as text, nor 1 as true.
        yield place, 1 if isinstance(kind, (msgspec.inspect.StrType, msgspec.inspect.BoolType)) else "1"


WRONG = [(place, shape) for place, shape in wrong_shapes(msgspec.inspect.type_info(RunInfo), "$") if place != "$"]


def test_every_part_is_tried() -> None:
    places = {place for place, _ in WRONG}
    assert {"$.machine.cores", "$.variants[...].capabilities[0]", "$.probe.known_answers[0].how"} <= places
    assert {f"$.{field.name}" for field in msgspec.structs.fields(RunInfo)} <= places
    assert {f"$.request.{field.name}" for field in msgspec.structs.fields(Request)} <= places


def test_a_wrong_type_is_named_with_its_place(subtests: pytest.Subtests) -> None:
    for place, shape in WRONG:
        with subtests.test(place):
            with pytest.raises(msgspec.ValidationError) as raised:
                information(shape)
            assert f"`{place}`" in str(raised.value)


def test_a_reader_names_the_file_too(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"schema": 2, "machine": {"cores": "two"}}))
    with pytest.raises(RecordError, match=r"run\.json: .*got 'str' - at '\$\.machine\.cores'\.\s+Correct the field"):
        read_run(tmp_path)


def test_what_another_version_adds_is_passed_over() -> None:
    assert information({"weather": "fair", "machine": {"cores": 2, "colour": "red"}}) == RunInfo(
        machine=MachineInfo(cores=2)
    )


def test_unknown_facts_are_not_written_but_completeness_always_is() -> None:
    whatever = {"partial": False, "request": {"target": None}}
    assert RunInfo().shape() == whatever
    assert RunInfo(id="x", machine=MachineInfo(cores=2), probe=ProbeInfo()).shape() == {
        **{"id": "x", **whatever},
        "machine": {"cores": 2},
    }


def test_what_is_written_is_read_back() -> None:
    told = RunInfo(id="x", request=Request(levels=(1, 3)), stages_ns={"rounds": 1})
    assert information(json.loads(json.dumps(told.shape()))) == told


def test_a_warning_is_kept_once() -> None:
    info = RunInfo()
    for _ in range(2):
        info.warn("swap is in use", "close other programs")
    info.warn("swap is in use", "buy memory")
    assert info.warnings == [
        RunWarning(text="swap is in use", remedy="close other programs"),
        RunWarning(text="swap is in use", remedy="buy memory"),
    ]
    assert RunInfo().warnings == [], "no two runs share their warnings"


def test_an_operation_that_a_run_does_not_tell_of_is_known_by_its_name() -> None:
    told = OperationInfo(title="project 4 columns", meaning="x")
    info = RunInfo(operations={"project[columns=4]": told})
    assert info.operation("project[columns=4]") == told
    assert info.operation("save") == OperationInfo(title="save", writes=True)
    assert info.operation("read") == OperationInfo(title="read")


@pytest.mark.parametrize(("told", "virtual"), [(None, False), ("none", False), ("kvm", True)])
def test_a_guest_is_virtual(told: str | None, virtual: bool) -> None:
    assert MachineInfo(virtualisation=told).is_virtual is virtual


def test_a_request_is_kept_as_it_was_made() -> None:
    options = ReadOptions(decimal=",")
    asked = Request(data=Path("sales.csv"), over=Over("nulls", ("0", "0.5")), options=options, levels=(1,))
    for request in (asked, Request(target="pandas"), Request()):
        assert information(json.loads(json.dumps(RunInfo(request=request).shape()))).request == request


def test_a_request_without_a_target_is_of_a_version_that_had_pandas() -> None:
    assert information({"request": {"rows": 1000}}).request == Request(rows=1000, target="pandas")
    assert information({"request": {"rows": 1000, "target": None}}).request == Request(rows=1000)
