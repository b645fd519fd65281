"""The contracts that every tabular format and every image storage keeps.

An adapter says what it is (settings, capabilities, losses) before it does anything, and does nothing but store and
return: it reads no clock, invents no path, removes no file but what it has begun of a stream that broke, and loads its
libraries in `load_library` alone, so that import time is never save time. What an engine offers beside save and read is
said in `adapters.offers`.
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
    """What the engine's own call takes and returns. The harness converts between it and the user's target,
    inside the clock."""

    PANDAS = "pandas"
    ARROW = "arrow"
    POLARS = "polars"
    """A polars DataFrame, which the harness makes of and turns into an Arrow table."""
    RECORDS = "records"
    BUFFERS = "buffers"
    """The Arrow table that the cached data set holds, whatever the target: for raw I/O alone, which converts
    nothing."""
    IMAGES = "images"
    DOCUMENTS = "documents"
    """Batches of JSON Lines or of dicts; `adapters.document_store` has their contract."""


@dataclass(frozen=True)
class Records:
    """Rows as Python dictionaries. `rows` may be consumed only once.

    A save is given the Arrow schema that they follow. A read whose file has none gives None: then the types are what
    the values suggest to pyarrow.
    """

    schema: pa.Schema | None
    rows: Iterable[Mapping[str, Any]]


@dataclass(frozen=True)
class Images:
    """What a user of images holds and wants back: arrays of uint8, (height, width) for grey or (height, width, 3) for
    RGB, in their order, with a label each."""

    arrays: list[np.ndarray]
    labels: list[int]


class Can(Enum):
    """What a user may need of a format beyond save and read; `recommend --need` asks for it."""

    PROJECTION = "projection"
    """Some columns can be read without making values of the others."""
    APPEND = "append"
    """Rows can be added to a stored copy without writing it anew."""
    TYPES = "types"
    """The file tells the type of each column, so that nothing is guessed from values. A type may be coarser than what
    was stored, as a declared loss."""
    NESTED = "nested"
    """Lists and structs are stored as such, not as text."""
    SINGLE_FILE = "single-file"
    """A stored copy is one file, not a folder."""
    OTHER_LANGUAGES = "other-languages"
    """Not Python alone has programs that read it."""
    NO_PICKLE = "no-pickle"
    """Nothing in it is a pickle, whose reading runs whatever its writer put in."""


class Stage(Enum):
    """How far a format has come, the surest first."""

    ESTABLISHED = "established"
    """A stable specification, and several independent implementations."""
    YOUNG = "young"
    """One implementation, or a specification that still moves, however old it is."""
    EXPERIMENTAL = "experimental"
    """Research, a prototype."""


@dataclass(frozen=True)
class Maturity:
    """How far what is stored can be relied on, beyond what is measured: who reads it elsewhere, and in ten years.

    `reason` is a line for people, without a full stop. `ours`: the code that saves and reads is this project's own.
    """

    stage: Stage
    reason: str
    ours: bool = False


UNDECLARED = Maturity(Stage.YOUNG, "declares none")
"""Of whoever says nothing nothing is claimed. The contract's tests ask for more."""


@dataclass(frozen=True)
class Setting:
    """One setting of an engine: the values it takes and the one it has when nobody says."""

    allowed: tuple[str, ...] | range
    default: str | int | None
    meaning: str
    always_spelled: bool = False

    def parse(self, text: str) -> str | int:
        """The value that `text` spells. Raises ValueError when it is not allowed."""
        if isinstance(self.allowed, range):
            value = int(text)
            if value not in self.allowed:
                raise ValueError(text)
            return value
        if text not in self.allowed:
            raise ValueError(text)
        return text

    def allowed_text(self) -> str:
        """The allowed values, for an error or a listing."""
        if isinstance(self.allowed, range):
            return f"{self.allowed.start} to {self.allowed[-1]}"
        return ", ".join(self.allowed)


@dataclass(frozen=True)
class Stored:
    """What the written file says of itself, read back from it: the check that a variant is what it is called.

    `codec` is None for formats without codecs; `encodings` are the format's own names, sorted.
    """

    codec: str | None = None
    encodings: tuple[str, ...] = ()
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Besides:
    """Distributions that one value of a setting needs besides those of its engine, and the extra that installs them."""

    distributions: tuple[str, ...]
    extra: str


@dataclass(frozen=True)
class Program:
    """Something that an engine needs besides Python's distributions, and that the system's packages install.

    `version` finds its release, None where it is not there; it is asked often and keeps what it has found.
    """

    name: str
    version: Callable[[], str | None]
    install: str
    """The command that installs it."""


@dataclass(frozen=True)
class PartCall:
    """What a user writes for a part of a table: an expression, the statements `before` it, the import lines that they
    need besides, and the statements `after` it.

    `columns` are the names asked for, `rows` a list of their numbers; conditions are on `column`, by `low` and `high`,
    `value`, `values` or `prefix`; `{more}` is the place of rows to be added.
    """

    expression: str
    before: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Calls:
    """What a user writes for a variant: expressions with places for what is held (`{held}`) and for the file
    (`{path}`, Python's spelling of a text), and the import lines that they need. Of images and documents they are
    statements.

    They take and give what the adapter's `native` names; records stand for an Arrow table here. What `offers` names and
    has no call here takes more than some lines: then Format Bench's own code stands for it.
    """

    imports: tuple[str, ...]
    save: str
    read: str
    project: PartCall | None = None
    take: PartCall | None = None
    scan: Mapping[Kind, PartCall] = field(default_factory=dict)
    append: PartCall | None = None


class Adapter(ABC):
    """What formats for tables and storages for images have in common: a name, settings, and how they are spelled.

    Build a fresh one for each use: instances hold settings, never data.
    """

    format: ClassVar[str]
    """Registry name of the format or storage, e.g. 'hdf5-table', 'lmdb'."""
    engine: ClassVar[str | None]
    """The library call, e.g. 'pandas'. None where settings name it, as `excel[save=..,read=..]` does."""
    title: ClassVar[str]
    """For people: 'HDF5 table'."""
    distributions: ClassVar[tuple[str, ...]]
    """What has to be installed, by distribution name; the first one's version stands for the engine."""
    programs: ClassVar[tuple[Program, ...]] = ()
    """What has to be installed besides; where there is one, its version stands for the engine."""
    server_cache_bytes: ClassVar[int] = 0
    """In so much memory a server of its own keeps what it has read, which the worker's memory does not show."""
    native: ClassVar[Native]
    suffix: ClassVar[str]
    """Ending of the location that the harness hands out, with its dot: some calls refuse others."""
    is_folder: ClassVar[bool] = False
    """Whether a stored copy is a folder, which no single call replaces by another."""
    settings: ClassVar[Mapping[str, Setting]] = {}
    plain: ClassVar[Mapping[str, str]] = {}
    """The settings that make the track `plain`: no codec."""
    library_default: ClassVar[Mapping[str, str]] = {}
    """The settings that equal the library's library default: the track `default`."""
    equal: ClassVar[Mapping[str, str]] = {}
    """The settings of the track `equal`, zstd at level 1; empty for an engine that does not have it."""
    beside: ClassVar[tuple[Mapping[str, str], ...]] = ()
    """Further settings that are measured beside the plain ones, such as arrays=views."""
    capabilities: ClassVar[frozenset[Can]]
    maturity: ClassVar[Maturity] = UNDECLARED
    """Of the format; of an engine where its library is relied on less than the format."""
    levels: ClassVar[Mapping[str, range]] = {}
    """The levels that the setting `level` may have with each codec; a codec that is absent here takes none."""
    codec_names: ClassVar[Mapping[str, str]] = {}
    """What this engine calls a codec that others call otherwise: {'lz4': 'blosc:lz4'}."""
    codec_distributions: ClassVar[Mapping[str, str]] = {}
    """What has to be installed besides for one codec, by its value of the setting `codec`."""
    besides_for: ClassVar[Mapping[str, Besides]] = {}
    """What has to be installed besides for one value of another setting, spelled as in a variant: 'parser=lxml'."""
    extra: ClassVar[str | None] = None
    """The extra that installs this engine, where it is not that of its format."""
    is_served: bool = False
    """Whether `services` has something to say with these settings."""
    syncs_on_save: ClassVar[bool] = False
    """Whether the save itself forces the data to the device."""

    def __init__(self, settings: Mapping[str, str] | None = None, *, threads: int | None = None) -> None:
        """Check and keep the settings. `threads` is None for the library's default, or 1.

        Raises RefusedSetting for a setting or a value that this engine does not take.
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
        """How this variant is spelled, as honoured: its engine, its codec, and whatever is not the default."""
        spelled: dict[str, object] = {"engine": self.engine} if self.engine else {}
        for key, setting in self.settings.items():
            if setting.always_spelled or self.values[key] != setting.default:
                spelled[key] = self.values[key]
        return spell(self.format, spelled)

    @property
    def native_read(self) -> Native:
        """What `read` returns: `native`, but where a setting has another library read than the one that saves."""
        return self.native

    @property
    def reads_unseen(self) -> bool:
        """Whether a call reads its file by a mapping, by io_uring or in a process that goes on: counters of read calls
        do not see it."""
        return self.values.get("mapped") == "true"

    @abstractmethod
    def load_library(self) -> None:
        """Import what save and read need: after it, neither adds anything to sys.modules."""

    def data_of(self, location: Path) -> Path:
        """What of a stored copy holds its values: all of it, unless services keep notes of their own beside them."""
        return location

    def sized_at(self, location: Path) -> Path:
        """The part of a stored copy whose size is reported: all of it by default. A server excludes the files that it
        needs even when it is empty."""
        return location

    def begin(self, location: Path) -> None:
        """Start what users have running before they store or read data, such as a server for `location`, which may be
        empty or missing. Does nothing by default."""
        return

    def end(self, location: Path) -> None:
        """Stop what `begin` has started. All handles are closed before."""
        return

    def services(self, location: Path) -> tuple[Service, ...]:
        """The programs that serve the copy at `location`, in the order in which to start them; none if the caller reads
        the copy itself. What they write stays at `location`."""
        return ()

    def reach(self, location: Path, served: Served) -> None:
        """From now on, read the copy at `location` through its services; other locations are read as files."""
        raise NotImplementedError(f"{self.variant} is read from files")

    def warm_up(self, location: Path) -> None:
        """Ask the services for a little of the copy at `location`, so that they have answered before."""
        raise NotImplementedError(f"{self.variant} is read from files")

    def stored(self, location: Path) -> Stored:
        """Read codec and encodings back from what lies at `location`. A format that has neither has nothing to say;
        one with a setting `codec` must say it, which the contract's tests hold."""
        return Stored()


class TabularFormat(Adapter):
    """One engine of one format for tables."""

    @property
    def calls(self) -> Calls | None:
        """The calls of `save` and `read` as a user writes them; None where that takes more than a line each."""
        return None

    @property
    def offers(self) -> Offers:
        """What `open` has calls for with these settings, and whether there is `append`."""
        return Offers()

    def open(self, location: Path) -> Handle:
        """Open what lies at `location` for the calls that `offers` names. No schema is given, as for `read`."""
        return Handle()

    def open_rows(self, location: Path) -> Handle:
        """As `open`, for `take` alone: other calls of some engines open the file themselves."""
        return self.open(location)

    def open_columns(self, location: Path) -> Handle:
        """As `open`, for `project` again and again. Only where `offers` says that it stays open."""
        return self.open(location)

    def open_scans(self, location: Path) -> Handle:
        """As `open`, for `scan` and `aggregate` again and again. Only where `offers` says that it stays open."""
        return self.open(location)

    def append(self, table: Any, location: Path) -> None:
        """Add the rows of `table`, of the kind `native` names and with the columns of what lies at `location`, behind
        those that are there, and close every handle. Only where `offers` names it."""
        raise NotImplementedError(f"{self.variant} has no call that appends")

    def save_stream(self, schema: pa.Schema, batches: Iterator[Any], location: Path) -> None:
        """Store the rows of `batches` at `location` (does not exist yet) as they come: what is held are those of the
        unit that is being written, not all. Each is of the kind `native` names, Arrow's are record batches, and all
        follow this Arrow schema. Only where `offers` names it.

        Where `batches` raises, so does this, and leaves nothing there that could be taken for the whole."""
        raise NotImplementedError(f"{self.variant} has no call that saves a stream")

    takes_masked: ClassVar[bool] = True
    """Whether pandas' Int64 and boolean (integers and booleans with nulls) can be saved. Where they cannot, such
    data is measured with `nulls=numpy` besides."""
    max_rows: ClassVar[int | None] = None
    """Most rows, where the format has a limit."""
    lost_names: ClassVar[str | None] = None
    """A regular expression that finds names of columns which a save does not keep, or a read does not give back."""

    @property
    def known_faults(self) -> Mapping[str, str]:
        """Kinds of column that the call corrupts beyond any relation, and how. Data that holds them fails its
        verification and gets no figures; this only says that it is known."""
        return {}

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What this variant is known to change, with the relations that are checked instead of equality."""
        return ()

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Why this data cannot be stored, as far as can be known before trying; None when it can.

        Called when the plan is made, with the schema of the Arrow table that the target is made from. One's own ends
        with `super()`, which knows `max_rows` and `lost_names`.
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
        """Store `table`, of the kind `native` names, at `location` (does not exist yet; may become a file or
        a folder) and close every handle. Writes nowhere else."""

    @abstractmethod
    def read(self, location: Path) -> Any:
        """Return all that lies at `location`, as `native` names it, in memory of its own. No schema is given:
        a user who reads a file has none."""


class ImageStorage(Adapter):
    """One engine of one storage for images. `native` is Native.IMAGES."""

    max_side: ClassVar[int | None] = None
    """Most pixels of a side, where the format has a limit."""
    offers: ClassVar[Offers] = Offers()
    """What `open` has calls for: `take` and `batches` alone."""

    @property
    def calls(self) -> Calls | None:
        """The statements that a user writes without this adapter, at most 15 lines with their imports. `save` takes
        `arrays` and `labels`, two lists, and `read` makes them. What either stores the other reads, and so does this
        adapter. None where it takes more lines."""
        return None

    def open(self, location: Path) -> ImageHandle:
        """Open what lies at `location` for the calls that `offers` names."""
        return ImageHandle()

    @property
    def least_psnr_db(self) -> float | None:
        """None where pixels come back exactly. Otherwise the declared loss (rule 12): over all pixels of all images,
        the peak signal-to-noise ratio is at least this, and each image by itself at most 10 dB lower."""
        return None

    def refusal(self, max_side: int) -> str | None:
        """Why images cannot be stored of which the longest side is `max_side` pixels; None when they can."""
        if self.max_side is not None and max_side > self.max_side:
            return f"{self.title} holds at most {self.max_side:,} pixels a side, one image has {max_side:,}"
        return None

    @abstractmethod
    def save(self, images: Any, location: Path) -> None:
        """Store Images at `location` (does not exist yet; may become a file or a folder) and close every handle. Writes
        nowhere else."""

    @abstractmethod
    def read(self, location: Path) -> Any:
        """Return all Images that lie at `location`, in the order of the save, in memory of their own.

        With arrays=owned each array owns its memory and can be written to; with arrays=views it may lie over memory
        that the library gave, such as one block for all."""
