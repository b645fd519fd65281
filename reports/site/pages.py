"""Write the interactive site: a folder of pages that a browser opens from disk or GitHub Pages, without loading
anything else.

Each page is self-contained: style, script, figures and the drawing library are embedded, and a security policy blocks
everything else. A browser without scripts still shows every figure, in tables. Strings from runs are not trusted, so
templates escape everything.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs

from bench_runner.results.records import Run
from reports.analysis.words import WHOSE_CHOICES
from reports.site import contents as site_contents
from reports.site.addresses import suite_page
from reports.site.overall import groups, mean_band
from reports.site.views import Place, places, ratio_text

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

MANIFEST = "site.json"
"""Name of the file that lists the files of a site. When the next site is written, only files on this list are
removed."""
TITLE = "Format Bench"
MOST_PAGE_BYTES = 4_000_000
"""A page of more than this size opens slowly. A complete run of all suites makes 1.5 MB; six runs make 4 MB."""


class SiteError(Exception):
    """Raised if the site cannot be written. The message states what is missing, or which file is in the way, and what
    to do."""


@dataclass(frozen=True)
class Link:
    """A page outside of the site: its title, and its address relative to the site's folder."""

    title: str
    address: str


def write_site(
    runs: Sequence[Run], folder: Path, *, links: Sequence[Link] = (), among_others: bool = False, files_in: str = ""
) -> Path:
    """Write the site of `runs` into `folder` and return its front page.

    An earlier site in `folder` is replaced. With `among_others`, other files may stay in `folder`. If a folder of the
    site already contains the folders of the runs, name that folder in `files_in`. The files of the runs are then not
    copied.

    Raises SiteError if a library is missing, or if `folder` has files but no earlier site and `among_others` is false.
    Raises OSError if a file cannot be written.
    """
    check_libraries()
    before = _files_before(folder)
    if before is None and not among_others and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SiteError(f"{folder} already exists and is not a site of Format Bench.\n  Name a new or empty folder.")
    shown = places(runs, files_in)
    pages = dict(_pages(shown, links))
    copied = () if files_in else shown
    copies = {f"{place.files}/{path.name}": path for place in copied for path in site_contents.raw_files(place)}
    written = {*pages, *copies, MANIFEST}
    # The manifest is written first and includes earlier files, so that the next call can replace a half-written site.
    _put_manifest(folder, written | (before or set()))
    for name in (before or set()) - written:
        (folder / name).unlink(missing_ok=True)
    for name, text in pages.items():
        _put(folder / name, text)
    for name, source in copies.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(source, folder / name)
        except OSError as error:
            raise _told(error, folder / name) from error
    _put_manifest(folder, written)
    return folder / "index.html"


def _put_manifest(folder: Path, names: Iterable[str]) -> None:
    _put(folder / MANIFEST, json.dumps({"files": sorted(set(names) - {MANIFEST})}, indent=1) + "\n")


def slow_pages(folder: Path) -> dict[str, int]:
    """Return the size in bytes of each page of the site in `folder` that is too large to open quickly."""
    pages = [name for name in _files_before(folder) or () if name.endswith(".html")]
    sizes = {name: (folder / name).stat().st_size for name in sorted(pages)}
    return {name: size for name, size in sizes.items() if size > MOST_PAGE_BYTES}


def check_pages(runs: Sequence[Run]) -> None:
    """Create the pages of runs without writing them, to find errors. Raises SiteError if a library is missing, and any
    error that an unusual run causes."""
    check_libraries()
    for _ in _pages(places(runs), ()):
        pass


def missing_library() -> str | None:
    """Return the name of a package that the site needs and that is not installed, or None if all are installed."""
    import importlib.util

    needed = {"jinja2": "jinja2", "vl_convert": "vl-convert-python"}
    return next((name for module, name in needed.items() if importlib.util.find_spec(module) is None), None)


def check_libraries() -> None:
    """Raise SiteError if a library of the site is missing."""
    missing = missing_library()
    if missing:
        raise SiteError(f"The site needs {missing}, which is not installed.\n  Run: pip install -e '.[site]'")


def _files_before(folder: Path) -> set[str] | None:
    """Return the names of the files of an earlier site in `folder`, or None if there is no earlier site.

    The file that lists them is not trusted, so names outside of the folder are ignored.
    """
    try:
        names = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
        inside = folder.resolve()
        return {
            name for name in names if (inside / name).resolve().is_relative_to(inside) and (inside / name).is_file()
        }
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8", newline="\n")
        part.replace(path)
    except OSError as error:
        raise _told(error, path) from error
    finally:
        part.unlink(missing_ok=True)


def _told(error: OSError, path: Path) -> OSError:
    """Return a copy of `error` with the name of the file, because the error of a failed write does not name the
    file."""
    return OSError(error.errno, error.strerror, str(path))


# --- pages --------------------------------------------------------------------------------------------------------


def _pages(shown: Sequence[Place], links: Sequence[Link]) -> Iterator[tuple[str, str]]:
    suites = list(dict.fromkeys(suite for place in shown for suite in place.suites))
    navigation = [Link("Overview", "index.html"), *(Link(name, suite_page(name)) for name in suites)]
    navigation += [
        Link("Fidelity", "fidelity.html"),
        Link("Method and machines", "method.html"),
        Link("The thesis", "thesis.html"),
        *links,
    ]
    render = _renderer(navigation)
    yield "index.html", render("overview", "index.html", **site_contents.overview(shown))
    for suite in suites:
        yield suite_page(suite), render("suite", suite_page(suite), **site_contents.suite(suite, shown))
    yield "fidelity.html", render("fidelity", "fidelity.html", **site_contents.fidelity_matrices(shown))
    yield "method.html", render("method", "method.html", **site_contents.method(shown))
    yield "thesis.html", render("thesis", "thesis.html", **site_contents.thesis(shown))
    for place in shown:
        for view in place.tables:
            yield view.samples_address, render("samples", view.samples_address, **site_contents.samples(view))
        for group in groups(place):
            yield group.samples_address, render("means", group.samples_address, group=group)


def _renderer(navigation: Sequence[Link]) -> Callable[..., str]:
    templates = environment()

    def render(template: str, address: str, **values: Any) -> str:
        scripts = []
        if "data" in values:
            scripts = [*([drawing_library()] if values.get("draws") else []), _asset("site.js")]
        return templates.get_template(f"{template}.html").render(
            site=TITLE,
            navigation=navigation,
            address=address,
            up="../" * address.count("/"),
            style=_asset("site.css"),
            scripts=scripts,
            policy=_policy(scripts),
            whose_choices=f"{WHOSE_CHOICES[0].upper()}{WHOSE_CHOICES[1:]}",
            **values,
        )

    return render


@cache
def environment() -> Environment:
    """Return the environment for templates, which escapes all values. The environment is cached, because compiling the
    templates takes longer than creating the pages of a run, and a publication creates many sites."""
    import jinja2

    found = jinja2.Environment(
        loader=jinja2.PackageLoader("reports.site", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["ratio"] = ratio_text
    found.filters["breakable"] = _breakable
    found.filters["mean_band"] = mean_band
    return found


def _breakable(label: str) -> Markup:
    """Return a label as HTML that may be wrapped before and between its settings."""
    from markupsafe import Markup, escape

    # A comma in a number does not end a setting: '1,000 Mbit/s'.
    text = re.sub(r"(_|,(?!\d{3}))", r"\1<wbr>", str(escape(label)))
    return Markup(text.replace("[", "<wbr>["))


def _asset(name: str) -> str:
    return resources.files("reports.site").joinpath(f"templates/{name}").read_text(encoding="utf-8")


@cache
def drawing_library() -> str:
    """Return Vega, Vega-Lite and vega-embed as one script to embed in a page. The script is stored in the user's cache
    folder, because creating it takes seconds."""
    import vl_convert

    kept = (
        platformdirs.user_cache_path("format-bench", appauthor=False)
        / "site"
        / f"vega-{version('vl-convert-python')}.js"
    )
    with suppress(OSError):
        return kept.read_text(encoding="utf-8")
    # Inside JavaScript strings and regular expressions the extra backslash changes nothing.
    script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    script = script.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    script = script.replace("\r\n", "\n").replace("\r", "\n")
    with suppress(OSError):
        _put(kept, script)
    return script


def _policy(scripts: Sequence[str]) -> str:
    """Return a content security policy. The page cannot fetch or send anything, and only the given scripts run.

    Styles are allowed, because the drawing library writes some. Under this policy, styles cannot fetch anything.
    """
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
