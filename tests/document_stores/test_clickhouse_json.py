"""ClickHouse's JSON keeps the contract. These tests need chdb: pip install -e '.[chdb]'."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from adapters.document_store import first_difference, identical, seen
from adapters.errors import AdapterError
from data_generator.generated.document_kinds import KINDS, Documents
from document_stores import clickhouse_json
from document_stores.clickhouse_json import ClickhouseJson
from libraries.document_queries import Plan
from libraries.document_queries.tests.strategies import documents, plans
from tests.contracts.document_queries import ON_MIXED, mixed
from tests.contracts.documents import DocumentStoreContract
from tests.contracts.hostile_queries import without_what_json_lacks

pytest.importorskip("chdb")


class TestClickhouse(DocumentStoreContract):
    variant = "clickhouse-json[engine=chdb]"

    def test_queries_where_nulls_and_empty_objects_were_dropped_are_answered_or_refused(
        self, adapter: ClickhouseJson, location: Path
    ) -> None:
        wrong, refused = self._answered(adapter, mixed(), ON_MIXED, location, adapter.losses)
        assert wrong == {}, wrong
        assert {"exists", "missing", "null", "is null", "is object", "groups"} <= set(refused)

    @pytest.mark.slow
    def test_random_plans_over_documents_that_are_kept_are_answered_or_refused(
        self, adapter: ClickhouseJson, place: Path
    ) -> None:
        numbers = itertools.count()

        @settings(
            max_examples=50, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
        )
        @given(documents(8), plans())
        def run(drawn: Documents, plan: Plan) -> None:
            held = [seen(without_what_json_lacks(document), adapter.losses) for document in drawn]
            wrong, _ = self._answered(adapter, held, {"drawn": plan}, place / f"{next(numbers)}.clickhouse")
            assert wrong == {}, wrong

        run()

    def test_whole_doubles_come_back_as_integers_below_1e21_and_queries_tell_them_apart(
        self, adapter: ClickhouseJson, location: Path
    ) -> None:
        values = [1.0, 2.0**53, 1e20, 999999999999999868928.0, 1e21, 1e22, 0.5, -0.0]
        held = [{"id": number, "a": value} for number, value in enumerate(values)]
        with self.stored(adapter, held, location) as handle:
            came = handle.get(list(range(len(values))))
            assert first_difference(held, came, adapter.losses) is None
            assert [type(document["a"]) for document in came] == [int] * 4 + [float] * 3 + [int]
            assert identical(next(iter(handle.scan([("a",)])))[0], {"a": 1.0})

    def test_a_process_opens_one_store_at_a_time(self, adapter: ClickhouseJson, location: Path) -> None:
        other = location.with_name("other.clickhouse")
        adapter.ingest([KINDS["plain"]], location)
        adapter.ingest([KINDS["plain"]], other)
        handle = adapter.open(location)
        with pytest.raises(AdapterError, match=r"other.clickhouse: chdb cannot open it"):
            adapter.open(other)
        again = adapter.open(location)
        handle.close()
        assert again.count() == len(KINDS["plain"])
        again.close()
        adapter.open(other).close()

    def test_parts_are_merged_and_the_files_of_merged_parts_removed(
        self, adapter: ClickhouseJson, location: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        small = {"min_insert_block_size_rows": "10", "min_insert_block_size_bytes": "0", "max_insert_block_size": "10"}
        monkeypatch.setattr(clickhouse_json, "_SETTINGS", {**clickhouse_json._SETTINGS, **small})
        adapter.ingest([[{"id": n} for n in range(first, first + 10)] for first in range(0, 200, 10)], location)
        assert len(list(location.rglob("count.txt"))) == 1
        handle = adapter.open(location)
        assert handle.count() == 200
        handle.close()
