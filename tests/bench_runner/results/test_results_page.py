"""docs/results.md names everything that the files hold, and its example runs."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pandas as pd
import pytest

from bench_runner.results.figures import FIGURES
from bench_runner.results.information import Facts, RunInfo
from bench_runner.results.records import Conditions, Failure, Fidelity, Sample, SampleWriter, write_run_info
from tests.bench_runner.results.invented import make_sample, make_save

PAGE = (Path(__file__).parents[3] / "docs/results.md").read_text()

PARTS = [kind for kind in Facts.__subclasses__() if kind is not RunInfo]
"""The objects that run.json holds."""


def fields(record: type[msgspec.Struct]) -> tuple[str, ...]:
    return tuple(field.name for field in msgspec.structs.fields(record))


@pytest.mark.parametrize("record", [Sample, Fidelity, Conditions, RunInfo, *PARTS])
def test_every_field_is_described(record: type[msgspec.Struct]) -> None:
    assert [name for name in fields(record) if f"`{name}`" not in PAGE] == []


def test_every_figure_is_described() -> None:
    for name, figure in FIGURES.items():
        assert f"| `{name}` | {'lower' if 'lower' in figure.direction.value else ''} |" in PAGE, name


def test_the_example_loads_a_run_and_counts_as_reports_do(tmp_path: Path) -> None:
    write_run_info(tmp_path, RunInfo(id="x"))
    SampleWriter(tmp_path).append(
        make_sample(round=0, position=0),
        make_save(position=1),
        make_sample(position=2),
        make_sample(round=2, position=3, unsettled=True),
        make_sample(round=3, position=4, figures={}, failure=Failure(kind="crash", reason="x")),
        make_sample(round=4, position=5),
        make_sample(round=5, position=6, in_service=True),
    )
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(code.replace("results/<folder>", str(tmp_path)), names)
    counted = names["counted"]
    assert isinstance(counted, pd.DataFrame)
    assert sorted(counted[counted["operation"] == "read"]["round"]) == [1, 4]
