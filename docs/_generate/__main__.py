"""Renew what README and docs/ take from the code and the reference run: `python -m docs._generate`.

Such a part is between `<!-- generated: NAME -->` and `<!-- end: NAME -->`. The rest of a page is written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from adapters.contract import Native
from docs._generate import adapters, findings, grids, questions
from docs._generate.reference import Reference, reference

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "python -m docs._generate"
PAGES = ("README.md", *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").glob("*.md"))))

OF_CODE: dict[str, Callable[[], str]] = {
    "formats": adapters.formats,
    "wrong-answers": adapters.wrong_answers,
    "broken-columns": adapters.broken_columns,
    "answer": findings.answer,
    **{f"native-{kind.value}": partial(adapters.native, kind) for kind in Native},
}
OF_REFERENCE: dict[str, Callable[[Reference], str]] = {
    "machines": lambda measured: measured.machines,
    "reference": findings.measured,
    "wins": findings.wins,
    "image-wins": findings.image_wins,
    "codec-wins": findings.codec_wins,
    "format-or-call": findings.format_or_call,
    "uses": findings.uses,
    "verdicts": findings.verdicts,
    "encodings": grids.encodings,
    "writing": grids.writing,
    "wide": grids.wide,
    "near-storage": grids.near_storage,
    "documents": grids.documents,
    "documents-fidelity": grids.documents_fidelity,
    "training": grids.training,
    "parallel": grids.parallel,
    **{
        f"figure-{name}": partial(questions.text_of, comparisons=compared)
        for name, compared in questions.COMPARISONS.items()
    },
}

_BLOCK = re.compile(r"(<!-- generated: ([\w-]+) -->)(.*?)(<!-- end: \2 -->)", re.DOTALL)
_measured = cache(reference)


def renewed(page: str) -> str:
    """Return the text of a page with its generated parts renewed. Raise KeyError for an unknown part."""

    def block(found: re.Match[str]) -> str:
        name = found[2]
        text = OF_CODE[name]() if name in OF_CODE else OF_REFERENCE[name](_measured())
        # A table begins on a new line; a name stays within its sentence.
        text = f"\n{text}\n" if "\n" in text and not text.startswith("\n") else text
        return f"{found[1]}{text}{found[4]}"

    return _BLOCK.sub(block, page)


def main() -> None:
    """Renew all pages."""
    for name in PAGES:
        path = ROOT / name
        path.write_text(renewed(path.read_text()))


if __name__ == "__main__":
    main()
