"""docs/results.md names everything that the files hold, and its example runs."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pandas as pd

from bench_runner.results.figures import FIGURES
from bench_runner.results.records import Conditions, Fidelity, Sample
from tests.reports.factory import make_run, write_run

PAGE = (Path(__file__).parents[3] / "docs/results.md").read_text()


def test_every_field_and_figure_is_described() -> None:
    for record in (Sample, Fidelity, Conditions):
        for item in fields(record):
            assert f"`{item.name}`" in PAGE, item.name
    for name, figure in FIGURES.items():
        assert f"| `{name}` | {'lower' if 'lower' in figure.direction.value else ''} |" in PAGE, name


def test_the_example_loads_a_run_and_counts_as_reports_do(tmp_path: Path) -> None:
    folder = write_run(make_run(datasets=("eq",), tracks=("plain",)), tmp_path / "run")
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(code.replace("results/<folder>", str(folder)), names)
    counted = names["counted"]
    assert isinstance(counted, pd.DataFrame)
    lance = counted[counted["variant"].str.startswith("lance") & (counted["operation"] == "read")]
    assert sorted(lance["round"]) == [1, 2, 4, 5, 6, 7]
