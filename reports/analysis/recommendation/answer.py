"""Define the answer to a user: a recommendation with everything that is printed with it."""

from __future__ import annotations

from dataclasses import dataclass

from reports.analysis.recommendation.candidates import Question
from reports.analysis.recommendation.recommend import Recommendation
from reports.analysis.recommendation.within import Within


@dataclass(frozen=True)
class Answer:
    """A recommendation with everything that is printed with it: the data, remarks on the measurement, and lines of
    Python that use the recommended variant.

    Without a recommended variant, there are no lines of Python.
    """

    question: Question
    found: Recommendation
    remarks: tuple[str, ...]
    imports: tuple[str, ...]
    save: str
    read: str
    about: str = ""
    """The user's name for the data. If empty, reports use the name of the data set."""
    yours: bool = False
    """Whether the user's current variant (the baseline) is the format of the user's own file. Otherwise the baseline is
    a plain call."""
    cautions: tuple[str, ...] = ()
    """Warnings about disadvantages of the recommended variant that the figures do not show."""
    folder: str = ""
    """Folder of the samples."""
    processor: str = ""
    """The processor, if several machines have the same name."""
    again: str = ""
    """The command that gives the same answer from the stored samples."""
    convert: str = ""
    """The command that stores the user's whole table in the recommended variant. Empty if the data are not the
    user's."""
    within: Within | None = None
    """The advice on settings, if the variants are settings of one format."""
    remote: tuple[str, ...] = ()
    """For remote data: the selectivity (share of row groups to read) below which reading near the storage beats
    fetching the files."""
    parts: tuple[tuple[str, str], ...] = ()
    """For each further operation: the title, with the names of the variables that the code needs, and the lines of
    Python."""
