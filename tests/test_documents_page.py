"""The page of the document store: the session runs as printed and prints what the page shows."""

from __future__ import annotations

import ast
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "libraries/document_store/docs/document-store.md"


def block(name: str) -> str:
    found = re.search(rf"<!-- {name} -->\n```\w*\n(.*?)```\n<!-- end: {name} -->", PAGE.read_text(), re.DOTALL)
    assert found is not None, name
    return found.group(1)


def test_the_session_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed = StringIO()
    with redirect_stdout(printed):
        exec(compile(block("session"), str(PAGE), "exec"), {})
    count, size, collections, answer = printed.getvalue().splitlines()
    assert (count, size) == ("3", "large")
    assert sorted(each["commit"]["collection"] for each in ast.literal_eval(collections)) == ["like", "like", "post"]
    assert ast.literal_eval(answer) == ast.literal_eval(block("answer"))


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
