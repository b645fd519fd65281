"""A fourth kind of data, graphs, defined in a single module: the kind, a format, a data set and a suite.

The format `graph-npz` is also registered as a format of tables, because looking it up there makes workers import this
module.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from adapters.contract import Adapter, Native
from adapters.registry import Registry
from bench_runner import data_kinds, registries
from bench_runner.data_kinds import DataKind
from bench_runner.operations import Operation, OperationContext, targets
from bench_runner.suites import Asked, Choice, Rule, Suite
from bench_runner.worker import verification
from bench_runner.worker.verify import Mismatch
from data_generator import catalogue
from data_generator.dataset import Dataset

GRAPHS = DataKind(
    name="graphs",
    counted="edges",
    targets={"edges": "table of edges"},
    own_datasets=(),
    suite="graphs",
    primer_rows=10,
    asv_rows=1_000,
    choice=None,
    not_recommended="formats of graphs have not been compared yet",
)
SCHEMA = pa.schema([("start", pa.int64()), ("end", pa.int64())])


class GraphNpz(Adapter):
    """Edges as two numpy arrays."""

    format = "graph-npz"
    engine = None
    title = "NumPy archive of edges"
    distributions = ("numpy",)
    suffix = ".npz"
    native = Native.ARROW
    capabilities = frozenset()

    def load_library(self) -> None:
        """Do nothing: numpy is imported already."""

    def save(self, edges: pa.Table, location: Path) -> None:
        np.savez(location, **{name: edges[name].to_numpy() for name in SCHEMA.names})

    def read(self, location: Path) -> pa.Table:
        with np.load(location) as found:
            return pa.table({name: found[name] for name in SCHEMA.names})


class NumpyAlone(Rule):
    """The only format of graphs."""

    def choices(self, asked: Asked) -> Iterator[Choice]:
        yield "plain", GraphNpz, {}


SUITE = Suite(
    name="graphs",
    question="Which format saves and reads graphs fastest?",
    operations=("save", "read"),
    datasets=("ring",),
    on_request=(),
    variants=NumpyAlone(tracks=("plain",)),
    reasons={},
    kind=GRAPHS,
    target="edges",
)
ENGINES = (GraphNpz,)


def ring(name: str, rows: int, parameters: dict[str, str]) -> Dataset:
    """Return a ring of `rows` edges."""

    def batches() -> Iterator[pa.RecordBatch]:
        start = np.arange(rows)
        yield pa.record_batch([pa.array(start), pa.array((start + 1) % rows)], schema=SCHEMA)

    return Dataset(name, rows, SCHEMA, 1, batches)


def _compare(stage: OperationContext, operation: Operation, answer: verification.Pair) -> tuple[str, ...]:
    if not answer.given.equals(stage.table(stage.rows)):
        raise Mismatch("other edges came back")
    return ()


data_kinds.KINDS[GRAPHS.name] = GRAPHS
targets.MAKERS[GRAPHS.name] = lambda table, target: table
verification.COMPARISONS[GRAPHS.name] = _compare
registries.REGISTRIES[GRAPHS.name] = Registry({}, "format_bench.graphs", "graph format")
catalogue.CATALOGUE["ring"] = catalogue.Entry(  # type: ignore[index]
    "a ring", "the fourth kind of data", "graph_data:ring", 5_000, kind=GRAPHS.name
)
