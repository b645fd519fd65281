"""The questions about documents match their titles, and a new question needs only one entry."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from bench_runner.suites import document_questions
from bench_runner.suites.document_questions import QUESTIONS, questions_of
from data_generator.catalogue import resolve
from data_generator.documents import json_lines
from document_stores.shared.document_encoding import parsed
from libraries.document_queries import from_json, run_over_documents, to_json


def generated(name):
    return [document for batch in resolve(name, {}, rows=400).batches() for document in parsed(json_lines(batch))]


def answered(name, question, documents, key="id"):
    return run_over_documents(documents, from_json(questions_of(name)[question].plan), key)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: f"{question.dataset}-{question.name}")
def test_plans_survive_json(question):
    assert to_json(from_json(question.plan)) == question.plan


def test_questions_ask_what_their_titles_say():
    events = generated("bluesky-events")
    created = [e["commit"] | e for e in events if e["kind"] == "commit" and e["commit"]["operation"] == "create"]
    users = {c: len({e["did"] for e in created if e["collection"] == c}) for c in {e["collection"] for e in created}}
    found = answered("bluesky-events", "q2", events)
    assert {row["event"]: row["users"] for row in found} == users
    assert [row["count"] for row in found] == sorted(Counter(e["collection"] for e in created).values(), reverse=True)
    sensors = generated("sensors")
    readings = [r["value"] for s in sensors for r in s["readings"]]
    assert answered("sensors", "q2", sensors) == [{"highest": max(readings)}]
    publications = generated("wos")
    pairs = Counter()
    for document in publications:
        found = document["static_data"]["fullrecord_metadata"]["addresses"]["address_name"]
        if isinstance(found, list):
            countries = sorted({address["address_spec"]["country"] for address in found})
            pairs.update((a, b) for a in countries for b in countries if a < b)
    first = answered("wos", "q4", publications, "UID")[0]
    assert pairs[first["first"], first["second"]] == first["count"] == pairs.most_common(1)[0][1]


def test_documents_without_questions_are_counted():
    (question,) = questions_of("documents").values()
    assert run_over_documents([{"id": 1}, {"id": 2}], from_json(question.plan)) == [{"count": 2}]


PLANTED = """
import importlib, sys
from pathlib import Path

from bench_runner import suites
from bench_runner.suites import document_questions, documents

text = Path(document_questions.__file__).read_text()
short = "q.Filter(q.Compare(q.field('duration'), '<', q.Constant(60)))"
entry = f"Question(CELL, 'q6', 'The number of short calls', lambda: ({short}, q.Count()))"
planted = text.replace("QUESTIONS = _PAPER + _JSONBENCH", f"QUESTIONS = (*_PAPER, *_JSONBENCH, {entry})")
assert planted != text
exec(compile(planted, document_questions.__file__, "exec"), document_questions.__dict__)
importlib.reload(documents)
importlib.reload(suites)

from bench_runner.clock import Laps
from bench_runner.operations import operation_of
from bench_runner.operations.operation import OperationContext
from bench_runner.operations.targets import Target
from data_generator.cache import prepare
from data_generator.catalogue import resolve
from data_generator.documents import json_lines
from document_stores.registry import DOCUMENT_STORES

assert "ask[query=q6]" in suites.SUITES["documents"].operations
operation = operation_of("ask[query=q6]")
assert [operation.concerns(name) for name in ("cell", "wos")] == [True, False]
stored = prepare(resolve("cell", {}, rows=300), Path("cache"))
engine, settings = DOCUMENT_STORES.engine("sqlite-json")
store = engine(settings)
store.load_library()
stage = OperationContext(store, Target("documents"), stored.path, stored.digest, stored.rows, "cell")
store.ingest([json_lines(stage.table(stage.rows))], Path("stored.sqlite"))
(plan,) = operation.inputs(stage, stage.rows, 1)
result = operation.run(stage, plan, Path("stored.sqlite"), Laps())
assert operation.difference(stage, plan, result, ()) is None
print(result.rows)
"""


def test_a_new_question_is_one_entry(tmp_path: Path) -> None:
    """The suite then lists the question, the operation accepts it, and its answer is verified."""
    env = {**os.environ, "PYTHONPATH": str(Path(document_questions.__file__).parents[2])}
    command = [sys.executable, "-c", PLANTED]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.startswith("[{'count': ")
