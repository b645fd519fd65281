"""Random documents of random shapes: few names, so that one field has many types, and all edge cases."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NAMES = ("a", "b", "c", "long name", "", "x.y[*]", "é")

atoms = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=-(2**63), max_value=2**63 - 1),
    st.integers(min_value=-3, max_value=300),
    st.floats(),
    st.sampled_from([0.0, -0.0, 1.0, float("nan"), float("inf")]),
    st.text(max_size=8),
    st.binary(max_size=8),
)
values = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=12,
)  # fmt: skip


def documents(most: int = 8) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Return lists of documents with the keys 0, 1, 2 ... in the field `id`."""
    fields = st.dictionaries(st.sampled_from(NAMES), values, max_size=5)
    return st.lists(fields, max_size=most).map(
        lambda found: [{"id": number} | document for number, document in enumerate(found)]
    )
