"""A query language for documents, independent of any store: plans, their meaning, and reference answers.

    from libraries.document_queries import Aggregate, Compare, Constant, Filter, GroupBy, Named, Plan, field
    plan = Plan((Filter(Compare(field("age"), ">", Constant(30))),
                 GroupBy((Named("city", field("city")),), (Aggregate("people", "count"),))))
    run_over_documents(documents, plan)

steps.py defines the steps, semantics.py their meaning, and reference.py answers plans over dicts. The package imports
no other package of the project, and loads each module on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_STEPS = (
    *("Aggregate", "And", "AnyItem", "Call", "Compare", "Compute", "Constant", "Count", "Exists", "Field", "Filter"),
    *("GroupBy", "In", "IsMissing", "IsNull", "IsType", "Limit", "Named", "Not", "Or", "Order", "Prefix", "Project"),
    *("TopK", "Unnest"),
)
_HOMES = {
    **dict.fromkeys(_STEPS, "steps"),
    **dict.fromkeys(("Plan", "field"), "plan"),
    **dict.fromkeys(("from_json", "to_json"), "json_form"),
    "QueryError": "errors",
    "run_over_documents": "reference",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
