"""A third-party format, found through an entry point, passes the contract. docs/adding.md shows the format."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.errors import AdapterError
from adapters.registry import Entry, Registry
from tests.contracts.tabular import TabularFormatContract

EXAMPLE = Path(__file__).parent / "example"
PAGE = Path(__file__).parents[2] / "docs" / "adding.md"


class _Installed(TabularFormatContract):
    """Contract of a format from an installed package with entry points."""

    @classmethod
    def built(cls) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(EXAMPLE))
            return Registry({}, "format_bench.formats").build(cls.variant)

    @pytest.fixture(autouse=True, scope="class")
    def _installed(self, request: pytest.FixtureRequest) -> Iterator[None]:
        """Simulate `pip install example-format`, for this process and its children."""
        before = os.environ.get("PYTHONPATH")
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(EXAMPLE))
            patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(EXAMPLE), before])))
            request.cls.registry = Registry({}, "format_bench.formats")
            yield


class TestExampleOfRecords(_Installed):
    variant = "json-document[engine=json]"


class TestExampleFormat(_Installed):
    variant = "arrow-stream[engine=pyarrow,batch_rows=500]"

    def test_the_format_is_listed(self) -> None:
        assert "arrow-stream" in list(self.registry)

    def test_a_name_of_a_built_in_format_is_refused(self) -> None:
        taken = Registry({"arrow-stream": Entry("formats.parquet.engines:ENGINES")}, "format_bench.formats")
        with pytest.raises(AdapterError, match="that name is taken"):
            list(taken)


def test_the_page_shows_one_example_in_full_and_links_the_other() -> None:
    page = PAGE.read_text()
    assert (EXAMPLE / "example_format.py").read_text() in page
    assert "(../tests/contracts/example/example_records.py)" in page
    assert (EXAMPLE / "example_format-1.0.dist-info" / "entry_points.txt").read_text().splitlines()[1] in page.replace(
        '"', ""
    )
