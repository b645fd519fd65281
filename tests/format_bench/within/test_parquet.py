"""The study of Parquet's settings, on tables for which the right answer is known."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from bench_runner.operations.targets import Target
from format_bench.errors import ConversionError
from format_bench.within import costs, parquet
from format_bench.within.costs import Costs, Objective
from format_bench.within.proposal import Proposal
from formats.registry import FORMATS

ARROW = Target("arrow")
ROWS = 12_000
SIZE_ONLY = {"read": 0.0, "size": 1.0, "save": 0.0}


@pytest.fixture
def table() -> pa.Table:
    """A table in which each column has an encoding that makes it much smaller than any other."""
    generator = np.random.default_rng(1)
    return pa.table(
        {
            "steps": np.cumsum(generator.integers(0, 50, ROWS)),
            "walk": np.cumsum(generator.normal(size=ROWS)),
            "few": generator.choice(["red", "green", "blue"], ROWS),
            "paths": [f"/srv/data/{row // 100:06}/part-{row:08}" for row in range(ROWS)],
            "tags": [[row % 3] for row in range(ROWS)],
        }
    )


def settings_of(found: list[Proposal]) -> dict[str, object]:
    """Return the settings of the proposal with most of them."""
    combined = max(found, key=lambda each: each.parts)
    return {name: value for name, value in FORMATS.build(combined.variant).values.items() if value is not None}


def test_each_column_gets_the_encoding_that_suits_it(table: pa.Table) -> None:
    found = parquet.proposals(table, SIZE_ONLY, ARROW, 60.0, 1e6)
    assert found[0] == Proposal("parquet[engine=pyarrow,codec=snappy]", "", 0, {"compression": "snappy"})
    assert {each.parts for each in found} >= {0, 1}
    best = settings_of(found)
    assert (best["delta"], best["prefix"]) == ("0", "3")
    assert "2" not in str(best.get("plain", ""))


def test_proposals_can_be_stored_and_name_what_is_measured(table: pa.Table, tmp_path) -> None:
    for number, each in enumerate(parquet.proposals(table, {"read": 3, "size": 2, "save": 1}, ARROW, 30.0, 1e6)):
        adapter = FORMATS.build(each.variant)
        adapter.load_library()
        assert adapter.refusal(table.schema, table.num_rows) is None
        adapter.save(table, tmp_path / f"{number}.parquet")
        adapter.stored(tmp_path / f"{number}.parquet")
        assert adapter.read(tmp_path / f"{number}.parquet").equals(table)


def test_without_time_only_the_default_and_few_others_are_proposed(table: pa.Table) -> None:
    assert [each.variant for each in parquet.proposals(table, SIZE_ONLY, ARROW, 0.0, 1e6)] == [
        "parquet[engine=pyarrow,codec=snappy]"
    ]


def test_a_slow_table_has_few_variants_of_which_the_best_combination_is_one(table: pa.Table) -> None:
    many = parquet.proposals(table, SIZE_ONLY, ARROW, 30.0, 1e6)
    few = parquet.proposals(table, SIZE_ONLY, ARROW, 30.0, 1.0)
    assert len(many) > len(few) == parquet.LEAST_VARIANTS
    assert few[0].parts == 0
    assert max(each.parts for each in few) > 1
    assert 1 in {each.parts for each in few}


def test_an_order_is_proposed_only_if_it_is_allowed(table: pa.Table) -> None:
    shuffled = table.take(np.random.default_rng(2).permutation(ROWS)).select(["few", "steps"])
    grouped = shuffled.append_column("again", shuffled["few"])
    assert not any(each.sorted_by for each in parquet.proposals(grouped, SIZE_ONLY, ARROW, 30.0, 1e6))
    found = parquet.proposals(grouped, SIZE_ONLY, ARROW, 30.0, 1e6, reorder=True)
    assert {each.sorted_by for each in found} & {"few", "again"}


def test_slow_codecs_are_tried_only_if_saving_hardly_counts() -> None:
    table = pa.table({"t": [f"text {row % 1000} and more" for row in range(ROWS)]})

    def codecs(save: float) -> set[tuple[str, int | None]]:
        return {*parquet._Study(table, {"read": 1, "size": 1, "save": save}, ARROW).codecs}

    assert ("zstd", 19) in codecs(0.0)
    assert ("zstd", 19) not in codecs(1.0)


def test_ordered_categories_are_not_stored_without_a_dictionary() -> None:
    codes = pa.array(np.tile([2, 1, 3], ROWS // 3), pa.int8())
    table = pa.table({"c": pa.DictionaryArray.from_arrays(codes, ["off", "low", "mid", "high"], ordered=True)})
    found = parquet.proposals(table, SIZE_ONLY, ARROW, 30.0, 1e6)
    assert len(found) > 1
    assert not any("dictionary=false" in each.variant for each in found)
    for named in (table, pa.table({"c": pa.StructArray.from_arrays([table["c"].combine_chunks()], ["inside"])})):
        refusal = FORMATS.build("parquet[dictionary=false]").refusal(named.schema, ROWS)
        assert refusal == "dictionary=false changes the order of the categories in column 'c'; use dictionary=true"


def test_a_wrong_copy_ends_the_study(table: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    real = parquet._read
    monkeypatch.setattr(parquet, "_read", lambda stored, *, threads: real(stored, threads=threads).slice(1))
    with pytest.raises(ConversionError, match="A trial copy differs from the table"):
        parquet.proposals(table, SIZE_ONLY, ARROW, 30.0, 1e6)


def test_the_objective_is_the_weighted_mean_of_logarithms() -> None:
    usual = Costs(100, 200, 300)
    objective = Objective({"read": 3, "size": 2, "save": 1}, usual)
    assert objective.of(usual) == 0
    assert objective.of(Costs(50, 200, 300)) == pytest.approx(-2 / 6 * np.log(2))
    assert objective.of(Costs(100, 100, 600)) == pytest.approx((-3 + 1) / 6 * np.log(2))


def test_costs_of_parts_are_added() -> None:
    assert costs.Costs.sum([Costs(1, 2, 3), Costs(4, 5, 6)]) - Costs(1, 1, 1) == Costs(4, 6, 8)
