"""ORC: one file, the writer's own stripes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from adapters import relations
from adapters.contract import Calls, Can, Native, Setting, Stored, TabularFormat
from adapters.losses import Cause, Loss, Relation

if TYPE_CHECKING:
    import pyarrow as pa

_TIMESTAMPS_AS_NS_IN_UTC = Loss(
    "timestamps become ns, and UTC where they have a zone",
    "the same points in time",
    Cause.FORMAT,
    Relation(relations.timestamps_in(["s", "ms", "us"], "ns", "UTC")),
    frozenset(f"timestamp-{name}" for name in ("s", "ms", "us", "s-zone", "ms-zone", "us-zone", "ns-zone")),
)


class OrcPyarrow(TabularFormat):
    """pyarrow.orc, the engine of pandas.to_orc. Its writer takes no level."""

    format = "orc"
    engine = "pyarrow"
    title = "ORC"
    distributions = ("pyarrow",)
    native = Native.ARROW
    suffix = ".orc"
    settings: ClassVar = {
        "codec": Setting(("none", "snappy", "zlib", "lz4", "zstd"), "none", "codec of all streams", always_spelled=True)
    }
    plain: ClassVar = {"codec": "none"}
    bare_call: ClassVar = {"codec": "none"}
    equal: ClassVar = {"codec": "zstd"}
    capabilities = frozenset(
        {Can.PROJECTION, Can.TYPES, Can.NESTED, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE}
    )

    @property
    def losses(self) -> tuple[Loss, ...]:
        """ORC has timestamps in nanoseconds alone, and no names of zones."""
        return (_TIMESTAMPS_AS_NS_IN_UTC,)

    @property
    def calls(self) -> Calls:
        """As a user writes them."""
        codec = "uncompressed" if self.values["codec"] == "none" else self.values["codec"]
        return Calls(
            ("from pyarrow import orc",),
            f'orc.write_table({{held}}, {{path}}, compression="{codec}")',
            "orc.read_table({path})",
        )

    def load_library(self) -> None:
        """Import pyarrow.orc and the file systems that its read call asks for."""
        import pyarrow.fs
        import pyarrow.orc

        self._orc = pyarrow.orc

    def save(self, table: pa.Table, location: Path) -> None:
        """Write one file."""
        codec = "uncompressed" if self.values["codec"] == "none" else self.values["codec"]
        self._orc.write_table(table, str(location), compression=codec)

    def read(self, location: Path) -> pa.Table:
        """Read all columns of the file."""
        return self._orc.read_table(str(location))

    def stored(self, location: Path) -> Stored:
        """The codec in the postscript."""
        with location.open("rb") as file:
            footer = self._orc.ORCFile(file)
            codec = footer.compression.lower()
            stripes = footer.nstripes
        return Stored("none" if codec in ("none", "uncompressed") else codec, (), {"stripes": str(stripes)})


ENGINES = (OrcPyarrow,)
