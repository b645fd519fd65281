"""SQL over documents: what it means, which way answers it, and what is refused."""

from __future__ import annotations

import operator
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module

import pyarrow as pa
import pytest

from libraries.document_queries import Count, GroupBy, run_over_documents
from libraries.document_queries.semantics import KIND_NAMES
from libraries.document_queries.sql.errors import SQLError
from libraries.document_queries.sql.question import plan_of
from libraries.document_store.queries.generated import result_collection
from libraries.document_store.sql import duckdb_way
from libraries.document_store.store import DocumentStore
from libraries.document_store.values import ValueKind

DOCUMENTS = [
    {"id": 1, "kind": "a", "n": 3, "o": {"p": "x", "q": {"r": 1}}, "tags": ["s", "t"], "size": 17, "flag": True},
    {"id": 2, "kind": "a", "n": 2**53 + 1, "o": {"p": None}, "tags": [], "size": "large", "flag": False},
    {"id": 3, "kind": "b", "n": None, "a.b": "dotted", "size": 2.5},
    {"id": 4, "kind": None, "n": -1, "tags": ["t"], "size": True},
    {"id": 5, "n": 5, "kind": "b", "select": 1, "d": float("nan")},
    {"id": 6, "kind": "é", "d": 1.5, "docs": "own", "Kind": "other"},
]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with DocumentStore.open(tmp_path_factory.mktemp("sql") / "store", sync="none") as opened:
        opened.upsert(DOCUMENTS[:4])
        opened.flush()
        opened.upsert(DOCUMENTS[4:])
        yield opened


def rows(store, text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = store.sql(text)
    return [tuple(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]


ANSWERS = {
    "SELECT count(*) FROM docs": [(6,)],
    "SELECT kind, count(*) AS n FROM docs GROUP BY kind ORDER BY n DESC, kind": [
        ("a", 2), ("b", 2), ("é", 1), (None, 1),
    ],
    "SELECT id FROM docs WHERE o.p = 'x'": [(1,)],
    "SELECT docs.id FROM docs WHERE docs.o.q.r = 1": [(1,)],
    "SELECT d.id FROM docs AS d WHERE D.kind = 'é'": [(6,)],
    "SELECT docs.docs FROM docs WHERE id = 6": [("own",)],
    "SELECT \"a.b\" FROM docs WHERE id = 3": [("dotted",)],
    "SELECT \"Kind\", kind FROM docs WHERE id = 6": [("other", "é")],
    "SELECT \"select\" FROM docs WHERE id = 5": [(1,)],
    "SELECT no.such.field FROM docs WHERE id = 1": [(None,)],
    "SELECT nosuch FROM docs WHERE nosuch IS NULL AND id = 1": [(None,)],
    "SELECT id FROM docs WHERE kind IS NULL": [(4,)],
    "SELECT id FROM docs WHERE kind = 5 OR NOT kind = 5": [],
    "SELECT id FROM docs WHERE n > 'a'": [],
    "SELECT id FROM docs WHERE n = 9007199254740992.0": [],
    "SELECT id FROM docs WHERE n > 9007199254740992.0": [(2,)],
    "SELECT id FROM docs WHERE flag": [(1,)],
    "SELECT id FROM docs WHERE size": [(4,)],
    "SELECT id FROM docs WHERE size >= 2.5": [(1,), (3,)],
    "SELECT id FROM docs WHERE size = 'large'": [(2,)],
    "SELECT id FROM docs WHERE d > 1 OR NOT d > 1": [(6,)],
    "SELECT d > 1 AS c, d < 1 AS e FROM docs WHERE id = 5": [(None, None)],
    "SELECT id, size FROM docs WHERE id < 3 ORDER BY id": [(1, "17"), (2, '"large"')],
    "SELECT TRY_CAST(size AS BIGINT) AS s FROM docs WHERE id < 3": [(17,), (None,)],
    "SELECT CAST(size AS VARCHAR) AS s FROM docs WHERE id < 5": [("17",), ("large",), ("2.5",), ("true",)],
    "SELECT sum(size), avg(size), count(size), count(*) FROM docs": [(19.5, 9.75, 4, 6)],
    "SELECT sum(n) FROM docs WHERE id < 2": [(3,)],
    "SELECT min(n), max(kind), sum(nosuch) FROM docs": [(-1, "é", None)],
    "SELECT count(*), max(n) FROM docs WHERE id > 99": [(0, None)],
    "SELECT kind FROM docs WHERE id > 99 GROUP BY kind": [],
    "SELECT DISTINCT kind FROM docs ORDER BY kind NULLS FIRST LIMIT 2": [(None,), ("a",)],
    "SELECT lower(upper(kind)) AS k FROM docs WHERE id = 1": [("a",)],
    "SELECT kind FROM docs GROUP BY kind HAVING count(*) > 1 ORDER BY kind": [("a",), ("b",)],
    "SELECT t, count(*) AS c FROM docs, unnest(docs.tags) AS u(t) GROUP BY t ORDER BY t": [("s", 1), ("t", 2)],
    "SELECT a.id FROM docs a JOIN docs b ON a.n = b.n - 2 WHERE b.id = 5": [(1,)],
    "WITH c AS (SELECT o.p, id FROM docs) SELECT p FROM c WHERE id = 1": [("x",)],
    "SELECT id FROM docs d WHERE EXISTS (SELECT 1 FROM docs e WHERE e.id = d.id + 5)": [(1,)],
    "SELECT id FROM docs WHERE n = (SELECT max(n) FROM docs)": [(2,)],
    "SELECT id FROM docs UNION ALL SELECT n FROM docs ORDER BY id LIMIT 1": [(-1,)],
    "SELECT id, row_number() OVER (ORDER BY n DESC) AS r FROM docs ORDER BY r LIMIT 1": [(2, 1)],
    "SELECT CASE WHEN kind = 'a' THEN 1 ELSE 0 END AS c FROM docs LIMIT 1": [(1,)],
    "FROM docs SELECT id LIMIT 1": [(1,)],
    "SELECT id FROM docs ORDER BY d DESC, id LIMIT 2": [(5,), (6,)],
    "SELECT id FROM docs ORDER BY d, d DESC, id LIMIT 2": [(6,), (5,)],
    "SELECT id AS kind FROM docs GROUP BY id ORDER BY kind DESC LIMIT 1": [(6,)],
    "SELECT id FROM DOCS WHERE id IN (1, 2.0, 'x', NULL)": [(1,), (2,)],
    "SELECT id FROM docs WHERE kind LIKE 'a'": [(1,), (2,)],
    "SELECT id FROM docs WHERE n LIKE '3'": [],
    "SELECT id FROM docs WHERE kind NOT LIKE 'a'": [(3,), (5,), (6,)],
    "SELECT id FROM docs WHERE kind NOT LIKE 'a%' AND length(kind) > 0": [(3,), (5,), (6,)],
    "SELECT id FROM docs WHERE NOT kind NOT LIKE 'a%'": [(1,), (2,)],
    "SELECT id FROM docs WHERE kind NOT IN ('a', 'b')": [(6,)],
    "SELECT id FROM docs WHERE n NOT BETWEEN 0 AND 4": [(2,), (4,), (5,)],
    "SELECT id FROM docs WHERE n BETWEEN SYMMETRIC 4 AND 0": [(1,)],
    "SELECT * FROM (SELECT o.p, id FROM docs) WHERE id = 1": [("x", 1)],
    "WITH c AS (SELECT kind, count(*) AS n FROM docs GROUP BY kind) SELECT c.*, n + 1 AS m FROM c WHERE n = 1 AND "
    "kind = 'é'": [("é", 1, 2)],
    "SELECT kind FROM (SELECT * FROM (SELECT kind FROM docs WHERE id = 1))": [("a",)],
    "SELECT x FROM (SELECT count(*) AS x FROM docs) WHERE 1 = 0": [],
    "WITH c AS (SELECT count(*) AS x FROM docs) SELECT x FROM c WHERE 1 = 0": [],
    "WITH docs AS (SELECT 1 AS a) SELECT a FROM docs WHERE 1 = 0": [],
    "SELECT max(n, 2) AS m, min(n, 2) + [0] AS l FROM docs WHERE id <> 2": [([5, 3], [-1, 3, 0])],
    "SELECT -id AS id FROM docs WHERE id < 3 ORDER BY id": [(-2,), (-1,)],
    "SELECT -id AS id FROM docs WHERE id < 3 ORDER BY (id)": [(-2,), (-1,)],
    "SELECT -id AS id FROM docs WHERE id < 3 ORDER BY id + 0": [(-1,), (-2,)],
    "SELECT -id AS negative FROM docs WHERE id < 3 ORDER BY negative + 0": [(-2,), (-1,)],
    "SELECT 'B' AS kind FROM docs WHERE id = 1 UNION SELECT 'a' ORDER BY kind COLLATE NOCASE": [("a",), ("B",)],
    "SELECT upper(kind) AS kind FROM docs WHERE id IN (1, 3) ORDER BY kind COLLATE NOCASE DESC": [("B",), ("A",)],
    "SELECT y FROM docs, (SELECT 1 AS X, x + 1 AS y) WHERE id = 1": [(2,)],
    "SELECT (SELECT max(x) FROM (SELECT unnest(d.tags) AS x)) AS m FROM docs d WHERE id = 1": [("t",)],
    "SELECT c FROM docs, (SELECT (SELECT count(kind) FROM docs) AS c) WHERE id = 1": [(5,)],
    "SELECT CASE n WHEN '3' THEN 1 WHEN 3 THEN 2 ELSE 0 END AS c FROM docs WHERE id < 4": [(2,), (0,), (0,)],
    "SELECT id FROM docs WHERE kind IS NOT DISTINCT FROM 1": [],
    "SELECT id FROM docs WHERE n IS NOT DISTINCT FROM NULL": [(3,), (6,)],
    "SELECT id FROM docs WHERE size IS DISTINCT FROM 17 AND id < 4": [(2,), (3,)],
    "SELECT a.id FROM docs a, docs b WHERE a.kind IS NOT DISTINCT FROM b.kind AND b.id = 4": [(4,)],
    "SELECT o.p || '!' AS s FROM docs WHERE id = 1": [("x!",)],
}  # fmt: skip


@pytest.mark.parametrize("text", ANSWERS)
def test_sql_has_this_answer(store, text):
    assert rows(store, text) == ANSWERS[text]


PLANNED = [
    "SELECT * FROM docs LIMIT 3",
    "SELECT kind, o.p FROM docs WHERE o.p IS NOT NULL ORDER BY n DESC LIMIT 10 OFFSET 2",
    "SELECT kind, count(*) AS n FROM docs WHERE o.p = 'x' GROUP BY kind ORDER BY n DESC LIMIT 10",
    "SELECT DISTINCT kind, flag FROM docs ORDER BY 1 NULLS FIRST, 2",
    "SELECT kind AS k, count(DISTINCT n), sum(n), avg(n), min(n), max(d), count(size) FROM docs GROUP BY k",
    "SELECT kind FROM docs GROUP BY 1 ORDER BY count(*)",
    "SELECT count(*) FROM docs WHERE (n BETWEEN 1 AND 5 OR n IN (1, 2)) AND NOT kind LIKE 'a%' AND size > 3 AND flag",
    "SELECT count(*) FROM docs d WHERE d.n < d.d AND 3 <= d.n AND kind <> 'x'",
]
"""Each form that the documentation of `planning` names."""

NOT_PLANNED = {
    "SELECT lower(kind) FROM docs": "SELECT has the function lower",
    "SELECT n + 1 FROM docs": "SELECT has an unsupported expression",
    "SELECT kind FROM docs WHERE n + 1 = 2": "WHERE has an unsupported expression",
    "SELECT id FROM docs WHERE n BETWEEN SYMMETRIC 4 AND 0": "WHERE has an unsupported expression",
    "SELECT kind FROM docs WHERE n IN tags": "WHERE has an unsupported expression",
    "SELECT kind FROM docs WHERE kind LIKE '%a'": "LIKE with a pattern other than 'text%'",
    "SELECT size, count(*) FROM docs GROUP BY size": "size has values of several types",
    "SELECT d, count(*) FROM docs GROUP BY d": "has d, whose values are not booleans, integers or texts",
    "SELECT count(DISTINCT d) FROM docs": "count_distinct does not support the types of values in d",
    "SELECT sum(size) FROM docs": "sum does not support the types of values in size",
    "SELECT max(n, 2) FROM docs": "max has several arguments",
    "SELECT count(n, kind) FROM docs": "count has several arguments",
    "SELECT sum(DISTINCT n) FROM docs": "an aggregate has DISTINCT",
    "SELECT kind FROM docs GROUP BY kind HAVING count(*) > 1": "it has HAVING",
    "SELECT count(*) FILTER (WHERE n = 1) FROM docs": "SELECT has an unsupported expression",
    "SELECT a.id FROM docs a JOIN docs b ON a.id = b.id": "it has JOINS",
    "SELECT row_number() OVER () FROM docs": "SELECT has an unsupported expression",
    "SELECT id FROM docs UNION SELECT n FROM docs": "it is not a single SELECT",
    "SELECT tags FROM docs ORDER BY tags": "ORDER BY has a column of arrays, objects or bytes",
    "SELECT kind FROM docs GROUP BY ALL": "GROUP BY is more than a list of fields",
    "SELECT kind FROM docs USING SAMPLE 10 ROWS": "it has SAMPLE",
    "SELECT id FROM docs LIMIT 50%": "LIMIT is not a whole number",
    "SELECT id FROM docs ORDER BY id LIMIT 2 + 1": "LIMIT is not a whole number",
}


@pytest.mark.parametrize("text", PLANNED)
def test_a_plan_answers_this(store, text):
    explained = store.sql(text, explain=True)
    assert (explained.way, explained.reason) == ("plan", "")


QUESTIONS = [
    "SELECT count(*) FROM docs",
    "SELECT count(*) FROM docs WHERE o.p = 'x' OR n >= 5",
    "SELECT kind, count(*) AS n FROM docs WHERE kind IS NOT NULL GROUP BY kind ORDER BY n DESC, kind LIMIT 2",
    "SELECT kind AS k, count(DISTINCT n), min(n), count(*) FROM docs WHERE kind = 'a' GROUP BY k",
    "SELECT kind FROM docs WHERE kind > 'b' GROUP BY kind LIMIT 2",
    "SELECT id, kind FROM docs WHERE n > 0 ORDER BY n DESC LIMIT 2",
    "SELECT id FROM docs WHERE id > 1 LIMIT 3",
    "SELECT DISTINCT flag FROM docs WHERE flag IS NOT NULL ORDER BY flag DESC",
]


@pytest.mark.parametrize("text", QUESTIONS)
def test_a_plan_for_any_store_has_the_same_answer(store, text):
    wanted = rows(store, text)
    found = run_over_documents(DOCUMENTS, plan_of(text), "id")
    assert [tuple(row.values())[: len(wanted[0])] for row in found] == wanted


def test_a_count_for_any_store_reads_only_keys():
    assert plan_of("SELECT count(*) FROM docs").steps == (Count("c0"),)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT lower(kind) FROM docs", "SELECT has the function lower; write SELECT with fields or aggregates"),
        ("SELECT * FROM docs", "it has *, but the names of the fields are not known in advance"),
        ("SELECT id FROM docs LIMIT 2 OFFSET 1", "it has OFFSET"),
        ("SELECT kind, count(*) FROM docs GROUP BY kind HAVING count(*) > 1", "it has HAVING"),
        ("DELETE FROM docs", "only SELECT is supported"),
        ("SELECT id FROM other", "there is no table other"),
    ],
)
def test_what_no_plan_answers_is_refused_with_a_reason(text, reason):
    with pytest.raises(SQLError) as refused:
        plan_of(text)
    assert reason in str(refused.value)


def test_kinds_have_the_numbers_of_the_query_language():
    assert [kind.name.lower() for kind in list(ValueKind)[: len(KIND_NAMES)]] == list(KIND_NAMES.values())


@pytest.mark.parametrize("text", NOT_PLANNED)
def test_duckdb_answers_this_for_a_reason(store, text):
    explained = store.sql(text, explain=True)
    assert explained.way == "duckdb"
    assert NOT_PLANNED[text] in explained.reason


def test_only_the_fields_that_duckdb_needs_are_read(store):
    text = "SELECT lower(kind) FROM docs WHERE o.p = 'x' AND length(kind) > 0 AND n > 1"
    explained = store.sql(text, explain=True)
    assert explained.fields == ("o.p", "n", "kind")
    assert [type(step).__name__ for step in explained.plan.steps] == ["Filter", "Filter", "Project"]
    assert str(explained).startswith("way     DuckDB, because WHERE has the function length\nreads   o.p, n, kind\n")
    assert rows(store, text) == [("a",)]


def test_a_sample_is_taken_before_the_store_tests_conditions(store):
    for text in ("SELECT n FROM docs WHERE n = 1 USING SAMPLE 2", "SELECT n FROM docs TABLESAMPLE 50% WHERE n = 1"):
        assert [type(step).__name__ for step in store.sql(text, explain=True).plan.steps] == ["Project"]


GROUPED = {
    "SELECT kind, max(n) - min(n) AS span FROM docs WHERE id < 9 GROUP BY kind ORDER BY span, kind": [
        ("b", 0), ("a", 2**53 - 2), ("é", None), (None, 0),
    ],
    "SELECT upper(kind) AS u, count(*) AS c FROM docs GROUP BY kind HAVING c > 1 AND kind <> 'b'": [("A", 2)],
    "SELECT count(*) FROM docs HAVING count(*) > 99": [],
    "SELECT sum(n) * 4611686018427387904 / 4611686018427387904 AS s FROM docs WHERE id = 1": [(3.0,)],
    "SELECT kind FROM docs GROUP BY kind HAVING kind = 5": [],
}  # fmt: skip


@pytest.mark.parametrize("text", GROUPED)
def test_the_store_computes_groups_and_duckdb_the_rest(store, text):
    explained = store.sql(text, explain=True)
    assert explained.way == "duckdb"
    assert isinstance(explained.plan.result, GroupBy)
    assert sorted(rows(store, text), key=str) == sorted(GROUPED[text], key=str)


def test_the_columns_have_names_and_types(store):
    table = store.sql("SELECT id, o.p, count(*), sum(n) AS s, avg(n) AS m FROM docs GROUP BY id, o.p")
    assert table.schema == pa.schema(
        {"id": pa.int64(), "o.p": pa.string(), "count(*)": pa.int64(), "s": pa.int64(), "m": pa.float64()}
    )
    for where in ("id > 99", "lower(kind) = 'no'"):
        empty = store.sql(f"SELECT id, kind, d, flag, tags FROM docs WHERE {where}")
        assert empty.num_rows == 0
        assert empty.schema.types[:4] == [pa.int64(), pa.string(), pa.float64(), pa.bool_()]
    grouped = store.sql("SELECT kind, count(*) AS c, count(DISTINCT n) AS n FROM docs WHERE id > 99 GROUP BY kind")
    assert grouped.schema.types == [pa.string(), pa.int64(), pa.int64()]
    assert store.sql("SELECT sum(n) AS s, lower(kind) FROM docs GROUP BY kind").schema.field("s").type == pa.int64()
    assert store.sql("SELECT *, 1 AS one FROM (SELECT o.p, id FROM docs)").column_names == ["p", "id", "one"]


def test_json_text_of_mixed_types_is_a_warning(store):
    with pytest.warns(UserWarning, match=r"^size has values of several types, and becomes JSON text$") as warned:
        store.sql("SELECT size FROM docs")
    assert warned[0].filename == __file__


def test_a_field_that_no_document_has_is_null_with_a_warning(store):
    words = "no document has the field {}, so it is NULL; if it is a text, put it in single quotes"
    for text, field in (
        ('SELECT id FROM docs WHERE kind = "create"', "create"),
        ("SELECT lower(o.x) FROM docs", "o.x"),
    ):
        with pytest.warns(UserWarning, match=f"^{words.format(field)}$"):
            store.sql(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store.sql("SELECT id, o.p AS x FROM docs d WHERE d.kind = 'create' ORDER BY x")


REFUSED = {
    "": ("syntax", "the SQL is empty; write SELECT ... FROM docs"),
    "SELECT kind FROM": ("syntax", "line 1, column"),
    "SELECT kind\nFRO docs": ("syntax", "line 2, column"),
    "DELETE FROM docs": ("statement", "only SELECT is supported (got 'DELETE')"),
    "CREATE TABLE x AS SELECT 1": ("statement", "only SELECT is supported"),
    "WITH x AS (SELECT 1) DELETE FROM docs": ("statement", "only SELECT is supported"),
    "COPY docs TO '/tmp/x'": ("statement", "only SELECT is supported"),
    "SELECT 1; SELECT 2": ("statement", "only one statement is supported (got 2)"),
    "SELECT 1 INTO x FROM docs": ("statement", "LATERAL, INTO, PIVOT, CONNECT BY or locks is not supported"),
    "WITH RECURSIVE r AS (SELECT 1) SELECT * FROM r": ("statement", "WITH RECURSIVE is not supported"),
    "SELECT kind FROM events": ("table", "there is no table events; the table is docs"),
    "SELECT kind FROM main.docs": ("table", "there is no table main.docs"),
    "SELECT 1 FROM 'x.csv'": ("table", "the table is docs"),
    "SELECT 1 FROM read_csv('/etc/passwd')": ("table", "is not supported; the table is docs"),
    "SELECT 1 FROM duckdb_settings()": ("table", "is not supported; the table is docs"),
    "SELECT kind FROM docs WHERE id IN (SELECT id FROM secrets)": ("table", "there is no table secrets"),
    "SELECT kind, kind FROM docs": ("name", "two columns of the answer are called 'kind'; rename one with AS"),
    "SELECT unnest(o), unnest({'p': 1}) FROM docs": ("name", "two columns of the answer are called 'p'"),
    "SELECT * FROM (SELECT id FROM docs), (SELECT 1 AS id)": ("name", "two columns of the answer are called 'id'"),
    "SELECT kind FROM docs a, docs b": ("name", "several tables; write a.kind or b.kind"),
    "SELECT [t || 'x' FOR t IN tags] FROM docs": ("statement", "write list_transform(list, x -> ...)"),
    "SELECT COLUMNS(*) FROM docs": ("name", "COLUMNS(...) and column positions (#1) are not supported; name"),
    "SELECT max(COLUMNS('i.*')) FROM docs": ("name", "name the fields"),
    "SELECT docs.COLUMNS(*) FROM docs": ("name", "name the fields"),
    "SELECT id FROM docs ORDER BY #1": ("name", "name the fields"),
    "SELECT docs.#1 FROM docs": ("name", "name the fields"),
    "SELECT d.a FROM docs AS d(a)": ("name", "write docs AS d, and use the field names"),
    "SELECT x FROM docs, (SELECT unnest(tags) AS x)": ("name", "cannot use fields of docs, so tags is "
        "unknown; write FROM docs, unnest(tags) AS z(x)"),
    "SELECT * EXCLUDE (kind) FROM docs": ("name", "name the fields"),
    "SELECT * FROM docs a JOIN docs b USING (id)": ("statement", "JOIN ... USING is not supported"),
    "SELECT max(size) FROM docs": ("type", "size has values of several types (boolean, integer, double, text), but "
        "one type is needed in max(size); write e.g. TRY_CAST(size AS BIGINT)"),
    "SELECT id FROM docs ORDER BY size": ("type", "one type is needed in size"),
    "SELECT id FROM docs WHERE size > n + 1": ("type", "one type is needed in size > n + 1"),
    "SELECT foo(kind) FROM docs": ("engine", "Scalar Function with name foo does not exist"),
    "SELECT sum(kind) FROM docs": ("engine", "No function matches"),
    "SELECT id FROM docs ORDER BY id LIMIT 99999999999999999999": ("engine", "DuckDB cannot answer this"),
    "SELECT sum(n) * 9223372036854775807 AS s FROM docs": ("engine", "column s of the answer has an integer"),
    "SELECT CAST(kind AS BIGINT) FROM docs": ("engine", "Could not convert string"),
    f"SELECT {'(' * 40}1{')' * 40}": ("limit", "nested more than 24 deep"),
    f"SELECT '{'x' * 70_000}'": ("limit", "more than 65536 bytes"),
    "SELECT " + "a." * 70 + "a FROM docs": ("name", "at most 64 deep"),
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:40])
def test_this_is_refused_with_a_reason(store, text):
    reason, words = REFUSED[text]
    with pytest.raises(SQLError) as refused:
        store.sql(text)
    assert refused.value.reason == reason
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
    assert '"#' not in str(refused.value)


def test_sums_beyond_64_bits_are_refused_both_ways(tmp_path):
    with DocumentStore.open(tmp_path / "store", sync="none") as opened:
        opened.upsert([{"id": key, "n": 2**62} for key in range(3)])
        for text in ("SELECT sum(n) FROM docs", "SELECT sum(n), max(lower('x')) AS x FROM docs"):
            with pytest.raises(SQLError, match="beyond 64 bits"):
                opened.sql(text)


SUMS = [
    {"id": 1, "k": "a", "m": 10**16 + 1},
    {"id": 2, "k": "b", "m": 2.5},
    {"id": 3, "k": "c", "m": 30.5},
    {"id": 4, "k": "d", "m": 2**63 - 1},
    {"id": 5, "k": "d", "m": 2**63 - 1},
    {"id": 6, "k": "e"},
]


@pytest.mark.parametrize("most_tuples", [4_000_000, 1])
@pytest.mark.parametrize("having", ["", " HAVING count(*) > 0"])
def test_sums_of_integers_and_doubles_are_doubles(having, most_tuples, tmp_path, monkeypatch):
    """Computed from vectors and from states, with and without DuckDB."""
    monkeypatch.setattr(result_collection, "MOST_TUPLES", most_tuples)
    with DocumentStore.open(tmp_path / "store", sync="none") as opened:
        opened.upsert(SUMS[:4])
        opened.flush()
        opened.upsert(SUMS[4:])
        text = f"SELECT k, sum(m) AS s FROM docs GROUP BY k{having} ORDER BY s DESC"
        assert rows(opened, f"{text} LIMIT 2") == [("d", 2.0**64), ("a", 1e16)]
        assert rows(opened, text)[2:] == [("c", 30.5), ("b", 2.5), ("e", None)]
        for where, right in (("k = 'a'", 1e16), ("k = 'd'", 2.0**64), ("k = 'e'", None), ("k = 'b'", 2.5)):
            table = opened.sql(f"SELECT sum(m) AS s FROM docs WHERE {where}{having}")
            assert table.to_pydict() == {"s": [right]}
            assert table.schema.field("s").type == pa.float64()


MAY_BE_AGGREGATES = {
    "SELECT count_star() AS n FROM docs GROUP BY kind": [(1,), (1,), (2,), (2,)],
    "SELECT kind, count_star() AS n FROM docs WHERE id < 4 GROUP BY kind": [("a", 2), ("b", 1)],
    "SELECT kind, count(*) AS n FROM docs GROUP BY kind HAVING count_star() > 1": [("a", 2), ("b", 2)],
    "SELECT kind FROM docs WHERE id < 4 GROUP BY kind ORDER BY count_star() LIMIT 1": [("b",)],
    "SELECT kind, product(n) AS p, count(*) AS c FROM docs WHERE n < 9 GROUP BY kind": [
        ("a", 3.0, 1), ("b", 5.0, 1), (None, -1.0, 1),
    ],
    "SELECT histogram(kind) AS h, max(id) AS m FROM docs": [([("a", 2), ("b", 2), ("é", 1)], 6)],
}  # fmt: skip
"""sqlglot does not know these aggregates."""


@pytest.mark.parametrize("text", MAY_BE_AGGREGATES)
def test_duckdb_computes_groups_with_functions_that_may_be_aggregates(store, text):
    assert not isinstance(store.sql(text, explain=True).plan.result, GroupBy)
    assert sorted(rows(store, text), key=str) == sorted(MAY_BE_AGGREGATES[text], key=str)


def test_aggregates_of_aggregates_are_refused(store):
    with pytest.raises(SQLError, match="cannot be nested"):
        store.sql("SELECT product(sum(n)) FROM docs GROUP BY kind")


COMPARED = [
    (integer, double)
    for integer in (0, 3, -3, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63))
    for double in (0.0, -0.0, 2.5, 3.0, -3.5, 2.0**53, -(2.0**53), 2.0**53 + 2, 2.0**62, 2.0**63, -(2.0**63), 1e300,
                   float("inf"), float("-inf"), float("nan"))
]  # fmt: skip
OPERATORS = {"=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
             ">=": operator.ge}  # fmt: skip


@pytest.fixture(scope="module")
def compared_store(tmp_path_factory):
    found = [{"n": integer, "d": double, "x": integer, "y": double} for integer, double in COMPARED]
    others = [{"n": 1}, {"d": 1.5}, {"x": 1.0, "n": 1}, {"x": "1", "y": "1", "n": 2, "d": 2.0}]
    with DocumentStore.open(tmp_path_factory.mktemp("compared") / "store", sync="none") as opened:
        opened.upsert([{"id": number, **document} for number, document in enumerate([*found, *others])])
        yield opened


@pytest.mark.parametrize("pair", [("n", "d"), ("d", "n"), ("x", "d"), ("n", "y"), ("y", "x")])
@pytest.mark.parametrize("name", OPERATORS)
def test_integers_and_doubles_are_compared_exactly_both_ways(compared_store, name, pair):
    ids = f"id < {len(COMPARED)}"
    one, two = pair
    right = []
    for integer, double in COMPARED:
        left, other = (double, integer) if pair in (("d", "n"), ("y", "x")) else (integer, double)
        right.append(None if double != double else OPERATORS[name](left, other))
    found = rows(compared_store, f"SELECT {one} {name} {two} AS e FROM docs WHERE {ids} ORDER BY id")
    assert [value for (value,) in found] == right
    planned = f"SELECT id FROM docs WHERE {one} {name} {two}"
    assert compared_store.sql(planned, explain=True).way == "plan"
    by_duckdb = f"{planned} AND length('') = 0"
    assert compared_store.sql(by_duckdb, explain=True).way == "duckdb"
    joined = f"SELECT a.id FROM docs a JOIN docs b ON a.id = b.id AND a.{one} {name} b.{two}"
    expected = sorted(rows(compared_store, planned))
    assert sorted(rows(compared_store, by_duckdb)) == expected
    assert sorted(rows(compared_store, joined)) == expected
    assert [id_ for (id_,) in expected if id_ < len(COMPARED)] == [i for i, value in enumerate(right) if value]


def test_a_field_of_integers_and_doubles_has_the_type_of_the_rows_that_are_read(tmp_path):
    with DocumentStore.open(tmp_path / "store", sync="none") as opened:
        opened.upsert([{"id": 1, "m": 2.5}, {"id": 2, "m": 2**53 + 1}, {"id": 3, "m": 4}])
        assert rows(opened, "SELECT m FROM docs") == [("2.5",), (str(2**53 + 1),), ("4",)]
        for text in ("SELECT m FROM docs WHERE id <> 2", "SELECT m FROM docs WHERE id <> 2 AND length('') = 0"):
            assert rows(opened, text) == [(2.5,), (4.0,)]
        with pytest.raises(SQLError, match=r"write e\.g\. TRY_CAST\(m AS DOUBLE\)"):
            opened.sql("SELECT m FROM docs ORDER BY m")
        assert rows(opened, "SELECT m FROM docs WHERE id = 3 ORDER BY m") == [(4.0,)]


def test_an_explanation_has_no_control_characters(tmp_path):
    with DocumentStore.open(tmp_path / "store", sync="none") as opened:
        opened.upsert([{"id": 1, "é\x1b31m\n\u202e": [1]}])
        explained = str(opened.sql('SELECT "é\x1b31m\n\u202e" FROM docs', explain=True))
        assert [line for line in explained.split("\n") if not line.isprintable()] == []
        assert explained.splitlines()[1] == r"reads   é\x1b31m\n\u202e"


def test_an_empty_store_and_fields_beyond_the_schemas_limit(tmp_path):
    with DocumentStore.open(tmp_path / "store", sync="none") as opened:
        assert rows(opened, "SELECT count(*), max(x) FROM docs") == [(0, None)]
        assert rows(opened, "SELECT x, lower(y) FROM docs") == []
        for text in ("SELECT * FROM docs", "SELECT * FROM (SELECT docs.* FROM docs)"):
            empty = opened.sql(text)
            assert (empty.num_rows, empty.column_names) == (0, ["id"])
        opened.upsert([{"id": 1, **{f"f{number}": number for number in range(5000)}}, {"id": 2, "f1": 7}])
        opened.flush()
        table = opened.sql("SELECT * FROM docs WHERE id = 1")
        assert table.num_columns == 5001
        found = [opened.sql(f"SELECT f{number} FROM docs WHERE f{number} = {number}") for number in (1, 2500, 4999)]
        assert [table.column(0).to_pylist() for table in found] == [[1], [2500], [4999]]
        assert opened.sql("SELECT f4999 FROM docs", explain=True).reason.endswith(
            "f4999 is not in the store's schema, which has reached its limit"
        )


def test_values_that_were_deleted_do_not_change_the_answer(tmp_path):
    with DocumentStore.open(tmp_path / "store", sync="none", merges="late") as opened:
        opened.upsert([{"id": 1, "a": 5}, {"id": 2, "a": "x"}])
        opened.flush()
        opened.delete([2])
        assert rows(opened, "SELECT a FROM docs WHERE a = 5") == [("5",)]
        assert rows(opened, "SELECT max(TRY_CAST(a AS BIGINT)) AS m FROM docs") == [(5,)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT content FROM read_text('/etc/hostname')",
        "SELECT * FROM '/etc/hostname'",
        "ATTACH '/tmp/other.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET memory_limit = '99GB'",
        "COPY (SELECT 1) TO '/tmp/format-bench-test.csv'",
        "SELECT * FROM secret_table_of_python",
        "SELECT getenv('HOME')",
    ],
)
def test_duckdb_itself_is_locked(text):
    """Even if such SQL passed the checks before DuckDB, DuckDB would refuse it."""
    secret_table_of_python = pa.table({"a": [1]})
    with pytest.raises(SQLError) as refused:
        duckdb_way._asked(text, secret_table_of_python, [])
    assert refused.value.reason == "engine"


def test_duckdb_has_limited_memory(monkeypatch):
    monkeypatch.setitem(duckdb_way.LOCKED, "memory_limit", "50MB")
    duckdb_way._database.cache_clear()
    docs = pa.table({"a": list(range(2000))})
    with pytest.raises(SQLError, match="Out of Memory"):
        duckdb_way._asked("SELECT list(a.a || b.a || 'x') FROM docs a, docs b", docs, [])
    duckdb_way._database.cache_clear()


def test_an_answer_has_limited_memory(store, monkeypatch):
    text = "SELECT repeat('x', 1000) AS r FROM docs, unnest(range(10000)) AS u(n)"
    assert store.sql(f"{text} LIMIT 3000").nbytes > 3_000_000
    monkeypatch.setattr(duckdb_way, "MOST_ANSWER_BYTES", 5_000_000)
    with pytest.raises(SQLError, match=r"more than 0\.005 GB; add LIMIT, or ask for fewer columns") as refused:
        store.sql(text)
    assert refused.value.reason == "limit"
    assert store.sql(f"{text} LIMIT 3000").num_rows == 3000


def endless_query() -> str:
    # Unnested in SELECT, the rows take hours, but little memory.
    rows_of = "docs"
    for _ in range(5):
        rows_of = f"(SELECT unnest(range(1000)) AS v FROM {rows_of})"
    return f"SELECT count(*) FROM {rows_of} AS all_rows"


@pytest.mark.timeout(30)
@pytest.mark.parametrize("interrupts_waiting", [True, False])
@pytest.mark.parametrize(("late_s", "after_s"), [(0.0, 1.0), (0.5, 0.2)])
def test_ctrl_c_ends_a_query(store, monkeypatch, request, late_s, after_s, interrupts_waiting):
    """DuckDB starts the query at once, or half a second late, after the interrupt."""
    # A shell starts background jobs with SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    # Libraries such as polars set a handler for Ctrl-C after which a wait for a lock goes on.
    signal.siginterrupt(signal.SIGINT, interrupts_waiting)
    started = duckdb_way._gathered
    monkeypatch.setattr(duckdb_way, "_gathered", lambda *words: (time.sleep(late_s), started(*words))[1])
    threading.Timer(after_s, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        store.sql(endless_query())
    assert rows(store, "SELECT max(length(kind)) AS x FROM docs") == [(1,)]


def test_ctrl_c_does_not_reach_the_import_of_duckdb(monkeypatch, request):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    imported = threading.Event()

    def slowly(name):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.3)
        imported.set()

    monkeypatch.delitem(sys.modules, "duckdb", raising=False)
    monkeypatch.setattr(duckdb_way, "import_module", slowly)
    with pytest.raises(KeyboardInterrupt):
        duckdb_way._imported()
    assert imported.wait(10)


class InterruptedPool(ThreadPoolExecutor):
    """Ctrl-C comes when the thread of a query has started, but before its future is returned."""

    def submit(self, work, *words):
        future = super().submit(work, *words)
        if work is import_module:
            return future
        time.sleep(0.2)
        raise KeyboardInterrupt


@pytest.mark.timeout(30)
def test_ctrl_c_while_the_thread_starts_leaves_no_query(store, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(duckdb_way, "ThreadPoolExecutor", InterruptedPool)
        with pytest.raises(KeyboardInterrupt):
            store.sql(endless_query())
    assert rows(store, "SELECT max(length(kind)) AS x FROM docs") == [(1,)]


@pytest.mark.parametrize(
    ("missing", "text"), [("sqlglot", "SELECT kind FROM docs"), ("duckdb", "SELECT lower(kind) FROM docs")]
)
def test_a_missing_library_is_named(missing, text, tmp_path):
    script = f"""
import sys
sys.modules[{missing!r}] = None
from libraries.document_store.store import DocumentStore
with DocumentStore.open({str(tmp_path / "store")!r}) as store:
    store.upsert([{{"id": 1, "kind": "a"}}])
    try:
        store.sql({text!r})
    except Exception as error:
        print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert "which is not installed: pip install 'format-bench[documents]'" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("layout", ["amax", "vector", "open"])
@pytest.mark.parametrize("values", [["a"], [1], [1.5], [True], [f"text {number}" for number in range(300)]])
def test_missing_and_null_are_one_group(values, layout, tmp_path):
    documents = [{"id": number, "k": value} for number, value in enumerate([*values, None])]
    with DocumentStore.open(tmp_path / "store", layout=layout, sync="none") as store:
        store.upsert([*documents, {"id": len(documents)}])
        store.flush()
        found = store.sql("SELECT k, count(*) AS n FROM docs GROUP BY k").to_pylist()
    assert sorted(row["n"] for row in found) == [*[1] * len(values), 2]
    assert {"k": None, "n": 2} in found
