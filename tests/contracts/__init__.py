"""What every adapter must hold, for ours and for third parties.

Their modules are no test files, so pytest is told here to say in them too what an assertion compared.
"""

import pytest

_MODULES = ("adapters", "images", "projection", "selection", "streams", "tabular")
pytest.register_assert_rewrite(*(f"{__name__}.{name}" for name in _MODULES))
