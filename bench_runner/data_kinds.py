"""The kinds of data that formats store: tables, images, documents.

A kind is one object here, and what is registered under its name: what stores it (`registries.REGISTRIES`), what is in
hand (`operations.targets.MAKERS`), whether what came back is right (`worker.verification.COMPARISONS`), which variants
take part in a suite where not all do as with tables (`plan.candidates.CHOICES`), and the `kinds` of operations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ChoiceLimits:
    """How much of some data `recommend` measures unless the user says more: its default budget allows no more."""

    most_rows: int
    screened_rows: int
    """Larger data are screened on so many: every candidate once, before rounds of those that may win."""
    screened_share: float = 1.0
    """At most this share of the data is screened."""
    most_bytes: int | None = None
    """Of rows that are large so many bytes are measured."""
    fewest_rows: int = 1
    """So many rows are measured however large they are."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DataKind:
    """One kind of data."""

    name: str
    """In the plural, as messages name it, and as the catalogue of data sets does."""
    counted: str
    """What its rows are called."""
    targets: Mapping[str, str]
    """What a user may hold, by the values of Conditions.target, with words for people."""
    own_datasets: tuple[str, ...]
    """Data sets that are read from the user's files; the first is what they are called where nobody names one."""
    suite: str
    """What measures it where nobody names a suite."""
    primer_rows: int
    """An operation is primed on so many rows of the same schema, never at full size (rule 2)."""
    asv_rows: int
    """asv measures so many where nobody says how many: history repeats a suite for years."""
    choice: ChoiceLimits | None
    """None where `recommend` refuses it."""
    not_recommended: str = ""
    """Why it does, where it does."""
    has_columns: bool = False
    """Whether it has typed columns: then there are several targets, dtypes of text, tracks, traits that can be varied,
    and losses by kinds of column (rules 8, 10 and 12)."""
    has_key: bool = False
    """Whether --key names the field that identifies a row."""
    reads_may_write: bool = False
    """Whether a store may change its files while it is read."""
    file_per_row: bool = False
    """Whether some of what stores it writes a file for each row."""


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
    # Each document is read as a dict and compared.
    choice=ChoiceLimits(most_rows=10_000, screened_rows=2_000, most_bytes=10 * 10**6, fewest_rows=1_000),
    has_key=True,
    reads_may_write=True,
)

KINDS: dict[str, DataKind] = {kind.name: kind for kind in (TABLES, IMAGES, DOCUMENTS)}


def kind_of_target(target: str) -> DataKind:
    """The kind whose rows are held as `target` says. Raises ValueError for a target that no kind has."""
    for kind in KINDS.values():
        if target in kind.targets:
            return kind
    known = ", ".join(target for kind in KINDS.values() for target in kind.targets)
    raise ValueError(f"target {target!r} belongs to no kind of data; there are: {known}")
