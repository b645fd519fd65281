"""Compile the C code when the package is installed. All other settings are in pyproject.toml.

An installation does not fail if the C code cannot be compiled. Without its kernels, F3 reads files with the Wasm module
that each file carries, and the document store runs in Python. Without the compiled loop, devices are read from Python.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

COMPILERS = (Path("libraries"), Path("bench_runner"))
"""Folders with a build.py, which lists what to compile and the consequences if that fails."""


class BuildWithKernels(build_py):
    """Copy the Python files as usual, then compile. Compiled files are written to the source folders in an editable
    installation, otherwise to the wheel."""

    def run(self) -> None:
        """Build the package. Print a warning for each library that cannot be compiled."""
        super().run()
        top = Path() if self.editable_mode else Path(self.build_lib)
        for place in COMPILERS:
            spec = importlib.util.spec_from_file_location(f"{place.name}_build", place / "build.py")
            assert spec is not None
            assert spec.loader is not None
            compiler = importlib.util.module_from_spec(spec)
            # A dataclass looks up the module that defines it in sys.modules.
            sys.modules[spec.name] = compiler
            spec.loader.exec_module(compiler)
            for name, without in compiler.WITHOUT.items():
                try:
                    compiler.build(top / place, name)
                except (OSError, subprocess.CalledProcessError) as error:
                    words = getattr(error, "stderr", None) or str(error)
                    sys.stderr.write(f"warning: {without}: {words}\n")


class WheelOfOnePlatform(bdist_wheel):
    """Build a wheel for one platform and any Python 3: the native libraries depend only on the platform."""

    def finalize_options(self) -> None:
        """Declare that the wheel is not for all platforms."""
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self) -> tuple[str, str, str]:
        """Return the tag for any Python 3, any ABI, and this platform."""
        return "py3", "none", super().get_tag()[2]


setup(cmdclass={"bdist_wheel": WheelOfOnePlatform, "build_py": BuildWithKernels})
