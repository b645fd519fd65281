"""Generate source for conditions (masks) and expressions (vectors) over columns, for the branches of one schema.

The source of a condition computes a mask: for each tuple, whether the condition is true. `Not` is pushed down to
comparisons and tests. If the schema alone decides a part of a condition, that part is evaluated while the source is
generated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from libraries.document_queries.paths import ITEMS, Path
from libraries.document_queries.semantics import compare
from libraries.document_queries.steps import (
    And,
    AnyItem,
    Call,
    Compare,
    Condition,
    Constant,
    Exists,
    Expression,
    Field,
    In,
    IsMissing,
    IsNull,
    IsType,
    Not,
    Operator,
    Or,
    Prefix,
    Scalar,
    Unnest,
)
from libraries.document_store.queries.branches import NESTED, Branch, Places
from libraries.document_store.queries.comparing import for_doubles, for_integers
from libraries.document_store.queries.generated.function_source import FunctionSource
from libraries.document_store.queries.vectors.vector import MISSING
from libraries.document_store.values import ValueKind, kind_of

MOST_JOINED = 16
"""Maximum number of masks that one expression joins. Python limits the nesting of expressions that it compiles."""

Mask = str | bool
"""Source of a mask, or a bool if the result is the same for all tuples."""

OPPOSITE: dict[str, Operator] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
MIRRORED: dict[str, Operator] = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_NUMPY = {"=": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_NUMBERS = (ValueKind.INTEGER, ValueKind.DOUBLE)
_TEXTS = (ValueKind.TEXT, ValueKind.BINARY)


@dataclass(frozen=True)
class Scope:
    """What a name refers to: the document, or the items of an array."""

    path: Path
    depth: int
    index: str
    """The name of the variable with the slot of each tuple. The variable is None if the tuples are all slots, in
    order."""


@dataclass(frozen=True)
class Tuples:
    """The tuples that exist at one place in the source."""

    count: str
    """The name of the variable with the number of tuples."""
    scopes: dict[str, Scope] = field(default_factory=dict)


class ColumnSource:
    """Writes source that evaluates conditions and expressions. Records the schema leaves that this source reads."""

    def __init__(self, source: FunctionSource, places: Places) -> None:
        self.source, self.places = source, places
        self.leaves: set[int] = set()
        """Numbers of the leaves that were read by lines written since the last reset."""

    def view(self, branch: Branch, depth: int) -> str:
        """Return the name of a variable with the view of a branch's leaf."""
        self.leaves.add(branch.leaf.number)
        return self.source.variable("x", f"w.view({branch.leaf.number}, {depth})")

    def branches(self, read: Field, tuples: Tuples) -> tuple[Scope, Path, tuple[Branch, ...]]:
        """Return the scope of a field, its path from the root, and its branches."""
        scope = tuples.scopes[read.of]
        path = Path((*scope.path, *read.path))
        return scope, path, self.places.branches(path)

    def mask(self, condition: Condition, tuples: Tuples, negated: bool = False) -> Mask:
        """Return the mask of the tuples for which the condition is true or, if `negated`, for which the condition is
        false."""
        if isinstance(condition, Not):
            return self.mask(condition.condition, tuples, not negated)
        if isinstance(condition, And | Or):
            both = isinstance(condition, And) is not negated
            return self._joined([self.mask(part, tuples, negated) for part in condition.conditions], both)
        if isinstance(condition, Compare):
            operator = OPPOSITE[condition.operator] if negated else condition.operator
            return self._comparison(condition.left, operator, condition.right, tuples)
        if isinstance(condition, In):
            return self._among(condition, tuples, negated)
        if isinstance(condition, Prefix):
            return self._prefix(condition, tuples, negated)
        known = self._any_item(condition, tuples) if isinstance(condition, AnyItem) else self._kind(condition, tuples)
        if isinstance(known, bool):
            return known is not negated
        return f"~{known}" if negated else known

    def _joined(self, masks: list[Mask], both: bool) -> Mask:
        if (not both) in masks:
            return not both
        found = [mask for mask in masks if not isinstance(mask, bool)]
        if not found:
            return both
        word = " & " if both else " | "
        while len(found) > MOST_JOINED:
            pieces = [found[first : first + MOST_JOINED] for first in range(0, len(found), MOST_JOINED)]
            found = [self.source.variable("m", word.join(piece)) for piece in pieces]
        return found[0] if len(found) == 1 else f"({word.join(found)})"

    def _comparison(self, left: Expression, operator: str, right: Expression, tuples: Tuples) -> Mask:
        if isinstance(left, Constant) and isinstance(right, Constant):
            return compare(left.value, operator, right.value) is True
        if isinstance(left, Constant):
            return self._comparison(right, MIRRORED[operator], left, tuples)
        if isinstance(left, Field) and isinstance(right, Constant):
            return self._with_constant(left, operator, right.value, tuples)
        return self.source.variable(
            "m", f"compare({self.vector(left, tuples)}, {operator!r}, {self.vector(right, tuples)})"
        )

    def _with_constant(self, read: Field, operator: str, value: Scalar, tuples: Tuples) -> Mask:
        if value is None or value != value:
            return False
        kind = kind_of(value)
        like = _NUMBERS if kind in _NUMBERS else (kind,)
        return self._of_values(
            read, like, tuples, lambda values, branch: self._test(values, branch.kind, operator, value)
        )

    def _of_values(
        self, read: Field, kinds: tuple[ValueKind, ...], tuples: Tuples, test: Callable[[str, Branch], str | None]
    ) -> Mask:
        """Return the mask of the tuples whose value has one of these kinds and passes the test. `test` returns source
        that tests the values of a branch."""
        scope, _, branches = self.branches(read, tuples)
        masks: list[Mask] = []
        for branch in branches:
            if branch.kind in kinds:
                view = self.view(branch, scope.depth)
                known = test(f"{view}.tested", branch)
                if known is not None:
                    masks.append(self.source.variable("m", f"spread({known}, {view}, {scope.index})"))
        return self._joined(masks, both=False)

    def _test(self, values: str, kind: ValueKind, operator: str, value: Scalar) -> str | None:
        if kind in _TEXTS:
            return f"compare_texts({values}, {operator!r}, {self.source.value(value)})"
        if kind is ValueKind.BOOLEAN:
            return f"({values} {_NUMPY[operator]} {self.source.value(value)})"
        assert isinstance(value, int | float)
        known = for_integers(operator, value) if kind is ValueKind.INTEGER else for_doubles(operator, value)
        if known is False:
            return None
        if known is True:
            return f"({values} == {values})"
        test = f"({values} {_NUMPY[known[0]]} {self.source.value(known[1])})"
        # In numpy, `!=` is true for NaN, but in the query language no comparison with NaN is true.
        return f"({test} & ({values} == {values}))" if kind is ValueKind.DOUBLE and known[0] == "!=" else test

    def _among(self, condition: In, tuples: Tuples, negated: bool) -> Mask:
        texts = all(isinstance(value, str) for value in condition.values)
        if texts and len(condition.values) > 1 and isinstance(condition.expression, Field):
            several = self.source.value(condition.values)
            sign = "~" if negated else ""
            return self._of_values(
                condition.expression,
                (ValueKind.TEXT,),
                tuples,
                lambda values, _: f"({sign}is_among({values}, {several}))",
            )
        operator = "!=" if negated else "="
        each = [self._comparison(condition.expression, operator, Constant(v), tuples) for v in condition.values]
        return self._joined(each, both=negated)

    def _prefix(self, condition: Prefix, tuples: Tuples, negated: bool) -> Mask:
        expression = condition.expression
        if isinstance(expression, Constant):
            return isinstance(expression.value, str) and expression.value.startswith(condition.text) is not negated
        if not isinstance(expression, Field):
            return False
        text, sign = self.source.value(condition.text), "~" if negated else ""
        return self._of_values(expression, (ValueKind.TEXT,), tuples, lambda v, _: f"({sign}is_prefix({v}, {text}))")

    def _kind(self, condition: Exists | IsMissing | IsNull | IsType, tuples: Tuples) -> Mask:
        kinds = self.kinds(condition.expression, tuples)
        if isinstance(condition, Exists):
            return f"({kinds} != {MISSING})"
        if isinstance(condition, IsMissing):
            return f"({kinds} == {MISSING})"
        kind = ValueKind.NULL if isinstance(condition, IsNull) else ValueKind[condition.kind.upper()]
        return f"({kinds} == {int(kind)})"

    def kinds(self, expression: Expression, tuples: Tuples) -> str:
        """Return source that gives the kind of each tuple's value (uint8)."""
        if not isinstance(expression, Field):
            return f"spelled_out({self.vector(expression, tuples)})"
        scope, path, branches = self.branches(expression, tuples)
        if not branches:
            return f"spelled_out(absent({tuples.count}))"
        views = "".join(f"({self.view(branch, scope.depth)}, {int(branch.kind)}), " for branch in branches)
        return self.source.variable("k", f"kinds_of(({views}), {len(path)}, {scope.index})")

    def vector(self, expression: Expression, tuples: Tuples) -> str:
        """Return the name of a variable with the values of an expression; arrays and objects count as missing."""
        if isinstance(expression, Field):
            return self._field(expression, tuples)
        if isinstance(expression, Constant):
            value = self.source.value(expression.value)
            return self.source.variable("v", f"constant({value}, {int(kind_of(expression.value))}, {tuples.count})")
        assert isinstance(expression, Call)
        first = self.vector(expression.operands[0], tuples)
        if expression.function == "length":
            return self.source.variable("v", f"length({first})")
        if expression.function == "minus":
            return self.source.variable("v", f"minus({first}, {self.vector(expression.operands[1], tuples)})")
        divisor = expression.operands[1]
        assert isinstance(divisor, Constant)
        name = "floor_divide" if expression.function == "floor_divide" else "modulo"
        return self.source.variable("v", f"{name}({first}, {self.source.value(divisor.value)})")

    def _field(self, read: Field, tuples: Tuples) -> str:
        scope, path, branches = self.branches(read, tuples)
        scalar = [branch for branch in branches if branch.kind not in NESTED]
        if not scalar:
            return self.source.variable("v", f"absent({tuples.count})")
        if len(scalar) == 1:
            view = self.view(scalar[0], scope.depth)
            return self.source.variable("v", f"of_view({view}, {int(scalar[0].kind)}, {len(path)}, {scope.index})")
        views = "".join(f"({self.view(branch, scope.depth)}, {int(branch.kind)}), " for branch in scalar)
        return self.source.variable("v", f"of_views(({views}), {len(path)}, {scope.index})")

    def key(self, expression: Expression, tuples: Tuples) -> str:
        """Return the name of a variable with the values of a group key. Texts may be codes (see `codes.py`); other
        values are a vector."""
        if isinstance(expression, Field):
            scope, path, branches = self.branches(expression, tuples)
            scalar = [branch for branch in branches if branch.kind not in NESTED]
            if len(scalar) == 1 and scalar[0].kind in _TEXTS:
                view = self.view(scalar[0], scope.depth)
                given = f"{view}, {int(scalar[0].kind)}, {len(path)}, {scope.index}"
                return self.source.variable("c", f"key_of_view({given})")
        return self.vector(expression, tuples)

    def items(self, array: Unnest | AnyItem, tuples: Tuples) -> tuple[Scope, str, str] | None:
        """Return the scope of an array's items (the scope's index is not set yet), and the names of two variables: the
        slots of the items, and a view of the items.

        Returns None if the schema has no such items.
        """
        scope = tuples.scopes[array.of]
        path = Path((*scope.path, *array.path, ITEMS))
        branches = self.places.branches(path)
        if not branches:
            return None
        views = [self.view(branch, scope.depth + 1) for branch in branches]
        slots = self.source.variable("i", f"items(({', '.join(views)},), {len(path)})")
        return Scope(path, scope.depth + 1, "None"), slots, views[0]

    def _any_item(self, condition: AnyItem, tuples: Tuples) -> Mask:
        found = self.items(condition, tuples)
        if found is None:
            return False
        scope, slots, view = found
        old, index = self.source.name("o"), self.source.name("t")
        outer = tuples.scopes[condition.of].index
        self.source.line(f"{old}, {index} = joined({outer}, {view}.parents({scope.depth}), {slots})")
        scopes = {
            name: Scope(other.path, other.depth, self.source.variable("t", f"narrowed({other.index}, {old})"))
            for name, other in tuples.scopes.items()
        }
        scopes[condition.name] = Scope(scope.path, scope.depth, index)
        inner = Tuples(self.source.variable("n", f"len({old})"), scopes)
        known = self.mask(condition.condition, inner)
        if known is False:
            return False
        chosen = f"{old}" if known is True else f"{old}[{known}]"
        return self.source.variable("m", f"any_of({chosen}, {tuples.count})")
