"""The site in a Chromium: what is drawn, what the choices do, and whether everybody can use it."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from reports.site.pages import write_site
from tests.browser.conftest import drawn, until
from tests.reports.factory import PROJECT_10
from tests.reports.invented_near_storage import near_storage_run

pytestmark = [pytest.mark.browser, pytest.mark.slow]

NAMES = (
    "index.html",
    "suite-tabular.html",
    "fidelity.html",
    "method.html",
    "thesis.html",
    "samples/run-1-eq-default.html",
)
FIGURES = {"wall-ns": "wall_ns", "size-bytes": "size_bytes", "peak-private-bytes": "peak_private_bytes"}
OPERATIONS = {"save": "save", "read": "read", "project-columns-10": PROJECT_10}
BARS = """id => [...document.getElementById(id).querySelectorAll('[aria-roledescription="bar"]')].map(bar => (
  {...bar.__data__.datum, width: bar.getBBox().width}))"""
OpenPage = Callable[..., Any]


def shown(page: Any) -> list[str]:
    return page.evaluate("[...document.querySelectorAll('section.choice')].filter(e => !e.hidden).map(e => e.id)")


def medians(folder: Path, dataset: str, track: str, operation: str, figure: str) -> dict[str, float]:
    """Variant -> median of the counted samples, computed here from the lines of the file alone."""
    values = defaultdict(list)
    for line in (folder / "samples.jsonl").read_text().splitlines():
        sample = json.loads(line)
        told = (sample["dataset"], sample["conditions"]["track"], sample["operation"])
        if told == (dataset, track, operation) and not sample.get("unsettled") and figure in sample.get("figures", {}):
            values[sample["variant"]].append(sample["figures"][figure])
    return {variant: median(numbers) for variant, numbers in values.items() if not variant.startswith("raw-io")}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [1280, 360])
def test_a_page_opens_without_errors_and_never_scrolls_sideways(name: str, width: int, open_page: OpenPage) -> None:
    page = open_page(name, width=width)
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("width", [390, 1280])
def test_lines_have_the_room_that_their_labels_leave(width: int, browser: Any, tmp_path: Path) -> None:
    write_site([near_storage_run(rounds=1)], tmp_path / "site")
    context = browser.new_context(viewport={"width": width, "height": 800})
    page = context.new_page()
    page.goto((tmp_path / "site" / "suite-near-storage.html").as_uri())
    drawn(page)
    told = page.evaluate(
        """() => [...document.querySelectorAll('.chart')].filter((chart) => /throughput,/.test(chart.textContent))
             .map((chart) => chart.querySelector('.drawing')).map((place) => [
             place.querySelector('svg .role-frame .background').getBoundingClientRect().width, place.clientWidth])"""
    )
    context.close()
    assert told
    assert all(plot > 0.3 * room for plot, room in told), told


@pytest.mark.parametrize(("dataset", "track"), [("eq", "plain"), ("core", "default")])
def test_the_drawn_bars_are_the_medians_of_the_samples(
    dataset: str, track: str, open_page: OpenPage, run_folder: Path
) -> None:
    page = open_page(f"suite-tabular.html#run=run-1&dataset={dataset}&track={track}&scale=linear")
    charts = page.evaluate("[...document.querySelectorAll('.drawing')].filter(e => e.offsetParent).map(e => e.id)")
    bars = [name for name in charts if "-bars-" in name]
    assert len(bars) == 7
    for name in bars:
        operation, figure = re.search(r"-bars-(save|read|project-columns-10)-(.*)$", name).groups()
        expected = medians(run_folder, dataset, track, OPERATIONS[operation], FIGURES[figure])
        found = page.evaluate(BARS, name)
        # A save that was not read back is not counted, so there may be more samples than bars.
        assert {bar["median"] for bar in found} <= set(expected.values())
        assert len(found) >= (6 if operation in ("save", "read") else 5)
        longest = max(found, key=lambda bar: bar["value"])
        for bar in found:
            assert bar["width"] / longest["width"] == pytest.approx(
                bar["value"] / longest["value"], rel=0.02, abs=0.005
            )


def test_the_choices_change_what_is_drawn_and_the_address_keeps_them(open_page: OpenPage) -> None:
    page = open_page("suite-tabular.html")
    assert shown(page)[:1] == ["run-1-eq-plain"]
    page.get_by_role("radio", name="core", exact=True).check()
    drawn(page)
    assert shown(page)[:1] == ["run-1-core-plain"]
    first = page.locator(".drawing:visible").first.get_attribute("id")
    before = {bar["label"] for bar in page.evaluate(BARS, first)}
    assert "csv" in before
    page.get_by_role("checkbox", name="csv", exact=True).uncheck()
    drawn(page)
    until(page, "id => !document.getElementById(id).textContent.includes('csv')", first)
    assert {bar["label"] for bar in page.evaluate(BARS, first)} == before - {"csv"}
    assert page.locator("tr[data-format=csv]:visible").count() == 0
    page.get_by_role("radio", name="logarithmic").check()
    drawn(page)
    address = page.url
    assert {"dataset=core", "without=csv", "scale=log"} <= set(address.partition("#")[2].split("&"))
    page.reload()
    drawn(page)
    assert page.url == address
    assert shown(page)[:1] == ["run-1-core-plain"]
    assert {bar["label"] for bar in page.evaluate(BARS, first)} == before - {"csv"}
    assert page.get_by_role("radio", name="logarithmic").is_checked()
    assert not page.get_by_role("checkbox", name="csv", exact=True).is_checked()


def test_a_logarithmic_scale_draws_other_lengths_of_the_same_values(open_page: OpenPage) -> None:
    found = []
    for scale in ("linear", "log"):
        page = open_page(f"suite-tabular.html#scale={scale}")
        first = page.locator(".drawing:visible").first.get_attribute("id")
        found.append({bar["label"]: (bar["median"], bar["width"]) for bar in page.evaluate(BARS, first)})
    assert {name: told[0] for name, told in found[0].items()} == {name: told[0] for name, told in found[1].items()}
    shortest = min(found[0], key=lambda name: found[0][name][0])
    assert found[1][shortest][1] > 3 * found[0][shortest][1]


def test_a_run_is_a_choice_that_decides_what_else_there_is(open_page: OpenPage) -> None:
    page = open_page("index.html#run=run-1&dataset=core&track=default")
    assert shown(page) == ["run-1-core-default"]
    page.get_by_role("radio", name=re.compile("run-2")).check()
    assert shown(page) == ["run-2-eq-plain"]
    page.goto(page.url.partition("#")[0] + "#run=run-1&dataset=nosuch")
    until(page, "!document.getElementById('run-1-eq-plain').hidden")
    assert shown(page) == ["run-1-eq-plain"]


def test_a_bar_and_a_number_lead_to_their_samples(open_page: OpenPage) -> None:
    page = open_page("suite-tabular.html#run=run-1&dataset=eq&track=plain")
    page.locator("[aria-roledescription=bar]").first.click()
    page.wait_for_url(re.compile(r"samples/run-1-eq-plain\.html#save-feather"))
    page.go_back()
    drawn(page)
    assert "dataset=eq" in page.url
    page.locator("table.figures a:visible").first.click()
    page.wait_for_url(re.compile(r"samples/run-1-eq-plain\.html#"))
    assert page.locator(":target pre, :target table").count()
    assert "format-bench run tabular" in page.locator("main").inner_text()


def test_a_place_in_the_page_is_gone_to_without_losing_the_choice(open_page: OpenPage) -> None:
    page = open_page("fidelity.html#run=run-1&target=arrow")
    page.locator("table.matrix:visible td a").first.click()
    assert "target=arrow" in page.url
    assert page.evaluate("document.activeElement.className") == "words"


@pytest.mark.parametrize("name", ["index.html", "suite-tabular.html", "fidelity.html"])
def test_the_keyboard_reaches_every_control_and_every_link(name: str, open_page: OpenPage) -> None:
    page = open_page(name)
    visible = """[...document.querySelectorAll('a[href], button, input, summary, [tabindex="0"]')].filter(e =>
      e.offsetParent && !(e.type === 'radio' && !e.checked))"""
    page.evaluate(f"{visible}.forEach((e, i) => e.dataset.stop = i)")
    expected = page.evaluate(f"{visible}.length")
    reached = set()
    for _ in range(expected + 60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.dataset.stop"))
    assert {str(number) for number in range(expected)} <= reached


def test_arrows_choose_and_the_focus_is_seen(open_page: OpenPage) -> None:
    page = open_page("suite-tabular.html#run=run-1&dataset=eq")
    page.get_by_role("radio", name="eq", exact=True).focus()
    page.keyboard.press("ArrowRight")
    assert shown(page)[:1] == ["run-1-core-plain"]
    outline = "getComputedStyle(document.activeElement.nextElementSibling).outlineStyle"
    assert page.evaluate(outline) == "solid"


@pytest.mark.parametrize("name", NAMES[:3])
def test_dark_mode_is_dark(name: str, open_page: OpenPage) -> None:
    brightness = "e => getComputedStyle(e).{}.match(/[0-9.]+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0) / 765"
    for dark in (False, True):
        page = open_page(name, dark=dark)
        body = page.locator("body")
        paper, ink = (body.evaluate(brightness.format(what)) for what in ("backgroundColor", "color"))
        assert (paper < 0.2 and ink > 0.8) if dark else (paper > 0.9 and ink < 0.25)


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [(name, 1280, dark) for name in NAMES for dark in (False, True)] + [(name, 360, False) for name in NAMES[:3]],
)
def test_nothing_serious_is_found_by_axe(name: str, width: int, dark: bool, open_page: OpenPage) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = open_page(name, width=width, dark=dark)
    found = [
        f"{violation['id']}: {violation['help']}: {violation['nodes'][0]['html'][:200]}"
        for violation in axe.run(page).response["violations"]
        if violation["impact"] in ("serious", "critical")
    ]
    assert found == []


@pytest.mark.parametrize("name", NAMES)
def test_without_scripts_every_figure_is_there(name: str, open_page: OpenPage, site: Path) -> None:
    page = open_page(name, script=False)
    sections = page.locator("section")
    assert all(sections.nth(number).is_visible() for number in range(sections.count()))
    assert page.locator("form.controls:visible").count() == 0


def test_the_first_view_is_soon_there(open_page: OpenPage) -> None:
    for name in NAMES:
        page = open_page(name)
        painted = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
        # A busy machine has loaded the page before it paints it. Waiting inside the page is against its own policy.
        took_ms = None
        for _ in range(100):
            took_ms = page.evaluate(painted)
            if took_ms is not None:
                break
            page.wait_for_timeout(100)
        assert took_ms is not None
        print(f"{name}: first view after {took_ms:.0f} ms")
        # The aim is 1,500 ms on an idle machine; tests share theirs.
        assert took_ms < 10_000
