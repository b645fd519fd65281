"""List the thesis's findings (its statements) on tables, codecs and images, and known faults of its measurements.

M. Tarageľ, Column-oriented and Image Data Format Benchmarks, Brno University of Technology, 2024.
"""

from __future__ import annotations

from dataclasses import dataclass

from reports.analysis.columns import READ_PEAK, READ_TIME, SAVE_PEAK, SAVE_TIME, SIZE, Column
from reports.sources.rows import Finding, claims_of, names_of

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
"""Our names of formats by the names in the thesis."""
ROWS = {
    "eq": 1_000_000,
    "int": 1_000_000,
    "float": 1_000_000,
    "bool": 1_000_000,
    "str": 1_000_000,
    "webface": 10_000_000,
}
"""Rows by data set, from the thesis's table 4.2."""


def _findings(part: str) -> tuple[Finding, ...]:
    names = names_of("thesis")
    return tuple(names.finding(rows) for rows in claims_of("thesis") if rows[0]["part"] == part)


TABLES, CODECS, IMAGES = map(_findings, ("tables", "codecs", "images"))


@dataclass(frozen=True)
class Fault:
    """A fault of the thesis's measurements, with the figures and formats that the fault affects. An empty list of
    formats means all formats."""

    columns: tuple[Column, ...]
    formats: tuple[str, ...]
    text: str


FAULTS = (
    Fault((SAVE_TIME,), ("Lance",), "the thesis's Lance first writes a Parquet copy within the measured time"),
    Fault((READ_TIME,), ("Feather",), "in the thesis only Feather reads with one thread"),
    Fault(
        (SAVE_PEAK, READ_PEAK),
        (),
        "the thesis measures memory as a difference of high-water marks inherited by a forked child",
    ),
    Fault((SAVE_TIME, READ_TIME), (), "the thesis has one unverified sample per cell, with other versions"),
    Fault((SIZE,), (), "in the thesis all string columns of a data set are identical copies"),
)
"""Faults that we found in the program that the thesis describes."""
