"""The suite `parallel` for asv: bench_runner.suites defines what is measured, benchmarks.asv_suite how."""

from benchmarks.asv_suite import TIMEOUT_S, suite_class


class Parallel(suite_class("parallel")):  # type: ignore[misc]
    """The suite `parallel`."""

    def setup_cache(self) -> None:
        """Make or find the data, once for all processes of asv."""
        self.make_data()

    setup_cache.timeout = TIMEOUT_S  # type: ignore[attr-defined]
