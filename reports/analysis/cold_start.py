"""Show what a cold start costs: importing the libraries, and the first call of each operation in a fresh process.

Rule 2 in docs/method.md excludes these costs from the figures that rank formats, so they are shown separately.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from bench_runner.conditions import conditions_text
from bench_runner.results.information import VariantInfo
from bench_runner.results.records import Conditions, Run, Sample, changed
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
    """Yield `Figures` with the median costs of each variant that has counted samples, separately for each suite and set
    of conditions. The variant with the lowest sum of times comes first. Variants that lack a cost come last.

    Raw I/O is left out, because it loads nothing. If the run has samples with the libraries' own thread count, samples
    with one thread are not used.
    """
    usual = Conditions()
    apart = any(sample.conditions.threads == usual.threads for sample in run.samples)
    groups: dict[tuple[str, str, Conditions], list[Sample]] = {}
    for sample in run.samples:
        if sample.in_service or (apart and sample.conditions.threads != usual.threads):
            continue
        # Tracks only choose variants, so a variant has the same costs in each track.
        key = sample.suite, sample.machine, changed(sample.conditions, track=usual.track)
        groups.setdefault(key, []).append(sample)
    several = len({machine for _, machine, _ in groups}) > 1
    for (suite, machine, conditions), group in groups.items():
        told = conditions_text(conditions).removeprefix(f"track {usual.track}, ")
        yield from _of_group(run, suite, group, told + (f", machine {machine}" if several else ""))


def _of_group(run: Run, suite: str, samples: Sequence[Sample], conditions: str) -> Iterator[Figures]:
    """Yield `Figures` of one suite under one set of conditions.

    Costs depend on the data, and no data set may have all variants. So only the data set with the most variants is
    shown, and a note names the other variants.
    """
    by_dataset: dict[str, dict[Variant, list[Sample]]] = {name: {} for name in run.info.datasets}
    for sample in samples:
        if sample.counted and "first_call_ns" in sample.figures and not sample.cell.variant.is_raw_io:
            by_dataset.setdefault(sample.dataset, {}).setdefault(sample.cell.variant, []).append(sample)
    dataset, groups = max(by_dataset.items(), key=lambda item: len(item[1]), default=("", {}))
    if not groups:
        return
    tried = dict.fromkeys(sample.cell.operation for sample in samples)
    operations = columns_of({name: run.info.operation(name) for name in tried}).operations
    if len(operations) > MOST_OPERATIONS:
        first_of = {name.name: name for name in reversed(operations)}
        operations = tuple(name for name in operations if name in first_of.values())
    titles = [run.info.operation(name).title for name in operations]
    costs = ("import", *(f"first {title}" for title in titles))
    headers = tuple(f"{cost}\n{unit}" for unit in ("ms", "MB") for cost in costs)
    labels = short_labels(dict.fromkeys(variant for found in by_dataset.values() for variant in found))
    rows = []
    for variant, group in groups.items():
        about = run.info.variants.get(variant, VariantInfo())
        times = [about.import_ns, *(_median(group, name, "first_call_ns") for name in operations)]
        memory = [about.import_rss_bytes, *(_median(group, name, "first_call_rss_bytes") for name in operations)]
        texts = (*_texts(times, MILLISECONDS), *_texts(memory, MEGABYTES))
        known = [value for value in times if value is not None]
        rows.append((len(times) - len(known), sum(known), variant, texts))
    rows.sort(key=lambda row: row[:2])
    variants = tuple(variant for *_, variant, _ in rows)
    missing = [label for variant, label in labels.items() if variant not in groups]
    notes = (f"not shown, because not counted on {dataset}: {', '.join(sorted(missing))}",) if missing else ()
    title, half = f"{suite}: {dataset}, {conditions}", len(costs)
    parts = [slice(None)] if len(headers) <= MOST_TOGETHER else [slice(half), slice(half, None)]
    for part in parts:
        lines = tuple((labels[variant], texts[part]) for *_, variant, texts in rows)
        yield Figures(
            title,
            "format",
            headers[part],
            lines,
            notes if part is parts[-1] else (),
            variants=variants,
            suite=suite,
            abreast=MOST_TOGETHER,
        )


def _texts(values: Sequence[float | None], unit: Unit) -> list[str]:
    return [NOTHING if value is None else unit.text(value) for value in values]


def _median(samples: Sequence[Sample], operation: str, figure: str) -> float | None:
    values = [each.figures[figure] for each in samples if each.operation == operation and figure in each.figures]
    return float(median(values)) if values else None
