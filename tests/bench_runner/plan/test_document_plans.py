"""Plans for documents: the stores and operations that apply, data sets of documents, and clear rejections."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench_runner.errors import PlanError
from bench_runner.operations.documents import derived
from bench_runner.plan.chain import Plan
from bench_runner.plan.planning import make_plan
from bench_runner.request import Request
from bench_runner.suites import SUITES


def plan(suite: str = "documents", **asked: object) -> Plan:
    return make_plan([SUITES[suite]], Request(rows=500, **asked))  # type: ignore[arg-type]


def operations(made: Plan, dataset: str, variant: str) -> set[str]:
    (chain,) = (each for each in made.chains if each.dataset == dataset and each.variant.startswith(variant))
    return set(chain.operations)


def test_a_question_is_asked_of_the_documents_that_it_is_about() -> None:
    made = plan(formats=("messagepack",), operations=("ask",), datasets=("cell", "sensors", "bluesky-events"))
    asked = {
        dataset: {name for name in operations(made, dataset, "messagepack") if name.startswith("ask")}
        for dataset in made.datasets
    }
    own = {dataset: names - {f"ask[query={name}]" for name in derived.NAMES} for dataset, names in asked.items()}
    assert {dataset: len(names) for dataset, names in own.items()} == {"cell": 3, "sensors": 4, "bluesky-events": 5}
    assert all(len(names - own[dataset]) == len(derived.NAMES) for dataset, names in asked.items())
    usual = plan(formats=("messagepack",), datasets=("cell",))
    assert not any("usual" in name for name in operations(usual, "cell", "messagepack")), "only on request"
    assert not any(
        "ask" in name for each in made.excluded for name in each.chain.operations if not each.chain.is_raw_io
    )


def test_a_store_that_cannot_change_documents_refuses_updates() -> None:
    made = plan(formats=("messagepack",), datasets=("cell",))
    reasons = {
        name: each.failure.reason
        for each in made.excluded
        for name in each.chain.operations
        if each.chain.variant.startswith("messagepack")
    }
    assert "replace and remove" in reasons["ingest[updates=0.5,indexes=2]"]
    assert "no index" in reasons["range[selectivity=0.001,paths=1,by=index]"]
    # Fallbacks read everything, so only one of each operation name is planned.
    found = operations(made, "cell", "messagepack")
    assert {"save", "read", "get[documents=100]", "fields[paths=2]", "ask[query=q1]"} <= found
    assert "ask[query=q2]" not in found


@pytest.mark.parametrize("few", [{"quick": True}, {"rows": 11_999}])
def test_late_merges_are_left_out_where_nothing_may_wait(few: dict[str, int | bool]) -> None:
    """A small number of documents is written as one component, so there is nothing to merge and the setting has no
    effect."""
    asked = {"datasets": ("wos",), "formats": ("document-store",), "operations": ("save",)}
    made = make_plan([SUITES["documents"]], Request(**asked, **few))  # type: ignore[arg-type]
    late = [each for each in made.excluded if "merges=late" in each.chain.variant]
    assert {each.chain.variant for each in late} == {
        "document-store[layout=amax,merges=late]",
        "document-store[layout=vector,merges=late]",
    }
    assert all("a single component" in each.failure.reason and "12,000" in each.failure.reason for each in late)
    assert not any("merges=late" in chain.variant for chain in made.chains)
    assert any(chain.variant.startswith("document-store") for chain in made.chains)


@pytest.mark.parametrize("asked", [{}, {"quick": True, "formats": ("document-store[merges=late]",)}])
def test_late_merges_take_part_with_all_documents_and_where_they_are_spelled(asked: dict[str, object]) -> None:
    made = make_plan([SUITES["documents"]], Request(datasets=("wos",), operations=("save",), **asked))  # type: ignore[arg-type]
    assert "document-store[layout=amax,merges=late]" in {chain.variant for chain in made.chains}


@pytest.mark.parametrize(
    "asked",
    [
        (),
        ("range",),
        ("range", "ask", "read"),
        ("range[selectivity=0.5,paths=1,by=index]", "range[selectivity=0.5,paths=1,by=scan]", "get"),
    ],
)
@pytest.mark.rule(19)
def test_no_index_is_in_the_copy_while_operations_run_without_one(asked: tuple[str, ...]) -> None:
    """All operations of a chain read the same stored copy. With an index in it, an operation called a scan could use
    the index."""
    made = plan(formats=("document-store",), datasets=("cell",), operations=asked)
    chains = [chain for chain in made.chains if not chain.is_raw_io]
    assert chains
    for chain in chains:
        indexed = [operation.endswith("by=index]") for operation in chain.operations]
        assert any(indexed)
        assert indexed == sorted(indexed)
        assert chain.needed_for(chain.operations)[0] == "save"


def test_ways_of_execution_take_part_only_in_questions() -> None:
    """Ways of execution affect only questions. Other operations would be measured and ranked twice."""
    made = plan(datasets=("cell",), formats=("document-store",))
    by_variant = {chain.variant: {name.partition("[")[0] for name in chain.operations} for chain in made.chains}
    assert by_variant["document-store[layout=amax,way=columns]"] == {"ask", "range"}
    assert {"save", "read", "get", "fields", "ingest"} < by_variant["document-store[layout=amax]"]
    asked = plan(datasets=("cell",), formats=("document-store[layout=amax,way=columns]",), operations=("get",))
    assert "get[documents=100]" in operations(asked, "cell", "document-store[layout=amax,way=columns]")
    unchanged = plan(datasets=("cell",), formats=("document-store",), operations=("get",))
    assert not any("way=" in chain.variant for chain in unchanged.chains)


def test_raw_io_takes_part_and_knows_no_documents() -> None:
    made = plan(formats=("messagepack",), datasets=("cell",))
    assert operations(made, "cell", "documents-raw-io") == {"save", "read"}


@pytest.mark.parametrize(
    ("suite", "asked", "words"),
    [
        ("tabular", {"datasets": ("tweets",)}, "holds documents, but the suite tabular measures tables"),
        ("access", {"datasets": ("sensors[readings=random]",)}, "Choose the suite documents"),
        ("documents", {"datasets": ("^eq$",)}, "matches no data set of the suite documents"),
        ("documents", {"operations": ("take",)}, "applies to tables, but the suite documents measures documents"),
        ("tabular", {"operations": ("get",)}, "applies to documents, but the suite tabular measures tables"),
        ("documents", {"formats": ("parquet[engine=pyarrow]",)}, "parquet"),
        ("documents", {"target": "arrow"}, "target applies to tables only"),
        ("documents", {"key": "did"}, "key='did' applies only to your own documents"),
    ],
)
def test_what_does_not_fit_documents_is_refused(suite: str, asked: dict[str, object], words: str) -> None:
    with pytest.raises(PlanError) as caught:
        plan(suite, **asked)
    assert words in str(caught.value)


def test_the_users_own_documents_have_the_key_that_they_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORMAT_BENCH_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "own.jsonl"
    path.write_text("".join(json.dumps({"name": f"n{number}", "value": number}) + "\n" for number in range(200)))
    made = plan(data=path, key="name", formats=("messagepack",))
    assert list(made.datasets) == ["documents[key=name]"]
    assert "ask[query=q1]" in operations(made, "documents[key=name]", "messagepack")
