"""The forkserver preloads the libraries that a worker would load."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contracts.adapters import run

TEXT_AFTER_PRELOADING = """
import sys
from pathlib import Path
import pandas as pd
from bench_runner.run import forkserver
from formats.registry import FORMATS

variant, strings, place = sys.argv[1:4]
assert forkserver.preload([variant], strings) == {}
adapter = FORMATS.build(variant)
adapter.load_library()
adapter.save(pd.DataFrame({"word": ["a", "b"]}), Path(place))
print(adapter.read(Path(place))["word"].dtype)
"""


@pytest.mark.parametrize("strings", ["str", "object"])
def test_a_library_that_asks_for_the_dtype_of_text_when_it_is_loaded(strings: str, tmp_path: Path) -> None:
    variant = "parquet[engine=fastparquet,codec=none]"
    done = run(TEXT_AFTER_PRELOADING, variant, strings, str(tmp_path / "t.parquet"))
    assert done.stdout.strip() == strings, done.stderr
