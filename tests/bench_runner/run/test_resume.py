"""Resuming a run: when it may continue, which samples count, and which samples are never changed."""

from __future__ import annotations

import copy
import lzma
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench_runner.errors import RunError
from bench_runner.plan.chain import Chain, Plan
from bench_runner.request import Request
from bench_runner.results.information import ProbeInfo, RunInfo, RunWarning, VariantInfo, information
from bench_runner.results.records import Failure, Sample, SampleWriter, changed, read_run, write_run_info
from bench_runner.run import measuring, session
from bench_runner.run.options import Options
from bench_runner.run.prediction import Prediction
from bench_runner.run.resume import Earlier, earlier_part, refuse_other_data, whole
from bench_runner.run.schedule import Schedule
from bench_runner.run.work_folder import open_locked
from format_bench import cli
from tests.bench_runner.run import invented
from tests.bench_runner.run.invented import chain

INFO: dict[str, Any] = {
    "id": "a run",
    "commit": "abc",
    "dirty": False,
    "changes": None,
    "isolate": "forkserver",
    "seed": 7,
    "started": "2026-01-01T00:00:00+00:00",
    "machine": {
        "name": "lab",
        "cpu": "a CPU",
        "cores": 2,
        "memory_bytes": 8 * 10**9,
        "kernel": "6.1",
        "virtualisation": "none",
        "python": "3.11.7",
    },
    "libraries": {"pandas": "3.1.0", "pyarrow": "26.0.1"},
    "datasets": {"eq": {"digest": "d" * 64}},
    "warnings": [],
}
NOW = information(INFO)
CHAIN = chain()
NEEDED = {CHAIN.variant: {"pandas", "pyarrow", "lxml"}}


def sample(operation: str, round_number: int, rows: int = 100_000, **changes: Any) -> Sample:
    given = {"dataset_digest": "d" * 64, "rows": rows, "round": round_number, "figures": {"wall_ns": 10**6}}
    return invented.sample(CHAIN, operation, **given | changes)


def written(folder: Path, *samples: Sample, info: Mapping[str, Any] = INFO) -> Path:
    write_run_info(folder, info)
    numbered = [changed(one, position=position) for position, one in enumerate(samples)]
    SampleWriter(folder).append(*numbered)
    return folder


def info_with(place: str, value: Any) -> RunInfo:
    """Return INFO with one value changed, or removed if `value` is None. 'machine/cpu' names a nested value."""
    shape = copy.deepcopy(INFO)
    *outer, key = place.split("/")
    within = shape[outer[0]] if outer else shape
    if value is None:
        del within[key]
    else:
        within[key] = value
    return information(shape)


CHANGES = [
    ("commit", "def", "commit was abc and is def"),
    ("dirty", True, "dirty was False and is True"),
    ("changes", "another digest", "the uncommitted changes differ"),
    ("isolate", "spawn", "isolate was forkserver and is spawn"),
    ("machine/name", "office", "name was lab and is office"),
    ("machine/cpu", "another CPU", "cpu was a CPU and is another CPU"),
    ("machine/cores", 4, "cores was 2 and is 4"),
    ("machine/memory_bytes", 16 * 10**9, "memory_bytes was 8000000000 and is 16000000000"),
    ("machine/kernel", "6.2", "kernel was 6.1 and is 6.2"),
    ("machine/virtualisation", "kvm", "virtualisation was none and is kvm"),
    ("machine/python", "3.12.0", "python was 3.11.7 and is 3.12.0"),
    ("libraries/pandas", "3.2.0", "pandas was 3.1.0 and is 3.2.0"),
    ("libraries/pandas", None, "pandas was 3.1.0 and is absent"),
    ("libraries/lxml", "6.0", "lxml was absent and is 6.0"),
]


def test_packed_samples_are_not_resumed(tmp_path: Path) -> None:
    """New samples would be in a different file than the packed ones."""
    written(tmp_path, sample("save", 1))
    lines = tmp_path / "samples.jsonl"
    (tmp_path / "samples.jsonl.xz").write_bytes(lzma.compress(lines.read_bytes()))
    lines.unlink()
    with pytest.raises(RunError, match=r"Unpack them first: unxz .*samples\.jsonl\.xz"):
        earlier_part(tmp_path, NOW, NEEDED)


@pytest.mark.parametrize(("place", "value", "said"), CHANGES)
def test_another_setting_refuses_with_the_reason(tmp_path: Path, place: str, value: Any, said: str) -> None:
    written(tmp_path, sample("save", 1))
    with pytest.raises(RunError) as refused:
        earlier_part(tmp_path, info_with(place, value), NEEDED)
    assert said in str(refused.value)
    assert "Start a new run, without resume" in str(refused.value)


def test_the_same_settings_may_be_resumed(tmp_path: Path) -> None:
    written(tmp_path, sample("save", 1), sample("read", 1))
    # The start time and the request may differ.
    earlier = earlier_part(tmp_path, changed(NOW, started="later", seed=8, budget_s=60.0), NEEDED)
    assert earlier.run is not None
    assert earlier.next_position == 2


@pytest.mark.parametrize(
    "libraries",
    [
        pytest.param({**NOW.libraries, "lxml": "6.0"}, id="of all formats, as runs of earlier versions recorded"),
        pytest.param({"pyarrow": NOW.libraries["pyarrow"]}, id="of fewer formats"),
    ],
)
def test_a_library_that_only_one_part_needs_may_be_absent_in_the_other(
    tmp_path: Path, libraries: Mapping[str, str]
) -> None:
    written(tmp_path, sample("save", 1), info={**INFO, "libraries": libraries})
    needed = {CHAIN.variant: {"pyarrow"}, "xml[engine=pandas]": {"pandas"}}
    assert earlier_part(tmp_path, NOW, needed).next_position == 1
    other = changed(NOW, libraries={**NOW.libraries, "pyarrow": "27.0.0"})
    with pytest.raises(RunError, match=r"pyarrow was 26\.0\.1 and is 27\.0\.0"):
        earlier_part(tmp_path, other, needed)


def test_other_data_are_refused(tmp_path: Path) -> None:
    earlier = earlier_part(written(tmp_path), NOW, NEEDED)
    refuse_other_data(earlier, {"eq": "d" * 64, "new": "e" * 64})
    with pytest.raises(RunError, match="the digest of the data set eq has changed"):
        refuse_other_data(earlier, {"eq": "e" * 64})


def test_an_execution_is_found_by_round_and_rows(tmp_path: Path) -> None:
    """Another number of rows is another execution, in a pilot round as well as in a run with other --rows."""
    rows = [(0, 20_000), (0, 200_000), (1, 100_000), (1, 50_000)]
    written(tmp_path, *(sample(operation, number, size) for number, size in rows for operation in CHAIN.operations))
    earlier = earlier_part(tmp_path, NOW, NEEDED)
    for number, size in rows:
        found = earlier.execution(CHAIN, CHAIN.conditions, number, size)
        assert [(one.operation, one.round, one.rows) for one in found] == [
            ("save", number, size),
            ("read", number, size),
        ]
    assert earlier.execution(CHAIN, CHAIN.conditions, 1, 20_000) == []
    assert earlier.execution(CHAIN, CHAIN.conditions, 2, 100_000) == []


@pytest.mark.parametrize(
    "other",
    [
        {"chain": replace(CHAIN, suite="compression")},
        {"chain": replace(CHAIN, dataset="int")},
        {"chain": replace(CHAIN, variant="csv[engine=pyarrow]")},
        {"conditions": changed(CHAIN.conditions, cache="cold")},
        {"conditions": changed(CHAIN.conditions, work_dir="/disk")},
    ],
)
def test_another_chain_has_no_execution(tmp_path: Path, other: dict[str, Any]) -> None:
    earlier = earlier_part(written(tmp_path, sample("save", 1), sample("read", 1)), NOW, NEEDED)
    asked = {"chain": CHAIN, "conditions": CHAIN.conditions} | other
    assert earlier.execution(asked["chain"], asked["conditions"], 1, 100_000) == []


def test_a_run_that_begins_has_nothing() -> None:
    earlier = Earlier()
    assert earlier.execution(CHAIN, CHAIN.conditions, 1, 100_000) == []
    assert earlier.next_position == 0
    assert earlier.fidelity == set()
    refuse_other_data(earlier, {"eq": "d" * 64})


def test_a_reason_is_not_an_execution(tmp_path: Path) -> None:
    """In round 0 a reason is recorded without figures.

    If the reason no longer holds, the pilot round is still missing.
    """
    failure = Failure(kind="memory", reason="needs about 9.0 GB of memory, 4.0 GB are free")
    reasons = [sample(operation, 0, figures={}, failure=failure) for operation in CHAIN.operations]
    earlier = earlier_part(written(tmp_path, *reasons), NOW, NEEDED)
    assert earlier.execution(CHAIN, CHAIN.conditions, 0, 100_000) == []
    assert earlier.has_reason(CHAIN, CHAIN.conditions, 100_000, failure)
    less_free = changed(failure, reason="needs about 9.0 GB of memory, 3.9 GB are free")
    assert earlier.has_reason(CHAIN, CHAIN.conditions, 100_000, less_free)
    assert not earlier.has_reason(CHAIN, CHAIN.conditions, 100_000, changed(failure, kind="timeout"))
    assert not earlier.has_reason(CHAIN, CHAIN.conditions, 50_000, failure)
    assert not earlier.has_reason(CHAIN, changed(CHAIN.conditions, cache="cold"), 100_000, failure)


def test_an_execution_that_was_cut_short_is_made_up_for(tmp_path: Path) -> None:
    """A save whose read is missing does not count, so another round is added."""
    prediction = Prediction({"save": 10**6, "read": 10**6}, peak_bytes=0, size_bytes=0)
    for samples, due in (([sample("save", 1)], [CHAIN]), ([sample("save", 1), sample("read", 1)], [])):
        folder = tmp_path / str(len(samples))
        folder.mkdir()
        earlier = earlier_part(written(folder, *samples), NOW, NEEDED)
        schedule = Schedule({CHAIN: prediction}, seed=7, rounds=1)
        schedule.progress[CHAIN].add(earlier.execution(CHAIN, CHAIN.conditions, 1, 100_000))
        assert schedule.due(2) == due


PROJECT = "project[columns=2]"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The requested operations of each execution. Nothing is executed."""
    asked: list[tuple[str, ...]] = []

    def execute(bench: object, chain: Chain, dataset: object, *, wanted: Sequence[str], **given: Any) -> list[Sample]:
        asked.append(tuple(wanted))
        serving = {"read"} - {*chain.operations} | ({"save"} if not {"save", "read"} & {*wanted} else set())
        return [
            sample(operation, given["round_number"], given["rows"], in_service=operation in serving, position=position)
            for position, operation in enumerate(chain.needed_for(wanted), given["position"])
        ]

    monkeypatch.setattr(session, "execute", execute)
    return asked


def gone_on(folder: Path, chain: Chain, wanted: Sequence[str] | None = None) -> list[Sample]:
    """Make one execution, in round 1 of a resumed run. New samples are stored in this folder."""
    earlier = earlier_part(folder, NOW, NEEDED)
    going_on = invented.session(
        options=Options(),
        folder=folder,
        writer=SampleWriter(folder),
        datasets={"eq": None},
        benches=defaultdict(lambda: None),
        earlier=earlier,
        position=earlier.next_position,
    )
    return going_on.execution(chain, rows=100_000, round_number=1, need_bytes=0, wanted=wanted)


def test_what_is_whole_is_not_measured_again(tmp_path: Path, asked: list[tuple[str, ...]]) -> None:
    written(tmp_path, sample("save", 1), sample("read", 1))
    for wanted in (None, ("save", "read"), ("read",)):
        assert [each.operation for each in gone_on(tmp_path, CHAIN, wanted)] == ["save", "read"]
    assert asked == []


def test_a_resumed_run_measures_only_the_operations_that_are_missing(
    tmp_path: Path, asked: list[tuple[str, ...]]
) -> None:
    """The save that the missing operations need is executed again, but neither requested nor counted again."""
    more = replace(CHAIN, operations=("save", "read", PROJECT))
    written(tmp_path, sample("save", 1), sample("read", 1))
    found = gone_on(tmp_path, more)
    assert asked == [(PROJECT,)]
    assert [(each.operation, each.in_service) for each in found] == [
        ("save", False),
        ("read", False),
        ("save", True),
        (PROJECT, False),
    ]
    stored = read_run(tmp_path).samples
    assert [(each.operation, each.in_service) for each in stored] == [
        (each.operation, each.in_service) for each in found
    ]
    gone_on(tmp_path, more)
    assert asked == [(PROJECT,)], "now it is whole"


def test_what_was_only_in_service_is_missing(tmp_path: Path, asked: list[tuple[str, ...]]) -> None:
    written(tmp_path, sample("save", 1), sample(PROJECT, 1), sample("read", 1, in_service=True))
    more = replace(CHAIN, operations=("save", "read", PROJECT))
    found = gone_on(tmp_path, more)
    assert asked == [("read",)]
    counted = [each.operation for each in found if each.counted and not each.in_service]
    assert sorted(counted) == [PROJECT, "read", "save"], "each once"


def test_a_save_that_was_cut_off_from_its_read_is_measured_again(tmp_path: Path, asked: list[tuple[str, ...]]) -> None:
    written(tmp_path, sample("save", 1))
    found = gone_on(tmp_path, CHAIN)
    assert asked == [("save", "read")]
    assert [each.operation for each in found] == ["save", "read"]


def test_a_failure_is_not_tried_again(tmp_path: Path, asked: list[tuple[str, ...]]) -> None:
    """A failure in the pilot round is not retried either, if another operation passed. It does not exclude the whole
    chain."""
    failure = Failure(kind="crash", reason="x")
    more = replace(CHAIN, operations=("save", "read", PROJECT))
    failing = sample(PROJECT, 1, figures={}, failure=failure)
    written(tmp_path, sample("save", 1), sample("read", 1), failing)
    gone_on(tmp_path, more)
    assert asked == []
    pilot = tmp_path / "pilot"
    pilot.mkdir()
    written(pilot, *(changed(each, round=0) for each in (sample("save", 0), sample("read", 0), failing)))
    found = earlier_part(pilot, NOW, NEEDED).execution(more, CHAIN.conditions, 0, 100_000)
    assert whole(found) == {"save", "read", PROJECT}


def test_a_reason_of_one_operation_is_none_of_another(tmp_path: Path) -> None:
    failure = Failure(kind="refused", reason="it reads 60 columns, but the table has 4")
    earlier = earlier_part(
        written(tmp_path, sample("project[columns=60]", 0, figures={}, failure=failure)), NOW, NEEDED
    )
    refused = replace(CHAIN, operations=("project[columns=60]",))
    assert earlier.has_reason(refused, CHAIN.conditions, 100_000, failure)
    refused = replace(CHAIN, operations=("project[columns=50]",))
    assert not earlier.has_reason(refused, CHAIN.conditions, 100_000, failure)


def begun(folder: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> RunInfo:
    """Return the information that a run in `folder` has when it starts."""
    state = {"commit": "abc", "dirty": False, "changes": None}
    monkeypatch.setattr(measuring.environment, "repository_state", lambda root: state)
    plan = Plan(suites=(), datasets={}, chains=())
    info, _ = measuring._begin(plan, Request(), Options(**options), folder, ["run"])
    return info


def test_the_earlier_part_keeps_its_identity_and_its_warnings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = begun(tmp_path, monkeypatch, seed=7)
    warning = RunWarning(text="another run was measuring", remedy="measure again")
    variants = {"csv[engine=pandas]": VariantInfo(import_ns=5)}
    probe = ProbeInfo(error_bytes=9)
    stored = changed(first, warnings=[warning], variants=variants, stages_ns={"data": 3}, probe=probe)
    write_run_info(tmp_path, stored)
    for times in (1, 2):
        resumed = begun(tmp_path, monkeypatch, resume=True, seed=8)
        assert resumed.warnings == [warning]
        assert resumed.variants == variants
        assert resumed.stages_ns == {"data": 3}
        assert resumed.probe == probe
        assert (resumed.id, resumed.seed, resumed.started) == (first.id, first.seed, first.started)
        assert len(resumed.resumed) == times
        assert read_run(tmp_path).info.warnings == [warning], "on disk from the first moment"


def test_a_resumed_run_keeps_the_libraries_of_its_earlier_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = begun(tmp_path, monkeypatch)
    write_run_info(tmp_path, changed(first, libraries={**first.libraries, "fastavro": "1.0"}))
    assert begun(tmp_path, monkeypatch, resume=True).libraries == {**first.libraries, "fastavro": "1.0"}


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def test_a_folder_in_use_is_refused_and_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, cache_folder: Path
) -> None:
    monkeypatch.setenv("FORMAT_BENCH_CACHE", str(cache_folder))
    out = tmp_path / "out"
    out.mkdir()
    written(out, sample("save", 1))
    # While a run is writing, its last line may be incomplete.
    with (out / "samples.jsonl").open("ab") as stream:
        stream.write(b'{"suite":"tab')
    before = contents(out)
    words = ["run", "tabular", "--rows", "1000", "--datasets", "^eq$", "--formats", "csv", "--quick", "--resume"]
    with open_locked(out), pytest.raises(SystemExit) as ended:
        cli.main([*words, "--out", str(out)])
    assert ended.value.code == 2
    assert "Another run is writing to" in capsys.readouterr().err
    assert contents(out) == before


def test_a_cut_line_is_dropped_when_the_run_goes_on(tmp_path: Path) -> None:
    written(tmp_path, sample("save", 1))
    with (tmp_path / "samples.jsonl").open("ab") as stream:
        stream.write(b'{"suite":"tab')
    assert earlier_part(tmp_path, NOW, NEEDED).next_position == 1
    SampleWriter(tmp_path).append(sample("read", 1, position=1))
    found = read_run(tmp_path)
    assert [one.operation for one in found.samples] == ["save", "read"]
