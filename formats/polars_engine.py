"""What the engines of all formats that polars writes and reads have in common.

Polars takes and returns its own DataFrame; the harness makes it of what the user holds, through Arrow, and turns it back.
Its pool of threads starts with the first call, with as many as POLARS_MAX_THREADS says when it is loaded: nothing here
may call it while it is being loaded, because threads do not survive a fork.
"""

from __future__ import annotations

from typing import ClassVar

from adapters import relations
from adapters.contract import Native, TabularFormat
from adapters.losses import Cause, Loss, Relation

POLARS_CODECS = {"none": "uncompressed"}
"""What polars calls a codec that the settings call otherwise."""


class PolarsEngine(TabularFormat):
    """A format's calls of polars, without what the format adds."""

    engine = "polars"
    distributions: ClassVar = ("polars",)
    extra = "engines"
    native = Native.POLARS

    def load_library(self) -> None:
        """Import polars."""
        import polars

        self._polars = polars
