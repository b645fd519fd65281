"""Calls that answer wrongly without a word, which users of these formats may take for the ones that are measured here.

No format makes them. A test shows each of them still wrong, and `docs/limits.md` lists them from here. It knows
no call: what is wrong is shown in tests/formats/test_wrong_answers.py.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WrongAnswer:
    """One of them, in words for people: the call as a user writes it, what comes of it, what to do in its place.

    `name` tells it from the others; `distribution` is whose call it is.
    """

    name: str
    distribution: str
    call: str
    answer: str
    instead: str


WRONG_ANSWERS = (
    WrongAnswer(
        "fastparquet-flat-filters",
        "fastparquet",
        'ParquetFile(path).to_pandas(filters=[("r", ">=", 1), ("r", "<", 2)], row_filter=True)',
        "a flat list means 'or', so every row comes",
        "a list of lists, `[[..]]`, means 'and'; here rows are read and filtered afterwards",
    ),
    WrongAnswer(
        "fastparquet-categorical-bounds",
        "fastparquet",
        "write(path, frame, stats=True)",
        "the bounds of a categorical column of numbers or dates go by the order of its categories: readers that "
        "filter by them, as DuckDB does, lose rows",
        "leave `stats` out; near storage heeds no bounds of fastparquet's, but tables that were put before November "
        "2026 must be put again",
    ),
    WrongAnswer(
        "hdf5-null-test",
        "pandas",
        'read_hdf(path, where="word != word")',
        "every row comes, because the second word is taken for a text; of numbers it is an error",
        "read, then `isna`, as is done here",
    ),
    WrongAnswer(
        "pyarrow-nan-by-statistics",
        "pyarrow",
        'read_table(path, filters=field("f") != 5.0)',
        "NaN is missing in the answer where all other values of a row group are 5.0: its statistics tell of no NaN",
        "read, then `filter`; no condition that is measured here is met by NaN",
    ),
    WrongAnswer(
        "duckdb-nan-by-statistics",
        "duckdb",
        "FROM 'file.parquet' WHERE f <> 5",
        "the same, with what pyarrow wrote; to DuckDB NaN is also greater than 5, and missing there too",
        "read, then ask; no condition that is measured here is met by NaN",
    ),
    WrongAnswer(
        "duckdb-copy-append",
        "duckdb",
        "COPY more TO 'file.parquet' (FORMAT parquet, APPEND)",
        "the rows that were in the file are gone",
        "a folder of files, or DuckDB's own file and INSERT; here Parquet by DuckDB is read and saved anew",
    ),
    WrongAnswer(
        "datafusion-order-of-chunks",
        "datafusion",
        "SessionContext().from_arrow(table).write_parquet(path)",
        "of a table of several chunks the rows lie in another order, because its threads take turns",
        "`SessionConfig().with_target_partitions(1)`, as is done here",
    ),
)
