"""Take a sample of the user's JSON Lines file, check it, and store it in the cache of data sets.

A data set needs the number of documents and the key field. Therefore `data_generator.catalogue.resolve` already reads
the file. The number and the key field are stored in the cache, so that an unchanged file is not read again. This module
itself opens no file of the user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pyarrow as pa

from data_generator import cache, documents
from data_generator.dataset import Dataset
from data_generator.errors import DataError
from data_generator.imported.documents import document_input, document_worker
from data_generator.imported.documents.document_worker import DocumentFacts
from data_generator.imported.refusal import printable
from data_generator.imported.user_files import UserInput

VERSION = 1
MOST_DOCUMENTS = 1_000_000
"""Default size of a sample."""


def build(
    name: str,
    rows: int | None,
    parameters: Mapping[str, str],
    *,
    source: Path | None = None,
    on_rows: Callable[[int], None] | None = None,
) -> Dataset:
    """Return a sample of at most `rows` documents of the file at `source`. The sample consists of evenly spread blocks.

    The file is read unless the sample is in the cache. `on_rows` is called with the number of documents read so far.
    Raises DataError if the file is missing or refused.
    """
    if source is None:
        raise DataError(f"The data set {name} needs `data`.", document_input.TAKEN, parameter="data")
    return _Sample(name, source, rows or MOST_DOCUMENTS, parameters["key"]).whole(on_rows)


@dataclass(frozen=True)
class _Sample:
    """A sample of the user's documents: their file, the maximum number of documents, and the key field or ''."""

    name: str
    path: Path
    rows: int
    key: str

    def whole(self, on_rows: Callable[[int], None] | None) -> Dataset:
        """Return the sample as a data set. If the file was not read before, it is read into the cache first."""
        about = self.about()
        folder = cache.default_folder()
        noted = cache.read_facts(self.name, VERSION, about, folder).get("facts", [""])
        try:
            return self._dataset(about, msgspec.json.decode(noted[0], type=DocumentFacts))
        except msgspec.MsgspecError:
            return self._imported(about, folder, on_rows)

    def look(self) -> UserInput:
        return document_input.find(self.path)

    def about(self) -> dict[str, str]:
        return {**self.look().about(), "most_rows": str(self.rows), "key": self.key}

    def _imported(self, about: Mapping[str, str], folder: Path, on_rows: Callable[[int], None] | None) -> Dataset:
        with document_worker.started(self.look(), self.rows, self.key, on_rows) as answers:
            dataset = self._dataset(about, answers.facts, lambda: self._checked(answers, about))
            cache.prepare(dataset, folder)
        noted = {"facts": [msgspec.json.encode(answers.facts).decode()]}
        cache.keep_facts(self.name, VERSION, about, folder, noted)
        return self._dataset(about, answers.facts)

    def _dataset(
        self,
        about: Mapping[str, str],
        facts: DocumentFacts,
        batches: Callable[[], Iterator[pa.RecordBatch]] | None = None,
    ) -> Dataset:
        """Return the sample as a data set. Without `batches`, the file is read again when the batches are requested."""

        def again() -> Iterator[pa.RecordBatch]:
            with document_worker.started(self.look(), self.rows, self.key) as answers:
                if answers.facts != facts:
                    raise _changed(self.name, about)
                yield from self._checked(answers, about)

        source = {**about, "input_rows": str(facts.input_rows), "sampled_rows": str(facts.rows)}
        schema = documents.schema(facts.key)
        remarks = _remarks(facts)
        return Dataset(self.name, facts.rows, schema, VERSION, batches or again, source=source, remarks=remarks)

    def _checked(self, answers: document_worker.Import, about: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the sample. Raises DataError at the end if the file has changed while it was read."""
        yield from answers.batches()
        if self.about() != about:
            raise _changed(self.name, about)


def _changed(name: str, about: Mapping[str, str]) -> DataError:
    return DataError(f"{name}: {printable(about['path'])} changed while it was read.", "Try again.")


def _remarks(facts: DocumentFacts) -> tuple[str, ...]:
    found = []
    if facts.numbered:
        found.append(
            f"the documents have no field {facts.key!r}: line numbers are used as keys\n"
            "--key names a field with a different value in each document"
        )
    if facts.rows < facts.input_rows:
        found.append(
            f"a sample of {facts.rows:,} of {facts.input_rows:,} documents is measured, in {facts.blocks} blocks\n"
            "--rows N measures more"
        )
    return tuple(found)
