"""`inspect`, and what a run prints about a file before it measures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench_runner.request import Request
from data_generator.imported.read_options import ReadOptions
from format_bench import cli
from format_bench.api.inspect import inspect
from format_bench.api.planning import planned
from format_bench.api.request import requested
from format_bench.progress import Silent


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORMAT_BENCH_CACHE", str(tmp_path / "cache"))


def codes(tmp_path: Path) -> Path:
    path = tmp_path / "codes.csv"
    path.write_text("zip;price\n01234;1,5\n05678;NA\n")
    return path


def shown(*words: str) -> str:
    result = CliRunner().invoke(cli.cli, ["inspect", *words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_it_shows_how_the_file_was_read_and_its_first_rows(tmp_path: Path) -> None:
    text = shown(str(codes(tmp_path)))
    for said in (
        "codes.csv: CSV, 2 rows, 2 columns",
        "delimiter       semicolon",
        "header          line 1",
        "encoding        utf-8",
        "missing values  1 'NA'",
        "columns         zip int64, price text",
        "column 'zip': int64; 2 values had leading zeros (line 2: '01234')",
        "--column zip=text keeps the column as text",
        "1234",
    ):
        assert said in text


def test_options_are_followed(tmp_path: Path) -> None:
    text = shown(str(codes(tmp_path)), "--column", "zip=text", "--decimal", ",")
    assert "columns         zip text, price float64" in text
    assert "01234" in text
    assert "leading zeros" not in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--column", "zip"], "is not NAME=TYPE. Write e.g. zip=text."),
        (["--column", "zip=number"], "--column: the type 'number' of column 'zip' does not"),
        (["--column", "zip=decimal(P,S)"], "--column: the type 'decimal(P,S)'"),
        (["--column", "nosuch=text"], "no column 'nosuch', which is given in --column.\n  Its columns are zip, price."),
        (["--column", "price=int64"], "line 2: column 'price' holds '1,5', which does not fit --column price=int64"),
        (
            ["--delimiter", ";;"],
            "--delimiter must be one character other than a double quote or a line break (got ';;')",
        ),
        (["--encoding", "utf-99"], "--encoding must be an encoding that Python knows"),
        (["--first", "0"], "0 is not in the range"),
    ],
)
def test_a_wrong_option_is_named_with_what_is_allowed(words: list[str], said: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli.cli, ["inspect", str(codes(tmp_path)), *words])
    assert result.exit_code == 2
    assert said in result.output
    assert "Traceback" not in result.output


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli.cli, ["inspect", str(tmp_path / "none.csv")])
    assert result.exit_code == 2
    assert "PATH must be an existing file or folder" in result.output


def test_reading_options_without_own_data_are_refused() -> None:
    result = CliRunner().invoke(cli.cli, ["run", "tabular", "--day-first", "--list"])
    assert result.exit_code == 2
    assert "--day-first applies only to your own table, but none is measured" in result.output


def test_a_run_shows_how_a_file_was_read_before_it_measures(tmp_path: Path) -> None:
    notes: list[str] = []

    class Heard(Silent):
        def note(self, text: str) -> None:
            notes.append(text)

    planned(["tabular"], requested(data=codes(tmp_path), formats="csv"), Heard())
    assert "codes.csv: CSV, 2 rows, 2 columns" in notes[0]
    assert "2 values had leading zeros" in notes[0]


def test_another_option_is_another_sample(tmp_path: Path) -> None:
    path = codes(tmp_path)
    assert inspect(path).first["zip"].to_pylist() == [1234, 5678]
    kept = inspect(path, options=ReadOptions(columns={"zip": "text"}))
    assert kept.first["zip"].to_pylist() == ["01234", "05678"]
    assert inspect(path).first["zip"].to_pylist() == [1234, 5678]


def test_many_columns_are_shortened_before_a_run_and_whole_in_inspect(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"c{number}" for number in range(40)) + "\n" + ",".join("1" * 40) + "\n")
    assert "c39 int64" in shown(str(path)).replace("\n" + " " * 18, " ")
    notes: list[str] = []

    class Heard(Silent):
        def note(self, text: str) -> None:
            notes.append(text)

    planned(["tabular"], requested(data=path, formats="csv"), Heard())
    assert "and 28 more" in notes[0].replace("\n" + " " * 18, " ")


def test_words_of_options_are_read_as_the_same_options() -> None:
    options = ReadOptions(
        columns={"a b": "text", "c=d": "decimal(5,2)"},
        delimiter="\t",
        decimal=",",
        sheet="2",
        encoding="cp1252",
        header=False,
        day_first=True,
    )
    context = cli.COMMANDS["inspect"].make_context("inspect", ["x", *options.words()])
    from format_bench.options import read_options

    assert read_options(dict(context.params)) == options
    assert ReadOptions().words() == []
    assert json.loads(options.about()["read_options"])["columns"] == {"a b": "text", "c=d": "decimal(5,2)"}
    assert Request(options=options).options == options
