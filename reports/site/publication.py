"""The pages of a publication: the interactive site in front, and behind it an index of all stored runs with a page for
each, and the pages that asv makes.

`python -m reports.site.publication RUNS SITE` reads every result folder below RUNS and writes into SITE. Runs are
hostile text: everything that is shown is escaped. The pages fetch nothing, and nothing here pushes anything.
"""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from rich.console import Console

from bench_runner.results.records import RecordError, Run, changed, read_run
from reports.analysis.compare import CompareError, compare
from reports.site.asv_pages import Graph, graphs
from reports.site.contents import CSV
from reports.site.pages import Link, SiteError, check_pages
from reports.site.pages import write_site as write_front
from reports.text import comparison as compare_text
from reports.text import terminal

KEPT = ("report.pdf", "run.json", "samples.jsonl", "fidelity.jsonl")
WIDTH = 110
LEAST_CHANGE = 0.05
ODD_FACTS = (TypeError, ValueError, KeyError, AttributeError, IndexError)
"""What a run raises that holds something else than ours do."""

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid #ddd; vertical-align: top; }
pre { overflow-x: auto; font: 13px/1.35 ui-monospace, monospace; }
.quiet { color: #555; }
@media (prefers-color-scheme: dark) {
  body { background: #16181b; color: #e8e8e8; } th, td { border-color: #3a3d41; }
  a { color: #8ab4f8; } .quiet { color: #a5a5a5; }
}
"""


@dataclass(frozen=True)
class Published:
    """One stored run and where it lies."""

    folder: Path
    run: Run

    @property
    def name(self) -> str:
        """The name of its folder, which is its address as well."""
        return self.folder.name

    @property
    def started(self) -> str:
        """When; empty where the run does not tell."""
        return self.run.info.started or ""

    @property
    def commit(self) -> str:
        """The version that measured; empty where the run does not tell."""
        return self.run.info.commit or ""

    @property
    def suites(self) -> tuple[str, ...]:
        """The suites that were measured."""
        return tuple(self.run.info.suites)

    @property
    def machine(self) -> str:
        """The machine's name, as samples carry it."""
        return next((sample.machine for sample in self.run.samples), "")

    @property
    def same_machine(self) -> tuple[str, str | None]:
        """What runs of one machine share: a cloud host may give another processor under the same name."""
        return self.machine, self.run.info.machine.cpu

    @property
    def state(self) -> str:
        """How the run ended, in words."""
        failed = sum(sample.failure is not None and sample.failure.is_failure for sample in self.run.samples)
        parts = ["did not finish"] if self.run.info.partial else []
        parts += [f"{failed} samples failed"] if failed else []
        return ", ".join(parts) or "complete"


def stored_runs(folder: Path) -> tuple[list[Published], list[str]]:
    """The runs below `folder`, newest first, and why others cannot be read."""
    found, problems = [], []
    for place in sorted(folder.iterdir(), reverse=True) if folder.is_dir() else ():
        if not place.is_dir() or place.is_symlink():
            continue
        try:
            found.append(Published(place, read_run(place)))
        except RecordError as error:
            # Not the whole path, which is this machine's own.
            problems.append(str(error).replace(str(place), place.name))
    found.sort(key=lambda published: published.started, reverse=True)
    return found, problems


def write_site(runs: Path, site: Path) -> list[str]:
    """Write the site of the newest runs, and the index and pages of all runs below `runs`; what else lies in `site`
    stays. Returns why a run has no page. Raises SiteError without the site's libraries."""
    published, problems = stored_runs(runs)
    shown = []
    for place, each in enumerate(published):
        earlier = next((other for other in published[place + 1 :] if _same_question(each, other)), None)
        try:
            _write_run(each, earlier, site / "runs" / each.name)
        except ODD_FACTS as error:
            # One run with odd facts must not hide the others.
            problems.append(f"{each.name}: {type(error).__name__}: {error}")
        else:
            shown.append(each)
    (site / "runs").mkdir(parents=True, exist_ok=True)
    history = list(_history(site / "asv", problems))
    _write_front(_newest(shown), site, problems)
    (site / "runs" / "index.html").write_text(_index(shown, problems, history), encoding="utf-8")
    return problems


def _newest(published: Sequence[Published]) -> list[Published]:
    """The newest run of the same suites on each machine; of those that are complete, where there is one. The request
    does not count, so that runs of older versions, which asked in other words, do not pile up on the pages."""
    found: dict[tuple[object, ...], Published] = {}
    for each in sorted(published, key=lambda each: each.state != "complete"):
        found.setdefault((each.suites, each.same_machine), each)
    return list(found.values())


def _write_front(published: Sequence[Published], site: Path, problems: list[str]) -> None:
    """The interactive site. One run with odd facts must not hide the others."""
    links = [Link("All stored runs", "runs/index.html")]
    if (site / "asv" / "index.html").is_file():
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


def _history(folder: Path, problems: list[str]) -> Iterator[str]:
    """What leads to asv's pages, where there are any."""
    if not (folder / "index.html").is_file():
        return
    yield (
        '<h2>History</h2><p><a href="../asv/index.html">Graphs over the versions of the project</a>. Here each format '
        "beside the others, newest version:</p>"
    )
    try:
        found = graphs(folder)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        problems.append(f"the history: {type(error).__name__}: {error}")
        return
    by_dataset: dict[tuple[str, str], list[Graph]] = {}
    for graph in found:
        by_dataset.setdefault((graph.suite, graph.dataset), []).append(graph)
    if not by_dataset:
        yield "<p>none yet</p>"
        return
    rows = "".join(
        f"<tr><td>{escape(suite)}</td><td>{escape(dataset)}</td><td>{_links(shown)}</td></tr>"
        for (suite, dataset), shown in by_dataset.items()
    )
    yield f"<table><thead><tr><th>suite</th><th>data set</th><th>graphs</th></tr></thead><tbody>{rows}</tbody></table>"


def _links(shown: Sequence[Graph]) -> str:
    return ", ".join(
        f'<a href="../asv/{escape(graph.address)}">{escape(graph.measure)}</a> ({escape(graph.unit)})'
        for graph in sorted(shown, key=lambda graph: graph.place)
    )


def _same_question(one: Published, other: Published) -> bool:
    return _question(one) == _question(other)


def _question(published: Published) -> tuple[object, ...]:
    """What two runs have in common that can be compared: suites, machine and request; of the threads what was measured,
    because a request may leave them to the suite."""
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
    links = "".join(f'<li><a href="{escape(path.name)}">{escape(path.name)}</a></li>' for path in kept)
    parts = [
        '<p><a href="../../index.html">Format Bench</a>, <a href="../index.html">all stored runs</a></p>',
        f"<h1>{escape(', '.join(published.suites) or published.name)}</h1>",
        f"<p>{_facts(published)}</p><ul>{links}</ul>",
        f"<h2>Tables</h2><pre>{_tables(published.run)}</pre>",
        *_changes(published, earlier),
    ]
    (folder / "index.html").write_text(_page(published.name, parts), encoding="utf-8")


def _facts(published: Published) -> str:
    started, commit = published.started, published.commit
    parts = [
        started and f"started {started}",
        published.machine and f"on {published.machine}",
        commit and f"commit {commit[:10]}",
        published.state,
    ]
    return escape("; ".join(part for part in parts if part))


def _tables(run: Run) -> str:
    """What the terminal shows, as plain text in HTML."""
    console = Console(file=io.StringIO(), width=WIDTH, force_terminal=False, color_system=None)
    terminal.show(run, console)
    assert isinstance(console.file, io.StringIO)
    return escape(console.file.getvalue())


def _changes(published: Published, earlier: Published | None) -> Iterator[str]:
    """What changed since the run before of the same suites on the same machine."""
    if earlier is None:
        return
    yield f'<h2>Since <a href="../{escape(earlier.name)}/index.html">{escape(earlier.name)}</a></h2>'
    try:
        found = compare(earlier.run, published.run, least_change=LEAST_CHANGE, anyway=False)
    except CompareError as error:
        yield f"<p>not compared: {escape(str(error))}</p>"
        return
    console = Console(file=io.StringIO(), width=WIDTH, force_terminal=False, color_system=None)
    compare_text.show(found, console)
    assert isinstance(console.file, io.StringIO)
    yield f"<pre>{escape(console.file.getvalue())}</pre>"


def _index(published: Sequence[Published], problems: Sequence[str], history: Sequence[str]) -> str:
    rows = "".join(
        f'<tr><td><a href="{escape(each.name)}/index.html">{escape(each.started or each.name)}</a></td>'
        f"<td>{escape(', '.join(each.suites))}</td><td>{escape(each.machine)}</td>"
        f"<td>{escape(each.commit[:10])}</td><td>{escape(each.state)}</td></tr>"
        for each in published
    )
    parts = [
        '<p><a href="../index.html">Format Bench</a></p>',
        "<h1>All stored runs</h1>",
    ]
    parts += history
    parts.append("<h2>Runs</h2>")
    if published:
        parts.append(
            "<table><thead><tr><th>started</th><th>suites</th><th>machine</th><th>commit</th><th>state</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>"
        )
    else:
        parts.append("<p>none yet</p>")
    parts += [f'<p class="quiet">cannot be read: {escape(problem)}</p>' for problem in problems]
    return _page("Format Bench", parts)


def _page(title: str, parts: Sequence[str]) -> str:
    body = "\n".join(parts)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        # Without this a browser asks for /favicon.ico, and tells of an error.
        '<link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def main(arguments: Sequence[str]) -> int:
    """`python -m reports.site.publication RUNS SITE`."""
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
