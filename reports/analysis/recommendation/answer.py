"""A recommendation with all that is reported with it, for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass

from reports.analysis.recommendation.candidates import Question
from reports.analysis.recommendation.recommend import Recommendation


@dataclass(frozen=True)
class Answer:
    """A recommendation with what it is about: the data, remarks on how it was measured, and the lines of Python of the
    first (empty where there is none)."""

    question: Question
    found: Recommendation
    remarks: tuple[str, ...]
    imports: tuple[str, ...]
    save: str
    read: str
    about: str = ""
    """What the user calls the data; empty: the name of the data set."""
    yours: bool = False
    """Whether the baseline is what the user has now; else it is a plain call that was measured besides."""
    cautions: tuple[str, ...] = ()
    """What a user of the first should know beyond its figures."""
    folder: str = ""
    """Where the samples lie."""
    processor: str = ""
    """What the machine has, where its name stands for several."""
    again: str = ""
    """The command that gives the same answer from them."""
    remote: tuple[str, ...] = ()
    """Where data lie remote: from which selectivity reading near the storage beats fetching the files."""
    parts: tuple[tuple[str, str], ...] = ()
    """Further lines of Python, each use in words with what it takes: several lines are one text."""
