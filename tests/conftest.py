"""`--quick`: only the tests that took a moment when all were last timed, and new ones; `slower.py` says which."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slower import slower

ROOT = Path(__file__).parents[1]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out the tests that tests/slower.txt names")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files that are left out whole are not imported, which takes as long as many tests."""
    if config.getoption("quick") and collection_path.relative_to(ROOT).as_posix() in slower():
        return True
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("quick"):
        return
    left_out = [item for item in items if item.nodeid.split("[")[0] in slower()]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        names = set(map(id, left_out))
        items[:] = [item for item in items if id(item) not in names]
