"""Run the code of docs/f3.md as it is printed."""

import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("wasmtime")

from libraries import f3
from libraries.f3.decoders import native
from libraries.f3.encodings import unit_codec

pytestmark = pytest.mark.skipif(native.library() is None, reason="the kernels are not built: python -m libraries.build")

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "libraries/f3/docs/f3.md").read_text()


def blocks(language: str) -> list[str]:
    """Return the page's code blocks."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_first_lines_of_the_page_write_and_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(blocks("python")[0], {"table": pa.table({"a": range(3000), "b": ["x", None, "z"] * 1000})})
    assert f3.open("table.f3").num_rows == 3000


@pytest.mark.skipif(find_spec("ziglang") is None, reason="no compiler: pip install ziglang")
def test_an_encoding_of_your_own_is_made_as_the_page_says(tmp_path, monkeypatch):
    (tmp_path / "libraries").symlink_to(ROOT / "libraries")
    monkeypatch.chdir(tmp_path)
    (source,) = blocks("c")
    Path("linear.c").write_text(source)
    (command,) = re.findall(r"`python (-m ziglang cc [^`]*)`", PAGE)
    subprocess.run([sys.executable, *shlex.split(command)], check=True, capture_output=True, text=True)
    exec(blocks("python")[-1], {})
    try:
        table = pa.table({"line": np.arange(200_000) * -3 + 7, "other": np.arange(200_000) % 7})
        f3.write(table, "table.f3")
    finally:
        unit_codec.unregister("linear")
    with f3.open("table.f3") as file:
        assert file.read().equals(table)
        assert file.read(rows=[199_999])["line"].to_pylist() == [-599_990]
        info = file.describe()
        (line, other) = info.columns
        assert (len(line.modules), len(other.modules), len(info.modules)) == (1, 1, 2)
        assert line.size_bytes == 20 * line.enc_units
    (size,) = re.findall(r"its module \(([\d.]+) KB\)", PAGE)
    assert Path("linear.wasm").stat().st_size == pytest.approx(float(size) * 1000, rel=0.2)
