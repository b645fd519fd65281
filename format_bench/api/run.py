"""Measure suites, as `format-bench run` does: plan, measure, and write the files of the result folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from bench_runner.clock import now_ns
from bench_runner.results.records import Run, changed
from bench_runner.run.cluster.division import is_division
from bench_runner.run.measuring import machine_name, measure, new_folder
from bench_runner.run.options import QUICK_BUDGET_S, Options
from bench_runner.run.watcher import Watcher
from format_bench.api.own_table import takes_tables
from format_bench.api.planning import planned, run_length
from format_bench.api.report import check_pdf, files_of
from format_bench.api.request import (
    RESULTS,
    RequestFields,
    above_zero,
    at_least,
    call_text,
    checked_machine,
    one_of,
    requested,
    result_folder,
)
from format_bench.errors import Interrupted, RequestError
from format_bench.length_text import length_text
from format_bench.progress import Silent

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class RunOutcome:
    """The result of a run. `runs` holds the records in `folder`: one run, or on a cluster one for each host that has
    measured something. `failed` is whether some measurements failed.

    A notebook displays this object as the DataFrame that `frame()` returns.
    """

    runs: tuple[Run, ...]
    folder: Path
    failed: bool
    incomplete: Mapping[str, str] = field(default_factory=dict)
    """Maps the hosts of a cluster that did not complete their part of the run to the reason."""

    @property
    def run(self) -> Run:
        """The only run. On a cluster, the run of the first host that has measured something. Raises IndexError if no
        host has measured anything."""
        return self.runs[0]

    def frame(self) -> pd.DataFrame:
        """Return a DataFrame with medians and the ends of their confidence intervals.

        Each row is for one cell, that is one operation on one data set with one variant. The columns are explained in
        reports.analysis.frame.frame. The rows of several hosts follow each other. `attrs["folder"]` is the result
        folder.
        """
        import pandas as pd

        from reports.analysis.frame import frame

        figures = pd.concat([frame(run) for run in self.runs], ignore_index=True) if self.runs else pd.DataFrame()
        figures.attrs["folder"] = str(self.folder)
        return figures

    def __repr__(self) -> str:
        # Without the samples, which would fill the screen.
        failed = ", some cells failed" if self.failed else ""
        samples = sum(len(run.samples) for run in self.runs)
        return f"Measured({str(self.folder)!r}, {samples:,} samples{failed})"

    def _repr_html_(self) -> str:
        return self.frame().to_html()


@takes_tables
def run(
    *suites: str,
    rounds: int | None = None,
    quick: bool = False,
    budget_s: float | None = None,
    timeout_s: float = 600.0,
    seed: int | None = None,
    isolate: str = "forkserver",
    fidelity: bool = True,
    fresh: bool = False,
    out: Path | str | None = None,
    resume: bool = False,
    machine: str | None = None,
    report: bool = False,
    cluster: str | None = None,
    insecure: bool = False,
    watcher: Watcher | None = None,
    command: Sequence[str] = (),
    began_ns: int | None = None,
    **wanted: Unpack[RequestFields],
) -> RunOutcome:
    """Measure one or more suites and return the RunOutcome.

    If an operation fails, no exception is raised. The operation's row in the result then has the reason.

    What to measure:
        formats, formats_not: Names or regular expressions of variants.
        datasets, operations: Names or regular expressions; `datasets` may have parameters: 'synthetic[int=5,str=1]'.
        data: Your own data: a table (path, DataFrame, Arrow table, or any object with `__arrow_c_stream__`), a folder
            of images, or a JSON Lines file of documents.
        key: A field that is unique in each of your own documents.
        options: How a table is read (types of columns, delimiter, ...).
        webface, generated_webface: Add the data set webface, read from your HDF5 file, or generated (True).
        rows: Rows of each data set, or of the sample of your own data.
        tracks: Compression settings: 'plain' (none), 'default' (each library's), 'equal' (zstd level 1).
        codecs, levels: Codecs and compression levels for the suite compression.
        over: One property of the data to vary: 'nulls', or {'nulls': (0, 0.5, 0.9)} with its values.

    Conditions (None means the suite's default):
        cache: 'warm' or 'cold'.
        threads: 'default' or '1'.
        target: 'pandas' or 'arrow'.
        strings: 'str' or 'object'.
        work_dirs: Existing folders in which files are written and read. If there are several, all are measured.
        networks: Networks between client and storage service, for the suite near-storage: 'one-process', 'loopback',
            '1000mbit'. If there are several, all are measured.
        service: For the suite near-storage: 'warm' (answered before) or 'fresh' (restarted each time).

    How to measure:
        rounds: Repetitions of every measurement.
        quick: Whether to measure one round of a part of each suite on fewer rows, which takes at most three minutes on
            two cores. Formats, data sets and operations that you name replace those of the quick selection.
        budget_s: Seconds for the whole run, counted from `began_ns` (of bench_runner.clock.now_ns; None means now).
            Every operation gets at least one round, even if this takes longer.
        timeout_s: Time limit for one operation, in seconds.
        seed: Seed of the order of measurements (None: random).
        isolate: How processes are started: 'forkserver' or 'spawn'.
        fidelity: Whether to test which kinds of column each format changes.
        fresh: Whether to measure again what is kept from earlier runs on this machine, such as import times.

    Where:
        out: A new or empty folder (None: results/<time>-<machine>), or with `resume` the folder of a run to continue.
        machine: Name of this machine in all records (None: the host name).
        report: Whether to write a PDF in addition to the CSV files.
        cluster: Where to measure: 'local:N', 'ssh:FILE' or the address of a dask scheduler (None: on this machine).
            Each host gets a result folder below `out`.
        insecure: Whether a scheduler on another machine may be used without TLS.
        watcher: Is informed about the progress.
        command: Words that are recorded as the command of the run (default: this call).

    Raises RequestError, or bench_runner's BenchError, data_generator's DataError, adapters' AdapterError or RecordError
    if the request cannot be met. Raises Interrupted after Ctrl-C, with the folder of the results so far.
    """
    given = {name: value for name, value in locals().items() if name != "wanted"} | wanted
    began_ns = now_ns() if began_ns is None else began_ns
    watcher = watcher or Silent()
    request = changed(requested(**wanted), quick=quick)
    if quick and rounds is not None:
        raise RequestError(
            "`quick` measures one round, so it cannot be combined with `rounds`.",
            "Omit one of the two.",
            parameter="rounds",
            given=rounds,
        )
    how = Options(
        rounds=at_least("rounds", rounds, 1),
        quick=quick,
        budget_s=_budget_s(budget_s, quick=quick),
        timeout_s=above_zero("timeout_s", timeout_s, "seconds"),
        seed=at_least("seed", seed, 0),
        isolate=one_of("isolate", isolate, ("forkserver", "spawn")),
        resume=resume,
        machine=checked_machine(machine),
        fidelity=fidelity,
        fresh=fresh,
        began_ns=began_ns,
    )
    if report:
        check_pdf()
    _check_cluster(cluster, insecure, machine, (resume and out) or None)
    plan = planned(suites, request, watcher)
    folder = result_folder(out, resume, lambda: new_folder(RESULTS, machine_name(how)))
    # It is unknown how much of a resumed run remains to be measured, and how fast the hosts of a cluster are.
    if not resume and cluster is None and (told := length_text(run_length(plan, how), budget_s)):
        watcher.note(f"this run: {told}")
    try:
        asked = command or [call_text(run, suites, given)]
        if cluster is not None:
            from bench_runner.run.cluster.whole import measure_over

            over = measure_over(cluster, plan, request, how, folder, asked, watcher, insecure=insecure)
            runs, failed, incomplete = tuple(over.runs), over.failed, over.incomplete
        else:
            measured, failed = measure(plan, request, how, folder, asked, watcher)
            runs, incomplete = (measured,), {}
    except KeyboardInterrupt:
        if not (folder / "run.json").exists() and not is_division(folder):
            raise
        raise Interrupted(folder) from None
    # Write the CSV files first, in case making the PDF fails.
    places = [(each, folder if cluster is None else each.folder) for each in runs]
    for each, place in places:
        files_of(each, place, csv=True, pdf=False)
    if report:
        watcher.stage("report")
        for each, place in places:
            files_of(each, place, csv=False, pdf=True)
    return RunOutcome(runs, folder, failed, incomplete)


def _check_cluster(cluster: str | None, insecure: bool, machine: str | None, resumed: Path | str | None) -> None:
    if cluster is None and resumed is not None and is_division(Path(resumed)):
        raise RequestError(
            f"{resumed} holds a run over a cluster, but `cluster` was not given.",
            "Add `cluster` to continue the run.",
            parameter="out",
            given=str(resumed),
        )
    if cluster is None and insecure:
        raise RequestError("`insecure` needs `cluster`.", "Omit it.", parameter="insecure", given=insecure)
    if cluster is not None and machine is not None:
        raise RequestError(
            "`machine` cannot be combined with `cluster`, because each host of a cluster has its own name.",
            "Omit `machine`. To name a host, set FORMAT_BENCH_HOST in the environment of its dask workers.",
            parameter="machine",
            given=machine,
        )


def _budget_s(asked_s: float | None, *, quick: bool) -> float | None:
    if asked_s is None:
        return QUICK_BUDGET_S if quick else None
    return above_zero("budget_s", asked_s, "seconds")
