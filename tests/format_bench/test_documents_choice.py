"""Documents in `recommend`: how they are recognised, which stores take part, what is refused, and the hint."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from adapters import registry
from bench_runner.data_kinds import DOCUMENTS
from bench_runner.errors import PlanError
from bench_runner.request import Request
from bench_runner.results.records import Run, changed
from bench_runner.run import choosing
from bench_runner.variants import is_raw_io
from format_bench import recommend
from format_bench.api import recommend as asking
from format_bench.api.document_hint import document_hint
from format_bench.api.own_format import PLAIN_JSON_LINES
from format_bench.errors import RequestError
from format_bench.python_lines import lines_of, part_lines_of
from format_bench.uses import parse_uses
from reports.analysis.recommendation.preferences import OF_DOCUMENTS, Preferences
from tests.reports.factory import PROJECT_10, make_run, make_sample

LINES = b'{"name": 1, "text": "a"}\n{"name": 2, "user": {"id": 1}}\n'


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The user's file."""
    file = tmp_path / "events.jsonl"
    file.write_bytes(LINES)
    return file


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Collected (request, preferences) of measurements that are not made."""
    seen: list[Any] = []

    def answer(request: Request, options: Any, folder: Any, command: Any, watcher: Any, preferences: Any, **rest: Any):
        seen.append((request, preferences))

    monkeypatch.setattr(asking, "measured_answer", answer)
    return seen


def test_a_key_makes_documents_of_a_file_and_their_operations_decide(own: Path, asked: list[Any]) -> None:
    recommend(data=own, key="name")
    ((request, preferences),) = asked
    assert request.baseline == PLAIN_JSON_LINES
    assert set(request.operations) == {"save", "read", "ask[query=usual]", "get[documents=100]"}
    assert preferences.weights["size"] == 2
    plan = choosing.choosing_plan(request, DOCUMENTS)
    assert [dataset.rows for dataset in plan.datasets.values()] == [2]
    variants = {chain.variant for chain in plan.chains if not is_raw_io(chain.variant)}
    assert PLAIN_JSON_LINES in variants
    assert {"document-store[layout=amax]", "sqlite-json[engine=sqlite3]"} <= variants
    assert not any("way=" in variant for variant in variants)


def test_the_baseline_takes_part_whatever_is_chosen(own: Path, asked: list[Any]) -> None:
    recommend(data=own, key="name", formats="sqlite-json")
    plan = choosing.choosing_plan(asked[0][0], DOCUMENTS)
    variants = {chain.variant for chain in plan.chains if not is_raw_io(chain.variant)}
    assert variants == {PLAIN_JSON_LINES, "sqlite-json[engine=sqlite3]"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"data": None, "datasets": "cell"}, "needs data"),
        ({"datasets": "cell"}, "Omit datasets"),
        ({"weights": {"take": 1}}, r"take.* does not apply to documents\.\n?.*Choose among get, fields"),
        ({"uses": {"append[rows=10]": 1}}, "does not apply to documents"),
        ({"needs": ("append",)}, "measured for tables only"),
        ({"key": None, "weights": {"get": 1}}, "key treats a JSON Lines file as documents"),
    ],
)
def test_invalid_requests_are_refused_with_a_reason(
    given: dict[str, Any], words: str, own: Path, asked: list[Any]
) -> None:
    with pytest.raises(RequestError, match=words):
        recommend(**{"data": own, "key": "name", **given})
    assert not asked


def test_without_a_key_a_file_is_a_table_and_a_note_names_the_key(own: Path, asked: list[Any]) -> None:
    notes: list[str] = []

    class Watcher:
        note = staticmethod(notes.append)

    recommend(data=own, watcher=Watcher())
    assert asked[0][0].baseline == "json[engine=pandas]"
    assert "'user' holds objects" in notes[0]
    assert "--key FIELD" in notes[0]
    own.write_bytes(b'{"a": [1, 2]}\nno json\n[{}]\n' + b'{"b": ' + b"[" * 100_000)
    recommend(data=own, watcher=Watcher())
    assert len(notes) == 1, "lists of numbers and what cannot be read say nothing"
    assert document_hint(own.parent / "is_not_there.jsonl") is None


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (b'{"a": 1}\n{"a": 2.5}\n{"a": null}\n{"b": "x"}', None),
        (b'{"a": null}\n{"a": 1}\n{"a": "x"}', "'a' is number in one line and text in another"),
        (b'{"a": [1]}\n{"a": true}', "'a' is array in one line and true or false in another"),
    ],
)
def test_a_field_that_changes_its_kind_is_a_sign_of_documents(own: Path, lines: bytes, told: str | None) -> None:
    own.write_bytes(lines)
    assert document_hint(own) == told


def test_uses_of_documents_are_said_in_words() -> None:
    said = parse_uses("get 50 documents 10 times a day, read 3 fields, ask 20 times a day, ask top once a week")
    assert said == {
        **{"get[documents=50]": 10.0, "fields[paths=3]": 1.0},
        **{"ask[query=usual]": 20.0, "ask[query=top]": pytest.approx(1 / 7)},
    }


def test_questions_can_be_weighed(own: Path, asked: list[Any]) -> None:
    recommend(data=own, key="name", weights={"ask": 3, "size": 1})
    ((request, preferences),) = asked
    assert preferences.weights == {"ask[query=usual]": 3, "size": 1}
    assert preferences.title("ask[query=usual]") == "ask 3 questions"
    assert "ask[query=usual]" in request.operations


@pytest.mark.parametrize("variant", [PLAIN_JSON_LINES, "sqlite-json", "document-store[layout=vector]"])
def test_the_lines_take_the_key_and_read_parts(variant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"lines": LINES, "keys": [2, 7], "paths": [("user", "id")]}
    exec(lines_of(variant, "documents", "name").text(), names)
    whole = names["documents"]
    exec(part_lines_of(variant, "documents", "fields[paths=2]", "name").text(), names)
    assert sorted(names["documents"], key=len) == [{}, {"user": {"id": 1}}]
    names["plan"] = '[{"is":"count","name":"count"}]'
    for operation, result, right in (
        ("ask[query=usual]", "rows", [{"count": 2}]),
        ("get[documents=100]", "documents", [{"name": 2, "user": {"id": 1}}, None]),
    ):
        asked = part_lines_of(variant, "documents", operation, "name").text()
        if "opened =" in asked:
            names.pop("opened").close()
        names["documents"] = whole  # what lines that read all of it leave is where those of a part begin
        exec(asked, names)
        assert names[result] == right
    if "opened" in names:
        names["opened"].close()


def test_few_of_large_documents_are_measured(own: Path) -> None:
    request = Request(data=own, key="name")
    (dataset,) = choosing.choosing_plan(request, DOCUMENTS).datasets.values()
    source = {**dataset.source, "size_bytes": str(10**9), "input_rows": "100000"}
    large = type(dataset)(dataset.name, 100_000, dataset.schema, 1, dataset.batches, source=source)
    limits = DOCUMENTS.choice
    assert limits is not None
    assert (limits.most_rows, limits.most_bytes) == (200_000, 500 * 10**6)
    assert choosing._affordable(limits, large) == limits.most_bytes // 10_000 == 50_000
    assert choosing._affordable(limits, dataset) == 2


def test_documents_that_are_too_few_for_what_decides_are_refused_before_anything_is_measured(
    own: Path, tmp_path: Path
) -> None:
    for words in ({}, {"weights": {"get": 1}}, {"uses": {"get[documents=100]": 5}}):
        with pytest.raises(PlanError) as told:
            recommend(data=own, key="name", out=tmp_path / "out", **words)
        assert "The choice depends on get 100 documents" in str(told.value)
        assert "100 documents, but there are 2" in str(told.value)
        assert "weights={'read': 1, 'size': 2, 'save': 1}" in str(told.value)
    assert not (tmp_path / "out").exists() or not any((tmp_path / "out").iterdir())


def test_an_empty_key_is_refused(own: Path, asked: list[Any]) -> None:
    with pytest.raises(RequestError, match=r"^key must be .* \(got ''\)"):
        recommend(data=own, key="")
    assert asked == []


def test_a_stored_run_of_documents_is_weighed_as_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Preferences] = []
    monkeypatch.setattr(asking, "stored_answer", lambda run, preferences, *_: seen.append(preferences))
    samples = make_run(datasets=("eq",), tracks=("plain",), rounds=1).samples
    documents = [changed(each, conditions=changed(each.conditions, target="documents")) for each in samples]
    stored = replace(make_run(datasets=("eq",), tracks=("plain",), rounds=1), samples=tuple(documents))
    recommend(stored=stored)
    recommend(stored=replace(stored, samples=samples))
    recommend(stored=stored, weights={"size": 1})
    (of_documents, of_a_table, said), measured = seen, {"read", "save", "size"}
    # This run did not measure the other operations.
    assert of_documents.weights == {name: weight for name, weight in OF_DOCUMENTS.items() if name in measured}
    more = changed(documents[0], operation="get[documents=100]")
    recommend(stored=replace(stored, samples=(*documents, more)))
    assert seen[-1].weights.keys() == measured | {"get[documents=100]"}
    assert seen[-1].title("get[documents=100]") == "get 100 documents"
    assert of_a_table.weights == Preferences().weights
    assert said.weights == {"size": 1}


def test_stores_that_answer_from_their_own_memory_are_ranked_and_the_condition_is_told() -> None:
    made = make_run(datasets=("eq",), tracks=("plain",), rounds=6, project=True)
    about = {name: changed(info, questions=("count documents by kind",)) for name, info in made.info.datasets.items()}
    usual = "ask[query=usual]"
    tables = dict.fromkeys(each.variant for each in made.samples if each.operation == PROJECT_10 and each.figures)
    stores = dict(zip(tables, ("sqlite-json[engine=sqlite3]", PLAIN_JSON_LINES), strict=False))

    def of(target: str) -> Run:
        samples = [
            changed(
                each,
                conditions=changed(each.conditions, target=target),
                variant=stores[each.variant],
                operation=operation,
                cached=each.operation == PROJECT_10 and "sqlite" in stores[each.variant],
            )
            for each in made.samples
            if each.variant in stores
            for operation in ((usual, "get[documents=100]") if each.operation == PROJECT_10 else (each.operation,))
        ]
        return replace(made, info=changed(made.info, datasets=about), samples=tuple(samples))

    assert "--prefer" not in recommend(stored=of("documents"), accept="experimental").again
    answer = recommend(stored=of("documents"), weights={"ask": 1}, accept="experimental")
    assert "--prefer 'ask[query=usual]=1'" in answer.again
    # For documents, the default weights of tables are a wish like any other.
    of_tables = {"read": 3.0, "size": 2.0, "save": 1.0}
    asked = recommend(stored=of("documents"), weights=of_tables, accept="experimental").again
    assert "--prefer read=3,size=2,save=1" in asked.replace("'", "")
    assert {each.candidate.variant for each in answer.found.ranked} == {*stores.values()}
    memory = next(remark for remark in answer.remarks if "in the store's own memory" in remark)
    assert "(sqlite-json)" in memory
    assert "--cache cold" in memory
    assert "questions, from your fields: count documents by kind" in answer.remarks
    of_tables = recommend(stored=of("arrow"), weights={"ask": 1}, accept="experimental")
    reasons = {variant.format_name: why for variant, why in of_tables.found.dropped}
    assert "from its own cache" in reasons["sqlite-json"]


def screened(**figures: int) -> Run:
    sample = make_sample(variant="json-lines", operation="get[documents=100]", rows=2_000, figures=figures)
    return replace(make_run(datasets=("eq",)), samples=(changed(sample, round=1),))


def test_as_many_documents_are_measured_as_the_time_allows() -> None:
    call = {"wall_ns": 10**7, "calls_ns": 3 * 10**8, "repetitions": 30}
    quick = screened(**call, verify_ns=10**6, settle_ns=10**8)
    slow = screened(**call, verify_ns=10**9, settle_ns=10**8)
    assert choosing.rows_in_time(quick, ["json-lines"], 200_000, 60) == 200_000
    fitting = choosing.rows_in_time(slow, ["json-lines"], 200_000, 60)
    # Three rounds of 20 s: verifying takes 0.5 s for each 1,000 documents.
    assert 20_000 < fitting < 40_000
    twice = replace(slow, samples=(*slow.samples, changed(slow.samples[0], round=2)))
    assert choosing.rows_in_time(twice, ["json-lines"], 200_000, 60) == fitting, "the sample was repeated"
    server = screened(**call, verify_ns=10**6, settle_ns=10**8, prepare_ns=5 * 10**9)
    assert choosing.rows_in_time(server, ["json-lines"], 200_000, 60) == 200_000, "it starts once, however many rows"
    assert choosing.rows_in_time(slow, ["another"], 200_000, 60) == 200_000
    assert choosing.rows_in_time(slow, ["json-lines"], 200_000, 0) == 1


@pytest.mark.parametrize(("formats", "refused"), [("duckdb-json", True), ("duckdb-json|sqlite-json", False)])
def test_formats_of_missing_libraries_alone_are_refused_before_anything_is_measured(
    formats: str, refused: bool, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = registry._version

    def version(name: str) -> str:
        if name == "duckdb":
            raise PackageNotFoundError(name)
        return installed(name)

    monkeypatch.setattr(registry, "_version", version)
    request = Request(data=own, key="name", formats=(formats,), baseline=PLAIN_JSON_LINES)
    plan = choosing.choosing_plan(request, DOCUMENTS)
    if not refused:
        choosing._check_any(plan, request)
        return
    with pytest.raises(PlanError, match=r"duckdb-json.* is not installed") as told:
        choosing._check_any(plan, request)
    assert "pip install" in str(told.value)


def test_a_question_about_other_data_is_refused_before_anything_is_measured(own: Path, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"depends on ask q2, .* this operation is for other data sets"):
        recommend(data=own, key="name", out=tmp_path / "out", uses={"ask[query=q2]": 1})
