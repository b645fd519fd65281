"""Suites are data: a question, what is measured to answer it, and the reason for each choice.

A new suite is one entry here. Formats are never listed: `tracks` says which settings of every registered format take
part, so a new format joins by itself. Nothing here runs anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Suite:
    """One question, and what answers it.

    `datasets` are measured always; `on_request` when the user names them (they take long). `reasons` maps a choice to
    why it was made; `list suites` shows them.
    """

    name: str
    question: str
    operations: tuple[str, ...]
    datasets: tuple[str, ...]
    on_request: tuple[str, ...]
    tracks: tuple[str, ...]
    reasons: Mapping[str, str]


SUITES: Mapping[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite(
            name="tabular",
            question="Which format saves and reads a table fastest, smallest, and with the least memory?",
            operations=("save", "read"),
            datasets=("eq", "int", "float", "bool", "str", "core"),
            on_request=("webface", "tpch-lineitem", "bi", "classic", "geo", "log", "ml"),
            tracks=("plain", "default"),
            reasons={
                "eq, int, float, bool, str": "the thesis's five presets (table 4.2): one kind of column dominates each",
                "core": "uniform random data flatters some formats and hurts others as real data does not",
                "webface": "10,000,000 rows take hours for the slow formats, so it is measured when asked for",
                "track plain": "no codec, as the thesis measured",
                "track default": "what a user gets who calls without options, where that differs from plain",
            },
        ),
    )
}
