"""What the forkserver loads."""

from __future__ import annotations

from bench_runner.run.benches import preloaded


def test_the_forkserver_loads_no_library_that_breaks_in_a_fork() -> None:
    """chdb starts threads when it is imported. A forked process would wait for them forever."""
    assert preloaded(["clickhouse-json[engine=chdb]", "sqlite-json[engine=sqlite3]"]) == ["sqlite-json[engine=sqlite3]"]
