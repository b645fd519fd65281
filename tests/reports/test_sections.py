"""The list of sections: every output shows each of them, or says where it is shown, or why not."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from types import ModuleType

import pytest

from reports.analysis.sections import (
    RUN_SECTIONS,
    SECTIONS,
    TABLE_SECTIONS,
    Contents,
    Elsewhere,
    sections_of,
    sections_of_run,
)
from reports.pdf import report as pdf
from reports.site import contents as site
from reports.site.addresses import slug
from reports.text import terminal
from tests.reports.factory import make_run

OUTPUTS = (terminal, pdf, site)


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda output: output.__name__)
def test_every_output_has_a_renderer_for_every_section_or_says_why_not(output: ModuleType) -> None:
    shown: tuple[Mapping[str, object], Mapping[str, object]] = (output.OF_TABLE, output.OF_RUN)
    for renderers, sections in zip(shown, (TABLE_SECTIONS, RUN_SECTIONS), strict=True):
        assert list(renderers) == [section.name for section in sections]
        for renderer in renderers.values():
            assert renderer.reason if isinstance(renderer, Elsewhere) else callable(renderer)


def test_every_section_that_the_site_shows_has_a_template() -> None:
    folder = resources.files("reports.site").joinpath("templates")
    there = {path.name for path in folder.iterdir() if path.name.startswith("section-")}
    shown = {**site.OF_TABLE, **site.OF_RUN}
    assert there == {f"section-{slug(name)}.html" for name, each in shown.items() if not isinstance(each, Elsewhere)}


def test_names_and_titles_are_told_apart() -> None:
    assert len({section.name for section in SECTIONS}) == len({section.title for section in SECTIONS}) == len(SECTIONS)


def test_a_section_stands_where_it_has_something_to_say() -> None:
    one = Contents(make_run(datasets=("eq",), tracks=("plain",), rounds=1))
    two = Contents(make_run(datasets=("eq", "int"), tracks=("plain",), rounds=1, project=True))
    assert [section.name for section in sections_of(one.tables[0])] == ["tables"]
    assert [section.name for section in sections_of(two.tables[0])] == ["tables", "further operations"]
    assert [section.name for section in sections_of_run(one)] == ["fidelity", "cold start", "legend", "remarks"]
    assert sections_of_run(two)[0].name == "means"
    assert [section.name for section in sections_of_run(Contents(make_run(datasets=())))] == ["fidelity", "remarks"]
