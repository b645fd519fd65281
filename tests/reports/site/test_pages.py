"""The interactive site as files: the content of its pages, links, and the escaping of untrusted text."""

from __future__ import annotations

import base64
import errno
import hashlib
import importlib.util
import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote

import platformdirs
import pytest

from bench_runner.results.information import information
from bench_runner.results.records import Failure, Run, Sample, changed, read_run
from bench_runner.results.statistics import summarise
from bench_runner.run import prediction, schedule
from format_bench import cli
from format_bench.terminal import FAILED
from reports.analysis.codecs import frontier
from reports.analysis.columns import READ_TIME, THESIS_METRICS
from reports.analysis.tables import tables
from reports.site import contents as site_contents
from reports.site import pages as site_module
from reports.site.addresses import Slugs, slug
from reports.site.pages import MANIFEST, Link, SiteError, _breakable, drawing_library, write_site
from reports.site.views import places
from tests.reports.analysis import test_codecs as test_compression
from tests.reports.factory import make_run, make_sample, of_few, with_info, write_run
from tests.reports.sources import test_reproduction, test_reproduction_images

MOST_BYTES = 4_000_000


class Page(HTMLParser):
    """Collects a page's links, ids and the text of its elements."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.scripts: list[str] = []
        self.policy = ""
        self.cells: dict[str, str] = {}
        self._script: list[str] | None = None
        self._link = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        self.links += [value for name, value in told.items() if name in ("href", "src")]
        self.ids += [told["id"]] if "id" in told else []
        self._link = told.get("href", "") if tag == "a" else self._link
        if tag == "script":
            self._script = []
        if told.get("http-equiv") == "Content-Security-Policy":
            self.policy = told["content"]

    def handle_endtag(self, tag: str) -> None:
        if tag == "script" and self._script is not None:
            self.scripts.append("".join(self._script))
            self._script = None
        if tag == "a":
            self._link = ""

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self._script.append(data)
        elif self._link:
            self.cells[self._link] = self.cells.get(self._link, "") + data


def data_of(page: Path) -> Any:
    return json.loads(Page(page).scripts[0])


def small_one(folder: Path, name: str = "run-1", **told: Any) -> Run:
    """Return a stored run of few variants, for tests that write a separate site."""
    run = make_run(datasets=("eq", "core"), rounds=5, info={"id": name}, **told)
    return read_run(write_run(of_few(run), folder / name))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a run with two data sets and two tracks, read from a folder."""
    made = make_run(datasets=("eq", "core"), rounds=5, info={"id": "run-1"})
    return read_run(write_run(made, tmp_path_factory.mktemp("runs") / "run-1"))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return small_one(tmp_path_factory.mktemp("small"), tracks=("plain",))


@pytest.fixture(scope="module")
def site(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "site"
    assert write_site([run], folder) == folder / "index.html"
    return folder


def pages(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def test_the_pages_that_the_navigation_names_are_there(site: Path) -> None:
    names = {path.name for path in site.glob("*.html")}
    assert names == {"index.html", "suite-tabular.html", "fidelity.html", "method.html", "thesis.html"}
    assert len(list((site / "samples").glob("*.html"))) == 6


def test_every_link_leads_to_a_page_and_to_a_place_in_it(site: Path) -> None:
    known = {path.resolve(): Page(path) for path in pages(site)}
    for path, page in known.items():
        for link in page.links:
            if link.startswith("data:"):
                continue
            name, _, place = link.partition("#")
            target = (path.parent / name).resolve() if name else path
            assert target.is_file(), f"{path.name} leads to {link}"
            if place and "=" not in place:
                assert place in known[target].ids, f"{path.name} leads to {link}"


def test_ids_are_unique_and_no_page_is_too_large(site: Path) -> None:
    for path in pages(site):
        ids = Page(path).ids
        assert len(ids) == len(set(ids)), path.name
        assert path.stat().st_size < MOST_BYTES, path.name


def test_nothing_is_fetched_and_only_the_scripts_of_the_page_may_run(site: Path) -> None:
    for path in pages(site):
        page = Page(path)
        assert not [link for link in page.links if "//" in link], path.name
        assert "default-src 'none'" in page.policy
        assert "unsafe-eval" not in page.policy
        for script in page.scripts[1:]:
            digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in page.policy


def test_every_number_of_the_overview_leads_to_samples_with_that_median(run: Run, site: Path) -> None:
    links = Page(site / "index.html").cells
    checked = 0
    for table in tables(run):
        for row in table.rows:
            for column in THESIS_METRICS:
                interval = row.interval(column)
                if interval is None or row.variant.is_raw_io:
                    continue
                address = f"samples/run-1-{slug(f'{table.dataset}-{table.conditions.track}')}.html"
                address += f"#{column.operation}-{slug(row.variant)}"
                assert address in links
                place = (site / address.partition("#")[0]).read_text().partition(f'id="{address.partition("#")[2]}"')[2]
                assert f'<td class="number">{interval.median:,.0f}</td>' in place.partition("<tfoot>")[2]
                checked += 1
    assert checked > 200


@pytest.mark.parametrize("beside", [test_reproduction, test_compression, test_reproduction_images])
def test_every_figure_compared_with_the_thesis_leads_to_its_samples(beside: ModuleType, tmp_path: Path) -> None:
    site = tmp_path / "site"
    write_site([beside.thesis_run()], site)
    entries = re.findall('<td class="number">(.*?)</td>', (site / "thesis.html").read_text(encoding="utf-8"))
    figures = [entry for entry in entries if " / " in entry]
    assert len(figures) > 10
    assert all(figure.startswith('<a href="samples/') for figure in figures)
    test_every_link_leads_to_a_page_and_to_a_place_in_it(site)


def test_what_is_drawn_is_what_the_other_reports_say(run: Run, site: Path) -> None:
    sections = {section["id"]: section for section in data_of(site / "suite-tabular.html")["sections"]}
    for table in tables(run):
        section = sections[f"run-1-{table.dataset}-{table.conditions.track}"]
        assert len(section["charts"]["bars"]) == len(THESIS_METRICS)
        rows = {row.label: row for row in table.rows if not row.variant.is_raw_io}
        for chart, column in zip(section["charts"]["bars"], THESIS_METRICS, strict=True):
            assert {bar["label"] for bar in chart["rows"]} == set(rows)
            for bar in chart["rows"]:
                interval = rows[bar["label"]].interval(column)
                assert bar["median"] == (None if interval is None else interval.median)
                if interval is not None and bar["low"] is not None:
                    ends = bar["low"] / bar["value"], bar["high"] / bar["value"]
                    assert ends == pytest.approx([end / interval.median for end in interval.spread])
        reading = section["charts"]["scatters"][0]
        assert [point["label"] for point in reading["frontier"]] == [row.label for row in frontier(table, READ_TIME)]


def test_every_page_names_the_page_on_bias_and_samples_the_maturity(site: Path) -> None:
    assert all("docs/limits.md" in path.read_text().partition("<footer>")[2] for path in pages(site))
    samples = (site / "samples" / "run-1-core-plain.html").read_text()
    vortex = samples.partition("<code>vortex")[2].partition("</section>")[0]
    assert "young: one implementation" in vortex
    assert samples.count("established: a specification") > 3
    yardstick = samples.partition("<code>raw-io")[2].partition("</section>")[0]
    assert "a specification" not in yardstick


def test_rows_without_figures_keep_their_reason(site: Path) -> None:
    for name in ("index.html", "suite-tabular.html", "method.html"):
        text = unescape((site / name).read_text())
        assert "Excel holds at most 1,048,576 rows" in text
        assert "column 'c07': row 999,999 came back as None" in text
    section = (site / "samples" / "run-1-core-plain.html").read_text()
    assert "mismatch" in section


def test_the_marks_are_those_of_the_tables(run: Run, site: Path) -> None:
    text = (site / "index.html").read_text()
    for table in tables(run):
        part = text.partition(f'id="run-1-{table.dataset}-{table.conditions.track}"')[2].partition("</section>")[0]
        for mark in ("*", "="):
            expected = sum(table.mark(column, row.variant) == mark for column in THESIS_METRICS for row in table.rows)
            assert len(re.findall(rf" {re.escape(mark)}</small>", part)) == expected


def test_under_five_rounds_there_is_no_verdict(tmp_path: Path) -> None:
    write_site([make_run(datasets=("eq",), tracks=("plain",), rounds=3)], tmp_path / "site")
    text = (tmp_path / "site" / "index.html").read_text()
    assert "under 5 rounds: no verdict" in text
    marked = re.findall(r"([^<>]*) [*=]</small>", text)
    assert [figure.split()[-1] for figure in marked] == ["MB"], "sizes are exact: they alone have a best"


def test_the_legend_claims_a_best_only_where_there_is_a_verdict(tmp_path: Path, site: Path) -> None:
    def legend(folder: Path) -> str:
        return (folder / "suite-tabular.html").read_text().partition('<ul class="legend"')[2].partition("</ul>")[0]

    write_site([of_few(make_run(datasets=("eq",), tracks=("plain",), rounds=1))], tmp_path / "quick")
    assert "best, or tied with it; under 5 rounds: lowest, without a verdict" in legend(tmp_path / "quick")
    assert "best, or tied with it</li>" in legend(site)


def test_no_best_is_named_where_most_variants_are_not_counted(small: Run) -> None:
    def of(run: Run) -> list[tuple[str, str]]:
        (view, _) = places([run])[0].tables
        return [(best.column.title, best.label) for best in view.bests]

    def busy(sample: Sample) -> Sample:
        left_out = sample.operation == "save" and not sample.variant.startswith("csv")
        return changed(sample, unsettled=sample.unsettled or left_out)

    assert ("save time", "feather") in of(small)
    few = of(replace(small, samples=tuple(map(busy, small.samples))))
    assert [title for title, _ in few] == ["read time", "size", "read peak memory"]


def test_each_interval_of_samples_is_named_by_its_kind(tmp_path: Path) -> None:
    """Sizes of three rounds are exact, but times of three rounds have no 95 % interval."""
    write_site([of_few(make_run(datasets=("eq",), tracks=("plain",), rounds=3))], tmp_path / "site")
    (page,) = (tmp_path / "site" / "samples").glob("*.html")
    save = page.read_text().partition("<code>csv")[2].partition("</table>")[0]
    names = re.findall(r'<th scope="col">(\w+)</th>', save)[1:-1]
    kinds = re.findall(r"<td[^>]*>([^<]*)</td>", save.partition(">interval</th>")[2].partition("</tr>")[0])
    told = dict(zip(names, kinds, strict=False))
    assert told["wall_ns"] == "minimum and maximum"
    assert told["size_bytes"] == "95 %"


def test_the_numbers_of_rounds_are_those_of_the_runner(tmp_path: Path, site: Path) -> None:
    fast, extra = prediction.FAST_ROUNDS, schedule.EXTRA_ROUNDS
    assert (fast, extra) == (site_contents.FAST_ROUNDS, site_contents.EXTRA_ROUNDS)
    text = " ".join((site / "method.html").read_text().split())
    assert f"in a shuffled order, for up to {fast + extra} rounds" in text
    write_site([make_run(datasets=(), info={"rounds_asked": None})], tmp_path / "site")
    told = f"default: {fast} for fast operations, fewer for slow ones"
    assert told in (tmp_path / "site" / "method.html").read_text()


def test_one_name_of_two_processors_is_a_choice_of_two_machines(tmp_path: Path) -> None:
    one, two = small_one(tmp_path, "one", seed=1), small_one(tmp_path, "two", seed=2)
    other = with_info(two, machine={**two.info.shape()["machine"], "cpu": "Intel Xeon"})
    write_site([one, other], tmp_path / "site")
    found = {
        section["facets"]["machine"]
        for section in data_of(tmp_path / "site" / "suite-tabular.html")["sections"]
        if "machine" in section["facets"]
    }
    assert found == {"lab-1 (AMD EPYC 7B13)", "lab-1 (Intel Xeon)"}
    write_site([one, two], tmp_path / "alike")
    assert "machine" not in data_of(tmp_path / "alike" / "suite-tabular.html")["facets"]


def test_runs_are_a_choice_and_never_averaged(tmp_path: Path) -> None:
    one, two = small_one(tmp_path, "one", seed=1), small_one(tmp_path, "two", seed=2)
    moved = replace(two, samples=tuple(changed(sample, machine="lab-2") for sample in two.samples))
    write_site([one, moved], tmp_path / "site")
    data = data_of(tmp_path / "site" / "suite-tabular.html")
    assert data["facets"][:2] == ["run", "machine"]
    found = {section["id"]: section for section in data["sections"] if section.get("charts")}
    assert len(found) == 8
    for name, each in (("one", one), ("two", moved)):
        medians = [
            summary.figures["wall_ns"].median
            for cell, summary in summarise(each.samples).items()
            if (cell.dataset, cell.operation, cell.conditions.track) == ("eq", "read", "plain") and summary.figures
        ]
        bars = found[f"{name}-eq-plain"]["charts"]["bars"][1]["rows"]
        assert {bar["median"] for bar in bars} - {None} <= set(medians)


def test_runs_of_the_same_name_do_not_overwrite_each_other(tmp_path: Path, small: Run) -> None:
    write_site([small, small], tmp_path / "site")
    assert (tmp_path / "site" / "samples" / "run-1-eq-plain.html").exists()
    assert (tmp_path / "site" / "samples" / "run-1-2-eq-plain.html").exists()


EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


def test_hostile_text_is_text_everywhere(tmp_path: Path) -> None:
    sample = make_sample(variant=f"csv[engine={EVIL}]", dataset=EVIL, machine=EVIL, library=EVIL, suite=EVIL)
    failed = changed(sample, round=2, position=20, figures={}, fidelity=None, failure=Failure(kind=EVIL, reason=EVIL))
    base = make_run(datasets=("eq",), tracks=("plain",), rounds=1)
    evil = dict.fromkeys(("id", "started", "finished", "commit", "isolate"), EVIL)
    info = {
        **evil,
        "command": [EVIL],
        "machine": {"name": EVIL, "cpu": EVIL, "kernel": EVIL},
        "libraries": {EVIL: EVIL},
        "suites": {EVIL: EVIL},
        "warnings": [{"text": EVIL, "remedy": EVIL}],
        "datasets": {EVIL: {"title": EVIL}},
        "variants": {sample.variant: {"title": EVIL}},
        "work_dirs": {EVIL: {"filesystem": EVIL, "device": EVIL}},
    }
    verdict = changed(base.fidelity[0], variant=sample.variant, kind=EVIL, outcome="lossy", how=EVIL, target_alone=EVIL)
    hostile = replace(base, samples=(*base.samples, sample, failed), fidelity=(verdict,), info=information(info))
    write_site([hostile], tmp_path / "site")
    for page in pages(tmp_path / "site"):
        text = page.read_text()
        assert "<script>alert" not in text
        assert "<img" not in re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    (suite,) = (tmp_path / "site").glob("suite-script*.html")
    (section,) = [each for each in data_of(suite)["sections"] if "charts" in each]
    assert EVIL in json.dumps(section, ensure_ascii=False)
    assert EVIL in unescape(suite.read_text())


def test_a_run_without_samples_and_no_run_at_all_have_a_site(tmp_path: Path) -> None:
    write_site([replace(make_run(datasets=()), samples=(), fidelity=())], tmp_path / "one")
    write_site([], tmp_path / "none")
    for name in ("one", "none"):
        assert "No run has a figure yet" in (tmp_path / name / "index.html").read_text()


def test_the_raw_samples_are_there_to_download(run: Run, site: Path) -> None:
    for name in ("run.json", "samples.jsonl", "fidelity.jsonl"):
        assert (site / "data" / "run-1" / name).read_bytes() == (run.folder / name).read_bytes()
    assert "data/run-1/samples.jsonl" in Page(site / "method.html").links


def test_pages_outside_the_site_are_linked_from_every_page(tmp_path: Path, small: Run) -> None:
    write_site([small], tmp_path / "site", links=[Link("History", "asv/index.html")])
    for page in pages(tmp_path / "site"):
        up = "" if page.parent == tmp_path / "site" else "../"
        assert f"{up}asv/index.html" in Page(page).links


def test_a_newer_site_takes_the_place_of_an_older_and_of_nothing_else(tmp_path: Path, small: Run) -> None:
    site = tmp_path / "site"
    write_site([small], site)
    (site / "CNAME").write_text("bench.example")
    write_site([with_info(small, id="other")], site)
    assert not list((site / "samples").glob("run-1*"))
    assert list((site / "samples").glob("other*"))
    assert (site / "CNAME").read_text() == "bench.example"


def test_a_manifest_of_others_removes_nothing_outside_of_the_folder(tmp_path: Path, small: Run) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (tmp_path / "mine.txt").write_text("mine")
    (site / MANIFEST).write_text(json.dumps({"files": ["../mine.txt", str(tmp_path / "mine.txt"), 7]}))
    with pytest.raises(SiteError):
        write_site([small], site)
    (site / MANIFEST).write_text(json.dumps({"files": ["../mine.txt", str(tmp_path / "mine.txt")]}))
    write_site([small], site)
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_addresses_are_plain_and_each_is_its_own() -> None:
    slugs = Slugs()
    names = ["A b", "a-b", "../../etc", "", "ÄÖ", "x" * 500]
    found = [slugs.of(name) for name in names]
    assert len(set(found)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9-]{1,90}", name) for name in found)


class Library:
    """Replaces vl_convert and counts its calls."""

    asked = 0

    @classmethod
    def javascript_bundle(cls, snippet: str) -> str:
        cls.asked += 1
        return f"'</script>'; '<!--';\r\n{snippet}"


def test_the_drawing_library_can_stand_in_a_page_and_is_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", Library)
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda *_, **__: tmp_path)
    make = drawing_library.__wrapped__
    first = make()
    assert first == "'<\\/script>'; '<\\!--';\nwindow.vegaEmbed = vegaEmbed;"
    assert make() == first
    assert Library.asked == 1
    (tmp_path / "file").touch()
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda *_, **__: tmp_path / "file")
    assert make() == first


# --- the command line ------------------------------------------------------------------------------------------------


@pytest.fixture
def program(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def call(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main([str(word) for word in words])
        told = capsys.readouterr()
        return int(ended.value.code or 0), told.out, told.err

    return call


def test_the_command_writes_the_site_and_says_where(
    program: Callable[..., tuple[int, str, str]], small: Run, tmp_path: Path
) -> None:
    assert program("report", small.folder, "--html", tmp_path / "new") == (0, f"{tmp_path}/new/index.html\n", "")


def test_a_page_that_opens_slowly_is_reported(
    program: Callable[..., tuple[int, str, str]], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert site_module.MOST_PAGE_BYTES == MOST_BYTES
    monkeypatch.setattr(site_module, "MOST_PAGE_BYTES", 1_000_000)
    code, written, told = program("report", run.folder, "--html", tmp_path / "new")
    largest = tmp_path / "new" / "suite-tabular.html"
    size = f"{largest.stat().st_size / 1e6:.1f} MB"
    assert (code, written) == (0, f"{tmp_path}/new/index.html\n")
    assert f"warning: suite-tabular.html has {size} and is slow to open; name fewer runs for one site\n" in told
    assert "data/" not in told


def test_a_folder_with_other_things_is_left_alone(
    program: Callable[..., tuple[int, str, str]], small: Run, tmp_path: Path
) -> None:
    (tmp_path / "thesis.doc").write_text("mine")
    code, _, told = program("report", small.folder, "--html", tmp_path)
    assert code == cli.WRONG_REQUEST
    assert f"{tmp_path} already exists and is not a site of Format Bench." in told
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.doc"]


def test_a_half_written_site_is_named_and_replaced(
    program: Callable[..., tuple[int, str, str]], small: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, write = tmp_path / "site", Path.write_text

    def full(path: Path, text: str, **how: Any) -> int:
        if "suite-" in path.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, text, **how)

    monkeypatch.setattr(Path, "write_text", full)
    code, _, told = program("report", small.folder, "--html", folder)
    assert code == FAILED
    assert f"error: {folder}/suite-tabular.html: No space left on device" in told
    monkeypatch.undo()
    code, written, told = program("report", small.folder, "--html", folder)
    assert (code, written) == (0, f"{folder}/index.html\n"), told


@pytest.mark.parametrize(("module", "name"), [("jinja2", "jinja2"), ("vl_convert", "vl-convert-python")])
def test_a_missing_library_is_named_with_its_installation(
    module: str,
    name: str,
    program: Callable[..., tuple[int, str, str]],
    small: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda asked, *more: None if asked == module else found(asked, *more)
    )
    code, _, told = program("report", small.folder, "--html", tmp_path / "site")
    assert code == cli.WRONG_REQUEST
    assert f"The site needs {name}, which is not installed.\n  Run: pip install -e '.[site]'" in told
    assert not (tmp_path / "site").exists()


def test_a_crash_in_the_middle_leaves_the_older_page(
    small: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_site([small], tmp_path / "site")
    before = (tmp_path / "site" / "index.html").read_text()
    monkeypatch.setattr(site_contents, "thesis", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_site([with_info(small, id="other")], tmp_path / "site")
    assert (tmp_path / "site" / "index.html").read_text() == before


def test_addresses_with_a_choice_name_what_the_page_offers(site: Path) -> None:
    """Return links such as suite-tabular.html#run=run-1&track=plain&dataset=eq."""
    links = [link for page in pages(site) for link in Page(page).links if "#run=" in link]
    values = {
        value for section in data_of(site / "suite-tabular.html")["sections"] for value in section["facets"].values()
    }
    assert links
    for link in links:
        told = dict(part.split("=") for part in link.partition("#")[2].split("&"))
        assert {unquote(told["dataset"]), told["track"]} <= values


def test_labels_are_broken_between_settings_and_never_within_a_number() -> None:
    assert _breakable("V1, loopback at 1,000 Mbit/s") == "V1,<wbr> loopback at 1,000 Mbit/s"
    assert _breakable("parquet[reader=fetch,row_rows=5]") == "parquet<wbr>[reader=fetch,<wbr>row_<wbr>rows=5]"
