"""Measure suites, as `format-bench run` does: plan, measure, and write the files of the result folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from bench_runner.clock import now_ns
from bench_runner.results.records import Run, changed
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
from reports.analysis.frame import frame

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class RunOutcome:
    """The result of a run: `run` as read back from `folder`, and whether some cells `failed`.

    A notebook displays it as the DataFrame of `frame()`.
    """

    run: Run
    folder: Path
    failed: bool

    def frame(self) -> pd.DataFrame:
        """Return one row per cell with medians and the ends of their intervals, as reports.analysis.frame.frame does.

        `attrs["folder"]` is the result folder.
        """
        figures = frame(self.run)
        figures.attrs["folder"] = str(self.folder)
        return figures

    def __repr__(self) -> str:
        # Without the samples, which would fill the screen.
        failed = ", some cells failed" if self.failed else ""
        return f"Measured({str(self.folder)!r}, {len(self.run.samples):,} samples{failed})"

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
    watcher: Watcher | None = None,
    command: Sequence[str] = (),
    began_ns: int | None = None,
    **wanted: Unpack[RequestFields],
) -> RunOutcome:
    """Measure one or more suites. A cell that fails is a row with its reason; it raises nothing.

    What to measure:
        formats, formats_not: Names or regular expressions of variants.
        datasets, operations: Names or regular expressions; `datasets` may have parameters: 'synthetic[int=5,str=1]'.
        data: Your own data: a table (path, DataFrame, Arrow table, or any object with `__arrow_c_stream__`), a folder
            of images, or JSON Lines of documents, in which the field `key` is unique.
        options: How a table is read (types of columns, delimiter, ...).
        webface, generated_webface: An HDF5 file, or True for the generated data set.
        rows: Rows of each data set, or of the sample of your own data.
        tracks: 'plain', 'default' and 'equal'.
        codecs, levels: For the suite compression.
        over: One trait to vary: 'nulls', or {'nulls': (0, 0.5, 0.9)} with its values.

    Conditions (None is the suite's default):
        cache: 'warm' or 'cold'.
        threads: 'default' or '1'.
        target: 'pandas' or 'arrow'.
        strings: 'str' or 'object'.
        work_dirs: Existing folders; several are compared.
        networks: Between client and storage service: 'one-process', 'loopback', '1000mbit'; several are compared.
        service: 'warm' or 'fresh'.

    How to measure:
        rounds: Rounds of every cell.
        quick: Whether to measure one round of a part of each suite on fewer rows, which takes at most three minutes on
            two cores. Formats, data sets and operations that you name replace those of the quick selection.
        budget_s: Seconds for everything, counted from `began_ns` (bench_runner.clock; None: now); every cell gets at
            least one round.
        timeout_s: Seconds for one operation.
        seed: Orders the measurements.
        isolate: How processes are started: 'forkserver' or 'spawn'.
        fidelity: Whether to check every kind of column.
        fresh: Whether to ignore what earlier runs on this machine found about losses, imports and the memory probe.

    Where:
        out: A new or empty folder (None: results/<time>-<machine>), or with `resume` the folder of a run to continue.
        machine: Replaces the host name in all records.
        report: Whether to write a PDF in addition to the CSV files.
        watcher: Receives the progress.
        command: Recorded as the request (default: this call).

    Raises RequestError, bench_runner's BenchError, data_generator's DataError, adapters' AdapterError or RecordError
    for a request that cannot be met, and Interrupted after Ctrl-C, with the folder of what was measured.
    """
    given = {name: value for name, value in locals().items() if name != "wanted"} | wanted
    began_ns = now_ns() if began_ns is None else began_ns
    watcher = watcher or Silent()
    request = changed(requested(**wanted), quick=quick)
    if quick and rounds is not None:
        raise RequestError(
            "`quick` measures one round, so it cannot be combined with `rounds`.",
            "Omit one of them.",
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
    plan = planned(suites, request, watcher)
    folder = result_folder(out, resume, lambda: new_folder(RESULTS, machine_name(how)))
    # For a resumed run the remaining part is unknown.
    if not resume and (told := length_text(run_length(plan, how), budget_s)):
        watcher.note(f"this run: {told}")
    try:
        asked = command or [call_text(run, suites, given)]
        measured, failed = measure(plan, request, how, folder, asked, watcher)
    except KeyboardInterrupt:
        if not (folder / "run.json").exists():
            raise
        raise Interrupted(folder) from None
    # The CSV files first, in case the PDF fails.
    files_of(measured, folder, csv=True, pdf=False)
    if report:
        watcher.stage("report")
        files_of(measured, folder, csv=False, pdf=True)
    return RunOutcome(measured, folder, failed)


def _budget_s(asked_s: float | None, *, quick: bool) -> float | None:
    if asked_s is None:
        return QUICK_BUDGET_S if quick else None
    return above_zero("budget_s", asked_s, "seconds")
