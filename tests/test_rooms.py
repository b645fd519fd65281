"""Rules for all tracked files: allowed imports, reading clocks, printing, docstrings, and words that must not occur.

Each rule is a function that takes a file's name and text and returns its problems. The tests apply the rules to all
files, and to invented text that breaks or keeps them.
"""

import ast
import re
import subprocess
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

MAY_IMPORT = {
    "adapters": (),
    "data_generator": ("adapters.errors",),
    "libraries": (),
    "formats": ("adapters", "libraries"),
    "image_storages": ("adapters",),
    "document_stores": ("adapters", "libraries"),
    "bench_runner": (
        *("adapters", "formats", "image_storages", "document_stores", "data_generator"),
        "libraries.document_queries",
    ),
    "reports": tuple(
        f"bench_runner.{each}" for each in ("results", "conditions", "data_kinds", "networks", "variants")
    ),
    "benchmarks": ("bench_runner",),
    "format_bench": (
        "adapters",
        "bench_runner",
        "data_generator",
        "document_stores",
        "formats",
        "image_storages",
        "libraries",
        "reports",
    ),
    "docs": ("adapters", "bench_runner", "format_bench", "formats", "reports"),
    "main": ("format_bench",),
    "setup": (),
}
"""Package -> what it may import in addition to itself. The files main.py and setup.py count as packages."""

INSIDE_RUNNER = {
    "": (),
    "suites": (),
    "operations": ("suites.document_questions",),
    "machine": (),
    "results": (),
    "plan": ("suites", "operations"),
    "worker": ("operations", "machine"),
    "run": ("suites", "operations", "machine", "results", "plan", "worker"),
}
"""Part of bench_runner -> other parts that it may import. Modules at the top import none, and all may import them."""

SHARED = ("libraries.document_queries", "libraries.durable", "libraries.filters")
"""Libraries that every library may import: the language of document queries, durable writes, and filters of rows."""

NOT_SHIPPED = re.compile(r"(?:tests|libraries/\w+/(?:tests|benchmarks))/")
"""Paths of tests and benchmarks, which the product must not import."""

FOR_TESTS = ("data_generator", "libraries.build")
"""What the tests of a library may import in addition: test data, and the compiler of its kernels."""

MOST_LINES = 500
MOST_MODULES = 20
"""Larger modules and folders cause a warning, not a failure."""

READ_CLOCKS = {
    "bench_runner/clock.py": "the clock",
    "data_generator/cache.py": "recognises abandoned files by their age",
    "libraries/f3/decoders/wasm.py": "limits the time of untrusted code",
    "libraries/near_storage/serving/clock.py": "expires tickets, and limits waiting",
    "libraries/near_storage/storing/catalog.py": "computes the age of replaced versions and uploads, across restarts",
}

CLOCKS = {
    f"{name}{suffix}"
    for name in ("perf_counter", "process_time", "monotonic", "thread_time", "clock_gettime")
    for suffix in ("", "_ns")
} | {"utcnow"}
NUMBERS = (ast.Constant, ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop, ast.Tuple, ast.expr_context)
"""Node types of a constant numeric expression."""
MENTIONS_CLOCK = re.compile(rf"\b(?:now|today|{'|'.join(CLOCKS)})\b")

# Composed from parts, because this file is searched as well.
UNNAMED = {
    "/".join(("..", "shared")): "a folder that users do not have",
    "/".join(("", "work", "")): "a folder that users do not have",
    ".".join(("pypi", "org")): "a package registry's host",
    ".".join(("pythonhosted", "org")): "a package registry's host",
    ".".join(("anaconda", "org")): "a package registry's host",
    "index" + "-url": "a package registry's address",
}


def tracked() -> list[str]:
    """Return all existing files that git tracks, as paths from the top."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a git checkout, so the files of the project are unknown")
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


parsed = lru_cache(maxsize=1)(ast.parse)
"""All rules are applied to one module before the next, so each is parsed once."""


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield all statements of a module at any depth, which are a tenth of its nodes."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        yield node
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            left += getattr(node, block, ())


def package_of(file: str) -> str:
    return file.partition("/")[0].removesuffix(".py")


@cache
def imports(file: str, text: str) -> tuple[tuple[int, str], ...]:
    """Return (line, dotted name) of every import in a module; `from a import b` is 'a.b'."""
    return tuple(_imports(file, parsed(text), by_name="import_module" in text or "__import__" in text))


def _imports(file: str, tree: ast.Module, *, by_name: bool) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree) if by_name else statements(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = file.split("/")[: -node.level] if node.level else []
            module = [*above, node.module] if node.module else above
            yield from ((node.lineno, ".".join([*module, alias.name])) for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = ast.unparse(node.func).rpartition(".")[2]
            if called in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                yield node.lineno, node.args[0].value


def is_shipped(file: str) -> bool:
    return NOT_SHIPPED.match(file) is None


def forbidden_imports(file: str, text: str) -> list[str]:
    """Check imports between packages. Tests of the project and benchmarks of libraries may import everything."""
    package = package_of(file)
    if package in ("tests", "conftest") or (not is_shipped(file) and "/benchmarks/" in file):
        return []
    if package not in MAY_IMPORT:
        return [f"{file}: is in no package of the project ({', '.join(MAY_IMPORT)}, tests)"]
    allowed = (package, *MAY_IMPORT[package], *(() if is_shipped(file) else FOR_TESTS))

    def is_wrong(name: str) -> bool:
        if is_shipped(file) and not is_shipped(f"{name.replace('.', '/')}/"):
            return True
        return name.partition(".")[0] in (*MAY_IMPORT, "tests") and not any(
            f"{name}.".startswith(f"{target}.") for target in allowed
        )

    may = f"{package} may import {', '.join(allowed[1:]) or 'no package'}, and no tests"
    return [f"{file}, line {line}: imports {name}; {may}" for line, name in imports(file, text) if is_wrong(name)]


def imports_of_other_libraries(file: str, text: str) -> list[str]:
    """Check that each library in libraries/ can be used without the others."""
    package, _, inside = file.partition("/")
    if package != "libraries" or "/" not in inside:
        return []
    own = f"libraries.{inside.partition('/')[0]}"
    allowed = (own, *SHARED, *(() if is_shipped(file) else FOR_TESTS))
    return [
        f"{file}, line {line}: imports {name}; a library must not import another one"
        for line, name in imports(file, text)
        if name.partition(".")[0] == "libraries" and not any(f"{name}.".startswith(f"{target}.") for target in allowed)
    ]


def forbidden_imports_in_runner(file: str, text: str) -> list[str]:
    package, *inside = file.split("/")
    if package != "bench_runner":
        return []
    part = inside[0] if len(inside) > 1 else ""
    if part not in INSIDE_RUNNER:
        return [f"{file}: is in no part of the runner ({', '.join(filter(None, INSIDE_RUNNER))})"]
    allowed = (part, *INSIDE_RUNNER[part])
    return [
        f"{file}, line {line}: imports {name}; {part or 'the top'} may import {', '.join(allowed[1:]) or 'no part'}"
        for line, name in imports(file, text)
        if name.startswith("bench_runner.")
        and name.split(".")[1] in INSIDE_RUNNER
        and not any(f"{name}.".startswith(f"bench_runner.{target}.") for target in allowed)
    ]


def module_of(file: str) -> str:
    return file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def cycles(texts: Mapping[str, str]) -> list[list[str]]:
    """Return cycles of imports at any depth, each as its sorted module names."""
    modules = {module_of(file): file for file in texts}
    arrows: dict[str, set[str]] = {}
    for module, file in modules.items():
        named = {name for _, name in imports(file, texts[file])}
        arrows[module] = {found for name in named if (found := _longest_known(name, modules))} - {module}
    found: list[list[str]] = []
    while True:
        try:
            TopologicalSorter(arrows).prepare()
            return found
        except CycleError as error:
            around = error.args[1]
            found.append(sorted(set(around)))
            # Remove one import of this cycle, then look for the next cycle.
            arrows[around[1]].discard(around[0])


def _longest_known(name: str, modules: Mapping[str, str]) -> str:
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


def too_long(file: str, text: str) -> list[str]:
    lines = text.count("\n")
    if not is_shipped(file) or lines <= MOST_LINES:
        return []
    return [f"{file}: has {lines} lines; does it have one subject?"]


def crowded(files: Iterable[str]) -> list[str]:
    counts = Counter(file.rpartition("/")[0] for file in files if file.endswith(".py") and is_shipped(file))
    return [
        f"{folder}: holds {count} modules; do they belong together?"
        for folder, count in counts.items()
        if count > MOST_MODULES
    ]


def clock_reads(file: str, text: str) -> list[str]:
    if not is_shipped(file) or file in READ_CLOCKS:
        return []
    found = [(line, name) for line, name in imports(file, text) if name.partition(".")[0] in ("time", "timeit")]
    for node in ast.walk(parsed(text)) if MENTIONS_CLOCK.search(text) else ():
        if isinstance(node, ast.Attribute) and (
            node.attr in CLOCKS or (node.attr in ("now", "today") and "date" in ast.unparse(node.value))
        ):
            found.append((node.lineno, ast.unparse(node)))
    return [f"{file}, line {line}: {name} (use bench_runner/clock.py, the only clock)" for line, name in found]


def prints(file: str, text: str) -> list[str]:
    """Find calls of print, except in scripts, which contain `if __name__ == "__main__":`."""
    if not is_shipped(file) or "print" not in text:
        return []
    tree = parsed(text)
    if any(isinstance(node, ast.If) and "__name__" in ast.unparse(node.test) for node in tree.body):
        return []
    return [
        f"{file}, line {node.lineno}: print (only format_bench/cli.py writes to the terminal, with click and rich)"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def without_docstring(file: str, text: str) -> list[str]:
    return [] if ast.get_docstring(parsed(text)) else [f"{file}: has no docstring"]


def undocumented_constants(file: str, text: str) -> list[str]:
    """Find public numeric constants of the runner without a docstring below them."""
    body = parsed(text).body if package_of(file) == "bench_runner" else []
    return [
        f"{file}, line {node.lineno}: {ast.unparse(node.targets[0])} has no docstring that states its purpose"
        for node, below in pairwise([*body, ast.Pass()])
        if isinstance(node, ast.Assign)
        and all(
            isinstance(part, NUMBERS) and isinstance(getattr(part, "value", 0), int | float)
            for part in ast.walk(node.value)
        )
        and not re.search(r"[a-z]|\b_", ast.unparse(node.targets[0]))
        and not (isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant))
    ]


def unnamed_words(file: str, text: str) -> list[str]:
    return [
        f"{file}, line {number}: names {what} ({word})"
        for number, line in enumerate(text.splitlines(), start=1)
        for word, what in UNNAMED.items()
        if word in line.lower()
    ]


# --- the project -----------------------------------------------------------------------------------------


RULES = [
    *(forbidden_imports, forbidden_imports_in_runner, imports_of_other_libraries),
    *(clock_reads, prints, without_docstring, undocumented_constants),
]


def test_every_module_keeps_the_rule():
    texts = {file: (ROOT / file).read_text() for file in tracked() if file.endswith(".py")}
    assert "bench_runner/clock.py" in texts
    assert [problem for file, text in texts.items() for rule in RULES for problem in rule(file, text)] == []
    # In this test, because imports are cached in the process.
    assert cycles(texts) == []


def test_no_file_names_private_folders_or_registries():
    problems = []
    for file in tracked():
        try:
            text = (ROOT / file).read_text()
        except UnicodeDecodeError:
            continue
        problems += unnamed_words(file, text)
    assert problems == []


@pytest.mark.parametrize(
    "package",
    ["format_bench", *(f"libraries.{name}" for name in ("document_queries", "document_store", "f3", "near_storage"))],
)
def test_every_name_that_a_package_exports_exists(package: str) -> None:
    """The packages import most of their names only when they are used."""
    module = import_module(package)
    assert [name for name in module.__all__ if getattr(module, name, None) is None] == []


def test_large_modules_and_folders_cause_a_warning():
    files = tracked()
    long = [problem for file in files if file.endswith(".py") for problem in too_long(file, (ROOT / file).read_text())]
    for problem in (*long, *crowded(files)):
        warnings.warn(problem, stacklevel=1)


def test_every_exception_for_clocks_is_needed():
    """A stale exception would allow a new clock in that file."""
    assert all("import time" in (ROOT / file).read_text() for file in READ_CLOCKS)


# --- the rules on invented text --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("formats/csv.py", "from adapters.contract import TabularFormat"),
        ("formats/csv.py", "import formats.registry"),
        ("formats/csv.py", "import pandas"),
        ("bench_runner/run/measuring.py", "from data_generator import cache"),
        ("bench_runner/operations/documents/ask.py", "from libraries.document_queries import from_json"),
        ("format_bench/cli.py", "def report():\n    import reports"),
        ("reports/pdf/report.py", "from bench_runner.results import records, statistics"),
        ("reports/pdf/report.py", "from bench_runner.results.records import Run"),
        ("reports/pdf/report.py", "from . import tables"),
        ("main.py", "from format_bench.cli import main"),
        ("main.py", "import format_bench.cli"),
        ("tests/test_all.py", "import reports, formats, bench_runner, libraries.f3.tests"),
        ("libraries/f3/benchmarks/files.py", "import bench_runner, tests.selfbench.costs"),
        ("libraries/f3/tests/test_reader.py", "from libraries.f3.tests import tables"),
        ("libraries/f3/tests/test_reader.py", "from data_generator.catalogue import resolve"),
        ("conftest.py", "from bench_runner.machine import folders"),
        # The standard library's, not ours.
        ("reports/pdf/report.py", "import statistics"),
    ],
)
def test_allowed_imports_between_packages(file, text):
    assert forbidden_imports(file, text) == []


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("adapters/contract.py", "import formats.registry"),
        ("adapters/contract.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import bench_runner.plan"),
        ("formats/csv.py", "from bench_runner import clock"),
        ("formats/csv.py", "def save():\n    from data_generator import cache"),
        ("formats/csv.py", "from .. import bench_runner"),
        ("formats/csv.py", "import importlib\nimportlib.import_module('bench_runner.clock')"),
        ("data_generator/cache.py", "from adapters.spelling import parse"),
        ("bench_runner/run/measuring.py", "def report():\n    import reports"),
        ("bench_runner/operations/documents/ask.py", "from libraries.document_store.errors import CorruptError"),
        ("bench_runner/run/measuring.py", "from tests.reports import factory"),
        ("reports/pdf/report.py", "from bench_runner import results, run"),
        ("reports/pdf/report.py", "import bench_runner"),
        ("reports/pdf/report.py", "from bench_runner.records_of_old import Run"),
        ("formats/csv.py", "from image_storages import registry"),
        ("image_storages/png.py", "import libraries.f3"),
        ("document_stores/bson.py", "from formats.shared import streams"),
        ("libraries/f3/reader.py", "from adapters.contract import Native"),
        ("libraries/f3/reader.py", "from libraries.f3.tests import tables"),
        ("libraries/f3/tests/test_reader.py", "from tests.contracts import adapters"),
        ("libraries/f3/tests/test_reader.py", "from bench_runner import clock"),
        ("formats/f3.py", "from libraries.f3.benchmarks import files"),
        ("benchmarks/tabular.py", "from data_generator import cache"),
        ("benchmarks/tabular.py", "from adapters.errors import RefusedData"),
        ("reports/pdf/report.py", "from format_bench import cli"),
        ("main.py", "from bench_runner import run"),
        ("helpers/tools.py", "import json"),
        ("install.py", "import json"),
    ],
)
def test_forbidden_imports_between_packages(file, text):
    (problem,) = forbidden_imports(file, text)
    assert file in problem


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("bench_runner/clock.py", "from bench_runner.errors import BenchError"),
        ("bench_runner/registries.py", "from formats.registry import FORMATS"),
        ("bench_runner/plan/planning.py", "import bench_runner.suites.tabular, bench_runner.operations.whole"),
        ("bench_runner/plan/planning.py", "from bench_runner.plan import chain"),
        ("bench_runner/worker/jobs.py", "from bench_runner.machine import linux"),
        ("bench_runner/run/rounds.py", "from bench_runner import plan, results, suites, worker"),
        ("bench_runner/operations/whole.py", "from bench_runner.clock import Laps"),
        ("bench_runner/operations/documents/ask.py", "from bench_runner.suites.document_questions import NAMES"),
        # Not in bench_runner, so this rule does not apply.
        ("format_bench/cli.py", "from bench_runner.worker import jobs"),
    ],
)
def test_allowed_imports_in_the_runner(file, text):
    assert forbidden_imports_in_runner(file, text) == []


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("bench_runner/errors.py", "from bench_runner.results import records"),
        ("bench_runner/registries.py", "def late():\n    from bench_runner import plan"),
        ("bench_runner/suites/tabular.py", "from bench_runner.operations import OPERATIONS"),
        ("bench_runner/operations/whole.py", "import bench_runner.worker.verify"),
        ("bench_runner/plan/planning.py", "from bench_runner.machine.environment import load"),
        ("bench_runner/plan/planning.py", "from ..run import rounds"),
        ("bench_runner/worker/jobs.py", "from bench_runner.results.records import Sample"),
        ("bench_runner/worker/jobs.py", "from bench_runner.plan.chain import Chain"),
        ("bench_runner/machine/doctor.py", "from bench_runner import worker"),
        ("bench_runner/results/records.py", "from bench_runner.suites import SUITES"),
        ("bench_runner/attic/old.py", "import json"),
    ],
)
def test_forbidden_imports_in_the_runner(file, text):
    (problem,) = forbidden_imports_in_runner(file, text)
    assert file in problem


def test_a_library_must_not_import_another():
    assert (
        imports_of_other_libraries("libraries/f3/reader.py", "from libraries.f3.errors import F3Error\nimport pyarrow")
        == []
    )
    assert imports_of_other_libraries("formats/f3.py", "import libraries.f3") == []
    assert imports_of_other_libraries("libraries/f3/reader.py", "from libraries.durable.calls import OSCalls") == []
    assert imports_of_other_libraries("libraries/f3/tests/test_kernels.py", "from libraries import build") == []
    assert imports_of_other_libraries("libraries/f3/reader.py", "from libraries import build") != []
    for neutral in ("libraries/durable/calls.py", "libraries/document_queries/plan.py"):
        assert imports_of_other_libraries(neutral, "from libraries.f3.errors import F3Error") != []
    for text in ("import libraries.other", "from libraries import other", "from libraries.f3x import y"):
        (problem,) = imports_of_other_libraries("libraries/f3/reader.py", text)
        assert "line 1" in problem


def test_cycles_of_imports_are_found():
    chain = {"a/__init__.py": "", "a/one.py": "from a import two", "a/two.py": "import a.three.Three", "a/three.py": ""}
    assert cycles(chain) == []
    for text in ("from a.one import x", "def late():\n    from . import one", "__import__('a.one')"):
        assert cycles({**chain, "a/three.py": text}) == [["a.one", "a.three", "a.two"]]
    two = {**chain, "b.py": "import c", "c.py": "import b", "a/two.py": "import a.one"}
    assert sorted(cycles(two)) == [["a.one", "a.two"], ["b", "c"]]


def test_a_long_module_is_found():
    (problem,) = too_long("formats/csv.py", "\n" * (MOST_LINES + 1))
    assert "501 lines" in problem
    assert too_long("formats/csv.py", "\n" * MOST_LINES) == []
    assert too_long("tests/formats/test_csv.py", "\n" * 900) == []


def test_a_folder_with_many_modules_is_found():
    files = [f"formats/f{number}.py" for number in range(MOST_MODULES)]
    assert crowded([*files, "formats/deep/er.py", "formats/about.md"]) == []
    (problem,) = crowded([*files, "formats/one_more.py"])
    assert problem.startswith("formats: holds 21 modules")
    assert crowded([f"tests/test_{number}.py" for number in range(90)]) == []


@pytest.mark.parametrize(
    "text",
    [
        "import time",
        "import timeit",
        "from time import perf_counter_ns",
        "def save():\n    import time as t\n    t.sleep(1)",
        "from datetime import datetime\ndatetime.now()",
        "import datetime\ndatetime.datetime.utcnow()",
        "import somewhere\nsomewhere.time.perf_counter()",
    ],
)
def test_reads_of_other_clocks_are_found(text):
    assert clock_reads("formats/csv.py", text)
    assert clock_reads("bench_runner/clock.py", text) == []


def test_parsing_a_date_reads_no_clock():
    assert clock_reads("formats/csv.py", "from datetime import datetime\ndatetime.fromisoformat(now)") == []


def test_calls_of_print_are_found():
    assert prints("reports/text/terminal.py", "def show():\n    print('x')")
    assert prints("reports/text/terminal.py", "console.print('x')\npprint('x')") == []
    assert prints("tests/selfbench/costs.py", "if __name__ == '__main__':\n    print('x')") == []


@pytest.mark.parametrize("text", ["", "import os", "# a comment", "'''  '''"])
def test_a_missing_docstring_is_found(text):
    assert without_docstring("formats/csv.py", text)
    assert without_docstring("formats/csv.py", f"'''What it is for.'''\n{text}") == []


def test_an_undocumented_constant_is_found() -> None:
    text = "TRIES = 3\nLOW, HIGH = 0.5, 4 * 10**6\n'''From here to there.'''\nNAME = 'no number'\n_OWN = 1\nsmall = 2"
    (problem,) = undocumented_constants("bench_runner/a.py", text)
    assert "line 1: TRIES" in problem


@pytest.mark.parametrize("word", UNNAMED)
def test_words_that_must_not_occur_are_found(word):
    (problem,) = unnamed_words("docs/method.md", f"a line\nsee {word.upper()} for more")
    assert "line 2" in problem
    assert unnamed_words("docs/method.md", "shared memory, working folder, packages") == []
