"""dask's engines: their scheduler, and tables whose types differ from partition to partition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from adapters.errors import RefusedData
from bench_runner.operations import targets
from bench_runner.operations.targets import Target
from bench_runner.worker import fidelity
from data_generator.generated.kinds import KINDS
from formats.csv import SAMPLE_ROWS
from formats.registry import FORMATS


@pytest.mark.parametrize(("threads", "scheduler"), [(1, "synchronous"), (None, None)])
def test_one_thread_saves_and_reads_where_that_is_the_condition(
    threads: int | None, scheduler: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dask.config

    adapter: Any = FORMATS.build("csv[engine=dask]", threads=threads)
    adapter.load_library()
    seen = []
    for name in ("write", "frame_of"):
        original = getattr(adapter, name)

        def watched(*given: Any, original: Any = original) -> Any:
            seen.append(dask.config.get("scheduler", None))
            return original(*given)

        monkeypatch.setattr(adapter, name, watched)
    adapter.save(pd.DataFrame({"i": [1, 2]}), tmp_path / "t.csv")
    assert list(adapter.read(tmp_path / "t.csv")["i"]) == [1, 2]
    assert seen == [scheduler, scheduler]


@pytest.mark.parametrize(
    ("variant", "table"),
    [
        ("csv[engine=dask]", pd.DataFrame({"late": [*range(SAMPLE_ROWS), None]}, dtype="Int64")),
        ("json[engine=dask]", pd.DataFrame({"late": ["a", "b", None, None]})),
    ],
)
def test_types_that_the_first_rows_do_not_show_are_refused(variant: str, table: pd.DataFrame, tmp_path: Path) -> None:
    adapter = FORMATS.build(variant)
    adapter.load_library()
    adapter.save_parts(table, tmp_path, 2)
    with pytest.raises(RefusedData, match=r"later rows have other types .*late"):
        adapter.read(tmp_path)


@pytest.mark.parametrize("name", ["csv", "hdf5-table", "json", "orc", "parquet"])
def test_text_as_objects_comes_back_as_declared(name: str, tmp_path: Path) -> None:
    target = Target("pandas", strings="object")
    targets.apply_strings(target)
    adapter = FORMATS.build(f"{name}[engine=dask]")
    adapter.load_library()
    kinds = [KINDS[kind] for kind in ("string", "string-unicode", "string-empty", "categorical")]
    outcomes = {record.kind: record.outcome for record in fidelity.probe(adapter, target, tmp_path / "kinds", kinds)}
    targets.apply_strings(Target("pandas"))
    assert fidelity.ERROR not in outcomes.values()
    assert outcomes["string"] == (fidelity.LOSSY if name in ("orc", "parquet") else fidelity.EXACT)


def test_other_errors_of_a_read_are_no_refusals(tmp_path: Path) -> None:
    adapter = FORMATS.build("csv[engine=dask]")
    adapter.load_library()
    (tmp_path / "part-00000.csv").write_text("a,b\n1,2\n1,2,3\n")
    with pytest.raises(pd.errors.ParserError):
        adapter.read(tmp_path)
