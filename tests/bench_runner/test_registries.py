"""The three registries are in alphabetical order, for their human readers."""

import re
from pathlib import Path

import pytest

from bench_runner.registries import REGISTRIES

ROOT = Path(__file__).parents[2]
LISTS = ("document_stores/registry.py", "formats/registry.py", "image_storages/registry.py")


@pytest.mark.parametrize("name", LISTS)
def test_rows_stand_sorted_by_name(name: str) -> None:
    rows = re.findall(r'^ +"([^"]+)": Entry\(', (ROOT / name).read_text(), re.MULTILINE)
    assert rows == sorted(rows)
    assert set(rows) <= {name for registry in REGISTRIES.values() for name in registry}
    assert len(rows) > 5
