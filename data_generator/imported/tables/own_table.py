"""Take a sample of the user's table, check it, and store it in the cache of data sets.

A data set needs the number of rows and the schema. Therefore `data_generator.catalogue.resolve` already reads the
table. The number of rows and the schema are stored in the cache, so that an unchanged table is not read again. `share`
makes a smaller data set from the same sample. This module itself opens no file of the user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from data_generator import cache
from data_generator.dataset import Dataset
from data_generator.errors import DataError
from data_generator.imported.read_options import AS_FOUND, ReadOptions
from data_generator.imported.refusal import printable
from data_generator.imported.tables import sampling, table_input, table_worker
from data_generator.imported.tables.table_reading import TableFacts

VERSION = 6
NAME = "table"
MOST_ROWS = 1_000_000
"""Default size of a sample."""


def build(
    name: str,
    rows: int | None,
    parameters: Mapping[str, str],
    *,
    source: Path | None = None,
    options: ReadOptions = AS_FOUND,
    on_rows: Callable[[int], None] | None = None,
) -> Dataset:
    """Return a sample of at most `rows` rows of the table at `source`, read with `options`.

    The sample consists of blocks of rows. The parameter `share` is the share of each block's rows that are returned.
    These are the first rows of the block.

    The table is read unless its sample is in the cache. `on_rows` is called with the number of rows read so far. Raises
    DataError if the table is missing or refused.
    """
    if source is None:
        raise DataError(f"The data set {name} needs `data`.", table_input.TAKEN, parameter="data")
    sample = _Sample(source, rows or MOST_ROWS, options)
    whole = sample.whole(on_rows)
    share = float(parameters["share"])
    if share == 1:
        return whole
    blocks = sampling.blocks(int(whole.source["input_rows"]), sample.rows)
    places = sampling.shortened(sampling.places(blocks), share)

    def batches() -> Iterator[pa.RecordBatch]:
        path = cache.prepare(whole, cache.default_folder()).path
        for place in places:
            yield from cache.read_rows(path, place.start, place.rows)

    count = sum(place.rows for place in places)
    return Dataset(
        name,
        count,
        whole.schema,
        VERSION,
        batches,
        source={**whole.source, "sampled_rows": str(count)},
        remarks=whole.remarks,
        understood=whole.understood,
    )


@dataclass(frozen=True)
class _Sample:
    """A sample of the user's table: the path of the table, the options for reading it, and the maximum of rows."""

    path: Path
    rows: int
    options: ReadOptions

    def whole(self, on_rows: Callable[[int], None] | None) -> Dataset:
        """Return the sample as a data set. If the table was not read before, it is read into the cache first."""
        about = self.about()
        folder = cache.default_folder()
        facts = _known(cache.read_facts(NAME, VERSION, about, folder))
        schema = facts and cache.kept_schema(NAME, facts.rows, VERSION, _with_facts(about, facts), folder)
        if facts is None or schema is None:
            return self._dataset(about, *self._imported(about, folder, on_rows))
        return self._dataset(about, facts, schema)

    def about(self) -> dict[str, str]:
        """Return facts that identify this sample and the current state of the input. Raises DataError for an invalid
        input."""
        found = table_input.find(self.path)
        table_input.check_options(found, self.options)
        return {**found.about(), "most_rows": str(self.rows), **self.options.about()}

    def _imported(
        self, about: Mapping[str, str], folder: Path, on_rows: Callable[[int], None] | None
    ) -> tuple[TableFacts, pa.Schema]:
        with table_worker.started(table_input.find(self.path), self.rows, self.options, on_rows) as answers:
            facts, schema = answers.facts, answers.schema
            dataset = self._dataset(about, facts, schema, lambda: self._checked(answers, about))
            cache.prepare(dataset, folder)
        cache.keep_facts(NAME, VERSION, about, folder, {"facts": [msgspec.json.encode(facts).decode()]})
        return facts, schema

    def _dataset(
        self,
        about: Mapping[str, str],
        facts: TableFacts,
        schema: pa.Schema,
        batches: Callable[[], Iterator[pa.RecordBatch]] | None = None,
    ) -> Dataset:
        """Return the sample as a data set. Without `batches`, the table is read again when the batches are
        requested."""

        def again() -> Iterator[pa.RecordBatch]:
            return self._again(about, facts, schema)

        source = _with_facts(about, facts)
        return Dataset(
            NAME,
            facts.rows,
            schema,
            VERSION,
            batches or again,
            source=source,
            remarks=facts.remarks,
            understood={"kind": about["kind"], **facts.understood},
        )

    def _again(self, about: Mapping[str, str], facts: TableFacts, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Read the table again, in another process, and yield the batches of the sample."""
        with table_worker.started(table_input.find(self.path), self.rows, self.options) as answers:
            if (answers.facts, answers.schema) != (facts, schema):
                raise _changed(about)
            yield from self._checked(answers, about)

    def _checked(self, answers: table_worker.Import, about: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the sample. Raises DataError at the end if the table has changed while it was read."""
        yield from answers.batches()
        if self.about() != about:
            raise _changed(about)


def _changed(about: Mapping[str, str]) -> DataError:
    return DataError(f"{NAME}: {printable(about['path'])} changed while it was read.", "Try again.")


def _with_facts(about: Mapping[str, str], facts: TableFacts) -> dict[str, str]:
    counted = {"input_rows": facts.input_rows, "sampled_rows": facts.rows, "blocks": facts.blocks}
    return {**about, **{key: str(value) for key, value in counted.items()}}


def _known(facts: Mapping[str, Any]) -> TableFacts | None:
    """Return facts from the cache as TableFacts; None if they are incomplete."""
    try:
        return msgspec.json.decode(facts["facts"][0], type=TableFacts)
    except (msgspec.MsgspecError, LookupError, TypeError):
        return None
