"""Tables from hypothesis are unchanged, changed with a warning, or refused."""

from __future__ import annotations

import pytest

from tests.data_generator.imported.tables import generated_tables
from tests.data_generator.imported.tables.generated_tables import WRITERS, is_same


def test_fifty_generated_tables_arrive() -> None:
    generated_tables.run(50, stable=True)


@pytest.mark.parametrize(
    ("before", "after"),
    [(1, 2), ("007", "7"), (1.5, 1.25), (0, None), ("x", None), (True, False), (2**63, float(2**63 + 2048))],
)
def test_another_value_is_noticed(before: object, after: object) -> None:
    assert not is_same(before, after, text_only=True)


def test_all_programs_write() -> None:
    assert {ending for ending, _ in WRITERS.values()} == {
        *(".csv", ".json", ".jsonl", ".xlsx", ".parquet", ".avro", ".orc")
    }
