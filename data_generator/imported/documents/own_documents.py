"""The user's own documents: a sample of a JSON Lines file, taken once, checked, and kept in the cache of data sets.

They are read when the data set is resolved, because their number and their key have to be known by then; what was found
is noted, so that the next time it is known at once for an input that has not changed. This module opens no file of the
user's itself.
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
"""Of a sample, where nobody asks for another number."""


def build(
    name: str,
    rows: int | None,
    parameters: Mapping[str, str],
    *,
    source: Path | None = None,
    on_rows: Callable[[int], None] | None = None,
) -> Dataset:
    """A sample of at most `rows` documents of the file at `source`, evenly spread blocks of it.

    Reads the file where that has not been done before; `on_rows` hears how many documents are read. Raises DataError
    when it is not there, or is refused.
    """
    if source is None:
        raise DataError(f"{name}: needs --data PATH\n  {document_input.TAKEN}")
    return _Sample(name, source, rows or MOST_DOCUMENTS, parameters["key"]).whole(on_rows)


@dataclass(frozen=True)
class _Sample:
    """Where the documents are, how many are wanted, and the field that is their key, if the user names one."""

    name: str
    path: Path
    rows: int
    key: str

    def whole(self, on_rows: Callable[[int], None] | None) -> Dataset:
        """The sample as a data set, which lies in the cache when this returns, but for one that is lost."""
        about = self.about()
        folder = cache.default_folder()
        noted = cache.read_facts(self.name, VERSION, about, folder).get("facts", [""])
        try:
            return self._dataset(about, msgspec.json.decode(noted[0], type=DocumentFacts))
        except msgspec.MsgspecError:
            return self._imported(about, folder, on_rows)

    def look(self) -> UserInput:
        """What is there now. Raises DataError when it is no JSON Lines."""
        return document_input.find(self.path)

    def about(self) -> dict[str, str]:
        """What tells this sample from others, and from itself before a change of the input."""
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
        """The sample, taken again where nobody gives its batches: the cache has lost it."""

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
        """The batches; at the end, if the input is still as it was."""
        yield from answers.batches()
        if self.about() != about:
            raise _changed(self.name, about)


def _changed(name: str, about: Mapping[str, str]) -> DataError:
    return DataError(f"{name}: {printable(about['path'])} was changed while it was read\n  try again")


def _remarks(facts: DocumentFacts) -> tuple[str, ...]:
    found = []
    if facts.numbered:
        found.append(
            f"the documents have no field {facts.key!r}: the number of the line stands for their key\n"
            "name by --key a field that each document has another value of, to have that"
        )
    if facts.rows < facts.input_rows:
        found.append(
            f"a sample of {facts.rows:,} of {facts.input_rows:,} documents is measured, in {facts.blocks} blocks\n"
            "ask for more by --rows N"
        )
    return tuple(found)
