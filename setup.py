"""Compile what is in C when the package is installed; everything else is in pyproject.toml.

An installation never fails for it: without the kernels F3 files are still read, by the Wasm module that each carries,
documents are stored by Python, and without its loop devices are read from Python.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

COMPILERS = (Path("libraries"), Path("bench_runner"))
"""Folders with a build.py: it says what there is to compile, and what is so where that fails."""


class BuildWithKernels(build_py):
    """The usual step, and then the compiler: into the sources of an editable installation, else into the wheel."""

    def run(self) -> None:
        """Build, and say it when the kernels could not be."""
        super().run()
        top = Path() if self.editable_mode else Path(self.build_lib)
        for place in COMPILERS:
            spec = importlib.util.spec_from_file_location(f"{place.name}_build", place / "build.py")
            assert spec is not None
            assert spec.loader is not None
            compiler = importlib.util.module_from_spec(spec)
            # A dataclass looks for the module that it stands in.
            sys.modules[spec.name] = compiler
            spec.loader.exec_module(compiler)
            for name, without in compiler.WITHOUT.items():
                try:
                    compiler.build(top / place, name)
                except (OSError, subprocess.CalledProcessError) as error:
                    words = getattr(error, "stderr", None) or str(error)
                    sys.stderr.write(f"warning: {without}: {words}\n")


class WheelOfOnePlatform(bdist_wheel):
    """The native library is of one platform, and loaded by any Python 3."""

    def finalize_options(self) -> None:
        """Not a wheel for all platforms."""
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self) -> tuple[str, str, str]:
        """Any Python 3, no ABI, this platform."""
        return "py3", "none", super().get_tag()[2]


setup(cmdclass={"bdist_wheel": WheelOfOnePlatform, "build_py": BuildWithKernels})
