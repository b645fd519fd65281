"""Every output shows every section, or names the output that shows the section."""

from __future__ import annotations

import io
from collections.abc import Mapping
from html import unescape
from importlib import resources
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console

from reports.analysis import sections
from reports.analysis.figures import Figures
from reports.analysis.sections import (
    RUN_SECTIONS,
    SECTIONS,
    TABLE_SECTIONS,
    Contents,
    Elsewhere,
    RunSection,
    TableSection,
    sections_of,
    sections_of_run,
)
from reports.pdf import report as pdf
from reports.site import contents as site
from reports.site.addresses import slug
from reports.site.pages import write_site
from reports.text import terminal
from tests.reports.factory import make_run, of_few
from tests.reports.pdf_text import written_on

OUTPUTS = (terminal, pdf, site)


def test_a_section_of_figures_is_one_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def planted(name: str) -> Figures:
        lines = (("an oak", ("12.5 ells", "±3 ells", "many")), ("a birch", ("7.5 ells", "", "-")))
        return Figures(f"{name} of the wood", "tree", ("high\nm", "", "leaves"), lines, (f"a note of the {name}",))

    of_table = TableSection("trees", "trees: a table's", lambda table: True, lambda run, table: [planted("edge")])
    of_run = RunSection("woods", "woods, a run's", lambda contents: True, lambda contents: [planted("middle")])
    monkeypatch.setattr(sections, "TABLE_SECTIONS", (*TABLE_SECTIONS, of_table))
    monkeypatch.setattr(sections, "RUN_SECTIONS", (of_run, *RUN_SECTIONS))
    run = of_few(make_run(datasets=("eq",), tracks=("plain",), rounds=1))
    text = io.StringIO()
    terminal.show(run, Console(file=text))
    pages = written_on(pdf.pages(Contents(run)))
    write_site([run], tmp_path / "site")
    page = unescape((tmp_path / "site" / "suite-tabular.html").read_text())
    for output in (text.getvalue(), pages, page):
        told = " ".join(output.split())
        for name in ("edge", "middle"):
            assert told.lower().count(f"{name} of the wood") > 0
            assert told.lower().count(f"a note of the {name}") == 1
        assert [told.count(text) for text in ("an oak", "12.5 ells", "±3 ells", "7.5 ells")] == [2] * 4
        assert "trees" in told.lower()
        assert "woods" in told.lower()


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda output: output.__name__)
def test_every_output_has_a_renderer_for_every_other_section_or_says_why_not(output: ModuleType) -> None:
    shown: tuple[Mapping[str, object], Mapping[str, object]] = (output.OF_TABLE, output.OF_RUN)
    for renderers, listed in zip(shown, (TABLE_SECTIONS, RUN_SECTIONS), strict=True):
        assert list(renderers) == [section.name for section in listed if section.figures is None]
        for renderer in renderers.values():
            assert renderer.reason if isinstance(renderer, Elsewhere) else callable(renderer)


def test_every_section_that_the_site_shows_has_a_template() -> None:
    folder = resources.files("reports.site").joinpath("templates")
    there = {path.name for path in folder.iterdir() if path.name.startswith("section-")}
    shown = {**site.OF_TABLE, **site.OF_RUN}
    assert there == {f"section-{slug(name)}.html" for name, each in shown.items() if not isinstance(each, Elsewhere)}


def test_names_and_titles_are_unique() -> None:
    assert len({section.name for section in SECTIONS}) == len({section.title for section in SECTIONS}) == len(SECTIONS)


def test_a_section_appears_only_with_content() -> None:
    one = Contents(make_run(datasets=("eq",), tracks=("plain",), rounds=1))
    two = Contents(make_run(datasets=("eq", "int"), tracks=("plain",), rounds=1, project=True))
    assert [section.name for section in sections_of(one.tables[0])] == ["tables"]
    assert [section.name for section in sections_of(two.tables[0])] == ["tables", "further operations"]
    assert [section.name for section in sections_of_run(one)] == ["fidelity", "cold start", "legend", "remarks"]
    assert sections_of_run(two)[0].name == "means"
    assert [section.name for section in sections_of_run(Contents(make_run(datasets=())))] == ["fidelity", "remarks"]
