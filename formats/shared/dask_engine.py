"""dask.dataframe: a folder with one file for each partition of a table."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.contract import Can, Native, Stored, TabularFormat
from adapters.errors import RefusedData
from adapters.offers import Handle, Offers, Parts

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd

NOT_OFFERED = frozenset({Can.APPEND, Can.PROJECTION, Can.SINGLE_FILE})
"""Capabilities that a format has when it is stored as one file, but that dask's engines lack."""
_LIBRARIES = (
    # dask imports distributed at each call that chooses a scheduler.
    *("dask.array", "dask.bag", "dask.dataframe", "distributed", "distributed.lock", "distributed.worker"),
    *("fsspec.implementations.chained", "fsspec.implementations.local"),
    *("pyarrow.dataset", "pyarrow.fs", "pyarrow.parquet"),
)


_OTHER_TYPES = ("Mismatched dtypes found", "Metadata mismatch found")
"""Beginnings of dask's errors about a partition whose types differ from the types that dask guessed."""


def number(partition: int) -> str:
    """Return the number of a partition as text with leading zeros, so that sorted file names are in the order of
    partitions."""
    return f"{partition:05d}"


@contextmanager
def refusing_other_types() -> Iterator[None]:
    """Raise RefusedData instead of dask's error about a partition with unexpected types. For text formats, dask guesses
    the types of all partitions from the first rows."""
    try:
        yield
    except ValueError as error:
        if not str(error).startswith(_OTHER_TYPES):
            raise
        where = " ".join(str(error).split())
        raise RefusedData(
            f"dask guesses types from the first rows, but later rows have other types ({where})"
        ) from error


class DaskEngine(TabularFormat):
    """Base class of adapters that save and read a table in partitions, by dask.

    A subclass adds the calls for its format. It also inherits from the pandas adapter of the same format, which
    supplies settings, losses and refusals.
    """

    engine = "dask"
    distributions: ClassVar[Any] = ("dask", "distributed")
    extra: ClassVar[str | None] = "cluster"
    native = Native.PANDAS
    is_folder = True
    parts = Parts.DASK
    # A user has to set dask's option for text before the calls.
    calls: Any = None
    offers = Offers()
    modules: ClassVar[tuple[str, ...]] = ()
    """Modules that the first call would import. `load_library` imports them, so that the import is not measured."""

    def open(self, location: Path) -> Handle:
        """Return an empty handle, because dask keeps no file open and the adapter offers no operations on an open
        file."""
        return Handle()

    open_rows = open

    def load_library(self) -> None:
        """Import dask, and let it keep columns of objects instead of converting them to text."""
        super().load_library()  # type: ignore[safe-super]
        for module in (*_LIBRARIES, *self.modules):
            import_module(module)
        import dask.dataframe

        self._dask, self._frames = dask, dask.dataframe
        dask.config.set({"dataframe.convert-string": False})

    @abstractmethod
    def write(self, frame: dd.DataFrame, folder: Path) -> None:
        """Write one file for each partition. The name of each file ends with the format's suffix."""

    @abstractmethod
    def frame_of(self, files: list[str]) -> dd.DataFrame:
        """Return a DataFrame with a partition for each file, in this order."""

    def save(self, table: pd.DataFrame, location: Path) -> None:
        """Write the whole table as one partition."""
        location.mkdir()
        with self._scheduler():
            self.save_parts(table, location, 1)

    def read(self, location: Path) -> pd.DataFrame:
        """Read all partitions."""
        with self._scheduler():
            return self.parts_computed(self.parts_frame(location))

    def save_parts(self, table: pd.DataFrame, folder: Path, count: int) -> None:
        """Write the table as `count` partitions. If there is a dask client, the client's processes write the
        partitions."""
        self.write(self._frames.from_pandas(table, npartitions=count, sort=False), folder)

    def parts_frame(self, folder: Path) -> dd.DataFrame:
        """Return all partitions in the order of their numbers."""
        return self.frame_of([str(path) for path in self._files(folder)])

    def parts_computed(self, frame: Any) -> pd.DataFrame:
        """Compute a dask DataFrame and return the result. Raises RefusedData for partitions whose types differ from the
        types that dask guessed."""
        with refusing_other_types():
            return frame.compute().reset_index(drop=True)

    def stored(self, location: Path) -> Stored:
        """Return the codecs and encodings of all files."""
        found = [super(DaskEngine, self).stored(path) for path in self._files(location)]
        codecs = sorted({each.codec for each in found if each.codec is not None})
        encodings = sorted({encoding for each in found for encoding in each.encodings})
        return Stored("+".join(codecs) or None, tuple(encodings), {"files": str(len(found))})

    def _files(self, folder: Path) -> list[Path]:
        # dask's own names of ORC files are numbers without leading zeros.
        return sorted(folder.glob(f"*{self.suffix}"), key=lambda path: (len(path.name), path.name))

    def _scheduler(self) -> AbstractContextManager[Any]:
        return self._dask.config.set(scheduler="synchronous") if self.threads == 1 else nullcontext()
