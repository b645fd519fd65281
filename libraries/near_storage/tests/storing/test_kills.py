"""`kill -9` of a real writer; `kills.py` explains what that proves."""

from libraries.near_storage.tests.storing.kills import main

KILLS = 30


def test_a_killed_writer_leaves_a_store_that_opens_with_all_that_it_acknowledged():
    assert main(KILLS) > KILLS
