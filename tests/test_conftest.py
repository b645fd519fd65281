"""What conftest.py sets for all tests."""

from __future__ import annotations

import platformdirs

from data_generator.cache import default_folder


def test_no_test_uses_the_users_cache() -> None:
    """Facts that tests measure on a busy machine must not appear in reports of the user's runs."""
    assert platformdirs.user_cache_path("format-bench") not in default_folder().parents
