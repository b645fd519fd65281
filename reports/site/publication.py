"""Write the pages of a publication: the interactive site, an index of all stored runs with a page for each run, and
links to the pages of asv, a benchmark tool.

`python -m reports.site.publication RUNS SITE` reads every result folder below RUNS and writes into SITE. Strings from
runs are not trusted, so all of them are escaped. The pages fetch nothing, and this module uploads nothing.
"""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from bench_runner.conditions import conditions_text
from bench_runner.results.records import RecordError, Run, changed, read_run
from reports.analysis.compare import CompareError, compare
from reports.analysis.level_changes import FEWEST_RUNS, LevelChange, level_changes
from reports.site.asv_pages import Graph, graphs
from reports.site.contents import CSV
from reports.site.pages import Link, SiteError, check_libraries, check_pages, environment
from reports.site.pages import write_site as write_front
from reports.text import comparison as compare_text
from reports.text import terminal

KEPT = ("report.pdf", "run.json", "samples.jsonl", "fidelity.jsonl")
WIDTH = 110
LEAST_CHANGE = 0.05
ODD_FACTS = (TypeError, ValueError, KeyError, AttributeError, IndexError)
"""Errors that may occur while reading the records of a foreign or damaged run."""


@dataclass(frozen=True)
class Published:
    """A stored run and its folder."""

    folder: Path
    run: Run

    @property
    def name(self) -> str:
        """The name of the run's folder, which is also its address."""
        return self.folder.name

    @property
    def started(self) -> str:
        """When the run started; empty if unknown."""
        return self.run.info.started or ""

    @property
    def commit(self) -> str:
        """The commit with which the run was measured; empty if unknown."""
        return self.run.info.commit or ""

    @property
    def suites(self) -> tuple[str, ...]:
        """The suites that were measured."""
        return tuple(self.run.info.suites)

    @property
    def machine(self) -> str:
        """The machine's name, as recorded in the samples."""
        return next((sample.machine for sample in self.run.samples), "")

    @property
    def same_machine(self) -> tuple[str, str | None]:
        """A key that is equal for runs on the same machine. The key includes the processor, because cloud machines of
        the same name may have different processors."""
        return self.machine, self.run.info.machine.cpu

    @property
    def state(self) -> str:
        """How the run ended, in words."""
        failed = sum(sample.failure is not None and sample.failure.is_failure for sample in self.run.samples)
        parts = ["did not finish"] if self.run.info.partial else []
        parts += [f"{failed} samples failed"] if failed else []
        return ", ".join(parts) or "complete"

    @property
    def facts(self) -> str:
        """When and where the run was measured, with which commit, and how it ended."""
        parts = (
            self.started and f"started {self.started}",
            self.machine and f"on {self.machine}",
            self.commit and f"commit {self.commit[:10]}",
            self.state,
        )
        return "; ".join(part for part in parts if part)


def stored_runs(folder: Path) -> tuple[list[Published], list[str]]:
    """Return the runs below `folder`, newest first, and the reason for each folder that cannot be read."""
    found, problems = [], []
    for place in sorted(folder.iterdir(), reverse=True) if folder.is_dir() else ():
        if not place.is_dir() or place.is_symlink():
            continue
        try:
            found.append(Published(place, read_run(place)))
        except RecordError as error:
            # The full path belongs to this machine, so only the folder's name is shown.
            problems.append(str(error).replace(str(place), place.name))
    found.sort(key=lambda published: published.started, reverse=True)
    return found, problems


def write_site(runs: Path, site: Path) -> list[str]:
    """Write into `site`: the interactive site of the newest runs, an index, and a page for each run. The runs are read
    from the folders below `runs`. Other files in `site` stay.

    Return the reasons for runs without a page. Raises SiteError if a library that the site needs is missing.
    """
    check_libraries()
    published, problems = stored_runs(runs)
    shown = []
    for place, each in enumerate(published):
        earlier = next((other for other in published[place + 1 :] if _question(each) == _question(other)), None)
        try:
            _write_run(each, earlier, site / "runs" / each.name)
        except ODD_FACTS as error:
            # One damaged run must not hide the others.
            problems.append(f"{each.name}: {type(error).__name__}: {error}")
        else:
            shown.append(each)
    has_history = (site / "asv" / "index.html").is_file()
    history = _history(site / "asv", problems) if has_history else None
    _write_front(_newest(shown), site, problems, has_history=has_history)
    levels = level_changes([each.run for each in shown])
    values = {"runs": shown, "problems": problems, "has_history": has_history, "history": history, "levels": levels}
    rows = [_level_row(change) for change in levels.changes or ()]
    _write_page("index", site / "runs", **values, level_rows=rows, fewest_runs=FEWEST_RUNS)
    return problems


def _newest(published: Sequence[Published]) -> list[Published]:
    """Return the newest run of each set of suites on each machine. A complete run is preferred to a newer incomplete
    one.

    The options of the runs are ignored, because older versions recorded the same options differently. If options
    counted, runs of older versions would be shown next to the newest runs.
    """
    found: dict[tuple[object, ...], Published] = {}
    for each in sorted(published, key=lambda each: each.state != "complete"):
        found.setdefault((each.suites, each.same_machine), each)
    return list(found.values())


def _write_front(published: Sequence[Published], site: Path, problems: list[str], *, has_history: bool) -> None:
    """Write the interactive site. Runs whose pages cannot be created are left out."""
    links = [Link("All stored runs", "runs/index.html")]
    if has_history:
        links.append(Link("History", "asv/index.html"))
    kept = []
    for each in published:
        try:
            check_pages([each.run])
        except ODD_FACTS as error:
            problems.append(f"{each.name}: {type(error).__name__}: {error}")
        else:
            kept.append(each.run)
    write_front(kept, site, links=links, among_others=True, files_in="runs")


def _history(folder: Path, problems: list[str]) -> Mapping[tuple[str, str], Sequence[Graph]] | None:
    """Return asv's graphs by suite and data set, or None if asv's pages cannot be read."""
    try:
        found = graphs(folder)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        problems.append(f"the history: {type(error).__name__}: {error}")
        return None
    by_dataset: dict[tuple[str, str], list[Graph]] = {}
    for graph in sorted(found, key=lambda graph: graph.place):
        by_dataset.setdefault((graph.suite, graph.dataset), []).append(graph)
    return {key: by_dataset[key] for key in dict.fromkeys((graph.suite, graph.dataset) for graph in found)}


def _level_row(change: LevelChange) -> dict[str, str]:
    cell, shift = change.cell, change.shift
    commits = [(run.info.commit or "unknown")[:10] for run in (change.before, change.after)]
    return {
        "run": change.after.folder.name,
        "date": (change.after.info.started or change.after.folder.name)[:10],
        "cell": f"{cell.suite}/{cell.operation}/{cell.dataset}/{cell.variant}",
        "conditions": f"{cell.rows:,} rows, {conditions_text(cell.conditions)}, on {cell.machine}",
        "ratio": f"{shift.ratio:.2f}",
        "interval": f"{shift.low:.2f} to {shift.high:.2f}",
        "commits": " -> ".join(dict.fromkeys(commits)),
        "libraries": ", ".join(change.libraries) or "-",
    }


def _question(published: Published) -> tuple[object, ...]:
    """Return a key that is equal for comparable runs: suites, machine, options and measured thread counts. The thread
    counts are those of the samples, because the user may let the suite choose the thread counts."""
    request = changed(published.run.info.request, threads=None)
    threads = {sample.conditions.threads for sample in published.run.samples}
    return published.suites, published.same_machine, request, threads


def _write_run(published: Published, earlier: Published | None, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    kept = [published.folder / name for name in KEPT]
    kept += sorted(path for kind in CSV for path in published.folder.glob(f"{kind}-*.csv"))
    kept = [path for path in kept if path.is_file() and not path.is_symlink()]
    for path in kept:
        shutil.copyfile(path, folder / path.name)
    values = {"run": published, "files": [path.name for path in kept], "earlier": earlier, "refusal": "", "changes": ""}
    if earlier is not None:
        try:
            found = compare(earlier.run, published.run, least_change=LEAST_CHANGE, anyway=False)
            values["changes"] = _printed(partial(compare_text.show, found))
        except CompareError as error:
            values["refusal"] = str(error)
    _write_page("run", folder, tables=_printed(partial(terminal.show, published.run)), **values)


def _printed(show: Callable[[Console], None]) -> str:
    text = io.StringIO()
    show(Console(file=text, width=WIDTH, force_terminal=False, color_system=None))
    return text.getvalue()


def _write_page(name: str, folder: Path, **values: object) -> None:
    text = environment().get_template(f"publication-{name}.html").render(**values)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.html").write_text(text, encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Run `python -m reports.site.publication RUNS SITE`."""
    if len(arguments) != 2:
        print("usage: python -m reports.site.publication RUNS SITE", file=sys.stderr)
        return 2
    try:
        problems = write_site(Path(arguments[0]), Path(arguments[1]))
    except SiteError as error:
        print(error, file=sys.stderr)
        return 2
    for problem in problems:
        print(f"no page for {problem}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
