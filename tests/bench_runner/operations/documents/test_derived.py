"""Questions are derived from the documents: their fields fit the questions, and two independent answers agree."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest

from adapters.contract import TabularFormat
from bench_runner.operations import operation_of
from bench_runner.operations.documents import derived
from bench_runner.operations.documents.ask import Ask
from bench_runner.operations.documents.derived import FILTER, GROUP, NAMES, TOP, derived_questions
from bench_runner.operations.operation import OperationContext
from bench_runner.operations.targets import Target
from data_generator import documents
from data_generator.cache import StoredDataset, prepare
from data_generator.dataset import Dataset
from libraries.document_queries import from_json, run_over_documents

Lines = list[dict[str, Any]]


def stored(lines: Lines, folder: Path, key: str = "id") -> StoredDataset:
    batch = documents.batch("".join(json.dumps(line) + "\n" for line in lines).encode(), key)
    return prepare(Dataset("documents", len(lines), documents.schema(key), 1, lambda: iter([batch])), folder)


def events(count: int = 3_000) -> Lines:
    """Documents with a key, a field of few values, one of many, a number, a field of mixed kinds, and a rare one."""
    return [
        {
            **{"id": n, "user": {"country": "DE" if n % 3 else "US", "name": f"n{n}"}, "mixed": (n, str(n))[n % 2]},
            **({"ms": n * 7919 % 10_007 / 8} if n % 5 else {"ms": None}),
            **({"rare": n} if n % 50 == 0 else {}),
        }
        for n in range(count)
    ]


def test_fields_fit_the_questions_and_the_answers_are_right(tmp_path: Path) -> None:
    lines = events()
    found = derived_questions(stored(lines, tmp_path).path, len(lines))
    assert tuple(found) == (GROUP, FILTER, TOP)
    answers = {name: run_over_documents(lines, from_json(each.plan)) for name, each in found.items()}
    countries = Counter(line["user"]["country"] for line in lines)
    assert found[GROUP].words == "count documents by user.country"
    assert answers[GROUP] == [{"value": value, "count": count} for value, count in countries.most_common()]
    least = float(found[FILTER].words.rpartition(" ")[2])
    there = [(line["ms"], line["id"]) for line in lines if line["ms"] is not None]
    assert found[FILTER].words.startswith("count documents where ms >= ")
    assert answers[FILTER] == [{"count": sum(value >= least for value, _ in there)}]
    assert 0.05 * len(there) < answers[FILTER][0]["count"] < 0.15 * len(there)
    largest = sorted(there, key=lambda each: (-each[0], each[1]))[: derived.ROWS]
    assert found[TOP].words == "the 10 documents with the largest ms"
    assert answers[TOP] == [{"key": key, "value": value} for value, key in largest]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([{"id": n} for n in range(30)], ("count all documents", "id >= 27", "largest id")),
        ([{"id": f"k{n:02}", "a": [n]} for n in range(30)], ("count all documents", "id >= 'k27'", "largest id")),
        ([{"id": n, "a": "x"} for n in range(30)], ("count all documents", "id >= 27", "largest id")),
        ([{"id": n, "a": (n, {"b": n})[n % 2]} for n in range(30)], ("count all", "a.b >= ", "largest a.b")),
        ([{"id": n, "a": (n, [n])[n % 2]} for n in range(30)], ("count all documents", "id >= 27", "largest id")),
        ([{"id": n, "ok": n % 2 == 0} for n in range(30)], ("by ok", "id >= 27", "largest id")),
        ([{"id": n, "a": 0} for n in range(1)], ("count all documents", "id >= 0", "largest id")),
    ],
)
def test_documents_without_such_fields_have_questions_too(lines: Lines, words: tuple[str, ...], tmp_path: Path) -> None:
    found = derived_questions(stored(lines, tmp_path).path, len(lines))
    for each, told in zip(found.values(), words, strict=True):
        assert told in each.words
        assert run_over_documents(lines, from_json(each.plan))


def test_fields_are_chosen_from_all_documents(tmp_path: Path) -> None:
    lines = [{"id": n, "kind": "early" if n < 1_500 else f"late{n % 3}"} for n in range(3_000)]
    found = derived_questions(stored(lines, tmp_path).path, len(lines))
    assert found[GROUP].words == "count documents by kind"


def test_the_usual_questions_are_all_three_and_each_has_a_name(tmp_path: Path) -> None:
    lines = events(200)
    made = stored(lines, tmp_path)
    stage = OperationContext(
        cast(TabularFormat, None), Target("documents"), made.path, made.digest, made.rows, "documents"
    )
    found = derived_questions(made.path, made.rows)
    usual, *single = (operation_of(f"ask[query={name}]") for name in NAMES)
    assert isinstance(usual, Ask)
    assert operation_of("ask") == usual
    assert usual.take_input(stage, 10) == tuple(each.plan for each in found.values())
    assert usual.in_words(made.path, made.rows) == tuple(each.words for each in found.values())
    assert [each.take_input(stage, 10) for each in single] == [(each.plan,) for each in found.values()]
    assert usual.concerns("tweets[x=1]")
    assert not operation_of("ask[query=q5]").concerns("documents")
