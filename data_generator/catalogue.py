"""The list of data sets: names, parameters and purposes.

Listing the data sets imports no heavy library. The code that makes a data set is imported by `resolve`.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from data_generator.errors import DataError
from data_generator.imported.read_options import AS_FOUND, ReadOptions

if TYPE_CHECKING:
    from data_generator.dataset import Dataset


@dataclass(frozen=True)
class Parameter:
    """A parameter of a data set.

    `allowed` has all allowed texts, or the lowest and the highest allowed number. If `allowed` is empty, any text
    without brackets, commas and equals signs is allowed.
    """

    name: str
    allowed: tuple[str, ...] | tuple[int, int] | tuple[float, float]
    default: str
    meaning: str

    def canonical(self, text: str) -> str:
        """Return the value in its canonical spelling, e.g. '0.1' for '0.10'. Raises ValueError for a value that is not
        allowed."""
        if not self.allowed:
            if set(text) & set("[],="):
                raise ValueError(text)
            return text
        low = self.allowed[0]
        if isinstance(low, str):
            if text not in self.allowed:
                raise ValueError(text)
            return text
        value = type(low)(text)
        if not low <= value <= self.allowed[1]:  # type: ignore[operator]
            raise ValueError(text)
        return f"{value:g}" if isinstance(value, float) else str(value)

    def allowed_text(self) -> str:
        """Return the allowed values, for an error or a listing."""
        if not self.allowed:
            return "a text without [ ] , ="
        if isinstance(self.allowed[0], str):
            return ", ".join(map(str, self.allowed))
        return f"{self.allowed[0]} to {self.allowed[1]}"


@dataclass(frozen=True)
class Entry:
    """A data set in the catalogue.

    `build` is the function that makes the data set, as 'module:function'. It is called with the canonical name, the
    number of rows, all parameters as text and, if `takes_file`, the user's file.
    """

    title: str
    purpose: str
    build: str
    default_rows: int | None
    """Default number of rows; None if the parameters or the user's file determine the number of rows."""
    parameters: tuple[Parameter, ...] = ()
    fixed: Mapping[str, str] | None = None
    """Parameters that the user cannot change. They are passed to `build` together with the user's parameters."""
    takes_file: bool = False
    imports: bool = False
    """Whether the call of `build` reads the data, and not only the first use of the data set. This may take minutes.
    `build` then takes the argument `on_rows`."""
    takes_options: bool = False
    """Whether `build` takes `options` for reading the user's file."""
    kind: str = "tables"
    """Kind of data: 'tables', 'images' (data_generator.images) or 'documents' (data_generator.documents)."""


_SYNTHETIC = (
    Parameter("int", (0, 1000), "0", "columns of int64, uniform in 0 to 100"),
    Parameter("float", (0, 1000), "0", "columns of float64, uniform in 0 to 100"),
    Parameter("bool", (0, 1000), "0", "columns of booleans"),
    Parameter("str", (0, 1000), "0", "columns of strings"),
    Parameter("strings", ("fixed", "varying", "words"), "fixed", "letters of one or varying length; words"),
    Parameter("length", (1, 200), "10", "(mean) number of letters of a string"),
    Parameter("nulls", (0.0, 0.99), "0", "share of missing values in each column"),
)

_TRAITS = (
    Parameter("distinct", (2, 1_000_000), "1000", "distinct values of each column, all equally frequent"),
    Parameter("run_length", (1, 1_000_000), "1", "mean number of equal values in a row, beneath the missing ones"),
    Parameter("nulls", (0.0, 0.99), "0", "share of missing values in each column"),
    Parameter("width", (1, 65_536), "16", "bytes of each text"),
    Parameter("columns", (1, 20_000), "8", "numbers (int64) and texts alternately"),
    Parameter("rows", (1, 100_000_000), "1000000", "rows of the table, unless --rows gives them"),
)


def _preset(kind: str) -> Entry:
    kinds = ("int", "float", "bool", "str")
    counts = {name: "2" if kind == "eq" else "5" if name == kind else "1" for name in kinds}
    described = ", ".join(f"{count} {name}" for name, count in counts.items())
    mixture = "as many columns of each kind" if kind == "eq" else f"mostly {kind} columns"
    return Entry(
        f"synthetic: {described}",
        f"the thesis's table 4.2: {mixture}",
        "data_generator.generated.synthetic:build",
        1_000_000,
        fixed={**{parameter.name: parameter.default for parameter in _SYNTHETIC}, **counts},
    )


def _real(title: str, purpose: str) -> Entry:
    build = "data_generator.imported.images.real_images:build"
    return Entry(title, purpose, build, None, takes_file=True, imports=True, kind="images")


def _documents(
    title: str, purpose: str, build: str, default_rows: int, parameters: tuple[Parameter, ...] = ()
) -> Entry:
    module = f"data_generator.generated.documents.{build}"
    return Entry(title, purpose, module, default_rows, parameters, kind="documents")


_REALISTIC = {
    "core": "columns of all kinds of workload together",
    "bi": "business intelligence dashboards",
    "classic": "classic open data sets and benchmarks",
    "geo": "geographic data",
    "log": "logs of machines",
    "ml": "tables that models are trained on",
}

CATALOGUE: Mapping[str, Entry] = {
    **{kind: _preset(kind) for kind in ("eq", "int", "float", "bool", "str")},
    "synthetic": Entry(
        "synthetic table of your own mixture",
        "how a format's figures depend on the kinds of columns, on strings and on missing values",
        "data_generator.generated.synthetic:build",
        1_000_000,
        _SYNTHETIC,
    ),
    **{
        name: Entry(
            f"realistic: {described}",
            "20 columns whose distinct values, skew, runs, order, nulls and widths are like those of real tables",
            "data_generator.generated.realistic:build",
            1_000_000,
        )
        for name, described in _REALISTIC.items()
    },
    "tpch-lineitem": Entry(
        "TPC-H lineitem",
        "decimals, dates and short texts of a well-known benchmark",
        "data_generator.generated.tpch:build",
        None,
        (Parameter("scale", ("0.01", "0.1", "1", "10"), "0.1", "scale factor; 1 is 6,001,215 rows"),),
    ),
    "events": Entry(
        "events: core's columns, an ascending time and a unique key",
        "filters by day or key, and appending rows",
        "data_generator.generated.events:build",
        1_000_000,
    ),
    "vectors": Entry(
        "vectors of 1,024 numbers, each with a label",
        "embeddings as a search or a training loop reads them, by rows",
        "data_generator.generated.large_values:build_vectors",
        100_000,
        (Parameter("dimensions", (1, 16_384), "1024", "float32 numbers of each vector"),),
    ),
    "texts": Entry(
        "texts of about 10 KB, each with a label",
        "pages and articles, of which few are read at a time",
        "data_generator.generated.large_values:build_texts",
        100_000,
        (Parameter("bytes", (1, 65_536), "10000", "mean size of a text"),),
    ),
    "blobs": Entry(
        "binary values of about 10 KB, each with a label",
        "encoded images in a table: no codec makes them smaller",
        "data_generator.generated.large_values:build_blobs",
        100_000,
        (Parameter("bytes", (1, 65_536), "10000", "mean size of a value"),),
    ),
    "values": Entry(
        "one column of values of one size, 4 bytes to 64 KB",
        "cost of reading one value at random, by its size: up to 1,000,000 values, at most 256 MB",
        "data_generator.generated.large_values:build_values",
        None,
        (
            Parameter("bytes", (4, 65_536), "256", "size of a value; for kind=variable the mean"),
            Parameter("kind", ("variable", "fixed"), "variable", "binary, or vectors of float32 (4 bytes each)"),
        ),
    ),
    "wide": Entry(
        "many columns of floats",
        "features of which a reader needs a few: the cost of the others",
        "data_generator.generated.wide:build",
        None,
        (
            Parameter("columns", (1, 20_000), "50", "columns of float64"),
            Parameter("rows", (1, 1_048_576), "1000", "rows, so that one run can have few and many"),
        ),
    ),
    "snowset": Entry(
        "queries of a data warehouse: 93 columns, a stand-in for Snowset",
        "savings of reading near the storage: for each filter it is known which blocks of rows match",
        "data_generator.generated.warehouse.snowset:build",
        1_000_000,
        (Parameter("block_rows", (1, 2_097_152), "10000", "rows of a block: one range of times and of warehouses"),),
    ),
    "traits": Entry(
        "numbers and texts with chosen traits",
        "how a format's figures depend on one trait of the data while all others stay ('run sweep --over')",
        "data_generator.generated.traits:build",
        None,
        _TRAITS,
    ),
    "webface": Entry(
        "WebFace10M, or a similar table",
        "33 columns by 10,000,000 rows: results of face analysis, or your own HDF5 file",
        "data_generator.generated.webface:build",
        None,
        takes_file=True,
    ),
    "table": Entry(
        "table of your own",
        "CSV, JSON Lines, Parquet, Arrow, ORC, Excel, Avro, or a folder of Parquet files; a sample if it is large",
        "data_generator.imported.tables.own_table:build",
        None,
        (Parameter("share", (0.01, 1.0), "1", "a smaller sample, of the first part of each block, as a second size"),),
        takes_file=True,
        imports=True,
        takes_options=True,
    ),
    "cifar-like": Entry(
        "images like CIFAR-10's: 32 x 32, RGB, 10 classes",
        "many small images that compress like photographs, without a download",
        "data_generator.generated.photographs:build_cifar_like",
        50_000,
        kind="images",
    ),
    "imagenet-like": Entry(
        "images like ImageNet-100's: shorter side 160, some grey, sorted by 100 classes",
        "images of many shapes that compress like photographs, without a download",
        "data_generator.generated.photographs:build_imagenet_like",
        2_000,
        kind="images",
    ),
    "cifar10": _real(
        "CIFAR-10, its training images", "the thesis's small images, from the cache of 'datasets' or yours"
    ),
    "imagenet100": _real(
        "ImageNet-100, its training images", "the thesis's larger images, from the cache of 'datasets' or yours"
    ),
    "images": _real(
        "images of your own", "folders of image files by class, Parquet files, or a saved 'datasets' folder"
    ),
    "cell": _documents(
        "documents: telephone calls, flat, 7 fields, 141 bytes",
        "cost of storing documents that could be a table",
        "cell:build",
        500_000,
    ),
    "sensors": _documents(
        "documents: reports of sensors with arrays of readings, 16 columns, 3.8 KB",
        "savings of encoding numbers that change little",
        "sensors:build",
        20_000,
        (Parameter("readings", ("walk", "random"), "walk", "integers that differ by at most 3; random doubles"),),
    ),
    "tweets": _documents(
        "documents: tweets of 2020, deep and sparse, about 930 columns, 5.3 KB",
        "cost of hundreds of columns when each document has few of them",
        "tweets:build",
        15_000,
    ),
    "wos": _documents(
        "documents: publications, about 296 columns, 6.2 KB, with long texts",
        "fields that are an object in some documents and an array of objects in others",
        "wos:build",
        12_000,
    ),
    "tweets-2016": _documents(
        "documents: tweets of 2016, about 275 columns, 2.7 KB, with an ascending time",
        "updates and deletions under indexes",
        "tweets:build_2016",
        30_000,
    ),
    "bluesky-events": _documents(
        "documents: events like those of Bluesky's stream, 481 bytes",
        "the five queries of JSONBench",
        "bluesky:build",
        200_000,
    ),
    "documents": Entry(
        "documents of your own",
        "JSON Lines: one object per line; a sample if the file is large",
        "data_generator.imported.documents.own_documents:build",
        None,
        (Parameter("key", (), "", "the field that is each document's key; none: 'id', or else the line's number"),),
        takes_file=True,
        imports=True,
        kind="documents",
    ),
}


def resolve(
    name: str,
    parameters: Mapping[str, str],
    *,
    rows: int | None = None,
    source: Path | None = None,
    options: ReadOptions = AS_FOUND,
    on_rows: Callable[[int], None] | None = None,
) -> Dataset:
    """Return the data set with this name and these parameters, whose values are texts.

    `rows` replaces the default number of rows. `source` is the user's file or folder, for data sets that are read from
    files, and `options` define how to read it. The source is read now, unless its data are in the cache. `on_rows` is
    called with the number of rows read so far. Raises DataError for a name or value that is not allowed.
    """
    entry = CATALOGUE.get(name)
    if entry is None:
        near = difflib.get_close_matches(name, CATALOGUE, n=1)
        guess = f" (did you mean {near[0]!r}?)" if near else ""
        raise DataError(
            f"No data set has the name {name!r}{guess}.",
            f"Choose among {', '.join(CATALOGUE)}.",
            parameter="datasets",
            given=name,
            allowed=tuple(CATALOGUE),
        )
    if rows is not None and rows < 1:
        raise DataError(parameter="rows", given=rows, allowed="a whole number of at least 1")
    if source is not None and not entry.takes_file:
        able = ", ".join(known for known, row in CATALOGUE.items() if row.takes_file)
        raise DataError(
            f"The data set {name} does not read a file (got {source}).",
            f"Data sets that read a file: {able or 'none'}.",
            parameter="data",
            given=source,
        )
    values = _checked(name, entry, parameters)
    spelled = ",".join(
        f"{parameter.name}={values[parameter.name]}"
        for parameter in entry.parameters
        if values[parameter.name] != parameter.default
    )
    module, _, function = entry.build.partition(":")
    build: Callable[..., Dataset] = getattr(importlib.import_module(module), function)
    canonical = f"{name}[{spelled}]" if spelled else name
    keywords: dict[str, object] = {"source": source} if entry.takes_file else {}
    if entry.imports:
        keywords["on_rows"] = on_rows
    if entry.takes_options:
        keywords["options"] = options
    made = build(canonical, rows or entry.default_rows, {**(entry.fixed or {}), **values}, **keywords)
    # The argument `rows` replaces the parameter of that name.
    told = {**values, "rows": str(made.rows)} if "rows" in values else values
    return replace(made, parameters=told)


def _checked(name: str, entry: Entry, parameters: Mapping[str, str]) -> dict[str, str]:
    known = {parameter.name: parameter for parameter in entry.parameters}
    values = {parameter.name: parameter.default for parameter in entry.parameters}
    for key, text in parameters.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            guess = f" (did you mean {near[0]!r}?)" if near else ""
            offered = ", ".join(known) or "none"
            raise DataError(
                f"{name} has no parameter {key!r}{guess}.",
                f"Allowed parameters: {offered}.",
                parameter="datasets",
                given=key,
                allowed=offered,
            )
        try:
            values[key] = known[key].canonical(text)
        except ValueError:
            allowed = known[key].allowed_text()
            raise DataError(
                f"{name}: {key} cannot be {text!r}.",
                f"Allowed: {allowed}.",
                parameter="datasets",
                given=text,
                allowed=allowed,
            ) from None
    return values
