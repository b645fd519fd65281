"""Variants and operations are values: they are parsed from text, equal their text, and are copied, pickled and stored
as text."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from bench_runner.conditions import Conditions
from bench_runner.results.records import cell_of
from bench_runner.variants import OperationName, Variant, operation_name_of, variant_of

ORC = "orc[engine=pyarrow,codec=zstd,level=1]"


def test_a_variant_is_taken_apart() -> None:
    variant = variant_of(ORC)
    assert (variant.format_name, variant.engine) == ("orc", "pyarrow")
    assert list(variant.settings.items()) == [("engine", "pyarrow"), ("codec", "zstd"), ("level", "1")]
    assert variant.without("level") == "orc[engine=pyarrow,codec=zstd]"
    assert variant_of("f3[rows=1]").without("rows") == "f3"


def test_an_operation_is_taken_apart() -> None:
    operation = operation_name_of("take[rows=10,handle=kept]")
    assert (operation.name, operation.parameters) == ("take", {"rows": "10", "handle": "kept"})
    assert operation_name_of("read").parameters == {}


@pytest.mark.parametrize(
    ("text", "name", "settings"),
    [
        ("", "", {}),
        ("raw-io of views", "raw-io of views", {}),
        ("csv[]", "csv", {}),
        ("csv[engine", "csv", {"engine": ""}),
        ("csv[a=b=c]", "csv", {"a": "b=c"}),
    ],
)
def test_text_of_another_grammar_is_no_error(text: str, name: str, settings: dict[str, str]) -> None:
    variant = variant_of(text)
    assert (variant.format_name, variant.settings) == (name, settings)
    assert (variant.engine is None) is ("engine" not in settings)


def test_a_value_is_its_text() -> None:
    assert (variant_of(ORC), operation_name_of("read")) == (ORC, "read")
    assert {variant_of(ORC): 1}[ORC] == {ORC: 1}[variant_of(ORC)] == 1
    assert (f"{variant_of(ORC)}", json.dumps([variant_of(ORC)])) == (ORC, f'["{ORC}"]')


def test_raw_io_and_variants_that_are_never_ranked_are_recognised() -> None:
    assert variant_of("image-raw-io[engine=readinto]").is_raw_io
    assert not variant_of(ORC).is_raw_io
    for setting in ("mapped=true", "arrays=views", "nulls=numpy", "technique=none", "technique=groups"):
        assert variant_of(f"feather[engine=pyarrow,{setting}]").is_apart, setting
    for variant in (ORC, "feather[mapped=false]", "png[arrays=owned]", "csv[premapped=true,engine=technique]"):
        assert not variant_of(variant).is_apart, variant


def test_cells_are_copied_and_pickled_with_what_was_taken_apart() -> None:
    cell = cell_of("tabular", "take[rows=10]", "wide[columns=8]", 100, ORC, Conditions(), "lab-1")
    assert cell.variant.engine == "pyarrow"
    for again in (copy.copy(cell), copy.deepcopy(cell), pickle.loads(pickle.dumps(cell))):
        assert again == cell
        assert isinstance(again.variant, Variant)
        assert isinstance(again.operation, OperationName)
        assert (again.variant.engine, again.operation.name) == ("pyarrow", "take")
        assert again.dataset.parameters == {"columns": "8"}
