"""A run loads only the modules that it needs: those of the formats that it measures, not those of all formats."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MOST_MODULES = 280
"""Largest number of modules of the project in the process of a run that measures only CSV."""
MAIN = """
import atexit, os, sys
from pathlib import Path

def written():
    folders = {path.parent.name for path in Path(os.environ["PROJECT"]).glob("*/__init__.py")}
    modules = sorted(name for name in sys.modules if name.partition(".")[0] in folders)
    Path("modules").write_text("\\n".join(modules))

atexit.register(written)
from format_bench.cli import main
main(sys.argv[1:])
"""
WORDS = (
    *("run", "tabular", "--formats", "^csv$", "--datasets", "^eq$", "--track", "plain"),
    *("--rows", "1000", "--rounds", "1", "--no-fidelity"),
)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory, cache_folder: Path) -> list[str]:
    """The project's modules that the process of a run loads if the run measures only CSV."""
    folder = tmp_path_factory.mktemp("modules")
    # Processes that run a file of this name treat the machine as idle (tests/plugins/at_rest).
    (folder / "main.py").write_text(MAIN)
    done = subprocess.run(
        [sys.executable, "main.py", *WORDS, "--out", "run"],
        cwd=folder,
        env={**os.environ, "FORMAT_BENCH_CACHE": str(cache_folder), "PROJECT": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return (folder / "modules").read_text().split()


@pytest.mark.slow
def test_a_run_of_one_format_loads_few_modules(loaded: list[str]) -> None:
    assert "formats.csv" in loaded
    assert len(loaded) <= MOST_MODULES


@pytest.mark.slow
def test_a_run_of_tables_loads_no_stores_of_documents_or_images(loaded: list[str]) -> None:
    """PostgreSQL, for example, is not asked for its version."""
    others = {name for name in loaded if name.startswith(("document_stores.", "image_storages."))}
    assert others == {"document_stores.registry", "image_storages.registry"}
    assert not {"formats.parquet", "formats.orc", "reports.pdf", "reports.site"} & {*loaded}
