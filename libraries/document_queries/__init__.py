"""Questions about documents, in a language that belongs to no store: plans, what they mean, and the right answers.

    from libraries.document_queries import Aggregate, Compare, Constant, Filter, GroupBy, Named, Plan, field
    plan = Plan((Filter(Compare(field("age"), ">", Constant(30))),
                 GroupBy((Named("city", field("city")),), (Aggregate("people", "count"),))))
    run_over_documents(documents, plan)

steps.py says what can be asked, semantics.py what it means, and reference.py answers over dicts. No other package is
imported, and each module only when it is used.
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
