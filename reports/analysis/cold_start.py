"""What a cold start costs: loading the libraries, and the first call of each operation in a fresh process.

Rule 2 keeps these out of the figures that rank formats; here they are shown, so that they are not hidden. A pure
function of stored samples: it knows no page and no terminal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bench_runner.results.information import VariantInfo
from bench_runner.results.records import Conditions, Run, Sample
from bench_runner.variants import OperationName, Variant
from reports.analysis.columns import columns_of
from reports.analysis.labels import short_labels
from reports.analysis.units import MEGABYTES, MILLISECONDS

MOST_OPERATIONS = 4
"""Of more operations the first of each name is shown: other parameters load nothing else."""
MOST_TOGETHER = 6
"""Columns that stand beside each other on a page; more are a table of times and one of memory."""
_NOTHING = "-"


@dataclass(frozen=True)
class ColdStart:
    """One variant's costs as medians over all counted samples; `texts` goes with the headers, '-' where nothing is
    known."""

    variant: Variant
    label: str
    texts: tuple[str, ...]
    total_ns: float


@dataclass(frozen=True)
class ColdStarts:
    """The variants of a run, the cheapest first; headers are 'import ms', 'first save ms', ..., 'import MB', ..."""

    headers: tuple[str, ...]
    rows: tuple[ColdStart, ...]

    @property
    def parts(self) -> list[slice]:
        """Which columns stand beside each other where a page is narrow."""
        count = len(self.headers)
        if count <= MOST_TOGETHER:
            return [slice(0, count)]
        half = count // 2
        return [
            slice(start, min(start + MOST_TOGETHER, end))
            for first, end in ((0, half), (half, count))
            for start in range(first, end, MOST_TOGETHER)
        ]


def cold_starts(run: Run) -> ColdStarts:
    """One row for each variant with counted samples; none for raw I/O, which loads nothing. Of a run under both
    conditions of threads, the samples under the libraries' own."""
    usual = Conditions().threads
    apart = any(sample.conditions.threads == usual for sample in run.samples)
    groups: dict[Variant, list[Sample]] = {}
    for sample in run.samples:
        if (apart and sample.conditions.threads != usual) or sample.in_service:
            continue
        if sample.counted and "first_call_ns" in sample.figures and not sample.cell.variant.is_raw_io:
            groups.setdefault(sample.cell.variant, []).append(sample)
    tried = dict.fromkeys(sample.cell.operation for sample in run.samples if not sample.in_service)
    operations = columns_of({name: run.info.operation(name) for name in tried}).operations
    if len(operations) > MOST_OPERATIONS:
        first_of = {name.name: name for name in reversed(operations)}
        operations = tuple(name for name in operations if name in first_of.values())
    titles = [run.info.operation(name).title for name in operations]
    costs = ("import", *(f"first {title}" for title in titles))
    headers = [f"{cost} {unit}" for unit in ("ms", "MB") for cost in costs]
    labels = short_labels(groups)
    rows = [
        _row(variant, labels[variant], group, operations, run.info.variants.get(variant, VariantInfo()))
        for variant, group in groups.items()
    ]
    return ColdStarts(tuple(headers), tuple(sorted(rows, key=lambda row: row.total_ns)))


def _row(
    variant: Variant, label: str, samples: Sequence[Sample], operations: Sequence[OperationName], described: VariantInfo
) -> ColdStart:
    times = [described.import_ns, *(_median(samples, name, "first_call_ns") for name in operations)]
    memory = [described.import_rss_bytes, *(_median(samples, name, "first_call_rss_bytes") for name in operations)]
    texts = [_NOTHING if value is None else MILLISECONDS.text(value) for value in times]
    texts += [_NOTHING if value is None else MEGABYTES.text(value) for value in memory]
    return ColdStart(variant, label, tuple(texts), sum(value or 0 for value in times))


def _median(samples: Sequence[Sample], operation: str, figure: str) -> float | None:
    values = [each.figures[figure] for each in samples if each.operation == operation and figure in each.figures]
    return float(median(values)) if values else None
