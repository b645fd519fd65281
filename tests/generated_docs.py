"""What README and docs/ say that the code knows better: `python -m tests.generated_docs` writes it anew.

A page holds it between `<!-- generated: NAME -->` and `<!-- end: NAME -->`; all else is written by hand. This module
knows the registry of formats and the blocks, and no format.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from adapters.contract import Adapter, Native, Stage, TabularFormat
from bench_runner.registries import all_engines
from bench_runner.suites import SUITES
from bench_runner.variants import is_raw_io
from formats.registry import FORMATS
from formats.shared.wrong_answers import WRONG_ANSWERS
from reports.analysis.columns import Role
from tests import access_table, findings_table, grids_table

ROOT = Path(__file__).resolve().parents[1]
COMMAND = "python -m tests.generated_docs"
PAGES = (
    "README.md",
    "docs/access.md",
    "docs/commands.md",
    "docs/documents.md",
    "docs/encodings.md",
    "docs/findings.md",
    "docs/known-faults.md",
    "docs/near-storage.md",
    "docs/operations.md",
    "docs/recommend.md",
    "docs/reproduction.md",
    "docs/training.md",
    "docs/what-is-measured.md",
    "docs/wide.md",
    "docs/writing.md",
)

_BLOCK = re.compile(r"(<!-- generated: ([\w-]+) -->)(.*?)(<!-- end: \2 -->)", re.DOTALL)
_WIDTH = 120


def _engines() -> Iterator[type[TabularFormat]]:
    """All engines of all formats of ours; raw I/O is none."""
    for name in FORMATS:
        for engine in FORMATS.engines(name):
            if engine.native is not Native.BUFFERS and engine.__module__.startswith("formats."):
                yield engine


def formats() -> str:
    """The names of all formats, as a text wrapped for a list item."""
    titles = sorted({engine.title for engine in _engines()}, key=str.lower)
    return "\n" + textwrap.indent(textwrap.fill(", ".join(titles), _WIDTH - 2), "  ") + "\n  "


def _by_maturity() -> dict[str, list[type[Adapter]]]:
    """The engines of ours that are alike in it, under the name of their format; an engine that differs from its
    format's first one under its own spelling."""
    found: dict[str, list[type[Adapter]]] = {}
    for registry, engine in all_engines():
        if is_raw_io(engine.format) or not engine.__module__.startswith(("formats.", "image_storages.")):
            continue
        usual = registry.engines(engine.format)[0].maturity
        name = engine.format if engine.maturity == usual else f"{engine.format}[engine={engine.engine}]"
        found.setdefault(name, []).append(engine)
    return found


def established() -> str:
    """Their names, as a text wrapped for a paragraph."""
    names = [name for name, engines in _by_maturity().items() if engines[0].maturity.stage is Stage.ESTABLISHED]
    return "\n" + textwrap.fill(", ".join(f"`{name}`" for name in sorted(names)), _WIDTH) + "\n"


def not_established() -> str:
    """A table of the others, with why."""
    lines = ["", "| | | why |", "| --- | --- | --- |"]
    for stage in (Stage.YOUNG, Stage.EXPERIMENTAL):
        for name, engines in sorted(_by_maturity().items()):
            told = engines[0].maturity
            if told.stage is stage:
                lines.append(f"| `{name}` | {stage.value}{', ours' if told.ours else ''} | {told.reason} |")
    return "\n".join([*lines, ""])


def native(kind: Native) -> str:
    """Whose calls take and return this kind."""
    by_engine: dict[str, list[str]] = {}
    for engine in _engines():
        if engine.native is kind:
            by_engine.setdefault(engine.engine or engine.title, []).append(engine.title)
    told = [name if titles == [name] else f"{name}: {', '.join(titles)}" for name, titles in sorted(by_engine.items())]
    return f"`{kind.value}` ({'; '.join(told)})"


def calls() -> str:
    """A table of the engines with their calls and what they have a call of its own for, as their settings are when
    nobody says otherwise."""
    heads = ("format", "engine", "calls", "save", "read", "calls of its own")
    lines = ["", f"| {' | '.join(heads)} |", f"| {' | '.join('---' for _ in heads)} |"]
    for engine in _engines():
        adapter = engine()
        described = (engine.__doc__ or "").partition("\n")[0].partition(". ")[0].rstrip(".")
        save, read = (adapter.calls.save, adapter.calls.read) if adapter.calls else ("", "")
        own = ", ".join(adapter.offers.names)
        cells = (engine.title, engine.engine or "", described, _code(save), _code(read), own)
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join([*lines, ""])


def wrong_answers() -> str:
    """A table of the calls that answer wrongly, whoever makes them."""
    lines = ["", "| library | call | what comes of it | what to do |", "| --- | --- | --- | --- |"]
    for each in WRONG_ANSWERS:
        lines.append(f"| {each.distribution} | `{each.call}` | {each.answer} | {each.instead} |")
    return "\n".join([*lines, ""])


def broken_columns() -> str:
    """A table of the kinds of column that a call corrupts, with the settings with which it does."""
    lines = ["", "| variant | kind of column | what becomes of it |", "| --- | --- | --- |"]
    for engine in _engines():
        usual = engine()
        found = {(usual.variant, kind): fault for kind, fault in usual.known_faults.items()}
        for key, setting in engine.settings.items():
            for value in setting.allowed if key in ("save", "read", "parser") else ():
                other = engine({key: str(value)})
                for kind, fault in other.known_faults.items():
                    if usual.known_faults.get(kind) != fault:
                        found[other.variant, kind] = fault
        lines += [f"| `{variant}` | {kind} | {fault} |" for (variant, kind), fault in found.items()]
    return "\n".join([*lines, ""])


def _code(call: str) -> str:
    """A call as a code span, with names in its places."""
    return f"`{call.replace('{held}', 'table').replace('{path}', 'path')}`" if call else ""


def quick() -> str:
    """What one quick round measures of each suite, as a table."""
    lines = ["", "| suite | `--quick` measures |", "| --- | --- |"]
    lines += [f"| `{suite.name}` | {suite.quick.reason} |" for suite in SUITES.values()]
    return "\n".join(lines) + "\n"


BLOCKS: dict[str, Callable[[], str]] = {
    "formats": formats,
    "calls": calls,
    "wrong-answers": wrong_answers,
    "broken-columns": broken_columns,
    "reference": findings_table.measured,
    "wins": findings_table.wins,
    "uses": access_table.uses,
    "encodings-take": lambda: grids_table.encodings("take[rows=10,handle=kept]"),
    "encodings-streams": lambda: grids_table.encodings("take[rows=10,handle=kept,streams=16]"),
    "encodings-read": lambda: grids_table.encodings("read"),
    "encodings-cold-take": lambda: grids_table.encodings("take[rows=10,handle=kept]", cold=True),
    "encodings-cold-streams": lambda: grids_table.encodings("take[rows=10,handle=kept,streams=16]", cold=True),
    "encodings-cold-read": lambda: grids_table.encodings("read", cold=True),
    "encodings-roofline": grids_table.roofline,
    "encodings-size": lambda: grids_table.encodings("save", Role.SIZE),
    "writing-events": lambda: grids_table.writing("events"),
    "writing-vectors": lambda: grids_table.writing("vectors"),
    "wide-opening": lambda: grids_table.wide("project[columns=10,handle=kept]", 8, "open_ns"),
    "wide-reopened": lambda: grids_table.wide("project[columns=10,handle=reopened]", 8),
    "wide-reopened-values": lambda: grids_table.wide("project[columns=10,handle=reopened]", 65_536),
    "wide-read": lambda: grids_table.wide("read", 8),
    "wide-save": lambda: grids_table.wide("save", 8),
    "near-storage": partial(grids_table.near_storage, "near-storage"),
    "near-storage-all": partial(grids_table.near_storage, "near-storage-all"),
    "documents-tweets": lambda: grids_table.documents("tweets-2016"),
    "documents-events": lambda: grids_table.documents("bluesky-events"),
    "training": lambda: grids_table.training("training"),
    "training-images": lambda: grids_table.training("training-images"),
    "beside-lance": lambda: access_table.beside("lance"),
    "beside-f3": lambda: access_table.beside("f3"),
    **{
        f"documents-{dataset}-layouts": partial(grids_table.documents, dataset, "documents-layouts")
        for dataset in ("cell", "sensors", "tweets", "wos")
    },
    "beside-near-storage": lambda: access_table.beside("near-storage"),
    "behind-near-storage": lambda: access_table.behind("near-storage", "table 8.1"),
    "beside-documents": lambda: access_table.beside("documents"),
    "answer": findings_table.answer,
    "image-wins": findings_table.image_wins,
    "codec-wins": findings_table.codec_wins,
    "machines": findings_table.machines,
    "format-or-call": findings_table.format_or_call,
    "thesis": findings_table.beside_thesis,
    "established": established,
    "quick": quick,
    "not-established": not_established,
    **{f"native-{kind.value}": lambda kind=kind: native(kind) for kind in Native},  # type: ignore[misc]
}


def renewed(page: str) -> str:
    """The text of a page with its blocks as they are to be. Raises KeyError for a block that nobody generates."""
    return _BLOCK.sub(lambda found: f"{found[1]}{BLOCKS[found[2]]()}{found[4]}", page)


def main() -> None:
    """Write all pages anew."""
    for name in PAGES:
        path = ROOT / name
        path.write_text(renewed(path.read_text()))


if __name__ == "__main__":
    main()
