"""Make the advice on the settings of a format from the figures of a run, and lines of Python that use these
settings."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bench_runner.results.records import RecordError
from bench_runner.variants import variant_of
from format_bench.python_lines import Lines
from format_bench.within import proposal
from reports.analysis.recommendation.recommend import Recommendation
from reports.analysis.recommendation.within import Change, Within, within


def advice_of(folder: Path, found: Recommendation) -> Within | None:
    """Return the advice of the run in a folder; None if the run compared formats instead of settings.

    Raises RecordError if the file with the proposals is invalid.
    """
    try:
        kept = proposal.kept(folder)
    except msgspec.MsgspecError as error:
        raise RecordError(f"{folder / proposal.FILE} is not valid: {error}.", "Measure again.") from None
    if kept is None:
        return None
    changes = [
        Change(variant_of(each.variant), each.change, each.parts, each.arguments, each.sorted_by)
        for each in kept.proposals
    ]
    return within(kept.format, changes, found)


def written_lines(change: Change, target: str) -> Lines:
    """Return the lines that save and read a Parquet table with the settings of `change`, by
    pyarrow.parquet.write_table."""
    held = "pa.Table.from_pandas(df, preserve_index=False)" if target == "pandas" else "table"
    if change.sorted_by is not None:
        held += f".sort_by({change.sorted_by!r})"
    given = "".join(f",\n    {name}={value!r}" for name, value in change.arguments.items())
    imports = ("import pyarrow as pa",) if target == "pandas" else ()
    read = (
        'df = pq.read_table("data.parquet").to_pandas()'
        if target == "pandas"
        else 'table = pq.read_table("data.parquet")'
    )
    return Lines(
        (*imports, "import pyarrow.parquet as pq"), f'pq.write_table(\n    {held},\n    "data.parquet"{given},\n)', read
    )
