"""Which questions are asked of which documents: the paper's and JSONBench's, each a plan in JSON, by short names.

'q1' of tweets and 'q1' of sensors are different plans that answer alike questions. It knows no store, and no runner.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from libraries.document_queries.json_form import to_json
from libraries.document_queries.plan import Plan
from libraries.document_queries.steps import Count
from libraries.document_store.queries.examples import EXAMPLES

COUNT = "q1"
"""The question that is asked of every set of documents: how many they are."""


@dataclass(frozen=True)
class Question:
    """What is asked, for people, and the plan that says it in JSON."""

    title: str
    plan: str


def questions_of(dataset: str) -> Mapping[str, Question]:
    """Short name -> question, for a data set by its plain name; of one without questions of its own the count."""
    own = {
        example.name.rpartition("-")[2]: Question(example.title, to_json(example.plan))
        for example in EXAMPLES
        if example.dataset == dataset
    }
    return own or {COUNT: Question("The number of documents", to_json(Plan((Count(),))))}
