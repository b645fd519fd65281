"""Measure suites: what `format-bench run` does, for programs and for the command line.

It plans, measures, and leaves the files of the result folder; how samples are taken is bench_runner's business, and
what is shown of them is that of reports.
"""

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
    """What a run left: `run` as read back from its files in `folder`, and whether some cells `failed`.

    In a notebook it shows itself as the DataFrame of `frame()`.
    """

    run: Run
    folder: Path
    failed: bool

    def frame(self) -> pd.DataFrame:
        """One row a cell, with medians and the ends of their intervals: see reports.analysis.frame.frame. Its
        `attrs["folder"]` names the result folder."""
        figures = frame(self.run)
        figures.attrs["folder"] = str(self.folder)
        return figures

    def __repr__(self) -> str:
        # The samples of a long run would fill the screen.
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
    """Measure one or more suites. A cell that fails is a row with its reason, and raises nothing.

    What: `formats` and `formats_not` are regular expressions of variants, `datasets` and `operations` of their names;
    `datasets` may spell one ('synthetic[int=5,str=1]'). `data` is your own table (the path of a file, a DataFrame, an
    Arrow table, or what has `__arrow_c_stream__`), folder of images, or JSON Lines of documents, which the field `key`
    tells apart; `options` say how a table is read (types of columns, delimiter, ..). `webface` is an HDF5 file,
    `generated_webface` adds the one that we make. `rows` are those of each data set, of your own data of the sample.
    `tracks` are 'plain', 'default' and 'equal'; `codecs` and `levels` are for the suite compression. `over` varies one
    trait while all else stays: 'nulls', or {'nulls': (0, 0.5, 0.9)} with its values.

    Under which conditions: `cache` 'warm' or 'cold'; `threads` 'default' or '1' (None: the suite's); `target` 'pandas'
    or 'arrow' (None: the suite's); `strings` 'str' or 'object'; `work_dirs` are folders that exist, each a condition of
    its own; so are `networks` between who asks and a copy that services have ('one-process', 'loopback', '1000mbit';
    none: the suite's). These services are 'warm' or 'fresh'.

    How: `rounds` for every cell, or `quick`, which is one, of a part of each suite and on fewer rows; it ends within
    three minutes on two cores, and what is named here is measured all the same. `budget_s` are seconds for all of it
    from `began_ns` on (a moment of bench_runner.clock; None: now), with one round of everything at least;
    `timeout_s` seconds for one operation. `seed` orders the rounds; `isolate` is 'forkserver' or 'spawn'; `fidelity`
    tries every kind of column. What is known of that, of imports and of the memory probe from earlier runs on this
    machine is taken over, unless `fresh`.

    Where: `out` is a new or empty folder (None: results/<time>-<machine>), or with `resume` that of a run to go on
    with. `machine` stands in all records in place of the host's name. CSV files are left in the folder, with `report` a
    PDF too. `watcher` hears how it goes; `command` is what the records say was asked (the usual: this call).

    Raises RequestError, bench_runner's BenchError, data_generator's DataError, adapters' AdapterError or RecordError
    for a request that cannot be met; Interrupted after Ctrl-C, with all kept that was measured.
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
    # Of a run that goes on nobody knows how much is left of it.
    if not resume and (told := length_text(run_length(plan, how), budget_s)):
        watcher.note(f"this run: {told}")
    try:
        asked = command or [call_text(run, suites, given)]
        measured, failed = measure(plan, request, how, folder, asked, watcher)
    except KeyboardInterrupt:
        if not (folder / "run.json").exists():
            raise
        raise Interrupted(folder) from None
    # The CSV files first: they are there, whatever becomes of the PDF.
    files_of(measured, folder, csv=True, pdf=False)
    if report:
        watcher.stage("report")
        files_of(measured, folder, csv=False, pdf=True)
    return RunOutcome(measured, folder, failed)


def _budget_s(asked_s: float | None, *, quick: bool) -> float | None:
    if asked_s is None:
        return QUICK_BUDGET_S if quick else None
    return above_zero("budget_s", asked_s, "seconds")
