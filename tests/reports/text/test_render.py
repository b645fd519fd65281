"""The doors of the reports: they load nothing until they are used, and each one leads somewhere."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

from rich.console import Console

from bench_runner.results.records import read_run
from reports.text import render
from tests.reports.factory import make_run, write_run


def test_importing_the_doors_loads_no_library() -> None:
    code = (
        "import sys, reports.text.render, bench_runner.results.records, bench_runner.results.statistics;"
        "heavy = {'matplotlib', 'scipy', 'numpy', 'pandas', 'pyarrow', 'rich'};"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_report_is_made_from_a_stored_folder_alone(tmp_path: Path) -> None:
    folder = write_run(make_run(datasets=("eq",), tracks=("plain",), rounds=5), tmp_path / "run")
    run = read_run(folder)
    stream = io.StringIO()
    console = Console(file=stream)
    render.show(run, console)
    render.show_fidelity(run, console)
    render.show_against_thesis(run, console)
    for text in ("tabular: eq", "what comes back", "findings:"):
        assert text in stream.getvalue()
    assert [path.name for path in render.write_csv(run, tmp_path)] == ["results-eq-plain.csv"]
    assert "| kind |" in render.fidelity_markdown(run)
    assert "## Findings" in render.against_thesis_markdown(run)
    assert sorted(path.name for path in folder.iterdir()) == ["fidelity.jsonl", "run.json", "samples.jsonl"]
