"""A new condition is planted in six files. Runs then offer and apply it, and all reports show it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
Edits = dict[str, list[tuple[str, str]]]
"""File -> pairs of a text that occurs once in the file, and the text that replaces it."""

DECLARED: Edits = {
    "bench_runner/conditions.py": [
        ('    service: str = ""\n', '    service: str = ""\n    pause: str = "none"\n'),
        (
            "CONDITIONS = (\n",
            'CONDITIONS = (\n    Condition("pause", "--pause", "Pause", "{} pause".format),\n',
        ),
    ],
}
REQUESTED: Edits = {
    "bench_runner/request.py": [('    strings: str = "str"\n', '    strings: str = "str"\n    pause: str = "none"\n')],
    "format_bench/api/request.py": [
        (
            '    service: Annotated[str, _one_of("service", WARM, FRESH)]\n',
            '    service: Annotated[str, _one_of("service", WARM, FRESH)]\n'
            '    pause: Annotated[str, _one_of("pause", "none", "short")]\n',
        )
    ],
    "format_bench/options.py": [
        (
            "BETWEEN = grouped(\n",
            'BETWEEN = grouped(\n    click.option("--pause", type=click.Choice(["none", "short"]), default="none"),\n',
        )
    ],
    "bench_runner/plan/planning.py": [
        (
            "                    strings=request.strings,\n",
            "                    strings=request.strings,\n                    pause=request.pause,\n",
        )
    ],
}
APPLIED: Edits = {
    "bench_runner/run/chains.py": [
        (
            "        outcome, monitor = _run(",
            '        if chain.conditions.pause == "short":\n'
            '            Path(os.environ["PAUSES"]).open("a").write(f"{operation.spelled}\\n")\n'
            "        outcome, monitor = _run(",
        )
    ],
}
EDITS = {**DECLARED, **REQUESTED, **APPLIED}

MAIN = """
import json, os, sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

edits = json.loads(os.environ["EDITS"])
code_of = SourceFileLoader.get_code

def get_code(loader, name):
    path = loader.get_filename(name)
    if path not in edits:
        return code_of(loader, name)
    text = Path(path).read_text()
    for old, new in edits[path]:
        assert text.count(old) == 1, (path, old)
        text = text.replace(old, new)
    # Without the cache of compiled modules, which would then keep the planted condition.
    return compile(text, path, "exec", dont_inherit=True)

SourceFileLoader.get_code = get_code
from format_bench.cli import main
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_a_new_condition_touches_six_files(tmp_path: Path, cache_folder: Path) -> None:
    assert len(EDITS) == 6
    # Processes that run a file of this name treat the machine as idle (tests/plugins/at_rest).
    program, run, site, pauses = (tmp_path / name for name in ("main.py", "run", "site", "pauses"))
    program.write_text(MAIN)
    env = {
        **os.environ,
        "FORMAT_BENCH_CACHE": str(cache_folder),
        "EDITS": json.dumps({str(ROOT / name): edits for name, edits in EDITS.items()}),
        "PAUSES": str(pauses),
    }

    def planted(*words: str) -> str:
        command = [sys.executable, str(program), *words]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        return " ".join(done.stdout.split())

    words = (
        *("run", "tabular", "--formats", "^csv$", "--datasets", "^eq$", "--track", "plain"),
        *("--rows", "1000", "--rounds", "1", "--no-fidelity", "--pause", "short"),
    )
    assert "short pause" in planted(*words, "--out", str(run))
    samples = [json.loads(line) for line in (run / "samples.jsonl").read_text().splitlines()]
    assert samples
    assert all(sample["conditions"]["pause"] == "short" for sample in samples)
    assert set(pauses.read_text().split()) == {"save", "read"}

    planted("report", str(run), "--html", str(site))
    pages = "".join(page.read_text() for page in site.rglob("*.html"))
    assert "short pause" in pages
    assert "--pause short" in pages, "the command that repeats a measurement"
