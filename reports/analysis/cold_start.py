"""Show what a cold start costs: importing the libraries, and the first call of each operation in a fresh process.

Rule 2 in docs/method.md excludes these costs from the figures that rank formats, so they are shown separately.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from bench_runner.results.information import VariantInfo
from bench_runner.results.records import Conditions, Run, Sample
from bench_runner.variants import Variant
from reports.analysis.columns import columns_of
from reports.analysis.figures import Figures
from reports.analysis.labels import short_labels
from reports.analysis.units import MEGABYTES, MILLISECONDS, Unit
from reports.analysis.words import NOTHING

MOST_OPERATIONS = 4
"""With more operations, only the first operation of each name is shown. Another operation of the same name has other
parameters, but loads the same libraries."""
MOST_TOGETHER = 6
"""Largest number of columns in one table. With more columns, times and memory become separate tables."""


def cold_starts(run: Run) -> Iterator[Figures]:
    """Yield `Figures` with the median costs of each variant that has counted samples. The variant with the lowest sum
    of times comes first.

    Raw I/O is left out, because it loads nothing. If the run has samples with the libraries' own thread count, samples
    with one thread are not used.
    """
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
    headers = tuple(f"{cost}\n{unit}" for unit in ("ms", "MB") for cost in costs)
    labels = short_labels(groups)
    rows = []
    for variant, group in groups.items():
        about = run.info.variants.get(variant, VariantInfo())
        times = [about.import_ns, *(_median(group, name, "first_call_ns") for name in operations)]
        memory = [about.import_rss_bytes, *(_median(group, name, "first_call_rss_bytes") for name in operations)]
        texts = (*_texts(times, MILLISECONDS), *_texts(memory, MEGABYTES))
        rows.append((sum(value or 0 for value in times), variant, texts))
    rows.sort(key=lambda row: row[0])
    variants = tuple(variant for _, variant, _ in rows)
    half = len(costs)
    parts = [slice(None)] if len(headers) <= MOST_TOGETHER else [slice(half), slice(half, None)]
    for part in parts if rows else ():
        lines = tuple((labels[variant], texts[part]) for _, variant, texts in rows)
        yield Figures("", "format", headers[part], lines, variants=variants, abreast=MOST_TOGETHER)


def _texts(values: Sequence[float | None], unit: Unit) -> list[str]:
    return [NOTHING if value is None else unit.text(value) for value in values]


def _median(samples: Sequence[Sample], operation: str, figure: str) -> float | None:
    values = [each.figures[figure] for each in samples if each.operation == operation and figure in each.figures]
    return float(median(values)) if values else None
