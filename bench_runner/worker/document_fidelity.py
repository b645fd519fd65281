"""Find out how a document store changes each kind of document. A few documents of each kind are stored, read back and
compared.

Documents that are given as dicts must come back exactly, except for the losses (changes) that the store declares.
Documents that are given as JSON text have properties that a store need not keep, such as the order of fields. This
module describes what the store does with such properties.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from adapters.document_store import Batch, Document, DocumentLoss, DocumentStoreAdapter, first_difference, identical
from adapters.losses import Cause
from bench_runner.worker.fidelity import first_line
from bench_runner.worker.messages import ERROR, EXACT, LOSSY, REFUSED, KindOutcome
from data_generator.generated.document_kinds import BIG_INTEGERS, DUPLICATE_NAMES, KINDS, ORDER, TEXT_KINDS, Documents

DICTS_LOSE = {DUPLICATE_NAMES: "a dict has one value of each name, the last"}
"""Maps a kind of document to what is lost when its JSON text becomes a Python dict, even without a store."""


def probe(
    adapter: DocumentStoreAdapter,
    folder: Path,
    kinds: Mapping[str, Documents] = KINDS,
    text_kinds: Mapping[str, bytes] = TEXT_KINDS,
) -> Iterator[KindOutcome]:
    """Store and read back each kind of document. Yield the results.

    Libraries must be loaded before the call. Files are written only below `folder`, which need not exist. If the store
    raises OSError or MemoryError, the error is raised here, too, because its cause may be a full disk, for example. If
    the store raises another error, the result is a refusal.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for number, (kind, documents) in enumerate(kinds.items()):
        yield _trip(adapter, kind, documents, folder / f"{number}{adapter.suffix}", _judged)
    for number, (kind, lines) in enumerate(text_kinds.items(), start=len(kinds)):
        yield _trip(adapter, kind, lines, folder / f"{number}{adapter.suffix}", _described)


def _outcome(kind: str, outcome: str, how: str = "", bound: str = "", cause: str = "") -> KindOutcome:
    return KindOutcome(kind, False, outcome, how, bound, cause, DICTS_LOSE.get(kind, ""))


def _trip(
    adapter: DocumentStoreAdapter,
    kind: str,
    given: Batch,
    location: Path,
    judge: Callable[[DocumentStoreAdapter, str, Any, Documents], KindOutcome],
) -> KindOutcome:
    try:
        adapter.begin(location)
        try:
            adapter.ingest([given], location)
            handle = adapter.open(location)
            try:
                came = [document for batch in handle.scan() for document in batch]
            finally:
                handle.close()
        finally:
            adapter.end(location)
    except (OSError, MemoryError):
        raise
    except Exception as error:
        return _outcome(kind, REFUSED, first_line(error))
    return judge(adapter, kind, given, came)


def _judged(adapter: DocumentStoreAdapter, kind: str, documents: Documents, came: Documents) -> KindOutcome:
    """Return whether the documents came back exactly, with changes that the store declares as losses, or with other
    changes."""
    declared = [loss for loss in adapter.losses if kind in loss.kinds]
    occurred = _explaining(documents, came, [loss for loss in declared if loss.view is not None])
    if occurred is None:
        return _outcome(kind, ERROR, str(first_difference(documents, came)))
    if missed := [loss.what for loss in declared if loss not in occurred]:
        return _outcome(kind, ERROR, f"declared, but did not occur: {'; '.join(missed)}")
    if not occurred:
        return _outcome(kind, EXACT)
    how, bound = ("; ".join(texts) for texts in zip(*((loss.what, loss.bound) for loss in occurred), strict=True))
    return _outcome(kind, LOSSY, how, bound, " and ".join(dict.fromkeys(loss.cause.value for loss in occurred)))


def _explaining(
    documents: Documents, came: Documents, declared: Sequence[DocumentLoss]
) -> Sequence[DocumentLoss] | None:
    """Return the fewest declared losses that explain the differences: none, one, or all. Return None if the declared
    losses do not explain the differences."""
    tried = ([], *([loss] for loss in declared), declared)
    return next((losses for losses in tried if first_difference(documents, came, losses) is None), None)


def _described(adapter: DocumentStoreAdapter, kind: str, lines: bytes, came: Documents) -> KindOutcome:
    """Return what happened to a property of JSON text. The outcome of an unknown change is an error."""
    given = [json.loads(line) for line in lines.splitlines()]
    found = {document.get("id"): document for document in came}
    pairs = [(document, found.get(document["id"])) for document in given]
    if kind == ORDER:
        orders = [(_names(document), _names(other)) for document, other in pairs]
        if all(first == then for first, then in orders):
            return _outcome(kind, EXACT)
        if any(sorted(first) != sorted(then) for first, then in orders):
            return _outcome(kind, ERROR, f"{given} came back as {came}")
        return _outcome(kind, LOSSY, _order_text([then for _, then in orders]), "the same fields", Cause.FORMAT.value)
    if all(identical(document, other) for document, other in pairs):
        return _outcome(kind, EXACT)
    if kind == DUPLICATE_NAMES:
        firsts = [json.loads(line, object_pairs_hook=_first_of_each) for line in lines.splitlines()]
        if all(identical(document, found.get(document["id"])) for document in firsts):
            return _outcome(
                kind, LOSSY, "the first value of a name is kept, not the last", "one of the values", "format"
            )
    if kind == BIG_INTEGERS and all(_is_nearest(document, other) for document, other in pairs):
        how = "an integer over 64 bits becomes a double"
        return _outcome(kind, LOSSY, how, "the double nearest to it", Cause.FORMAT.value)
    if kind == BIG_INTEGERS and all(_has_digits(document, other) for document, other in pairs):
        return _outcome(kind, LOSSY, "an integer over 64 bits becomes a text", "its digits", Cause.FORMAT.value)
    return _outcome(kind, ERROR, f"{given} came back as {came}")


def _is_nearest(document: Document, other: Document | None) -> bool:
    """Return whether the integer `a` came back exactly, or as the double (64-bit float) that is nearest to it."""
    came = (other or {}).get("a")
    return identical(came, document["a"]) or identical(came, float(document["a"]))


def _has_digits(document: Document, other: Document | None) -> bool:
    """Return whether the integer `a` came back exactly, or as a text of its digits."""
    came = (other or {}).get("a")
    return identical(came, document["a"]) or identical(came, str(document["a"]))


def _names(document: Document | None, before: str = "") -> list[str]:
    """Return the names of all fields of a document, in order. The name of a field in a nested object is preceded by the
    names of the objects that contain it, as in 'a.b'."""
    found: list[str] = []
    for name, value in (document or {}).items():
        found.append(f"{before}{name}")
        if isinstance(value, dict):
            found += _names(value, f"{before}{name}.")
    return found


def _order_text(orders: Sequence[Sequence[str]]) -> str:
    if all(list(order) == sorted(order) for order in orders):
        return "fields come back sorted by their names"
    if all(list(order) == sorted(order, key=_by_length) for order in orders):
        return "fields come back sorted by the length of their names, then by their names"
    if len({tuple(order) for order in orders}) == 1:
        return "fields of all documents come back in one order"
    return "fields come back in another order"


def _by_length(path: str) -> list[tuple[int, str]]:
    return [(len(name), name) for name in path.split(".")]


def _first_of_each(pairs: Sequence[tuple[str, Any]]) -> Document:
    return dict(reversed(pairs))
