"""Invent realistic runs, for tests of reports and for looking at reports without measuring.

Times, sizes and memory follow the thesis's tables for `eq`, with seeded noise. Every kind of failure that reports must
show occurs. `python -m tests.reports.factory FOLDER` writes a run as a result folder.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from bench_runner.results.information import information
from bench_runner.results.records import (
    Conditions,
    Failure,
    Fidelity,
    Run,
    Sample,
    SampleWriter,
    changed,
    write_run_info,
)
from bench_runner.variants import variant_of
from tests.bench_runner.results import invented
from tests.bench_runner.results.invented import MACHINE

DATASETS = ("eq", "int", "float", "bool", "str", "core")

# variant: seconds of save and read, size in MB, peak MB of save and read, cores
PLAIN: dict[str, tuple[float, float, float, float, float, float]] = {
    "avro[engine=fastavro,codec=none]": (4.0, 2.99, 43, 429, 619, 1.0),
    "csv[engine=pandas]": (2.65, 1.26, 75, 5, 175, 1.0),
    "excel[save=xlsxwriter,read=calamine]": (81.8, 12.1, 66, 270, 486, 1.0),
    "feather[engine=pyarrow,codec=none]": (0.24, 0.042, 60, 65, 243, 1.2),
    "feather[engine=pyarrow,codec=none,mapped=true]": (0.24, 0.005, 60, 65, 3, 1.0),
    "raw-io": (0.05, 0.02, 60, 1, 60, 1.0),
    "hdf5-fixed[engine=pandas,format=fixed]": (1.78, 1.60, 69, 82, 277, 1.0),
    "hdf5-table[engine=pandas,format=table]": (1.92, 2.03, 62, 107, 314, 1.0),
    "json[engine=pandas]": (1.88, 2.68, 128, 630, 1564, 1.0),
    "json[engine=pandas,double_precision=15]": (1.91, 2.66, 131, 640, 1570, 1.0),
    "lance[engine=pylance]": (0.41, 0.052, 69, 264, 474, 1.6),
    "orc[engine=pyarrow,codec=none]": (0.43, 0.58, 38, 66, 462, 1.1),
    "parquet[engine=pyarrow,codec=none]": (0.243, 0.064, 47, 79, 524, 1.5),
    "pickle[engine=pandas]": (0.47, 0.041, 60, 68, 125, 1.0),
    "vortex[engine=vortex-data]": (0.52, 0.11, 31, 140, 300, 1.8),
    "xml[engine=pandas,parser=lxml]": (16.64, 23.7, 228, 3196, 5212, 1.0),
}
DEFAULT: dict[str, tuple[float, float, float, float, float, float]] = {
    "avro[engine=fastavro,codec=deflate]": (6.0, 3.4, 21, 429, 619, 1.0),
    "csv[engine=pandas]": (2.65, 1.26, 75, 5, 175, 1.0),
    "feather[engine=pyarrow,codec=lz4]": (0.21, 0.05, 42, 65, 243, 1.2),
    "hdf5-fixed[engine=pandas,format=fixed]": (1.78, 1.60, 69, 82, 277, 1.0),
    "lance[engine=pylance]": (0.41, 0.052, 69, 264, 474, 1.6),
    "orc[engine=pyarrow,codec=none]": (0.43, 0.58, 38, 66, 462, 1.1),
    "parquet[engine=pyarrow,codec=snappy]": (0.26, 0.066, 39, 79, 524, 1.5),
    "pickle[engine=pandas]": (0.47, 0.041, 60, 68, 125, 1.0),
}
YOUNG = ("hdf5-fixed", "hdf5-table", "lance", "pickle", "vortex")
"""Formats that count as young in an invented run. All other formats are established."""
PROJECT_10 = "project[columns=10]"
OPERATIONS: dict[str, dict[str, Any]] = {
    "save": {"title": "save", "writes": True, "meaning": "the whole table from memory to disk"},
    "read": {"title": "read", "meaning": "the whole table from disk to memory"},
    PROJECT_10: {"title": "project 10 columns", "meaning": "ten of the columns, all rows"},
}
# format: time of a projection as a share of its read, and the fallback if its engine has no such call
PROJECT: dict[str, tuple[float, str]] = {
    "parquet": (0.25, ""),
    "feather": (0.2, ""),
    "lance": (0.3, ""),
    "csv": (0.8, ""),
    "raw-io": (0.2, ""),
    "pickle": (1.02, "read-all"),
    "avro": (1.03, "read-all"),
}
_SCALE = {"eq": 1.0, "int": 0.7, "float": 0.85, "bool": 0.75, "str": 1.4, "core": 2.1, "webface": 40.0}


def make_sample(**told: Any) -> Sample:
    """Return one plausible sample of reading `eq` with Parquet. Every field can be overridden."""
    whole = told.get("operation", "read") == "read" and told.get("fidelity", "exact") is not None
    return invented.make_sample(**{"saw_all": whole, **told})


def make_run(
    *,
    datasets: Sequence[str] = DATASETS,
    tracks: Sequence[str] = ("plain", "default"),
    rounds: int = 7,
    rows: int = 1_000_000,
    seed: int = 1,
    drift: float = 0.0,
    project: bool = False,
    info: dict[str, Any] | None = None,
    folder: Path = Path("results/2026-03-01T10-00-00-lab-1"),
) -> Run:
    """Return a complete run.

    `drift` is how much the machine slows down from the first to the last round. With `project`, some formats also read
    ten columns. `info` overrides fields of the run's information with JSON values.
    """
    source = random.Random(seed)
    samples: list[Sample] = []
    for number in range(1, rounds + 1):
        slower = 1 + drift * (number - 1) / max(rounds - 1, 1)
        chains = [
            chain
            for track in tracks
            for dataset in datasets
            for chain in _chains(track, dataset, rows, number, slower, source, project=project)
        ]
        source.shuffle(chains)
        for chain in chains:
            for sample in chain:
                samples.append(changed(sample, position=len(samples)))
    shape = _info(datasets, rounds, rows)
    if project:
        shape["operations"] = OPERATIONS
    return Run(folder, information({**shape, **(info or {})}), tuple(samples), _fidelity())


def history_of_a_cell(count: int, *, slower_from: int, cpu: str = "cpu", **fields: Any) -> list[Run]:
    """Return runs of one cell on consecutive days. From run `slower_from` on it takes 1.5 times as long, with another
    pyarrow, and another duckdb, which takes no part. `fields` override those of the samples."""
    runs = []
    for number in range(count):
        later = number >= slower_from
        nanoseconds = int(64_000_000 * (1.5 if later else 1) * (1 + number % 4 * 0.01))
        shape = {
            **_info(("eq",), 1, 1_000_000),
            "id": f"run-{number}",
            "started": f"2026-03-{number + 1:02d}T10:00:00+00:00",
            "commit": f"commit-{number}",
            "machine": {"cpu": cpu},
            "libraries": {"pyarrow": "26.1.0", "duckdb": "2.1.0"} if later else {"pyarrow": "26.0.0"},
        }
        sample = make_sample(figures={"wall_ns": nanoseconds}, **fields)
        runs.append(Run(Path(f"run-{number}"), information(shape), (sample,), ()))
    return runs


def of_few(run: Run) -> Run:
    """Return a run with only five of its variants, which renders faster."""
    few = ("raw-io", "parquet", "feather", "pickle", "csv")
    fidelity = tuple(each for each in run.fidelity if each.variant.startswith(few))
    return replace(run, samples=tuple(each for each in run.samples if each.variant.startswith(few)), fidelity=fidelity)


def with_info(run: Run, **fields: Any) -> Run:
    """Return a run with other information. The fields are JSON values."""
    return replace(run, info=information({**run.info.shape(), **fields}))


def _chains(
    track: str, dataset: str, rows: int, number: int, slower: float, source: random.Random, *, project: bool
) -> Iterator[list[Sample]]:
    variants = PLAIN if track == "plain" else DEFAULT
    for variant, (save_s, read_s, size_mb, save_mb, read_mb, cores) in variants.items():
        if variant.startswith(("xml", "excel")) and number > 1:
            continue
        scale = _SCALE[dataset] * rows / 1_000_000
        conditions = Conditions(track=track, target="arrow" if variant == "raw-io" else "pandas")
        base = make_sample(
            dataset=dataset,
            rows=rows,
            variant=variant,
            conditions=conditions,
            round=number,
            library="pandas 3.1.0",
            figures={},
            fidelity=None,
        )
        failure = _failure(variant, dataset)
        if failure is not None:
            yield [
                changed(base, operation="save", failure=failure[0]),
                changed(base, operation="read", failure=failure[1]),
            ]
            continue
        loss = ("float64 within 1e-10",) if variant == "json[engine=pandas]" and dataset in ("eq", "float") else ()
        chain = [
            changed(
                base,
                operation="save",
                figures=_figures(save_s * scale * slower, save_mb * scale, cores, source)
                | {"size_bytes": int(size_mb * scale * 1e6), "sync_ns": int(size_mb * scale * 4e6)},
                codec="snappy" if "snappy" in variant else None,
            ),
            changed(
                base,
                operation="read",
                figures=_figures(read_s * scale * slower, read_mb * scale, cores, source, mapped="mapped" in variant),
                fidelity="declared loss" if loss else "exact",
                saw_all=True,
                losses=loss,
                unsettled=variant.startswith("lance") and number == 3,
            ),
        ]
        if project and variant_of(variant).format_name in PROJECT:
            share, fallback = PROJECT[variant_of(variant).format_name]
            figures = _figures(read_s * scale * slower * share, read_mb * scale * share, cores, source)
            chain.append(changed(base, operation=PROJECT_10, figures=figures, fidelity="exact", fallback=fallback))
        yield chain


def _failure(variant: str, dataset: str) -> tuple[Failure, Failure] | None:
    if variant.startswith("excel") and dataset == "core":
        refused = Failure(kind="refused", reason="Excel holds at most 1,048,576 rows, this table has 10,000,000")
        return refused, refused
    if variant.startswith("avro") and dataset == "core":
        mismatch = Failure(kind="mismatch", reason="column 'c07': row 999,999 came back as None, 'kfjq' was stored")
        return Failure(kind="skipped", reason="its read did not pass"), mismatch
    if variant.startswith("vortex") and dataset == "bool":
        missing = Failure(kind="not installed", reason="vortex needs vortex-data; pip install -e '.[vortex]'")
        return missing, missing
    if variant.startswith("xml") and dataset == "str":
        return (
            Failure(kind="timeout", reason="save was stopped after 600 s"),
            Failure(kind="skipped", reason="its save did not end"),
        )
    return None


def _figures(
    seconds: float, megabytes: float, cores: float, source: random.Random, *, mapped: bool = False
) -> dict[str, int]:
    wall = int(seconds * 1e9 * source.lognormvariate(0, 0.03))
    private = int(megabytes * 1e6 * source.lognormvariate(0, 0.005))
    return {
        "wall_ns": wall,
        "cpu_ns": int(wall * cores),
        "first_call_ns": 4_000_000 + wall // 1000,
        "first_call_rss_bytes": 3_000_000,
        "peak_private_bytes": private,
        "peak_rss_bytes": int(private * 1.01) + (60_000_000 if mapped else 0),
    }


def _info(datasets: Sequence[str], rounds: int, rows: int) -> dict[str, Any]:
    return {
        "id": "2026-03-01T10-00-00-lab-1",
        "command": ["format-bench", "run", "tabular", "--report"],
        "started": "2026-03-01T10:00:00+00:00",
        "finished": "2026-03-01T10:41:07+00:00",
        "partial": False,
        "seed": 7,
        "quick": False,
        "rounds_asked": rounds,
        "machine": {
            "name": MACHINE,
            "cpu": "AMD EPYC 7B13",
            "cores": 2,
            "memory_bytes": 25_000_000_000,
            "kernel": "Linux 6.1.0-18-cloud-amd64",
            "virtualisation": "kvm",
            "python": "CPython 3.11.2",
        },
        "libraries": {"pandas": "3.1.0", "pyarrow": "26.0.0", "pylance": "14.0.0", "numpy": "2.4.6"},
        "commit": "bd53157c0ffee",
        "dirty": False,
        "work_dirs": {"default": {"path": "/tmp", "filesystem": "ext4", "device": "/dev/vda1"}},
        "probe": {"error_bytes": 1_500_000},
        "warnings": [
            {"text": "the CPU governor is 'powersave'", "remedy": "cpupower frequency-set --governor performance"}
        ],
        "suites": {"tabular": "Which format saves, reads and stores a table best?"},
        "datasets": {
            name: {"digest": "9f2c", "rows": rows, "size_bytes": 60_000_000, "title": name} for name in datasets
        },
        "variants": {
            name: {
                "title": name.partition("[")[0],
                "syncs_on_save": name.startswith("hdf5-table"),
                "maturity": {"stage": "young", "reason": "one implementation"}
                if variant_of(name).format_name in YOUNG
                else {"stage": "established", "reason": "a specification"},
                "import_ns": 2_000_000 * len(name),
                "import_rss_bytes": 100_000 * len(name),
            }
            for name in {**PLAIN, **DEFAULT}
        },
    }


KINDS = (
    *("int8", "int16", "int32", "int64", "uint64", "float32", "float64", "bool", "string", "binary", "date32"),
    *("timestamp[ns]", "timestamp[us,UTC]", "duration", "decimal128", "categorical", "list", "struct", "map"),
)


@cache
def _fidelity() -> tuple[Fidelity, ...]:
    cells = itertools.product(PLAIN, ("pandas", "arrow"), KINDS, (False, True))
    return tuple(_verdict(variant, target, kind, nulls) for variant, target, kind, nulls in cells)


def _verdict(variant: str, target: str, kind: str, nulls: bool) -> Fidelity:
    base = Fidelity(
        variant=variant,
        target=target,
        strings="str",
        kind=kind,
        nulls=nulls,
        outcome="exact",
        target_alone="int64 with nulls becomes float64" if (target, kind, nulls) == ("pandas", "int64", True) else "",
    )
    if variant.startswith("csv") and kind == "string":
        return changed(
            base, outcome="lossy", how="'NA', 'null' and '' become missing", bound="no other text", cause="call"
        )
    if variant == "json[engine=pandas]" and kind == "float64":
        return changed(base, outcome="lossy", how="digits are cut", bound="within 1e-10", cause="call")
    if kind in ("list", "struct", "map") and variant.startswith(("csv", "excel", "hdf5", "xml")):
        return changed(base, outcome="refused", how=f"TypeError: cannot store a {kind} column")
    if variant.startswith("hdf5-fixed") and kind == "duration":
        return changed(base, outcome="error", how="row 3: 1 s came back as 1 ns, which is not declared")
    return base


def write_run(run: Run, folder: Path) -> Path:
    """Store an invented run as a result folder and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    write_run_info(folder, run.info)
    writer = SampleWriter(folder)
    for record in (*run.samples, *run.fidelity):
        writer.append(record)
    return folder


if __name__ == "__main__":
    print(write_run(make_run(), Path(sys.argv[1])))
