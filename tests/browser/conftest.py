"""Fixtures that open the site of invented runs in Chromium and record everything that goes wrong on a page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reports.site.pages import write_site
from tests.reports.factory import make_run, write_run

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
DRAWN = "[...document.querySelectorAll('.drawing')].filter(e => e.offsetParent).every(e => e.dataset.drawn)"


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Start one browser for all tests. Without Chromium skip the test, or fail it if CI=true."""
    if CHROMIUM is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(
            "Chromium is missing: apt-get install chromium"
        )
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install -e '.[dev]'")
    with sync_api.sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = make_run(datasets=("eq", "core"), rounds=7, project=True, info={"id": "run-1"})
    return write_run(run, tmp_path_factory.mktemp("runs") / "run-1")


@pytest.fixture(scope="session")
def site(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the site of two runs."""
    from bench_runner.results.records import read_run

    other = make_run(datasets=("eq",), tracks=("plain",), rounds=5, seed=9, info={"id": "run-2", "commit": "f00d"})
    second = read_run(write_run(other, run_folder.parent / "run-2"))
    folder = tmp_path_factory.mktemp("made") / "site"
    write_site([read_run(run_folder), second], folder)
    return folder


@pytest.fixture
def open_page(browser: Any, site: Path) -> Iterator[Callable[..., Any]]:
    """Open pages of the site with all charts drawn. After the test, assert that no page had a problem or requested
    anything but its own file."""
    contexts: list[Any] = []
    problems: list[str] = []

    def open_(address: str, *, width: int = 1280, dark: bool = False, script: bool = True) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": 800},
            color_scheme="dark" if dark else "light",
            java_script_enabled=script,
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: problems.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("requestfailed", lambda request: problems.append(f"failed: {request.url}"))
        page.on(
            "request", lambda asked: None if asked.url.startswith(("file:", "data:")) else problems.append(asked.url)
        )
        page.goto(f"{(site / address.partition('#')[0]).as_uri()}#{address.partition('#')[2]}")
        if script:
            drawn(page)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert problems == []


def until(page: Any, expression: str, *arguments: Any) -> None:
    """Wait until an expression is true on the page. Playwright's wait needs `eval`, which the page forbids."""
    for _ in range(600):
        if page.evaluate(expression, *arguments):
            return
        page.wait_for_timeout(100)
    pytest.fail(f"still false after a minute: {expression}")


def drawn(page: Any) -> None:
    """Make the window as high as the page, so that every chart is visible, and wait until all are drawn."""
    if not page.locator(".drawing:visible").count():
        return
    usual = page.viewport_size
    page.set_viewport_size({**usual, "height": page.evaluate("document.body.scrollHeight")})
    until(page, DRAWN)
    page.set_viewport_size(usual)
