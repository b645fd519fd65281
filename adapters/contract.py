"""Define the contracts for tabular formats and image storages.

An adapter declares its settings, capabilities and losses up front. Otherwise it only stores and returns data: it reads
no clock, chooses no path, and removes no file except its own partial output of a failed stream. It imports its
libraries only in `load_library`, so that import time never counts as save time. `adapters.offers` defines the optional
operations beyond save and read.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.errors import RefusedSetting
from adapters.losses import Loss
from adapters.offers import Handle, ImageHandle, Offers
from adapters.predicate import Kind
from adapters.services import Served, Service
from adapters.spelling import spell

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


class Native(Enum):
    """What the engine's own call takes and returns. The harness converts between it and the user's target inside the
    clock."""

    PANDAS = "pandas"
    ARROW = "arrow"
    POLARS = "polars"
    """A polars DataFrame. The harness converts it from and to an Arrow table."""
    RECORDS = "records"
    BUFFERS = "buffers"
    """The Arrow table of the cached data set, whatever the target. Only for raw I/O, which converts nothing."""
    IMAGES = "images"
    DOCUMENTS = "documents"
    """Batches of JSON Lines or of dicts; see `adapters.document_store`."""


@dataclass(frozen=True)
class Records:
    """Rows as Python dictionaries. `rows` may be consumed only once.

    On save, `schema` is the Arrow schema of the rows. On read it is None if the file has none; pyarrow then infers the
    types from the values.
    """

    schema: pa.Schema | None
    rows: Iterable[Mapping[str, Any]]


@dataclass(frozen=True)
class Images:
    """What a user of images has: uint8 arrays of shape (height, width) for grey or (height, width, 3) for RGB, in
    order, with one label each."""

    arrays: list[np.ndarray]
    labels: list[int]


class Can(Enum):
    """Capabilities that a user may need beyond save and read; `recommend --need` asks for them."""

    PROJECTION = "projection"
    """Some columns can be read without decoding the others."""
    APPEND = "append"
    """Rows can be added to a stored copy without rewriting it."""
    TYPES = "types"
    """The file stores the type of each column, so that types are not guessed from values. A type may be coarser than
    the stored one if that is a declared loss."""
    NESTED = "nested"
    """Lists and structs are stored as such, not as text."""
    SINGLE_FILE = "single-file"
    """A stored copy is one file, not a folder."""
    OTHER_LANGUAGES = "other-languages"
    """Programs in other languages than Python can read it."""
    NO_PICKLE = "no-pickle"
    """It contains no pickle, because reading a pickle runs code from its writer."""


class Stage(Enum):
    """Maturity of a format, the most mature first."""

    ESTABLISHED = "established"
    """A stable specification, and several independent implementations."""
    YOUNG = "young"
    """One implementation, or a specification that still changes, however old it is."""
    EXPERIMENTAL = "experimental"
    """Research or a prototype."""


@dataclass(frozen=True)
class Maturity:
    """How far stored data can be relied on beyond what is measured: other readers, and readability in ten years.

    `reason` is one line without a full stop. `ours`: this project's own code saves and reads it.
    """

    stage: Stage
    reason: str
    ours: bool = False


UNDECLARED = Maturity(Stage.YOUNG, "declares none")
"""Maturity of adapters that declare none. The contract's tests require a declaration."""


@dataclass(frozen=True)
class Setting:
    """One setting of an engine: its allowed values and its default."""

    allowed: tuple[str, ...] | range
    default: str | int | None
    meaning: str
    always_spelled: bool = False

    def parse(self, text: str) -> str | int:
        """Convert `text` to a value. Raises ValueError if it is not allowed."""
        if isinstance(self.allowed, range):
            value = int(text)
            if value not in self.allowed:
                raise ValueError(text)
            return value
        if text not in self.allowed:
            raise ValueError(text)
        return text

    def allowed_text(self) -> str:
        """Return the allowed values as text, for an error or a listing."""
        if isinstance(self.allowed, range):
            return f"{self.allowed.start} to {self.allowed[-1]}"
        return ", ".join(self.allowed)


@dataclass(frozen=True)
class Stored:
    """What the written file records about itself, read back to check that it matches the variant.

    `codec` is None for formats without codecs; `encodings` are the format's own names, sorted.
    """

    codec: str | None = None
    encodings: tuple[str, ...] = ()
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Besides:
    """Distributions that one value of a setting needs in addition to its engine's, and the extra that installs them."""

    distributions: tuple[str, ...]
    extra: str


@dataclass(frozen=True)
class Program:
    """A program that an engine needs in addition to Python distributions, installed by a system package.

    `version` returns its release, or None if it is not installed. It is called often and caches its result.
    """

    name: str
    version: Callable[[], str | None]
    install: str
    """The command that installs it."""


@dataclass(frozen=True)
class PartCall:
    """What a user writes to read or change part of a table: an expression, statements before and after it, and the
    extra imports.

    Names in the code: `columns` are the requested names, `rows` a list of row numbers. Conditions are on `column`, by
    `low` and `high`, `value`, `values` or `prefix`. `{more}` is the object with the rows to append.
    """

    expression: str
    before: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Calls:
    """What a user writes to save and read with a variant: expressions, and the imports that they need.

    `{held}` is the object to save, `{path}` the file as a Python literal. For images and documents these
    are statements. Objects are of the adapter's `native` kind; for records an Arrow table is used. An operation in
    `offers` without a call here takes more than a few lines, so Format Bench's own code is used for it.
    """

    imports: tuple[str, ...]
    save: str
    read: str
    project: PartCall | None = None
    take: PartCall | None = None
    scan: Mapping[Kind, PartCall] = field(default_factory=dict)
    append: PartCall | None = None


class Adapter(ABC):
    """Common base of formats for tables and storages for images: a name, settings and their spelling.

    Build a new instance for each use: instances hold settings, never data.
    """

    format: ClassVar[str]
    """Registry name of the format or storage, e.g. 'hdf5-table', 'lmdb'."""
    engine: ClassVar[str | None]
    """The library call, e.g. 'pandas'. None if settings name it, as in `excel[save=..,read=..]`."""
    title: ClassVar[str]
    """Display name: 'HDF5 table'."""
    distributions: ClassVar[tuple[str, ...]]
    """Required distributions. The version of the first one is shown for the engine."""
    programs: ClassVar[tuple[Program, ...]] = ()
    """Required programs. If there is one, its version is shown for the engine."""
    server_cache_bytes: ClassVar[int] = 0
    """Memory in which a separate server caches what it has read, which the worker's memory does not include."""
    native: ClassVar[Native]
    suffix: ClassVar[str]
    """Suffix of the location from the harness, with its dot. Some calls refuse other suffixes."""
    is_folder: ClassVar[bool] = False
    """Whether a stored copy is a folder, which cannot be replaced in a single call."""
    settings: ClassVar[Mapping[str, Setting]] = {}
    plain: ClassVar[Mapping[str, str]] = {}
    """The settings of the track `plain`: no codec."""
    library_default: ClassVar[Mapping[str, str]] = {}
    """The settings of the track `default`: the library's defaults."""
    equal: ClassVar[Mapping[str, str]] = {}
    """The settings of the track `equal`, zstd at level 1; empty if the engine does not have it."""
    beside: ClassVar[tuple[Mapping[str, str], ...]] = ()
    """Further settings that are measured in addition to the plain ones, such as arrays=views."""
    capabilities: ClassVar[frozenset[Can]]
    maturity: ClassVar[Maturity] = UNDECLARED
    """Maturity of the format, or of the engine if its library is less mature."""
    levels: ClassVar[Mapping[str, range]] = {}
    """Allowed values of the setting `level` for each codec. A codec that is missing here has no levels."""
    codec_names: ClassVar[Mapping[str, str]] = {}
    """This engine's names for codecs with another common name: {'lz4': 'blosc:lz4'}."""
    codec_distributions: ClassVar[Mapping[str, str]] = {}
    """Additional distribution for a value of the setting `codec`."""
    besides_for: ClassVar[Mapping[str, Besides]] = {}
    """Additional distributions for a value of another setting, spelled as in a variant: 'parser=lxml'."""
    extra: ClassVar[str | None] = None
    """The extra that installs this engine, if it differs from that of the format."""
    is_served: bool = False
    """Whether `services` returns any service with these settings."""
    syncs_on_save: ClassVar[bool] = False
    """Whether the save itself syncs the data to the device."""

    def __init__(self, settings: Mapping[str, str] | None = None, *, threads: int | None = None) -> None:
        """Check and keep the settings. `threads` is 1, or None for the library's default.

        Raises RefusedSetting for a setting or a value that this engine does not support.
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
                raise RefusedSetting(f"{self.format}: no setting is called {key!r} (it has: {known})")
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
            raise RefusedSetting(f"{self.format}: codec={values['codec']} takes no level (with one: {with_levels})")
        if level not in levels:
            raise RefusedSetting(
                f"{self.format}: codec={values['codec']},level={level} is not possible "
                f"(allowed: {levels.start} to {levels[-1]})"
            )

    @property
    def variant(self) -> str:
        """The spelling of this variant: its engine, its codec, and every setting that differs from its default."""
        spelled: dict[str, object] = {"engine": self.engine} if self.engine else {}
        for key, setting in self.settings.items():
            if setting.always_spelled or self.values[key] != setting.default:
                spelled[key] = self.values[key]
        return spell(self.format, spelled)

    @property
    def native_read(self) -> Native:
        """What `read` returns. It differs from `native` if a setting selects another library for reading."""
        return self.native

    @property
    def reads_unseen(self) -> bool:
        """Whether a call reads its file through a mapping, io_uring or a separate process, which the counters of read
        calls miss."""
        return self.values.get("mapped") == "true"

    @abstractmethod
    def load_library(self) -> None:
        """Import everything that save and read need, so that neither adds anything to sys.modules."""

    def data_of(self, location: Path) -> Path:
        """Return the part of a stored copy that holds its values. Services may store other files next to them."""
        return location

    def sized_at(self, location: Path) -> Path:
        """Return the part of a stored copy whose size is reported. A server excludes files that it needs even when
        empty."""
        return location

    def begin(self, location: Path) -> None:
        """Start what users have running before they store or read data, such as a server for `location`, which may be
        empty or missing. The default does nothing."""
        return

    def end(self, location: Path) -> None:
        """Stop what `begin` started. All handles are closed before."""
        return

    def services(self, location: Path) -> tuple[Service, ...]:
        """Return the programs that serve the copy at `location`, in start order; empty if the caller reads the copy
        itself. Their output stays at `location`."""
        return ()

    def reach(self, location: Path, served: Served) -> None:
        """Read the copy at `location` through its services from now on. Other locations are still read as files."""
        raise NotImplementedError(f"{self.variant} is read from files")

    def warm_up(self, location: Path) -> None:
        """Send the services a small request for the copy at `location`, so that they have answered once."""
        raise NotImplementedError(f"{self.variant} is read from files")

    def stored(self, location: Path) -> Stored:
        """Read codec and encodings back from what is stored at `location`. Formats with a setting `codec` must
        implement it, which the contract's tests check."""
        return Stored()


class TabularFormat(Adapter):
    """One engine of one format for tables."""

    @property
    def calls(self) -> Calls | None:
        """The calls of `save` and `read` as a user writes them; None if either takes more than one line."""
        return None

    @property
    def offers(self) -> Offers:
        """The operations that `open` supports with these settings, and whether there is `append`."""
        return Offers()

    def open(self, location: Path) -> Handle:
        """Open the copy at `location` for the operations in `offers`. As for `read`, no schema is given."""
        return Handle()

    def open_rows(self, location: Path) -> Handle:
        """Open a copy for `take` alone, because other calls of some engines open the file themselves."""
        return self.open(location)

    def open_columns(self, location: Path) -> Handle:
        """Open a copy for repeated `project`. Only called if `offers` says that it stays open."""
        return self.open(location)

    def open_scans(self, location: Path) -> Handle:
        """Open a copy for repeated `scan` and `aggregate`. Only called if `offers` says that it stays open."""
        return self.open(location)

    def append(self, table: Any, location: Path) -> None:
        """Append the rows of `table` to the copy at `location`, and close every handle. Only called if `offers` has it.

        `table` is of the `native` kind and has the columns of the copy."""
        raise NotImplementedError(f"{self.variant} has no call that appends")

    def save_stream(self, schema: pa.Schema, batches: Iterator[Any], location: Path) -> None:
        """Store the rows of `batches` at `location` (does not exist yet) as they arrive.

        Only called if `offers` has it. Only the unit being written is held in memory. Batches are of the `native` kind
        (record batches for Arrow) and follow `schema`. If `batches` raises, the error is passed on, and nothing remains
        that could be taken for a complete copy."""
        raise NotImplementedError(f"{self.variant} has no call that saves a stream")

    takes_masked: ClassVar[bool] = True
    """Whether pandas' Int64 and boolean (integers and booleans with nulls) can be saved. If not, such data is measured
    with `nulls=numpy` in addition."""
    max_rows: ClassVar[int | None] = None
    """Most rows, if the format has a limit."""
    lost_names: ClassVar[str | None] = None
    """A regular expression for column names that a save or a read does not preserve."""

    @property
    def known_faults(self) -> Mapping[str, str]:
        """Kinds of column that the call corrupts beyond any relation, with a description. Data with them fails
        verification and gets no figures; this only records that the fault is known."""
        return {}

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What this variant is known to change, with the relations that are checked instead of equality."""
        return ()

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return why this data cannot be stored, as far as that is known before trying; None if it can.

        Called when the plan is made, with the schema of the Arrow table behind the target. An override ends with
        `super()`, which checks `max_rows` and `lost_names`.
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
        """Store `table`, of the `native` kind, at `location` and close every handle.

        `location` does not exist yet and may become a file or a folder. Nothing else is written."""

    @abstractmethod
    def read(self, location: Path) -> Any:
        """Return everything stored at `location`, of the `native_read` kind, in its own memory. No schema is given,
        because a user who reads a file has none."""


class ImageStorage(Adapter):
    """One engine of one storage for images. `native` is Native.IMAGES."""

    max_side: ClassVar[int | None] = None
    """Most pixels in one dimension, if the format has a limit."""
    offers: ClassVar[Offers] = Offers()
    """The operations that `open` supports: only `take` and `batches`."""

    @property
    def calls(self) -> Calls | None:
        """The statements that a user writes without this adapter, at most 15 lines with imports; None if it takes more.

        `save` uses the lists `arrays` and `labels`, and `read` creates them. Each can read what the other or this
        adapter stored."""
        return None

    def open(self, location: Path) -> ImageHandle:
        """Open the copy at `location` for the operations in `offers`."""
        return ImageHandle()

    @property
    def least_psnr_db(self) -> float | None:
        """None if pixels come back exactly. Otherwise the declared loss (rule 12): the peak signal-to-noise ratio over
        all pixels of all images is at least this, and for each image at most 10 dB lower."""
        return None

    def refusal(self, max_side: int) -> str | None:
        """Return why images with a longest side of `max_side` pixels cannot be stored; None if they can."""
        if self.max_side is not None and max_side > self.max_side:
            return f"{self.title} holds at most {self.max_side:,} pixels a side, one image has {max_side:,}"
        return None

    @abstractmethod
    def save(self, images: Any, location: Path) -> None:
        """Store Images at `location` and close every handle.

        `location` does not exist yet and may become a file or a folder. Nothing else is written."""

    @abstractmethod
    def read(self, location: Path) -> Any:
        """Return all Images stored at `location`, in the order of the save, in their own memory.

        With arrays=owned each array owns writable memory. With arrays=views it may be a view of memory from the
        library, such as one block for all."""
