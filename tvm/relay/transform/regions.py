"""Regions of a function that external compilers take, as the annotations around them tell.

`compiler_begin` stands on what enters a region, `compiler_end` on what leaves it; expressions
joined without annotations between them are in one region. The passes work on expressions without them,
with a region number each, and write the annotations again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.op import Op
from tvm.relay.expr import Call, Constant, Var
from tvm.relay.function import Function
from tvm.relay.op.annotation.annotation import COMPILER_BEGIN, COMPILER_END
from tvm.relay.traverse import nodes_outside_functions, operands, with_operands

DEFAULT = "default"


def is_annotation(expr: RelayExpr) -> bool:
    """Whether an expression is one of the two annotations."""
    return isinstance(expr, Call) and (expr.op is COMPILER_BEGIN or expr.op is COMPILER_END)


def without_annotations(expr: RelayExpr) -> RelayExpr:
    """What stands below the annotations."""
    while is_annotation(expr):
        assert isinstance(expr, Call)
        expr = expr.args[0]
    return expr


def is_free(expr: RelayExpr) -> bool:
    """Whether an expression computes nothing and belongs to no region."""
    return isinstance(expr, (Var, Op, GlobalVar, Function, Constant))


@dataclass
class Regions:
    """The expressions of a function's body, operands first, and their regions."""

    func: Function
    order: list[RelayExpr]  # without annotations
    number: dict[int, int] = field(default_factory=dict)  # of the region, by expression
    compiler: dict[int, str] = field(default_factory=dict)  # by region; no entry: our own
    begins: int = 0  # how many annotations there are on what enters regions
    first_begin: dict[int, int] = field(
        default_factory=dict
    )  # by region, among all in the function
    first_end: dict[int, int] = field(default_factory=dict)  # by expression that has one

    def compiler_of(self, expr: RelayExpr) -> str | None:
        """The external compiler that has an expression."""
        return self.compiler.get(self.number.get(id(expr), -1))

    def together(self, a: RelayExpr, b: RelayExpr) -> bool:
        """Whether two expressions are in one region of an external compiler."""
        found = self.number.get(id(a))
        return found is not None and found in self.compiler and found == self.number.get(id(b))


def read_regions(func: Function) -> Regions:
    """The regions that the annotations in `func` show."""
    nodes = nodes_outside_functions(func.body)
    parent: dict[int, int] = {id(n): id(n) for n in nodes}

    def find(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    compilers: dict[int, str] = {}
    for node in nodes:
        if is_annotation(node):
            continue
        for operand in operands(node):
            if id(operand) in parent and not is_annotation(operand) and not is_free(operand):
                parent[find(id(operand))] = find(id(node))
    for node in nodes:
        for inside, annotation in _annotations_of(node):
            compilers[find(id(inside))] = str(annotation.attrs["compiler"])
    order = [n for n in nodes if not is_annotation(n)]
    numbers: dict[int, int] = {}
    result = Regions(func, order)
    for node in order:
        if not is_free(node):
            root = find(id(node))
            number = numbers.setdefault(root, len(numbers))
            result.number[id(node)] = number
            if root in compilers:
                result.compiler[number] = compilers[root]
    _count_annotations(result, nodes)
    return result


def external_regions(func: Function) -> Regions:
    """The regions that other compilers take; what is marked "default" is in none."""
    regions = read_regions(func)
    regions.compiler = {n: c for n, c in regions.compiler.items() if c != DEFAULT}
    return regions


def _count_annotations(regions: Regions, nodes: list[RelayExpr]) -> None:
    """Note where the annotations of regions stand among those of the function."""
    begins: dict[int, int] = {}
    for node in nodes:
        if isinstance(node, Call) and is_annotation(node) and node.attrs["compiler"] != DEFAULT:
            if node.op is COMPILER_BEGIN:
                begins[id(node)] = len(begins)
            else:
                regions.first_end.setdefault(id(without_annotations(node)), len(regions.first_end))
        elif not is_annotation(node) and not is_free(node):
            found = [begins[id(o)] for o in operands(node) if id(o) in begins]
            number = regions.number[id(node)]
            if found:
                known = regions.first_begin.get(number, found[0])
                regions.first_begin[number] = min(known, *found)
    regions.begins = len(begins)


def _annotations_of(node: RelayExpr) -> list[tuple[RelayExpr, Call]]:
    """The expressions whose region an annotation at `node` tells, with the annotation."""
    if isinstance(node, Call) and node.op is COMPILER_END and not is_free(node.args[0]):
        return [(node.args[0], node)]
    if is_annotation(node) or is_free(node):
        return []
    return [(node, o) for o in operands(node) if isinstance(o, Call) and o.op is COMPILER_BEGIN]


def write_regions(regions: Regions) -> Function:
    """The function without the annotations that stand inside regions."""
    done: dict[int, RelayExpr] = {}

    def with_marks(expr: RelayExpr) -> RelayExpr:
        if id(expr) not in done:
            done[id(expr)] = expr
            if isinstance(expr, Call) and is_annotation(expr):
                done[id(expr)] = expr.replace(args=(with_marks(expr.args[0]),))
        return done[id(expr)]

    def entering(operand: RelayExpr, user: RelayExpr) -> RelayExpr:
        base = without_annotations(operand)
        return with_marks(base if regions.together(base, user) else operand)

    for node in regions.order:
        below = () if is_free(node) else operands(node)
        done[id(node)] = with_operands(node, [entering(o, node) for o in below]) if below else node
    return regions.func.replace(body=with_marks(regions.func.body))
