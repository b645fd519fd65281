"""The two commands of a fresh clone, and what they install: all pinned, nothing forgotten, no address anywhere."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from formats.registry import FORMATS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def pins(text: str) -> dict[str, str]:
    """Name -> version of every pin; anything else in a constraints file is an error."""
    found = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            name, version = re.fullmatch(r"([A-Za-z0-9._-]+)==([0-9][A-Za-z0-9.+]*)", line.strip()).groups()
            found[canonicalize_name(name)] = version
    return found


PINS = pins((ROOT / "constraints.txt").read_text())


def required(name: str, extra: str = "") -> Iterator[Requirement]:
    """What an installed distribution requires here, with one of its extras."""
    for text in importlib.metadata.requires(name) or []:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement


def closure(name: str, extra: str) -> set[str]:
    """All distributions that come with `name[extra]`, itself left out."""
    todo, seen = [(name, extra)], set()
    while todo:
        current = todo.pop()
        if current in seen:
            continue
        seen.add(current)
        for requirement in required(*current):
            todo += [(canonicalize_name(requirement.name), wanted) for wanted in ("", *requirement.extras)]
    return {found for found, _ in seen} - {name}


# --- what is installed -----------------------------------------------------------------------------------


def test_everything_that_make_installs_is_pinned_to_what_is_tested():
    installed = {name: importlib.metadata.version(name) for name in closure("format-bench", "dev")}
    # A pin may be left over: another Python needs fewer.
    assert {name: PINS.get(name) for name in installed} == installed


def test_constraints_are_names_and_versions_alone():
    with pytest.raises(AttributeError):
        pins("--extra-address https://example.org/simple")
    with pytest.raises(AttributeError):
        pins("pandas @ https://example.org/pandas.whl")
    with pytest.raises(AttributeError):
        pins("pandas>=3")


def declared(extra: str | None) -> set[str]:
    """The distributions that pyproject.toml names for extras, those of the bare install included."""
    rows = list(PROJECT["project"]["dependencies"])
    for name in extra.split(",") if extra else []:
        rows += PROJECT["project"]["optional-dependencies"][name]
    return {canonicalize_name(Requirement(row).name) for row in rows}


OURS = [name for name, entry in FORMATS.entries.items() if entry.engines.startswith("formats.")]


@pytest.mark.parametrize("name", OURS)
def test_the_extra_of_a_format_installs_what_it_needs(name):
    for engine in FORMATS.engines(name):
        needed = {canonicalize_name(part) for part in engine.distributions}
        # An extra is installed with the project itself, which F3 comes with.
        assert needed <= declared(engine.extra or FORMATS.entries[name].extra) | {PROJECT["project"]["name"]}
        for besides in engine.besides_for.values():
            assert {canonicalize_name(part) for part in besides.distributions} <= declared(besides.extra)


def test_all_is_every_extra_but_those_of_developers_and_chdb():
    extras = PROJECT["project"]["optional-dependencies"]
    (everything,) = (Requirement(row) for row in extras["all"])
    # chdb alone is larger than most of the others together.
    assert everything.extras == set(extras) - {"all", "chdb", "dev"}


def test_extras_stand_sorted_by_name():
    text = (ROOT / "pyproject.toml").read_text()
    (everything,) = re.findall(r'^all = \["format-bench\[(.*)\]"\]$', text, re.MULTILINE)
    names = list(PROJECT["project"]["optional-dependencies"])
    assert names == [*sorted(names[:-2]), "all", "dev"]
    assert everything.split(",") == sorted(everything.split(","))


def test_every_package_is_installed():
    """Also one inside a room: what is not listed is missing from an installed copy. Tests and benchmarks are."""
    rooms = [folder for folder in ROOT.iterdir() if (folder / "__init__.py").exists() and folder.name != "tests"]
    packages = {".".join(file.parent.relative_to(ROOT).parts) for room in rooms for file in room.rglob("__init__.py")}
    # asv reads benchmarks/ from the checkout.
    used_here = {package for package in packages if re.match(r"benchmarks|libraries\.\w+\.(benchmarks|tests)", package)}
    find = PROJECT["tool"]["setuptools"]["packages"]["find"]
    shown, hidden = (
        {package for package in packages if any(fnmatch(package, pattern) for pattern in find[which])}
        for which in ("include", "exclude")
    )
    assert shown - hidden == packages - used_here
    assert set(PROJECT["tool"]["mypy"]["packages"]) == {room.name for room in rooms} | {
        "docs._generate",
        "tests.selfbench",
    }


def test_every_module_that_make_runs_can_be_imported():
    """Long runs and benchmarks are run by no test: a name that has moved would show in CI first."""
    modules = set(re.findall(r"-m ((?:tests|libraries)\.[\w.]+)", (ROOT / "Makefile").read_text()))
    assert "libraries.near_storage.tests.long_runs" in modules
    for module in modules:
        importlib.import_module(module)


# --- make ------------------------------------------------------------------------------------------------


@pytest.fixture
def clone(tmp_path):
    """What make needs to see of a fresh clone: no .venv yet."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "setup.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def make(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("make") is None:
        pytest.skip("no make here")
    # A make that runs these tests must not hand its own flags down.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE") and key != "MFLAGS"}
    return subprocess.run(["make", *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("target", "does"),
    [
        ("tabular", "main.py --tabular"),
        ("test", "-m pytest --numprocesses 4 --dist worksteal"),
        ("test-quick", '-m pytest --numprocesses 4 --dist worksteal --quick -m "not slow and not browser"'),
        ("test-browser", "-m pytest --numprocesses 4 --dist worksteal -m browser"),
        ("planted", "-m tests.planted"),
        ("lint", "-m ruff check"),
        ("lint", "-m mypy"),
        ("selfbench", "-m tests.selfbench.costs"),
        ("selfbench", "-m tests.selfbench.device"),
        ("selfbench-device", "-m tests.selfbench.device"),
        ("selfbench-asv", "-m tests.selfbench.asv"),
        ("selfbench-compare", "-m tests.selfbench.compare"),
        ("selfbench-recommend", "-m tests.selfbench.recommend"),
        ("selfbench-f3", "-m libraries.f3.benchmarks.files"),
        ("selfbench-near-storage", "-m libraries.near_storage.benchmarks.local"),
        ("selfbench-near-storage", "-m libraries.near_storage.benchmarks.flight"),
        ("fuzz-f3", "-m libraries.f3.tests.mutations 10000"),
        ("fuzz-near-storage", "-m libraries.near_storage.tests.long_runs footers"),
        ("fuzz-near-storage", "-m libraries.near_storage.tests.long_runs requests"),
        ("fuzz-documents", "-m libraries.document_store.tests.fuzzing 10000"),
    ],
)
def test_each_target_sets_up_by_itself_and_then_does_its_job(clone, target, does):
    plan = make(clone, "--dry-run", target)
    assert plan.returncode == 0, plan.stderr
    steps = ("-m venv .venv", "pip install", f".venv/bin/python {does}")
    places = [plan.stdout.find(step) for step in steps]
    assert places == sorted(places)
    assert -1 not in places
    assert "--constraint constraints.txt" in plan.stdout


def test_what_is_set_up_is_not_set_up_again(clone):
    (clone / ".venv").mkdir()
    (clone / ".venv/.ready").touch()
    assert "pip install" not in make(clone, "--dry-run", "test").stdout
    newer = (clone / ".venv/.ready").stat().st_mtime + 10
    os.utime(clone / "constraints.txt", (newer, newer))
    assert "pip install" in make(clone, "--dry-run", "test").stdout


def test_an_old_python_is_refused_before_anything_is_made(clone):
    old = clone / "old-python"
    old.write_text('#!/bin/sh\n[ "$1" = -c ] && exit 1\nmkdir .venv\n')
    old.chmod(0o755)
    answer = make(clone, "test", f"PYTHON={old}")
    assert answer.returncode != 0
    assert "needs Python 3.11" in answer.stderr
    assert "make PYTHON=python3.12 test" in answer.stderr
    assert not (clone / ".venv").exists()


def test_ci_stops_at_the_first_failure(tmp_path):
    """With a make that notes what it is asked for and fails at `lint`, then at nothing. Without CI=true, the script
    installs no Debian packages."""
    (tmp_path / ".ci").mkdir()
    script = Path(shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run"))
    fake = tmp_path / "bin/make"
    fake.parent.mkdir()
    fake.write_text(
        '#!/bin/sh\nfor word; do case "$word" in --*|*=*) continue;; esac\n'
        'echo "$word" >> asked\ncase " $FAILS " in *" $word "*) exit 1;; esac; done\n'
    )
    fake.chmod(0o755)

    def run(fails: str) -> tuple[int, list[str]]:
        asked = tmp_path / "asked"
        asked.unlink(missing_ok=True)
        environment = os.environ | {"PATH": f"{fake.parent}:{os.environ['PATH']}", "FAILS": fails, "CI": ""}
        code = subprocess.run([script], env=environment, cwd="/").returncode
        return code, asked.read_text().split()

    code, asked = run(fails="")
    fuzzing = {f"fuzz-{what}" for what in ("import", "f3", "near-storage", "documents")}
    wanted = {"lint", "test", "test-browser", "selfbench-device"} | fuzzing
    assert (code, set(asked)) == (0, wanted)
    for failing in wanted:
        code, reached = run(fails=failing)
        assert code != 0
        assert reached[-1] == failing
