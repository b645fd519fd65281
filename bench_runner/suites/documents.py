"""The suite `documents`, which compares document stores in storing, finding and querying documents.

- A document store is treated as a format. `save` stores all documents, and ends when pending merges are done.
- `ingest` stores documents with updates among them, in a separate copy.
- `read`, `get` and `fields` return documents. `ask` and `range` return rows of a query result. If a store has no call
  for an operation, all documents are read instead. Such results are marked, and are not ranked together with results of
  stores that have the call.
- Reports compute documents per second and bytes per second from the number of documents, `input_bytes` and time.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from adapters.spelling import parse
from bench_runner import data_kinds
from bench_runner.suites.document_questions import NAMES
from bench_runner.suites.rules import ACCESS, Asked, Choice, Spelled
from bench_runner.suites.suite import Quick, Suite

SELECTIVITIES = ("1e-05", "0.0001", "0.001", "0.01")
"""Shares of the documents that are in a range, as in Alkowaileet and Carey, VLDB 2022, table 3."""
COUNTED = (1, 5, 10)
"""Numbers of fields whose values are counted, as in Alkowaileet and Carey, VLDB 2022, table 3."""


@dataclass(frozen=True, kw_only=True)
class Stores(Spelled):
    """Chooses document stores and their settings."""

    def choices(self, asked: Asked) -> Iterator[Choice]:
        """Yield all variants. Formats that are in `spelled` come last."""
        spelled = {parse(text)[0] for text in self.spelled}
        return iter(sorted(super().choices(asked), key=lambda choice: choice[1].format in spelled))

    def concerns(self, settings: Collection[str], operation: str) -> bool:
        """Return False if the settings select how query results are computed, but the operation is not a query."""
        return "way" not in settings or operation in ("ask", "range")

    def too_few(self, settings: Mapping[str, str]) -> str | None:
        """Return why the setting merges=late has no effect on few documents, or None for other settings."""
        if settings.get("merges") == "late":
            return "few documents may form a single component, so that no merge is pending"
        return None


SUITE = Suite(
    name="documents",
    question="Which store saves documents, finds them and answers questions about them, how fast and how small?",
    operations=(
        "save",
        "read",
        "get[documents=100]",
        "fields[paths=2]",
        *(f"ask[query={name}]" for name in NAMES),
        "range[selectivity=0.001,paths=1,by=scan]",
        "range[selectivity=0.001,paths=1,by=index]",
        "ingest[updates=0.5,indexes=none]",
        "ingest[updates=0.5,indexes=2]",
    ),
    operations_on_request=(
        *(f"ask[query={name}]" for name in ("usual", "group", "filter", "top")),
        "get[documents=1]",
        "fields[paths=1]",
        "fields[paths=10]",
        "fields[paths=2,form=table]",
        *(
            f"range[selectivity={share},paths={paths},by={by}]"
            for by in ("scan", "index")
            for share in SELECTIVITIES
            for paths in COUNTED
            if (share, paths) != ("0.001", 1)
        ),
        "sql[query=SELECT count(*) FROM docs]",
        "ingest[updates=0.0,indexes=none]",
    ),
    datasets=("cell", "sensors", "tweets", "wos", "tweets-2016", "bluesky-events"),
    on_request=("sensors[readings=random]", "documents"),
    kind=data_kinds.DOCUMENTS,
    variants=Stores(
        tracks=(ACCESS,),
        spelled=(
            *(f"document-store[layout={layout}]" for layout in ("amax", "vector", "open")),
            "document-store[layout=amax,way=columns]",
            *(f"document-store[layout={layout},way=rows]" for layout in ("vector", "open")),
            *(f"document-store[layout={layout},merges=late]" for layout in ("amax", "vector")),
            "parquet-nested[engine=pyarrow,codec=zstd]",
            "parquet-nested[engine=duckdb,codec=zstd]",
            "parquet-variant[engine=duckdb,codec=zstd]",
            "json-lines[engine=msgspec]",
            "json-lines[engine=msgspec,codec=zstd]",
        ),
    ),
    quick=Quick(
        rows=5_000,
        datasets=("bluesky-events",),
        operations=(
            "save",
            "read",
            "get[documents=100]",
            "ask[query=q1]",
            "range[selectivity=0.001,paths=1,by=scan]",
            "ingest[updates=0.5,indexes=none]",
        ),
        without=(
            "document-store[layout=amax,way=columns]",
            *(f"document-store[layout={layout},way=rows]" for layout in ("vector", "open")),
        ),
        reason="5,000 events; without the other data sets, all questions but the first, "
        "indexes, fields of all documents and interpretation",
    ),
    reasons={
        "document-store in three layouts": "one tree over rows, compacted rows or columns: the paper's question",
        "way=columns, way=rows": "what interpretation, the other stores' way, costs over generated code; for questions",
        "merges=late": "the cost of reading while components wait to be merged, and what writing saves by it",
        "codec=zstd": "document-store's default; JSON Lines without a codec too, as they are received",
        "the six data sets": "flat, numbers in arrays, sparse and deep, mixed types, changed later, and events",
        "sensors[readings=random]": "incompressible readings, in contrast to the random walks of sensors",
        "questions": "the paper's table 2 and JSONBench's five, for the data sets that they are about; on request "
        "three questions that are derived from any documents",
        "range by scan and by index": "the paper's table 3: the share from which an index is slower than a scan",
        "50 % updates, without and with two indexes": "with an index, each update has to find the old version",
        "documents": "your own, by --data FILE.jsonl",
    },
)
