"""The page of the document store: the session runs as printed and prints what the page shows."""

from __future__ import annotations

import ast
import gzip
import re
import shlex
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from format_bench.cli import main

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "libraries/document_store/docs/document-store.md"
QUERIES = ROOT / "docs/documents.md"


def block(name: str, page: Path = PAGE) -> str:
    found = re.search(rf"<!-- {name} -->\n```\w*\n(.*?)```\n<!-- end: {name} -->", page.read_text(), re.DOTALL)
    assert found is not None, name
    return found.group(1)


def test_the_session_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed = StringIO()
    with redirect_stdout(printed):
        exec(compile(block("session"), str(PAGE), "exec"), {})
    count, size, collections, *answers = printed.getvalue().splitlines()
    assert (count, size) == ("3", "large")
    assert sorted(each["commit"]["collection"] for each in ast.literal_eval(collections)) == ["like", "like", "post"]
    assert [*map(ast.literal_eval, answers)] == [*map(ast.literal_eval, block("answer").splitlines())]


def test_the_page_of_documents_begins_with_sql_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    events = (
        b'{"did":"d1","kind":"commit","commit":{"operation":"create"}}\n{"did":"d2","kind":"commit"}\n{"kind":"x"}\n'
    )
    monkeypatch.chdir(tmp_path)
    Path("events.jsonl").write_bytes(events)
    Path("events.jsonl.gz").write_bytes(gzip.compress(events))
    exec(compile(block("session", QUERIES), str(QUERIES), "exec"), {})
    assert ast.literal_eval(capsys.readouterr().out) == [{"kind": "commit", "n": 2}, {"kind": "x", "n": 1}]
    commands = re.findall(r"^format-bench (ask .*)$", QUERIES.read_text(), re.MULTILINE)
    printed = []
    for command in commands:
        with pytest.raises(SystemExit) as ended:
            main(shlex.split(command))
        assert ended.value.code == 0
        printed.append(capsys.readouterr().out.split())
    assert printed == [["kind", "n", "─" * 10, "commit", "2", "x", "1"], ['{"did":', '"d1"}']]


def test_what_the_page_says_of_sql_holds(tmp_path: Path) -> None:
    from libraries.document_store.store import DocumentStore

    with DocumentStore.open(tmp_path / "store") as store:
        store.upsert([{"id": 1, "size": 17, "a.b": 1}, {"id": 2, "size": "large", "Kind": "k"}, {"id": 3}])

        def answer(text: str) -> list[object]:
            return store.sql(text).column(0).to_pylist()

        assert answer("SELECT id FROM docs WHERE size > 10") == [1]
        assert answer("SELECT sum(size) FROM docs") == [17]
        assert answer("SELECT size + 1 FROM docs") == [18, None, None]
        assert answer("SELECT id FROM docs WHERE size LIKE 'l%'") == [2]
        assert answer("SELECT TRY_CAST(size AS BIGINT) AS s FROM docs") == [17, None, None]
        assert answer('SELECT id FROM docs WHERE "a.b" = 1') == [1]
        assert answer("SELECT kind FROM docs") == [None, None, None]
        with pytest.warns(UserWarning, match="becomes JSON text"):
            assert answer("SELECT size FROM docs") == ["17", '"large"', None]


def test_what_the_page_says_of_names_and_types_holds(tmp_path: Path) -> None:
    from libraries.document_queries import Compare, Constant, Filter, Named, Plan, Project, field
    from libraries.document_store.errors import DocumentError
    from libraries.document_store.store import DocumentStore

    with DocumentStore.open(tmp_path / "store") as store:
        store.upsert([{"id": 1, "a.b": 5, "size": 17}, {"id": 2, "a": {"b": 6}, "size": "large"}])
        dotted = Plan((Filter(Compare(field("a\\.b"), "=", Constant(5))), Project((Named("id", field("id")),))))
        assert store.query(dotted) == [{"id": 1}]
        larger = Plan((Filter(Compare(field("size"), ">", Constant(10))), Project((Named("id", field("id")),))))
        assert store.query(larger) == [{"id": 1}]
        with pytest.raises(DocumentError, match="document 1 of the batch, size"):
            store.upsert(b'{"id": 3}\n{"id": 4, "size": 99999999999999999999}\n')
        assert store.count() == 2
