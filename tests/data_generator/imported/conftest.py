"""Run the readers of the user's files in this process.

Tests that request `own_process` start real processes, to check their confinement and that they end with their parent.
"""

from __future__ import annotations

import pytest

from tests.data_generator.imported.readers_here import read_here


@pytest.fixture
def own_process() -> None:
    """Run the readers in processes, as the product does."""


@pytest.fixture(autouse=True)
def _readers_here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "own_process" not in request.fixturenames:
        read_here(monkeypatch)
