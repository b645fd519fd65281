"""Queries over documents: one plan, several ways to execute it, one answer.

    from libraries.document_store.queries import Aggregate, Compare, Constant, Filter, GroupBy, Named, Plan, field
    plan = Plan((Filter(Compare(field("age"), ">", Constant(30))),
                 GroupBy((Named("city", field("city")),), (Aggregate("people", "count"),))))
    execute(snapshot, plan)

plan.py says what can be asked, semantics.py what it means. Nothing here knows files, logs or merges. Nothing is
imported before it is used.
"""

from __future__ import annotations

from importlib import import_module

_PLAN = (
    *("Aggregate", "And", "AnyItem", "Call", "Compare", "Compute", "Constant", "Count", "Exists", "Field", "Filter"),
    *("GroupBy", "In", "IsMissing", "IsNull", "IsType", "Limit", "Named", "Not", "Or", "Order", "Plan", "Prefix"),
    *("Project", "TopK", "Unnest", "field", "paths_of"),
)
_HOMES = {
    **dict.fromkeys(_PLAN, "plan"),
    **dict.fromkeys(("from_data", "from_json", "to_data", "to_json"), "spelling"),
    **dict.fromkeys(("WAYS", "Way", "execute"), "executing"),
    **dict.fromkeys(("EXAMPLES", "Example"), "examples"),
    "run_over_documents": "rows",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
