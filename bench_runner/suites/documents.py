"""Documents that change, nest and mix types, in every store: ingested, found, asked.

How it fits the words of the house, decided once:

- A store is a format; `save` is its ingestion of all documents, which ends when the merges that are due are done.
- `ingest` is ingestion with updates among the documents; it makes a copy of its own.
- `read`, `get` and `fields` give documents; `ask` and `range` give rows of an answer. What a store has no call for is
  done over all documents read, is marked so, and is not ranked with a call.
- Documents and bytes a second are no figures of a sample: they are rows and `input_bytes` over a time, in reports.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from adapters.spelling import parse
from bench_runner import data_kinds
from bench_runner.suites.document_questions import NAMES
from bench_runner.suites.rules import ACCESS, Asked, Choice, Spelled
from bench_runner.suites.suite import Quick, Suite

SELECTIVITIES = ("1e-05", "0.0001", "0.001", "0.01")
"""Of the documents, as in Alkowaileet and Carey, VLDB 2022, table 3."""
COUNTED = (1, 5, 10)
"""Fields, as there."""


@dataclass(frozen=True, kw_only=True)
class Stores(Spelled):
    """Stores of documents."""

    def choices(self, asked: Asked) -> Iterator[Choice]:
        """The spelled variants last."""
        spelled = {parse(text)[0] for text in self.spelled}
        return iter(sorted(super().choices(asked), key=lambda choice: choice[1].format in spelled))

    def concerns(self, settings: Collection[str], operation: str) -> bool:
        """How answers are computed shows in questions alone."""
        return "way" not in settings or operation in ("ask", "range")

    def too_few(self, settings: Mapping[str, str]) -> str | None:
        """Late merges need components that wait."""
        if settings.get("merges") == "late":
            return "so few documents may be one component, and nothing waits to become one"
        return None


SUITE = Suite(
    name="documents",
    question="Which store takes documents, finds them, and answers questions about them, how fast and how small?",
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
        "get[documents=1]",
        "fields[paths=1]",
        "fields[paths=10]",
        *(
            f"range[selectivity={share},paths={paths},by={by}]"
            for by in ("scan", "index")
            for share in SELECTIVITIES
            for paths in COUNTED
            if (share, paths) != ("0.001", 1)
        ),
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
        "document-store in three layouts": "one tree around rows, compacted rows and columns: the paper's question",
        "way=columns, way=rows": "what interpretation costs beside generated code, the others' way; of questions alone",
        "merges=late": "what reading costs while components wait to become one, and writing saves by it",
        "codec=zstd": "what document-store has where nobody says; JSON Lines without a codec too, as they are received",
        "the six data sets": "flat, numbers in arrays, sparse and deep, mixed types, changed later, and events",
        "sensors[readings=random]": "beside the walks of sensors, what nothing makes smaller",
        "questions": "the paper's table 2 and JSONBench's five; those that a data set has",
        "range by scan and by index": "the paper's table 3: from which share on an index is the dearer way",
        "50 % updates, without and with two indexes": "an index makes each update find what was there before",
        "documents": "your own, by --data FILE.jsonl",
    },
)
