"""Library calls that return wrong results without an error.

Users may think that this project measures these calls, but no format uses them. tests/formats/test_wrong_answers.py
shows that the result of each call is still wrong, and `docs/limits.md` lists the calls.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WrongAnswer:
    """A library call that returns a wrong result, described for users.

    `call` is the code, `answer` describes the wrong result, and `instead` says what to do instead. `name` identifies
    this entry, and `distribution` is the package that has the call.
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
        "a flat list means 'or', so every row is returned",
        "use a list of lists, `[[..]]`, which means 'and'; this project reads rows and filters them afterwards",
    ),
    WrongAnswer(
        "fastparquet-categorical-bounds",
        "fastparquet",
        "write(path, frame, stats=True)",
        "the bounds of a categorical column of numbers or dates follow the order of its categories: readers that "
        "filter by them, such as DuckDB, lose rows",
        "omit `stats`; near storage ignores bounds written by fastparquet, but tables stored before November 2026 must "
        "be stored again",
    ),
    WrongAnswer(
        "hdf5-null-test",
        "pandas",
        'read_hdf(path, where="word != word")',
        "every row is returned, because the second word is taken for a text; with numbers it is an error",
        "read, then use `isna`, as this project does",
    ),
    WrongAnswer(
        "pyarrow-nan-by-statistics",
        "pyarrow",
        'read_table(path, filters=field("f") != 5.0)',
        "NaN is missing in the answer if all other values of a row group are 5.0, because its statistics ignore NaN",
        "read, then `filter`; no measured condition matches NaN",
    ),
    WrongAnswer(
        "duckdb-nan-by-statistics",
        "duckdb",
        "FROM 'file.parquet' WHERE f <> 5",
        "the same, with files of pyarrow; for DuckDB NaN is also greater than 5, and is missing there too",
        "read, then filter; no measured condition matches NaN",
    ),
    WrongAnswer(
        "duckdb-copy-append",
        "duckdb",
        "COPY more TO 'file.parquet' (FORMAT parquet, APPEND)",
        "the rows that were in the file are lost",
        "use a folder of files, or DuckDB's own file and INSERT; this project reads and rewrites Parquet for DuckDB",
    ),
    WrongAnswer(
        "datafusion-order-of-chunks",
        "datafusion",
        "SessionContext().from_arrow(table).write_parquet(path)",
        "rows of a table of several chunks are stored in another order, because its threads take turns",
        "use `SessionConfig().with_target_partitions(1)`, as this project does",
    ),
    WrongAnswer(
        "dask-orc-structs",
        "dask",
        "dask.dataframe.read_orc(path)",
        "columns of structs are missing",
        "use pyarrow or pandas; this project refuses such columns for dask",
    ),
)
