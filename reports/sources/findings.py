"""What the thesis found about tables, as relations that samples can bear out or contradict.

M. Tarageľ, Column-oriented and Image Data Format Benchmarks, Brno University of Technology, 2024: table 6.1
and section 6.1. Each finding is a set of pairs 'this figure is below that one'; nothing here knows what our
samples say.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace

from reports.analysis.columns import READ_PEAK, READ_TIME, SAVE_PEAK, SAVE_TIME, SIZE, Column

FORMATS = {
    "CSV": "csv",
    "JSON": "json",
    "XML": "xml",
    "H5 fixed": "hdf5-fixed",
    "H5 table": "hdf5-table",
    "Parquet": "parquet",
    "Feather": "feather",
    "ORC": "orc",
    "Pickle": "pickle",
    "Excel": "excel",
    "Lance": "lance",
    "Avro": "avro",
}
"""The thesis's names, and ours."""
ROWS = {
    "eq": 1_000_000,
    "int": 1_000_000,
    "float": 1_000_000,
    "bool": 1_000_000,
    "str": 1_000_000,
    "webface": 10_000_000,
}
"""The thesis's table 4.2."""
TEXT = ("CSV", "JSON", "XML")
BINARY = ("H5 fixed", "H5 table", "Parquet", "Feather", "ORC", "Pickle", "Lance", "Avro")
"""As section 3.1 divides them; Excel, a packed XML, is neither."""
ACROSS = ("",)
"""For findings that compare one data set with another: their pairs name them."""
SMALL = ("eq", "int", "float", "bool", "str")


@dataclass(frozen=True)
class Subject:
    """One figure of one format; `dataset` is empty when a finding is about each data set by itself."""

    column: Column
    format: str
    dataset: str = ""


@dataclass(frozen=True)
class Pair:
    """`lower` times `factor` is below `higher`."""

    lower: Subject
    higher: Subject
    factor: float = 1.0


@dataclass(frozen=True)
class Finding:
    """One statement of the thesis. It holds when all of its pairs do, on all of its data sets (on one, if
    `some`).

    `about` are the formats without which it says nothing; others may be missing from a run, and are named then. One of
    too few rounds leaves it open. With `rests_on_data` the values decide it, not the formats: data that were generated
    to be like the thesis's cannot bear it out.
    """

    place: str
    statement: str
    pairs: tuple[Pair, ...]
    about: tuple[str, ...] = ()
    datasets: tuple[str, ...] = tuple(ROWS)
    some: bool = False
    rests_on_data: bool = False


def _below(column: Column, lower: Iterable[str], higher: Iterable[str], factor: float = 1.0) -> tuple[Pair, ...]:
    return tuple(
        Pair(Subject(column, low), Subject(column, high), factor)
        for low, high in itertools.product(tuple(lower), tuple(higher))
        if low != high
    )


def _others(*names: str, among: Iterable[str] = FORMATS) -> tuple[str, ...]:
    return tuple(name for name in among if name not in names)


def _lowest(column: Column, *names: str, among: Iterable[str] = FORMATS) -> tuple[Pair, ...]:
    return _below(column, names, _others(*names, among=among))


def _highest(column: Column, *names: str) -> tuple[Pair, ...]:
    return _below(column, _others(*names), names)


def _on(pairs: Iterable[Pair], lower: str, higher: str) -> tuple[Pair, ...]:
    """The same pairs between two data sets."""
    return tuple(
        replace(pair, lower=replace(pair.lower, dataset=lower), higher=replace(pair.higher, dataset=higher))
        for pair in pairs
    )


def _steady(column: Column, name: str, factor: float) -> tuple[Pair, ...]:
    """The figure of one format is nowhere more than `factor` times what it is elsewhere."""
    subject = Subject(column, name)
    pair = Pair(subject, subject, 1 / factor)
    return tuple(itertools.chain.from_iterable(_on([pair], *two) for two in itertools.permutations(SMALL, 2)))


_PICKLE_SAVE_PEAK = (Pair(Subject(SAVE_PEAK, "Pickle"), Subject(SAVE_PEAK, "Pickle"), 2.0),)

FINDINGS = (
    Finding("table 6.1", "Feather has the shortest save time", _lowest(SAVE_TIME, "Feather"), ("Feather",)),
    Finding("table 6.1", "Pickle has the shortest read time", _lowest(READ_TIME, "Pickle"), ("Pickle",)),
    Finding("table 6.1", "Parquet has the smallest file", _lowest(SIZE, "Parquet"), ("Parquet",)),
    Finding("table 6.1", "CSV has the lowest peak memory of saving", _lowest(SAVE_PEAK, "CSV"), ("CSV",)),
    Finding("table 6.1", "Pickle has the lowest peak memory of reading", _lowest(READ_PEAK, "Pickle"), ("Pickle",)),
    Finding(
        "6.1 save time",
        "Parquet and ORC save faster than all others but Feather and Pickle",
        _below(SAVE_TIME, ("Parquet", "ORC"), _others("Parquet", "ORC", "Feather", "Pickle")),
        ("Parquet", "ORC"),
    ),
    Finding(
        "6.1 save time",
        "Pickle needs about twice Feather's time to save webface (1.5 times or more)",
        _below(SAVE_TIME, ("Feather",), ("Pickle",), 1.5),
        ("Feather", "Pickle"),
        ("webface",),
    ),
    Finding(
        "6.1 save time", "XML and Excel are the slowest to save", _highest(SAVE_TIME, "XML", "Excel"), ("XML", "Excel")
    ),
    Finding(
        "6.1 save time", "JSON is the fastest text format to save", _lowest(SAVE_TIME, "JSON", among=TEXT), ("JSON",)
    ),
    Finding(
        "6.1 save time",
        "JSON's save time is stable over the data types (within 1.5 times)",
        _steady(SAVE_TIME, "JSON", 1.5),
        ("JSON",),
        ACROSS,
    ),
    Finding(
        "6.1 read time",
        "Pickle reads webface twice as fast as Parquet (in half the time or less)",
        _below(READ_TIME, ("Pickle",), ("Parquet",), 2.0),
        ("Pickle", "Parquet"),
        ("webface",),
    ),
    Finding(
        "6.1 read time",
        "Feather and Parquet read faster than all others but Pickle, Lance and ORC",
        _below(READ_TIME, ("Feather", "Parquet"), _others("Feather", "Parquet", "Pickle", "Lance", "ORC")),
        ("Feather", "Parquet"),
    ),
    Finding(
        "6.1 read time",
        "Lance reads faster than CSV, JSON, XML, HDF5, Excel and Avro",
        _below(READ_TIME, ("Lance",), (*TEXT, "H5 fixed", "H5 table", "Excel", "Avro")),
        ("Lance",),
    ),
    Finding(
        "6.1 read time", "XML and Excel are the slowest to read", _highest(READ_TIME, "XML", "Excel"), ("XML", "Excel")
    ),
    Finding("6.1 read time", "CSV is the fastest text format to read", _lowest(READ_TIME, "CSV", among=TEXT), ("CSV",)),
    Finding(
        "6.1 total size",
        "ORC is smaller than Parquet on the small data sets",
        _below(SIZE, ("ORC",), ("Parquet",)),
        ("ORC", "Parquet"),
        SMALL,
    ),
    Finding(
        "6.1 total size",
        "Parquet is smaller than ORC on webface",
        _below(SIZE, ("Parquet",), ("ORC",)),
        ("ORC", "Parquet"),
        ("webface",),
    ),
    Finding(
        "6.1 total size",
        "Avro is smaller than Parquet on some data sets",
        _below(SIZE, ("Avro",), ("Parquet",)),
        ("Avro", "Parquet"),
        some=True,
    ),
    Finding(
        "6.1 total size",
        "every text format is larger than every binary one",
        _below(SIZE, BINARY, TEXT),
        ("CSV",),
    ),
    Finding("6.1 total size", "CSV is the smallest text format", _lowest(SIZE, "CSV", among=TEXT), ("CSV",)),
    Finding(
        "6.1 save peak memory",
        "of the binary formats, Pickle needs the least",
        _lowest(SAVE_PEAK, "Pickle", among=BINARY),
        ("Pickle",),
    ),
    Finding(
        "6.1 save peak memory",
        "Pickle needs considerably more for strings than for numbers (twice or more)",
        tuple(itertools.chain(*(_on(_PICKLE_SAVE_PEAK, name, "str") for name in ("int", "float", "bool")))),
        ("Pickle",),
        ACROSS,
    ),
    Finding(
        "6.1 save peak memory",
        "Parquet, Feather and ORC need about the same (within 2 times)",
        _below(SAVE_PEAK, ("Parquet", "Feather", "ORC"), ("Parquet", "Feather", "ORC"), 0.5),
        ("Parquet", "Feather", "ORC"),
    ),
    Finding(
        "6.1 save peak memory", "XML and Excel need the most", _highest(SAVE_PEAK, "XML", "Excel"), ("XML", "Excel")
    ),
    Finding(
        "6.1 read peak memory",
        "reading needs more than saving, for every format",
        tuple(Pair(Subject(SAVE_PEAK, name), Subject(READ_PEAK, name)) for name in FORMATS),
    ),
    Finding(
        "6.1 read peak memory",
        "of the text formats, CSV needs the least",
        _lowest(READ_PEAK, "CSV", among=TEXT),
        ("CSV",),
    ),
    Finding("6.1 read peak memory", "JSON and XML need the most", _highest(READ_PEAK, "JSON", "XML"), ("JSON", "XML")),
)


@dataclass(frozen=True)
class Fault:
    """A fault of the thesis's own measuring, with the figures and formats that it touches (no format:
    all)."""

    columns: tuple[Column, ...]
    formats: tuple[str, ...]
    text: str


FAULTS = (
    Fault((SAVE_TIME,), ("Lance",), "the thesis's Lance first writes a Parquet copy inside the clock"),
    Fault((READ_TIME,), ("Feather",), "in the thesis Feather alone reads with one thread"),
    Fault(
        (SAVE_PEAK, READ_PEAK),
        (),
        "the thesis's memory is a difference of inherited high-water marks in a forked child",
    ),
    Fault((SAVE_TIME, READ_TIME), (), "the thesis has one sample a cell, with other versions, and verified nothing"),
    Fault((SIZE,), (), "all string columns of a data set of the thesis are identical copies"),
)
"""Found in the code that the thesis describes."""
