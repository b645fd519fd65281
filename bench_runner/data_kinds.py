"""The kinds of data that formats store: tables, images, documents.

To add a kind, make a `DataKind` here and register three things under its name: the formats that store it
(`registries.REGISTRIES`), the function that makes the user's object (`operations.targets.MAKERS`), and the function
that compares what an operation returned with the stored data (`worker.verification.COMPARISONS`). The rule of a suite
decides which formats take part. The field `target_kinds` of an operation lists the targets that the operation supports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ChoiceLimits:
    """The part of the data that `recommend` measures by default, so that the measurement fits into the default time
    budget."""

    most_rows: int
    screened_rows: int
    """Number of rows of the screening, which measures every candidate once. The best candidates are then measured on
    more rows, in many rounds (the race). Smaller data are not screened."""
    screened_share: float = 1.0
    """Largest share of the data that the screening uses."""
    most_bytes: int | None = None
    """Largest size of the measured rows, for data with large rows; None for no limit."""
    fewest_rows: int = 1
    """Number of rows that are measured even if these rows exceed `most_bytes`."""
    in_time: bool = False
    """Whether fewer rows are measured if the time budget would not allow enough rounds with all rows."""
    block_ns: int | None = None
    """Longest time in ns of a block (a series of timed calls) with more than three calls; None for the usual limit
    (rule 19)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DataKind:
    """One kind of data."""

    name: str
    """The name in the plural, such as 'tables', as used in messages and in the catalogue of data sets."""
    counted: str
    """The noun for one row of this kind of data, in the plural."""
    targets: Mapping[str, str]
    """The allowed values of Conditions.target (the type of the data in memory). Each maps to a description of such an
    object, e.g. 'arrow' to 'Arrow table'."""
    own_datasets: tuple[str, ...]
    """Names of the data sets that are read from the user's files. The first is the default."""
    suite: str
    """The suite that error messages suggest."""
    primer_rows: int
    """Number of rows of the small call that warms up the library before timing (rule 2)."""
    asv_rows: int
    """Default number of rows under asv, a tool that keeps a history of benchmark results."""
    choice: ChoiceLimits | None
    """The limits, or None if `recommend` does not support this kind of data."""
    not_recommended: str = ""
    """The reason why `recommend` does not support this kind of data, if `choice` is None."""
    has_columns: bool = False
    """Whether the data have typed columns. Several options and rules apply only to such data (rules 8, 10 and 12)."""
    has_key: bool = False
    """Whether --key names the field that identifies a row."""
    reads_may_write: bool = False
    """Whether a store may change its files while they are read."""
    file_per_row: bool = False
    """Whether some formats write a file for each row."""
    fidelity_targets: tuple[str, ...] = ()
    """Targets (types of the data in memory) for which a separate test finds the values that variants change (rule 12).
    Empty if the verification of each sample already finds all changes."""
    counts_own_memory: bool = False
    """Whether `recommend` counts times of a library that stays open and answers from its own memory. True for document
    stores, because users keep a store open. A database then keeps the data that it has read in memory, and the data of
    other stores are in the page cache, so no store reads from the device. The libraries keep stored values, not
    results."""


TABLES = DataKind(
    name="tables",
    counted="rows",
    targets={"pandas": "pandas DataFrame", "arrow": "Arrow table"},
    own_datasets=("table",),
    suite="tabular",
    primer_rows=1_000,
    asv_rows=100_000,
    choice=ChoiceLimits(most_rows=200_000, screened_rows=20_000),
    has_columns=True,
    fidelity_targets=("pandas", "arrow"),
)
IMAGES = DataKind(
    name="images",
    counted="images",
    targets={"images": "list of arrays"},
    own_datasets=("images", "cifar10", "imagenet100"),
    suite="image",
    # One image may be as large as a thousand rows.
    primer_rows=50,
    asv_rows=2_000,
    choice=ChoiceLimits(
        most_rows=10_000, screened_rows=1_000, screened_share=0.25, most_bytes=600 * 10**6, fewest_rows=10
    ),
    reads_may_write=True,
    file_per_row=True,
)
DOCUMENTS = DataKind(
    name="documents",
    counted="documents",
    targets={"documents": "list of dicts"},
    own_datasets=("documents",),
    suite="documents",
    primer_rows=1_000,
    asv_rows=100_000,
    choice=ChoiceLimits(
        most_rows=200_000,
        screened_rows=2_000,
        most_bytes=500 * 10**6,
        fewest_rows=1_000,
        in_time=True,
        # More processes with fewer calls each, because intervals are computed from processes.
        block_ns=500_000_000,
    ),
    has_key=True,
    reads_may_write=True,
    fidelity_targets=("documents",),
    counts_own_memory=True,
)

KINDS: dict[str, DataKind] = {kind.name: kind for kind in (TABLES, IMAGES, DOCUMENTS)}


def kind_of_target(target: str) -> DataKind:
    """Return the kind of data to which a target (the type of the data in memory) belongs. Raises ValueError for an
    unknown target."""
    for kind in KINDS.values():
        if target in kind.targets:
            return kind
    known = ", ".join(target for kind in KINDS.values() for target in kind.targets)
    raise ValueError(f"target {target!r} does not exist (allowed: {known})")
