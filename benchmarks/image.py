"""asv benchmarks of the suite `image`. The suite defines what is measured, benchmarks.asv_suite how."""

from benchmarks.asv_suite import TIMEOUT_S, suite_class


class Image(suite_class("image")):  # type: ignore[misc]
    """The asv benchmarks of the suite `image`."""

    def setup_cache(self) -> None:
        """Generate the suite's data sets, unless they are cached already. asv calls this once for all processes."""
        self.make_data()

    setup_cache.timeout = TIMEOUT_S  # type: ignore[attr-defined]
