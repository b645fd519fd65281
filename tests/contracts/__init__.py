"""Tests that every adapter must pass, in this project and in third-party packages. To use a contract, inherit it and
set `variant`.

pytest explains failed assertions only in test files, so the modules of the contracts are registered for it here.
"""

import pytest

_MODULES = ("adapters", "images", "projection", "selection", "streams", "tabular")
pytest.register_assert_rewrite(*(f"{__name__}.{name}" for name in _MODULES))
