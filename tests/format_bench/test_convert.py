"""`convert`: the whole table, verified; or nothing, with a reason."""

from __future__ import annotations

import datetime
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from adapters.errors import AdapterError, UserError
from bench_runner.results.records import Sample, changed
from bench_runner.run.watcher import Watcher
from data_generator.errors import DataError
from data_generator.imported.read_options import ReadOptions
from format_bench import cli, conversion
from format_bench.api import convert as convert_module
from format_bench.api.convert import convert
from format_bench.api.recommend import recommend
from format_bench.errors import ConversionError, RequestError
from format_bench.within.proposal import Proposal, Proposals
from formats.registry import FORMATS
from tests.bench_runner.conftest import PLUGINS, plugins_in
from tests.data_generator.imported.readers_here import read_here
from tests.reports.factory import make_run, with_info, write_run

ROOT = Path(__file__).parents[2]
MANY = 4 * conversion.TRIAL_ROWS
"""Rows in more batches than the trial has."""


@pytest.fixture(scope="module")
def faulty() -> Iterator[None]:
    with plugins_in(PLUGINS):
        yield


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "in.parquet"
    frame = {
        "n": pa.array(range(1000)),
        "x": pa.array([None if row % 7 == 0 else row / 8 for row in range(1000)]),
        "t": pa.array([None if row % 5 == 0 else f"word {row % 13}" for row in range(1000)]),
        "day": pa.array([datetime.date(2024, 1, 1) + datetime.timedelta(row % 300) for row in range(1000)]),
    }
    pq.write_table(pa.table(frame), path, row_group_size=300)
    return path


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("many") / "in.parquet"
    numbers = np.arange(MANY)
    pq.write_table(pa.table({"n": numbers, "x": numbers / 8}), path, row_group_size=conversion.TRIAL_ROWS)
    return path


@pytest.fixture
def own_process() -> None:
    """Read the table in a process, as the product does."""


@pytest.fixture(autouse=True)
def _readers_here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "own_process" not in request.fixturenames:
        read_here(monkeypatch)


def others(folder: Path) -> list[str]:
    """Return the names in a folder, except the input's."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("in."))


def run(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(cli.cli, ["convert", *map(str, words)])
    assert "Traceback" not in result.output
    return result.exit_code, result.output


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "raw-io"])
def test_every_format_takes_a_table_and_only_declared_losses_occur(name: str, table: Path, tmp_path: Path) -> None:
    out = tmp_path / f"out{FORMATS.build(name).suffix}"
    if name == "hdf5-table":
        with pytest.raises(ConversionError, match=r"cannot store this table: .*\[date\]"):
            convert(table, out, variant=name, allow_loss="*")
        pq.write_table(pq.read_table(table).drop_columns("day"), table)
    copy = convert(table, out, variant=name, allow_loss="*")
    assert others(tmp_path) == [out.name]
    assert (copy.rows, list(copy.columns)[:3]) == (1000, ["n", "x", "t"])
    assert copy.stored_bytes > 0
    assert "n" not in copy.losses


def test_the_copy_has_the_values_of_the_table(table: Path, tmp_path: Path, own_process: None) -> None:
    copy = convert(table, tmp_path / "out.feather", variant="feather")
    assert copy.losses == {}
    assert pa.feather.read_table(tmp_path / "out.feather").equals(pq.read_table(table))


def test_a_csv_file_is_read_with_the_options(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("zip;price\n01234;1,5\n05678;2,5\n")
    options = ReadOptions(columns={"zip": "text"}, decimal=",")
    copy = convert(tmp_path / "in.csv", tmp_path / "out.parquet", variant="parquet", options=options)
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == [
        {"zip": "01234", "price": 1.5},
        {"zip": "05678", "price": 2.5},
    ]
    assert copy.understood["delimiter"] == "semicolon"


def test_values_that_reading_changes_are_refused_unless_the_type_is_stated(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("zip,digits\n01234,0.12345678901234567890123\n05678,2\n")
    words = [tmp_path / "in.csv", tmp_path / "out.parquet", "--as", "parquet"]
    code, text = run(*words)
    assert (code, others(tmp_path)) == (2, [])
    assert "Reading in.csv would change values: column 'zip': int64; 2 values had leading zeros" in text
    assert "--column zip=text, or accept the change by --allow-loss zip --allow-loss digits" in text
    assert run(*words, "--column", "zip=text", "--allow-loss", "digits")[0] == 0
    assert pq.read_table(tmp_path / "out.parquet")["zip"].to_pylist() == ["01234", "05678"]
    assert run(*words, "--force", "--allow-loss", "*")[0] == 0
    assert pq.read_table(tmp_path / "out.parquet")["zip"].to_pylist() == [1234, 5678]


def test_categories_of_all_parts_are_stored_in_files_with_one_dictionary(tmp_path: Path) -> None:
    folder = tmp_path / "in.parts"
    folder.mkdir()
    for number, word in enumerate(("one", "two")):
        frame = pd.DataFrame({"c": pd.Categorical([word] * conversion.TRIAL_ROWS)})
        frame.to_parquet(folder / f"{number}.parquet")
    copy = convert(folder, tmp_path / "out.feather", variant="feather")
    stored = pa.feather.read_table(tmp_path / "out.feather")["c"]
    assert (copy.losses, copy.rows) == ({}, 2 * conversion.TRIAL_ROWS)
    assert [stored[0].as_py(), stored[-1].as_py()] == ["one", "two"]


def test_a_loss_is_refused_unless_its_column_is_named(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    with pytest.raises(ConversionError, match=r"would change 1 column: 'day' \(dates.*become text"):
        convert(table, out, variant="csv")
    assert others(tmp_path) == []
    copy = convert(table, out, variant="csv", allow_loss="day")
    assert copy.losses.keys() == {"day"}
    assert pd.read_csv(out)["day"][1] == "2024-01-02"
    code, text = run(table, tmp_path / "b.csv", "--as", "csv")
    assert code == 2
    assert "To accept this: --allow-loss day." in text
    code, text = run(table, tmp_path / "b.csv", "--as", "csv", "--allow-loss", "day")
    assert code == 0
    assert "equal but for:" in text
    code, text = run(table, tmp_path / "c.csv", "--as", "csv", "--allow-loss", "dya")
    assert (code, "names the column 'dya', which the table lacks" in text) == (2, True)


def test_a_loss_that_only_late_rows_show_is_found(tmp_path: Path) -> None:
    """The column of integers becomes floats in pandas if a value is missing in any row."""
    numbers = pa.array([None if row == MANY - 1 else row for row in range(MANY)])
    pq.write_table(pa.table({"n": numbers, "m": range(MANY)}), tmp_path / "in.parquet")
    with pytest.raises(ConversionError, match="would change 1 column: 'n'"):
        convert(tmp_path / "in.parquet", tmp_path / "out.csv", variant="csv")
    assert others(tmp_path) == []


@pytest.mark.parametrize(
    "fault",
    [
        *("drop_last_row", "swap_rows", "int_to_float", "raises", "does_not_take_it", "does_not_hold_it"),
        *("does_not_read_it", "nothing_written", "stream_save_drops_a_batch", "stream_save_doubles_a_batch"),
        *("stream_save_reorders_batches", "stream_save_breaks", "stream_read_drops_a_batch"),
        *("stream_read_reorders_batches", "stream_read_changes_a_value", "stream_read_breaks"),
    ],
)
def test_a_wrong_copy_is_found_and_leaves_nothing(fault: str, faulty: None, many: Path, tmp_path: Path) -> None:
    with pytest.raises((UserError, OSError)) as raised:
        convert(many, tmp_path / "out.arrow", variant=f"faulty[fault={fault}]")
    assert others(tmp_path) == []
    assert str(raised.value)


def test_an_existing_file_stays_unless_it_may_be_replaced(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    out.write_text("mine")
    with pytest.raises(RequestError, match="exists"):
        convert(table, out, variant="parquet")
    with pytest.raises(ConversionError):
        convert(table, tmp_path / "out.parquet", variant="parquet[engine=pyarrow]", force=True, allow_loss="nix")
    assert out.read_text() == "mine"
    convert(table, out, variant="parquet", force=True)
    assert pq.read_metadata(out).num_rows == 1000
    for variant, name in (("lance", "both.lance"), ("lance", "both.lance")):
        convert(table, tmp_path / name, variant=variant, force=True)
    assert others(tmp_path) == ["both.lance", "out.parquet"]


def test_a_file_that_appears_meanwhile_stays(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out.parquet"
    real = convert_module.copied

    def slow(*given: Any) -> Any:
        made = real(*given)
        out.write_text("mine")
        return made

    monkeypatch.setattr(convert_module, "copied", slow)
    with pytest.raises(ConversionError, match="was created during the conversion"):
        convert(table, out, variant="parquet")
    assert out.read_text() == "mine"
    assert others(tmp_path) == ["out.parquet"]


def test_the_input_is_never_replaced(table: Path, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"in\.parquet is the table that is read"):
        convert(table, table, variant="parquet", force=True)
    (tmp_path / "in.link.parquet").symlink_to(table)
    with pytest.raises(RequestError, match=r"in\.link\.parquet is the table that is read"):
        convert(table, tmp_path / "in.link.parquet", variant="parquet", force=True)
    folder = tmp_path / "in.folder"
    folder.mkdir()
    pq.write_table(pq.read_table(table), folder / "a.parquet")
    with pytest.raises(RequestError, match=r"b\.parquet is inside the table that is read"):
        convert(folder, folder / "b.parquet", variant="parquet")


def test_a_table_that_changes_meanwhile_is_refused(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_process: None
) -> None:
    real = conversion._store

    def store(*given: Any) -> None:
        real(*given)
        os.utime(table, ns=(1, 1))

    monkeypatch.setattr(conversion, "_store", store)
    with pytest.raises(DataError, match=r"in\.parquet changed while it was read"):
        convert(table, tmp_path / "out.parquet", variant="parquet")
    assert others(tmp_path) == []


def test_free_space_is_checked_first(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert_module.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1000}))
    with pytest.raises(ConversionError, match=r"needs about 0\.00 GB on disk, but only 0\.00 GB are free"):
        convert(table, tmp_path / "out.parquet", variant="parquet")
    assert others(tmp_path) == []


def test_a_full_disk_is_an_error_of_two_lines(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(FORMATS.engine("parquet")[0], "save_stream", full)
    code, text = run(table, tmp_path / "out.parquet", "--as", "parquet")
    assert (code, text) == (1, "error: No space left on device\n  Free some space, then repeat the command.\n")
    assert others(tmp_path) == []


def test_a_table_that_memory_does_not_hold_is_refused_if_all_of_it_is_needed(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_process: None
) -> None:
    monkeypatch.setattr(conversion.environment, "usable_memory_bytes", lambda: 1000)
    with pytest.raises(ConversionError, match="holds the whole table in memory"):
        convert(table, tmp_path / "out.pkl", variant="pickle")
    convert(table, tmp_path / "out.parquet", variant="parquet")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["in.parquet", "out.parquet"], 2, "The format of the copy was not named.\n  Use either --as or"),
        (["in.parquet", "out.parquet", "--as", "parquet", "--as-recommended", "x"], 2, "Two formats of the copy were"),
        (["in.parquet", "out.parquet", "--as", "nope"], 2, "no format is called 'nope'"),
        (["in.parquet", "out.parquet", "--as", "parquet[codec=rar]"], 2, "codec=rar is not possible"),
        (["in.parquet", "out.parquet", "--as", "raw-io"], 2, "raw-io is a baseline for measurements"),
        (["in.parquet", "out.parquet", "--as", "parquet[order=0]"], 2, "sorts the rows, but a copy must keep the rows"),
        (["in.parquet", "out.csv", "--as", "parquet"], 2, "must end with .parquet for parquet"),
        (["in.parquet", "no/out.parquet", "--as", "parquet"], 2, "OUT must be a path in an existing folder"),
        (["no.parquet", "out.parquet", "--as", "parquet"], 2, "no.parquet: No such file or directory"),
        (["in.png", "out.parquet", "--as", "parquet"], 2, "is an image and not a table"),
        (["in.parquet", "out.parquet", "--as", "parquet", "--delimiter", ";"], 2, "applies to CSV only"),
    ],
)
def test_a_wrong_request_is_an_error_of_few_lines(
    words: list[str], code: int, said: str, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.png").write_bytes(b"x")
    found, text = run(*words)
    assert (found, said in text) == (code, True), text
    assert others(tmp_path) == []


def test_a_missing_library_is_named(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.registry._version", _none_installed)
    with pytest.raises(AdapterError, match=r"lance.* is not installed here; pip install"):
        convert(table, tmp_path / "out.lance", variant="lance")


def _none_installed(distribution: str) -> str:
    import importlib.metadata

    raise importlib.metadata.PackageNotFoundError(distribution)


def test_the_recommended_variant_of_a_run_is_taken(table: Path, tmp_path: Path) -> None:
    wanted = recommend(stored="reference", datasets=["core"]).found.ranked[0].candidate
    suffix = FORMATS.build(str(wanted.variant)).suffix
    out = tmp_path / f"out{suffix}"
    copy = convert(table, out, recommended="reference", datasets=["core"], allow_loss="*")
    assert copy.variant == str(wanted.variant)


FEATHER, ORC, CSV = "feather[engine=pyarrow,codec=none]", "orc[engine=pyarrow,codec=none]", "csv[engine=pandas]"
"""The best established variants of an invented run: by the default preferences, by size, and with 200 MB of memory."""


class Notes(Watcher):
    """Keeps the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.mark.parametrize(
    ("command", "best", "noted"),
    [
        (("format-bench", "recommend", "--data", "my.csv", "--prefer", "size=1"), ORC, False),
        (("recommend(data=<pandas DataFrame in memory>, rows=9, weights={'size': 1})",), ORC, False),
        (("recommend(data='my.csv', options=ReadOptions(header=False))",), FEATHER, False),
        (("format-bench", "recommend", "--data", "my.csv", "--max-memory", "200M"), CSV, False),
        (("format-bench", "run", "tabular", "--formats", "parquet"), FEATHER, True),
        (
            ("format-bench", "recommend", "--data", "my.csv", "--no-longer-an-option", "--prefer", "size=1"),
            FEATHER,
            True,
        ),
        (("run('tabular')",), FEATHER, True),
        (("recommend(",), FEATHER, True),
        ((), FEATHER, True),
    ],
)
def test_the_preferences_of_the_run_choose_the_variant(
    command: tuple[str, ...], best: str, noted: bool, table: Path, tmp_path: Path
) -> None:
    run_of_eq = make_run(datasets=("eq",), tracks=("plain",), rounds=7, info={"command": command})
    folder, heard = write_run(run_of_eq, tmp_path / "in.run"), Notes()
    out = tmp_path / f"out{FORMATS.build(best).suffix}"
    assert convert(table, out, recommended=folder, allow_loss="*", watcher=heard).variant == best
    assert (
        any("default preferences chose the variant" in note and "read=3,size=2,save=1" in note for note in heard.notes)
        == noted
    )


def test_the_advised_settings_are_taken_and_not_the_first_of_those_tied(table: Path, tmp_path: Path) -> None:
    plain, zstd = "parquet[engine=pyarrow,codec=snappy]", "parquet[engine=pyarrow,codec=zstd,level=1]"
    both = "parquet[engine=pyarrow,codec=zstd,level=1,page_version=2.0]"
    first = make_run(datasets=("eq",), tracks=("default",), rounds=9)
    of_plain = [sample for sample in first.samples if sample.variant == plain]

    def faster(each: Sample, variant: str, share: float) -> Sample:
        wall_ns = int(50_000_000 * share * (1.02 if each.round % 2 and variant == zstd else 1))
        return changed(each, variant=variant, figures={**each.figures, "wall_ns": wall_ns})

    samples = [faster(each, *to) for each in of_plain for to in ((plain, 1.0), (zstd, 0.597), (both, 0.6))]
    command = ("format-bench", "recommend", "--within", "parquet", "--data", "my.csv", "--prefer", "read=1")
    folder = write_run(with_info(replace(first, samples=tuple(samples)), command=command), tmp_path / "in.run")
    changes = Proposal(plain, "", 0), Proposal(zstd, "zstd", 1), Proposal(both, "zstd, pages", 2)
    Proposals("parquet", changes).keep(folder)
    answer = recommend(stored=folder, weights={"read": 1})
    assert answer.found.ranked[0].candidate.variant == both
    assert answer.within is not None
    assert answer.within.advised.change.variant == zstd
    assert convert(table, tmp_path / "out.parquet", recommended=folder).variant == zstd


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_when_it_is_stopped(end: signal.Signals, faulty: None, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.arrow"
    words = ["convert", str(table), str(out), "--as", "faulty[fault=hangs]"]
    process = subprocess.Popen([sys.executable, str(ROOT / "main.py"), *words], stderr=subprocess.PIPE, text=True)
    _until(lambda: len(others(tmp_path)) == 1)
    # The folder of working files is there before the library hangs.
    time.sleep(0.5)
    process.send_signal(end)
    _, said = process.communicate(timeout=30)
    _until(lambda: others(tmp_path) == [])
    if end is signal.SIGINT:
        assert (process.returncode, said) == (130, f"stopped; {out} was not written\n")


def _until(condition: Any) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("it did not happen within 30 s")


@pytest.mark.slow
def test_a_table_larger_than_its_memory_is_converted(tmp_path: Path) -> None:
    """The table takes 600 MB in memory; no process takes much more than a row group."""
    rows = 2_500_000
    part = pa.table({f"c{number}": pa.array(np.arange(rows // 10) % (97 + number)) for number in range(30)})
    with pq.ParquetWriter(tmp_path / "in.parquet", part.schema) as writer:
        for _ in range(10):
            writer.write_table(part, row_group_size=rows // 20)
    words = [
        "convert",
        str(tmp_path / "in.parquet"),
        str(tmp_path / "out.parquet"),
        "--as",
        "parquet[row_group_rows=65536]",
    ]
    script = (
        "import resource, subprocess, sys\n"
        f"code = subprocess.call([sys.executable, {str(ROOT / 'main.py')!r}, *{words!r}])\n"
        "print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)\n"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    code, peak_bytes = map(int, said.splitlines()[-1].split())
    assert code == 0
    assert peak_bytes < 400_000_000
