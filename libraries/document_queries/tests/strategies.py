"""Random documents whose fields change their types, and random plans over them."""

from hypothesis import strategies as st

from libraries.document_queries import (
    Aggregate,
    And,
    AnyItem,
    Call,
    Compare,
    Compute,
    Constant,
    Count,
    Exists,
    Field,
    Filter,
    GroupBy,
    In,
    IsMissing,
    IsNull,
    IsType,
    Limit,
    Named,
    Not,
    Or,
    Order,
    Plan,
    Prefix,
    Project,
    TopK,
    Unnest,
)

HOSTILE = ("'); import os; os.abort() #", "__class__", 'q"\\\n', "C1")
NAMES = ("a", "b", "c", "", "f0", *HOSTILE)

scalars = st.sampled_from(
    [
        *(None, True, False, 0, 1, 2, -7, 2**53 + 1, 2**63 - 1, -(2**63)),
        *(1.0, 1.5, -0.0, 0.0, float("nan"), float("inf"), float("-inf"), 2.0**53, 1e300, 5e-324, -7.25),
        *("", "x", "xy", "é", "z\0", b"", b"x"),
    ]
)
names = st.sampled_from(NAMES[:3] * 4 + NAMES)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=3), max_leaves=8
)


def documents(most=12):
    """Return lists of documents with ascending keys in `id`. One field has values of many types."""
    fields = st.dictionaries(names, values, max_size=4)
    return st.lists(fields, max_size=most).map(lambda found: [{"id": i} | fields for i, fields in enumerate(found)])


@st.composite
def plans(draw):
    """Draw plans with all kinds of steps, over the field names that `documents` uses."""
    scopes, items = [""], []
    paths = st.lists(names, min_size=1, max_size=2).map(tuple)

    def field(within):
        of = draw(st.sampled_from(within))
        # Plans seldom read the whole document, but it is a value too and has to be tested.
        is_whole = draw(st.booleans()) if of else draw(st.integers(0, 7)) == 0
        return Field(() if is_whole else draw(paths), of)

    def expression(within, depth=0):
        choice = draw(st.integers(0, 9 if depth < 2 else 6))
        if choice <= 5:
            return field(within)
        if choice == 6:
            return Constant(draw(scalars))
        name = draw(st.sampled_from(["length", "minus", "floor_divide", "modulo"]))
        first = expression(within, depth + 1)
        if name == "length":
            return Call(name, (first,))
        second = expression(within, depth + 1) if name == "minus" else Constant(draw(st.sampled_from([1, 3, 2**62])))
        return Call(name, (first, second))

    def condition(within, depth=0, in_item=False):
        choice = draw(st.integers(0, 11 if depth < 2 else 7))
        if choice <= 2:
            operator = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
            right = Constant(draw(scalars)) if draw(st.booleans()) else expression(within)
            sides = [field(within), right]
            if draw(st.booleans()):
                sides.reverse()
            return Compare(sides[0], operator, sides[1])
        if choice == 3:
            return In(expression(within), tuple(draw(st.lists(scalars, max_size=3))))
        if choice == 4:
            texts = st.lists(st.sampled_from(["x", "é", "", "xy"]), min_size=1, max_size=3)
            return In(field(within), tuple(draw(texts)))
        if choice == 5:
            return Prefix(expression(within), draw(st.sampled_from(["", "x", "xy"])))
        if choice == 6:
            return draw(st.sampled_from([Exists, IsMissing, IsNull]))(expression(within))
        if choice == 7:
            kinds = ["null", "boolean", "integer", "double", "text", "binary", "array", "object"]
            return IsType(expression(within), draw(st.sampled_from(kinds)))
        if choice == 8:
            return Not(condition(within, depth + 1, in_item))
        if choice == 9 and not in_item:
            of = draw(st.sampled_from(within))
            items.append(f"item{len(items)}")
            name = items[-1]
            inner = condition([*within, name], depth + 1, True)
            return AnyItem(draw(paths) if not of else draw(st.just(()) | paths), name, inner, of)
        parts = tuple(condition(within, depth + 1, in_item) for _ in range(draw(st.integers(1, 3))))
        return And(parts) if draw(st.booleans()) else Or(parts)

    steps = []
    for _ in range(draw(st.integers(0, 3))):
        if draw(st.booleans()):
            steps.append(Filter(condition(scopes)))
        else:
            of, name = draw(st.sampled_from(scopes)), f"u{len(scopes)}"
            path = draw(paths) if not of else draw(st.just(()) | paths)
            distinct = expression([name]) if draw(st.integers(0, 3)) == 0 else None
            steps.append(Unnest(path, name, of, distinct))
            scopes.append(name)
    choice = draw(st.integers(0, 5))
    if choice == 0 and len(scopes) == 1:
        return Plan((*steps, *draw(st.sampled_from([(), (Limit(2),)]))))
    if choice == 1:
        return Plan((*steps, Count()))
    if choice <= 3:
        columns = tuple(Named(f"p{i}", expression(scopes)) for i in range(draw(st.integers(1, 3))))
        steps.append(Project(columns))
        found = [column.name for column in columns]
    else:
        keys = tuple(Named(f"k{i}", expression(scopes)) for i in range(draw(st.integers(0, 2))))
        functions = st.sampled_from(["count", "sum", "min", "max", "avg", "count_distinct"])
        figures = [Aggregate("n", "count")]
        figures += [Aggregate(f"f{i}", draw(functions), expression(scopes)) for i in range(draw(st.integers(0, 3)))]
        steps.append(GroupBy(keys, tuple(figures)))
        found = [*(key.name for key in keys), *(figure.name for figure in figures)]
    if draw(st.booleans()):
        left, right = (Field((draw(st.sampled_from(found)),)) for _ in range(2))
        steps.append(Compute((Named("computed", Call("minus", (left, right))),)))
        found.append("computed")
    if draw(st.booleans()):
        by = draw(st.lists(st.sampled_from(found), min_size=1, max_size=2, unique=True))
        orders = tuple(Order(name, draw(st.booleans())) for name in by)
        steps.append(TopK(orders, draw(st.none() | st.integers(0, 5))))
    return Plan(tuple(steps))
