"""Define the contracts (interfaces with their rules) for tabular formats and image storages.

An adapter is a class for one format and one library (its engine). An adapter declares its settings, its capabilities,
and its losses, which are the changes that the format is known to make to data. Otherwise it only stores and returns
data. It measures no times, chooses no paths, and removes no files except the partial output of a stream that failed. It
imports its libraries only in `load_library`, so that import time never counts as save time. `adapters.offers` defines
the optional operations beyond save and read.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.column_numbers import ColumnNumbers
from adapters.errors import RefusedSetting
from adapters.losses import Loss
from adapters.offers import Handle, ImageHandle, Offers, Parts
from adapters.predicate import Kind
from adapters.services import Served, Service
from adapters.spelling import spell

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


class Native(Enum):
    """The kind of object that the library's own call takes and returns.

    The harness, which is the code that measures, converts the user's object (the target) to this kind before a save,
    and converts the result of a read back to the user's kind. The measured times include these conversions."""

    PANDAS = "pandas"
    ARROW = "arrow"
    POLARS = "polars"
    """A polars DataFrame. The harness converts Arrow tables to DataFrames before a save, and DataFrames to Arrow tables
    after a read."""
    RECORDS = "records"
    BUFFERS = "buffers"
    """The Arrow table of the data set, for every target. Only raw I/O uses this kind, because raw I/O converts
    nothing."""
    IMAGES = "images"
    DOCUMENTS = "documents"
    """Documents in batches. A batch is JSON Lines text or a list of dicts; see `adapters.document_store`."""


@dataclass(frozen=True)
class Records:
    """Rows as Python dictionaries. `rows` may be consumed only once.

    On save, `schema` is the Arrow schema of the rows. On read, `schema` is None if the file stores no schema; pyarrow
    then infers the types from the values.
    """

    schema: pa.Schema | None
    rows: Iterable[Mapping[str, Any]]


@dataclass(frozen=True)
class Images:
    """Images in memory, with one label for each image.

    Each image is a uint8 array of shape (height, width) for grey or (height, width, 3) for RGB."""

    arrays: list[np.ndarray]
    labels: list[int]


class Can(Enum):
    """Capabilities beyond save and read that a user can require by `format-bench recommend --need`."""

    PROJECTION = "projection"
    """Some columns can be read without decoding the other columns."""
    APPEND = "append"
    """Rows can be added to a stored copy without rewriting it."""
    TYPES = "types"
    """The file stores the type of each column, so that readers need not infer types from values. The stored type may
    be less exact than the type of the data if the adapter declares this loss."""
    NESTED = "nested"
    """Lists and structs are stored as lists and structs, not as text."""
    SINGLE_FILE = "single-file"
    """A stored copy is one file, not a folder."""
    OTHER_LANGUAGES = "other-languages"
    """Programs in languages other than Python can read a stored copy."""
    NO_PICKLE = "no-pickle"
    """A stored copy contains no pickle. (Reading a pickle can run code that its writer chose.)"""


class Stage(Enum):
    """Maturity of a format. The members are sorted from most to least mature."""

    ESTABLISHED = "established"
    """A stable specification, and several independent implementations."""
    YOUNG = "young"
    """Only one implementation, or a specification that still changes. Age does not matter."""
    EXPERIMENTAL = "experimental"
    """Research or a prototype."""


@dataclass(frozen=True)
class Maturity:
    """How likely it is that other programs can read the stored data, now and in ten years.

    `reason` explains the `stage` in one line without a full stop. `ours` is True if this project's own code saves and
    reads the format.
    """

    stage: Stage
    reason: str
    ours: bool = False


UNDECLARED = Maturity(Stage.YOUNG, "declares none")
"""Maturity of third-party adapters that declare no maturity. Such adapters fail the contract tests."""


@dataclass(frozen=True)
class Setting:
    """One setting of an engine: its allowed values, its default, and its meaning in words.

    If `always_spelled` is True, the names of variants contain the setting even if it has its default value."""

    allowed: tuple[str, ...] | range | ColumnNumbers
    default: str | int | None
    meaning: str
    always_spelled: bool = False

    @property
    def choices(self) -> Sequence[str | int]:
        """The allowed values. Empty if the values are column numbers, because these depend on the table."""
        return () if isinstance(self.allowed, ColumnNumbers) else self.allowed

    def parse(self, text: str) -> str | int:
        """Return the value that `text` represents. Raises ValueError if this value is not allowed."""
        if isinstance(self.allowed, range):
            value = int(text)
            if value not in self.allowed:
                raise ValueError(text)
            return value
        if isinstance(self.allowed, ColumnNumbers):
            return self.allowed.canonical(text)
        if text not in self.allowed:
            raise ValueError(text)
        return text

    def allowed_text(self) -> str:
        """Return the allowed values as text, for error messages and listings."""
        if isinstance(self.allowed, range):
            return f"{self.allowed.start} to {self.allowed[-1]}"
        return str(self.allowed) if isinstance(self.allowed, ColumnNumbers) else ", ".join(self.allowed)


@dataclass(frozen=True)
class Stored:
    """The codec and encodings that a stored file records. The harness checks that they match the variant's settings.

    `codec` is None for formats without codecs. `encodings` has the format's own names of the encodings, sorted.
    `details` maps the names of other properties of the file, such as the number of row groups, to their values.
    """

    codec: str | None = None
    encodings: tuple[str, ...] = ()
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Besides:
    """Additional Python distributions that one value of a setting needs, and the pip extra that installs them."""

    distributions: tuple[str, ...]
    extra: str


@dataclass(frozen=True)
class Program:
    """A program that an engine needs and that pip does not install, such as a database server.

    `version` returns the installed version, or None if the program is not installed. The function `version` is called
    often and should cache its result.
    """

    name: str
    version: Callable[[], str | None]
    install: str
    """The command that installs the program."""


@dataclass(frozen=True)
class PartCall:
    """The code that a user writes to read part of a table, or to append rows.

    `expression` is evaluated between the statements `before` and the statements `after`. `imports` are additional
    imports. The code may use these names: `columns` (names of the requested columns), `rows` (list of row numbers), and
    for a condition, `column` (the column's name) with `low` and `high`, `value`, `values` or `prefix`, depending on the
    kind of condition. `{more}` is replaced by the object with the rows to append.
    """

    expression: str
    before: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Calls:
    """The code that a user writes to save and read with a variant.

    `save` and `read` are expressions for tables, and statements for images and documents. In this code, `{held}` is
    replaced by the object to save, and `{path}` by the file's path as a Python literal. The object to save is of the
    adapter's `native` kind, and the result of a read is of its `native_read` kind. If such a kind is RECORDS, the
    object is an Arrow table instead. An operation that the adapter offers is None or missing here if the user's code
    for the operation would have more than a few lines. Generated code then calls Format Bench instead.
    """

    imports: tuple[str, ...]
    save: str
    read: str
    project: PartCall | None = None
    take: PartCall | None = None
    scan: Mapping[Kind, PartCall] = field(default_factory=dict)
    append: PartCall | None = None


class Adapter(ABC):
    """Base class of all adapters. An adapter saves and reads by one engine, that is by the calls of one library.

    Instances keep settings, never data. Create a new instance for each use. In this class, `location` is the path of a
    stored copy of the data, and the harness is the code that measures.
    """

    format: ClassVar[str]
    """Registry name of the format or storage, e.g. 'hdf5-table', 'lmdb'."""
    engine: ClassVar[str | None]
    """Name of the library that saves and reads, e.g. 'pandas'. None if settings name the libraries, as in
    `excel[save=..,read=..]`."""
    title: ClassVar[str]
    """Display name: 'HDF5 table'."""
    distributions: ClassVar[tuple[str, ...]]
    """Required Python distributions. Reports show the version of the first distribution as the engine's version."""
    programs: ClassVar[tuple[Program, ...]] = ()
    """Required programs. If this is not empty, reports show the program's version as the engine's version."""
    server_cache_bytes: ClassVar[int] = 0
    """Size of the cache of a separate server process. The memory figures of the worker process do not include it."""
    native: ClassVar[Native]
    suffix: ClassVar[str]
    """File name suffix of stored copies, including the dot. Some libraries refuse other suffixes."""
    is_folder: ClassVar[bool] = False
    """Whether a stored copy is a folder. (A folder cannot be replaced atomically.)"""
    settings: ClassVar[Mapping[str, Setting]] = {}
    plain: ClassVar[Mapping[str, str]] = {}
    """Settings of this engine in the track `plain`, which compares variants without compression."""
    library_default: ClassVar[Mapping[str, str]] = {}
    """Settings of this engine in the track `default`, which compares the defaults of the libraries."""
    equal: ClassVar[Mapping[str, str]] = {}
    """Settings of this engine in the track `equal`, which compares all formats with the same codec, zstd at level 1.
    Empty if the engine does not have this codec."""
    beside: ClassVar[tuple[Mapping[str, str], ...]] = ()
    """Additional variants of this engine in the track `plain`, which compares variants without compression. Each entry
    has the settings of one variant, for example arrays=views."""
    capabilities: ClassVar[frozenset[Can]]
    maturity: ClassVar[Maturity] = UNDECLARED
    """Maturity of the format, or of the library if the library is less mature."""
    levels: ClassVar[Mapping[str, range]] = {}
    """Allowed values of the setting `level` for each codec. A codec that is missing here has no levels."""
    codec_names: ClassVar[Mapping[str, str]] = {}
    """Maps the common name of a codec to this engine's name for the codec, if the two names differ, e.g. {'lz4':
    'blosc:lz4'}."""
    codec_distributions: ClassVar[Mapping[str, str]] = {}
    """Maps a value of the setting `codec` to the additional Python distribution that this value needs."""
    besides_for: ClassVar[Mapping[str, Besides]] = {}
    """Maps a value of another setting, written as 'parser=lxml', to the distributions that this value needs."""
    extra: ClassVar[str | None] = None
    """The pip extra that installs this engine. Several extras are joined by commas, as in 'a,b'. None if the format's
    extra installs the engine."""
    is_served: bool = False
    """Whether this adapter reads stored copies through services, which are separate programs (see `services`)."""
    syncs_on_save: ClassVar[bool] = False
    """Whether `save` itself syncs the data to the storage device."""

    survives_fork: ClassVar[bool] = True
    """Whether the library works in a process that was forked after `load_library`. A library that starts threads while
    it is loaded does not work there, because a fork does not copy threads. If False, each worker process loads the
    library itself, before timing."""

    def __init__(self, settings: Mapping[str, str] | None = None, *, threads: int | None = None) -> None:
        """Check and store the settings. Raises RefusedSetting for an unsupported setting or value.

        `threads` is 1 to limit the library to one thread, or None for the library's default.
        """
        self.threads = threads
        self.values = self._checked(settings or {})

    def _checked(self, given: Mapping[str, str]) -> dict[str, str | int | None]:
        values: dict[str, str | int | None] = {key: setting.default for key, setting in self.settings.items()}
        for key, text in given.items():
            if key == "engine" and text == self.engine:
                continue
            if key not in self.settings:
                known = ", ".join(("engine", *self.settings) if self.engine else self.settings) or "none"
                raise RefusedSetting(f"{self.format}: no setting is called {key!r} (known: {known})")
            try:
                values[key] = self.settings[key].parse(text)
            except ValueError:
                allowed = self.settings[key].allowed_text()
                raise RefusedSetting(f"{self.format}: {key}={text} is not possible (allowed: {allowed})") from None
        self._check_level(values)
        return values

    def _check_level(self, values: Mapping[str, str | int | None]) -> None:
        level = values.get("level")
        if level is None:
            return
        levels = self.levels.get(str(values["codec"]))
        if levels is None:
            with_levels = ", ".join(self.levels)
            raise RefusedSetting(
                f"{self.format}: codec={values['codec']} takes no level; codecs with a level: {with_levels}"
            )
        if level not in levels:
            raise RefusedSetting(
                f"{self.format}: codec={values['codec']},level={level} is not possible "
                f"(allowed: {levels.start} to {levels[-1]})"
            )

    @property
    def variant(self) -> str:
        """The full name of this variant, such as 'parquet[engine=pyarrow,codec=zstd]'.

        The name has the engine and every setting that differs from its default or is `always_spelled`."""
        spelled: dict[str, object] = {"engine": self.engine} if self.engine else {}
        for key, setting in self.settings.items():
            if setting.always_spelled or self.values[key] != setting.default:
                spelled[key] = self.values[key]
        return spell(self.format, spelled)

    @property
    def native_read(self) -> Native:
        """The kind of object that `read` returns. This kind differs from `native` only if a setting selects another
        library for reading than for saving."""
        return self.native

    @property
    def reads_unseen(self) -> bool:
        """Whether files are read through a memory mapping, io_uring or a separate process. The harness counts read
        calls of this process, and these counts do not include such reads."""
        return self.values.get("mapped") == "true"

    @abstractmethod
    def load_library(self) -> None:
        """Import all modules that `save` and `read` need, so that neither method imports any."""

    def data_of(self, location: Path) -> Path:
        """Return the file or folder within a stored copy that holds the data. Services may store other files at
        `location`, too."""
        return location

    def sized_at(self, location: Path) -> Path:
        """Return the file or folder within a stored copy whose size is reported. Adapters of database servers exclude
        files that even an empty database has."""
        return location

    def begin(self, location: Path) -> None:
        """Start programs, such as a database server, that users would have started before storing or reading data.

        `location` may be empty or missing. By default nothing is started."""
        return

    def end(self, location: Path) -> None:
        """Stop the programs that `begin` started. The caller closes all handles before this call."""
        return

    def services(self, location: Path) -> tuple[Service, ...]:
        """Return the programs that serve the copy at `location`, in the order in which they must be started.

        The result is empty if the copy is read from files. The services write their files only at `location`."""
        return ()

    def reach(self, location: Path, served: Served) -> None:
        """Store the addresses of running services. Later calls then read the copy at `location` through these services.

        Later calls still read copies at other locations as files."""
        raise NotImplementedError(f"{self.variant} is read from files, so it needs no services")

    def warm_up(self, location: Path) -> None:
        """Send the services a small request for the copy at `location`, so that no measured request is the first
        request that a service receives."""
        raise NotImplementedError(f"{self.variant} is read from files, so it needs no services")

    def stored(self, location: Path) -> Stored:
        """Return the codec and the encodings that the copy at `location` records. Formats with a setting `codec` must
        override this method. The contract's tests check that they do."""
        return Stored()


class TabularFormat(Adapter):
    """Base class of the adapters for tables: a subclass saves and reads one format by one library (its engine)."""

    @property
    def calls(self) -> Calls | None:
        """The code that a user writes to save and to read the data without this adapter; None if saving or reading
        takes more than one line."""
        return None

    @property
    def offers(self) -> Offers:
        """The optional operations that this adapter supports with these settings."""
        return Offers()

    def open(self, location: Path) -> Handle:
        """Open the copy at `location` for the operations in `offers`, and return a handle that performs them."""
        return Handle()

    def open_rows(self, location: Path) -> Handle:
        """Open a copy and return a handle for `take` only. Adapters override this method if `take` needs another
        handle than the other operations."""
        return self.open(location)

    def open_columns(self, location: Path) -> Handle:
        """Return a handle of a copy for repeated calls of `project`. Only called if `offers.keeps_columns` is True."""
        return self.open(location)

    def open_scans(self, location: Path) -> Handle:
        """Open a copy and return a handle for repeated calls of `scan` and `aggregate`. Only called if
        `offers.keeps_scans` is True."""
        return self.open(location)

    def append(self, table: Any, location: Path) -> None:
        """Append the rows of `table` to the copy at `location`, and close all files.

        Only called if `offers.append` is True. `table` is of the `native` kind and has the same columns as the copy."""
        raise NotImplementedError(f"{self.variant} has no call that appends")

    def save_stream(self, schema: pa.Schema, batches: Iterator[Any], location: Path) -> None:
        """Store the rows of `batches` at `location`, where nothing exists yet. Store each batch when it arrives.

        Only called if `offers.save_stream` is True. Keep no more rows in memory than the library writes at once, for
        example one row group. Batches are of the `native` kind (record batches for Arrow) and have the given `schema`.
        If `batches` raises an error, remove partial output that could be mistaken for a complete copy, and let the
        error propagate."""
        raise NotImplementedError(f"{self.variant} has no call that saves a stream")

    parts: ClassVar[Parts | str] = Parts.FILES
    """How several processes store one table in partitions, or a text with the reason why they cannot."""
    reads_folders: ClassVar[bool] = False
    """Whether `read` and `open` also accept a folder of partitions, which the library's own threads then read."""

    def part(self, folder: Path, number: int) -> tuple[TabularFormat, Path]:
        """Return the adapter that stores and reads partition `number` of a table in `folder`, and the partition's path.

        Only called if `parts` is `Parts.FILES`."""
        return self, folder / f"part-{number:05d}{self.suffix}"

    def commit_parts(self, folder: Path, count: int) -> None:
        """Complete a table after all of its `count` partitions were stored. By default this method does nothing."""
        return

    def count_parts(self, folder: Path) -> int:
        """Return the number of partitions of the table in `folder`."""
        return sum(1 for _ in folder.iterdir())

    def save_parts(self, table: Any, folder: Path, count: int) -> None:
        """Store `table` in `folder` in `count` partitions by dask. Only called if `parts` is `Parts.DASK`."""
        raise NotImplementedError(f"{self.variant} has no call of dask")

    def parts_frame(self, folder: Path) -> Any:
        """Return the table in `folder` as a dask DataFrame with its rows in stored order. Only called if `parts` is
        `Parts.DASK`."""
        raise NotImplementedError(f"{self.variant} has no call of dask")

    def parts_computed(self, frame: Any) -> Any:
        """Compute a dask DataFrame that was derived from `parts_frame`, and return the result with rows numbered from
        0. Only called if `parts` is `Parts.DASK`."""
        raise NotImplementedError(f"{self.variant} has no call of dask")

    takes_masked: ClassVar[bool] = True
    """Whether pandas' nullable types Int64 and boolean can be saved. If not, data with such columns is also measured
    with `nulls=numpy`, that is with pandas' older types for such columns, float64 and object."""
    max_rows: ClassVar[int | None] = None
    """Maximum number of rows, if the format has a limit."""
    lost_names: ClassVar[str | None] = None
    """A regular expression. A save and a read change every column name in which this expression finds a match."""

    @property
    def known_faults(self) -> Mapping[str, str]:
        """Kinds of columns that the library returns with wrong values, each with a description of the fault.

        Unlike a declared loss, a fault changes values in a way that no `Relation` can describe. Data with such columns
        fails verification, and reports show no figures. This property only records that the fault is known."""
        return {}

    @property
    def losses(self) -> tuple[Loss, ...]:
        """The changes that this variant is known to make to data. The harness checks that a read returns columns that
        are changed as declared, and not in any other way."""
        return ()

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return the reason why a table with this schema and number of rows cannot be stored, or None if no reason is
        known.

        If the result is None, saving may still fail. Called before anything is measured, with the schema of the Arrow
        table from which the user's object is made. An override ends with a call of `super().refusal`, which checks
        `max_rows` and `lost_names`.
        """
        pattern = self.lost_names
        lost = next((name for name in schema.names if pattern is not None and re.search(pattern, name)), None)
        if lost is not None:
            return f"{self.title} by {self.engine or 'its library'} does not give the name {lost!r} of a column back"
        if self.max_rows is not None and rows > self.max_rows:
            return f"{self.title} holds at most {self.max_rows:,} rows, this table has {rows:,}"
        return None

    @abstractmethod
    def save(self, table: Any, location: Path) -> None:
        """Store `table`, which is of the `native` kind, at `location` and close all files.

        `location` does not exist yet and may become a file or a folder. Nothing may be written elsewhere."""

    @abstractmethod
    def read(self, location: Path) -> Any:
        """Return the whole table stored at `location`, as an object of the `native_read` kind that owns its memory.

        This method has no parameter for a schema, because a user who opens a file usually has no schema."""


class ImageStorage(Adapter):
    """Base class of the adapters for image storages. Their `native` is Native.IMAGES."""

    max_side: ClassVar[int | None] = None
    """Maximum width and height in pixels, if the format has a limit."""
    offers: ClassVar[Offers] = Offers()
    """The operations that `open` supports. For images, only `take` and `batches` are possible."""

    @property
    def calls(self) -> Calls | None:
        """The code that a user writes without this adapter; None if the code has more than 15 lines including imports.

        `save` uses the lists `arrays` and `labels`, and `read` creates these lists. The code can read files that the
        adapter wrote, and the adapter can read files that the code wrote."""
        return None

    def open(self, location: Path) -> ImageHandle:
        """Open the copy at `location` for the operations in `offers`, and return a handle that performs them."""
        return ImageHandle()

    @property
    def least_psnr_db(self) -> float | None:
        """The minimum peak signal-to-noise ratio in dB that the stored images must have; None if the storage returns
        pixels exactly.

        The ratio is computed over all pixels of all images. For a single image it may be up to 10 dB lower."""
        return None

    def refusal(self, max_side: int) -> str | None:
        """Return the reason why images whose longest side has `max_side` pixels cannot be stored, or None if they
        can."""
        if self.max_side is not None and max_side > self.max_side:
            return f"{self.title} holds at most {self.max_side:,} pixels a side, one image has {max_side:,}"
        return None

    @abstractmethod
    def save(self, images: Any, location: Path) -> None:
        """Store `images`, of the class `Images`, at `location` and close all files.

        `location` does not exist yet and may become a file or a folder. Nothing may be written elsewhere."""

    @abstractmethod
    def read(self, location: Path) -> Any:
        """Return all images stored at `location` as `Images`, in the order in which they were saved.

        With the setting arrays=owned, each array owns writable memory. With arrays=views, an array may be a view of
        memory that the library allocated, for example of one block for all arrays."""
