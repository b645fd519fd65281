"""What a user pays once: loading the libraries, and the first save and read in a fresh process.

Rule 2 keeps these out of the figures that rank formats; here they are shown, so that they are not hidden. A pure
function of stored samples: it knows no page and no terminal.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from bench_runner.results.records import Conditions, Run, Sample
from bench_runner.results.statistics import is_raw_io
from reports.analysis.tables import MEGABYTES, MILLISECONDS, short_labels

TITLE = "paid once, and in no figure above: loading the libraries, then the first call on few rows or images"
HEADERS = ("import ms", "first save ms", "first read ms", "import MB", "first save MB", "first read MB")


@dataclass(frozen=True)
class FirstCalls:
    """One variant's costs as medians over all counted samples; `texts` goes with HEADERS, '-' where nothing is
    known."""

    variant: str
    label: str
    texts: tuple[str, ...]
    total_ns: float


def first_calls(run: Run) -> list[FirstCalls]:
    """One row for each variant with counted samples, the cheapest first; none for raw I/O, which loads nothing. Of a
    run under both conditions of threads, the samples under the libraries' own."""
    usual = Conditions().threads
    apart = any(sample.conditions.threads == usual for sample in run.samples)
    groups: dict[str, list[Sample]] = {}
    for sample in run.samples:
        if apart and sample.conditions.threads != usual:
            continue
        if sample.counted and "first_call_ns" in sample.figures and not is_raw_io(sample.variant):
            groups.setdefault(sample.variant, []).append(sample)
    labels = short_labels(groups)
    variants = run.info.get("variants")
    described = variants if isinstance(variants, dict) else {}
    rows = [_row(variant, labels[variant], group, described.get(variant, {})) for variant, group in groups.items()]
    return sorted(rows, key=lambda row: row.total_ns)


def _row(variant: str, label: str, samples: list[Sample], described: dict[str, object]) -> FirstCalls:
    times = [_number(described.get("import_ns")), *(_median(samples, name, "first_call_ns") for name in _OPERATIONS)]
    memory = [
        _number(described.get("import_rss_bytes")),
        *(_median(samples, name, "first_call_rss_bytes") for name in _OPERATIONS),
    ]
    texts = [_NOTHING if value is None else MILLISECONDS.text(value) for value in times]
    texts += [_NOTHING if value is None else MEGABYTES.text(value) for value in memory]
    return FirstCalls(variant, label, tuple(texts), sum(value or 0 for value in times))


_OPERATIONS = ("save", "read")
_NOTHING = "-"


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _median(samples: list[Sample], operation: str, figure: str) -> float | None:
    values = [each.figures[figure] for each in samples if each.operation == operation and figure in each.figures]
    return float(median(values)) if values else None
