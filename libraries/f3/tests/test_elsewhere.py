"""A separate process reads files with a copy of the package that lacks the native library, both builds, or wasmtime."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("wasmtime")

from libraries import f3
from libraries.f3.decoders import native

pytestmark = pytest.mark.skipif(native.library() is None, reason="the kernels are not built: python -m libraries.build")

PACKAGE = Path(f3.__file__).parent
TABLE = pa.table(
    {
        "line": np.arange(70_000),
        "noise": np.random.default_rng(1).random(70_000),
        "price": (np.arange(70_000) % 1000) / 100,
        "text": [None if row % 7 == 0 else f"grün {row % 100}" for row in range(70_000)],
        "list": pa.array([[row, None] if row % 3 else None for row in range(70_000)], pa.list_(pa.int32())),
        "is": np.arange(70_000) % 5 == 0,
    }
)
PARAMETERS = ({}, {"dictionary": "best", "codec": "lz4", "checksums": True}, {"dictionary": "local", "codec": "zstd"})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with the same table in three F3 files and in one Arrow file."""
    folder = tmp_path_factory.mktemp("files")
    for number, parameters in enumerate(PARAMETERS):
        f3.write(TABLE, folder / f"{number}.f3", **parameters)
    with pa.ipc.new_file(folder / "table.arrow", TABLE.schema) as file:
        file.write_table(TABLE)
    return folder


@pytest.fixture
def elsewhere(files, tmp_path):
    """Run lines of Python in the folder of the files, with a copy of the package that lacks some compiled files."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)

    def run(lines: str, *lacking: str) -> subprocess.CompletedProcess[str]:
        left_out = shutil.ignore_patterns("__pycache__", "tests", *lacking)
        shutil.copytree(PACKAGE, tmp_path / "libraries/f3", ignore=left_out)
        (tmp_path / "libraries/__init__.py").touch()
        program = (
            "import sys, pyarrow as pa\nfrom libraries import f3\nassert f3.__file__.startswith(sys.argv[1])\n"
            "table = pa.ipc.open_file('table.arrow').read_all()\n" + lines
        )
        environment = {"PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path)}
        command = [sys.executable, "-c", program, str(tmp_path)]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    return run


READ = "for number in range(3):\n    assert f3.open(f'{number}.f3').read().equals(table), number\n"


def test_without_the_native_library_the_same_table_is_read_and_written(elsewhere, tmp_path):
    done = elsewhere(READ + f"f3.write(table, 'there.f3')\n{READ.replace('{number}', 'there')}", native.LIBRARY_NAME)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("RuntimeWarning: F3's native library is not built") == 1
    # The warning shows the line of the user's code.
    assert done.stderr.startswith("<string>:")
    assert f3.open(tmp_path / "there.f3").read().equals(TABLE)


def test_without_anything_built_the_same_table_is_read(elsewhere):
    lines = READ + "print(f3.open('0.f3').encodings())\nf3.write(table, 'there.f3')"
    done = elsewhere(lines, native.LIBRARY_NAME, native.MODULE_NAME)
    assert done.stdout == "('module 0',)\n"
    assert done.stderr.splitlines()[-1] == (
        "libraries.f3.errors.F3Error: writing needs core.wasm, which is not built: 'pip install ziglang', "
        "then 'python -m libraries.build'"
    )


@pytest.mark.parametrize("lacking", [(), (native.LIBRARY_NAME,)], ids=["with the library", "without"])
def test_without_the_sandbox_the_native_library_reads_and_nothing_else(elsewhere, lacking):
    done = elsewhere("sys.modules['wasmtime'] = None\n" + READ, *lacking)
    if not lacking:
        assert done.returncode == 0, done.stderr
    else:
        assert done.stderr.splitlines()[-1] == (
            "libraries.f3.errors.F3Error: 0.f3: column line: decoding by Wasm needs the package wasmtime: "
            "'pip install wasmtime'"
        )
