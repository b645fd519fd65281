"""Tests that every adapter must pass, ours and those of third parties: inherit a contract and set `variant`.

pytest explains failed assertions in test files only, so the contracts' modules are registered for it here.
"""

import pytest

_MODULES = ("adapters", "images", "projection", "selection", "streams", "tabular")
pytest.register_assert_rewrite(*(f"{__name__}.{name}" for name in _MODULES))
