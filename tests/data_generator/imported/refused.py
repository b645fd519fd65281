"""What becomes of a user's files: the data set that is read, or the message that refuses them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from data_generator import cache
from data_generator.catalogue import resolve
from data_generator.dataset import Dataset
from data_generator.errors import DataError
from data_generator.imported.import_process import REFUSAL


def two_lines(answered: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the reason and the next step from answers that end with a refusal."""
    *_, (kind, content) = answered
    assert kind == REFUSAL, "it is taken"
    said = json.loads(content)
    text = f"{said['where']}: {said['reason']}\n  {said['step']}"
    assert text.count("\n") == 1
    assert text.replace("\n", "").isprintable()
    return text


def table(dataset: Dataset) -> pa.Table:
    """Return the data set as it is read from the cache."""
    return cache.read_table(cache.prepare(dataset, cache.default_folder()).path)


def refused(name: str, path: Path | None, message: str, **options: object) -> str:
    """Return the message of a data set that is refused, of which nothing may be kept in the cache."""
    with pytest.raises(DataError, match=message) as caught:
        resolve(name, {}, source=path, **options)
    said = str(caught.value)
    assert said.count("\n") <= 1
    kept = cache.default_folder()
    assert not kept.exists() or list(kept.iterdir()) == []
    return said
