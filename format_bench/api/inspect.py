"""Read a file as a run would, without measuring."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from bench_runner.data_kinds import DOCUMENTS, IMAGES, TABLES
from bench_runner.run.watcher import Watcher
from data_generator import cache
from data_generator.catalogue import CATALOGUE, resolve
from data_generator.dataset import Dataset
from data_generator.errors import DataError
from data_generator.imported.images import image_input
from data_generator.imported.read_options import AS_FOUND, ReadOptions
from format_bench.api.request import at_least
from format_bench.errors import RequestError
from format_bench.progress import Silent


@dataclass(frozen=True)
class Inspected:
    """How a file was read: `dataset` is the data set that a run would measure, `first` has its first rows."""

    dataset: Dataset
    first: pa.Table


def inspect(
    data: Path | str,
    *,
    options: ReadOptions = AS_FOUND,
    key: str | None = None,
    rows: int | None = None,
    first_rows: int = 5,
    watcher: Watcher | None = None,
) -> Inspected:
    """Read your own table, images, or documents (if `key` is given) as `run` would, and return how they were read.

    `options` define how a table is read, and `rows` is the largest number of rows to read, as in `run`. Raises
    RequestError for invalid arguments, and data_generator.errors.DataError for a file that is refused.
    """
    path = Path(data)
    if not path.exists():
        raise RequestError(parameter="data", given=str(path), allowed="an existing file or folder")
    at_least("rows", rows, 1)
    at_least("first_rows", first_rows, 1)
    kind = DOCUMENTS if key is not None else IMAGES if _holds_images(path) else TABLES
    name = kind.own_datasets[0]
    if options != AS_FOUND and not CATALOGUE[name].takes_options:
        given = options.checked().given()
        raise RequestError(
            f"{path} holds {kind.name}, but {', '.join(f'`{name}={value!r}`' for name, value in given.items())} can be "
            "used for tables only.",
            f"Omit {' and '.join(f'`{name}`' for name in given)}.",
            parameter=next(iter(given)),
            given=next(iter(given.values())),
        )
    heard = watcher or Silent()
    heard.stage("read")
    dataset = resolve(
        name,
        {"key": key} if key else {},
        rows=rows,
        source=path,
        options=options.checked(),
        on_rows=lambda seen: heard.step(f"{seen:,} read", None),
    )
    stored = cache.prepare(dataset, cache.default_folder())
    return Inspected(dataset, cache.read_table(stored.path, rows=first_rows))


def _holds_images(path: Path) -> bool:
    """Return whether the path has images, judged by the names of its files. Parquet files count as tables, even if they
    contain images."""
    try:
        return image_input.find(path).kind != image_input.PARQUET
    except DataError:
        return False
