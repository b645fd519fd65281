"""`kill -9` of a real writer; `kills.py` explains what that proves."""

import pytest

from libraries.document_store.tests.store.kills import main

KILLS = 15
"""`make selfbench-documents` kills three hundred."""


@pytest.mark.slow
def test_a_killed_writer_leaves_a_store_that_opens_with_all_that_it_acknowledged():
    assert main(KILLS) > KILLS
