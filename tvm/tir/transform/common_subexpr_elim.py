"""Compute what occurs more than once a single time.

A[i * 8 + j] = B[i * 8 + j]  ->    let cse_var_1 = i * 8 + j
                                   A[cse_var_1] = B[cse_var_1]

A variable is bound as far outside as everything it needs is known; larger expressions come first.
What reads memory, calls or may trap stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from tvm.arith import Analyzer
from tvm.ir.expr import PrimExpr
from tvm.ir.node import Node
from tvm.ir.transform import Pass
from tvm.ir.visitor import Rewriter, Visitor
from tvm.tir.analysis.safety import is_safe_anywhere
from tvm.tir.expr import (
    EQ,
    NE,
    Add,
    And,
    Call,
    Cast,
    FloatImm,
    IntImm,
    IterVar,
    Max,
    Min,
    Mul,
    Or,
    StringImm,
    Var,
)
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Allocate, AttrStmt, BlockRealize, For, LetStmt, Stmt
from tvm.tir.transform.common import contains, prim_func_pass, variables_of

# leaves, and what is as cheap as a variable
COMMUTATIVE = (Add, Mul, Min, Max, And, Or, EQ, NE)
NOT_WORTH = (Var, IntImm, FloatImm, StringImm, Cast)
Normalise = Callable[[PrimExpr], PrimExpr]
Eligible = Callable[[PrimExpr], bool]


@dataclass
class Computation:
    """An expression, how many nodes it has, and how often it occurs."""

    expr: PrimExpr
    size: int
    count: int = 0


@dataclass
class Numbering:
    """Gives equal expressions equal numbers."""

    normalise: Normalise | None = None
    numbers: dict[Hashable, int] = field(default_factory=dict)

    def number(self, e: PrimExpr) -> int:
        """The number of an expression, after it was brought to its normal form."""
        return self._structure(e if self.normalise is None else self.normalise(e))

    def _structure(self, e: Any) -> int:
        key: Hashable
        if isinstance(e, Var):
            key = e
        elif isinstance(e, (IntImm, FloatImm, StringImm)):
            key = (type(e), getattr(e, "dtype", None), e.value)
        else:
            parts = [self._structure(child) for child in e.children()]
            if self.normalise is not None and isinstance(e, COMMUTATIVE):
                parts.sort()
            key = (type(e), e.dtype, getattr(e, "op", None), *parts)
        return self.numbers.setdefault(key, len(self.numbers))


class ComputationCounter(Visitor):
    """Counts the expressions below a statement that need only variables from outside it."""

    def __init__(
        self, known: dict[Var, None], numbering: Numbering, is_worth: Eligible | None = None
    ) -> None:
        self.known = known
        self.numbering = numbering
        self.is_worth = is_worth or is_worth_a_variable
        self.found: dict[int, Computation] = {}

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        self.visit(attr.body)

    def visit_prim_expr(self, e: PrimExpr) -> None:
        if self.is_worth(e) and all([var in self.known for var in variables_of(e)]):
            found = self.found.setdefault(self.numbering.number(e), Computation(e, size_of(e)))
            found.count += 1
        self.visit_children(e)

    def best(self, least: int = 2) -> PrimExpr | None:
        """The largest of the expressions that occur so many times."""
        repeated = [found for found in self.found.values() if found.count >= least]
        return max(repeated, key=lambda c: c.size).expr if repeated else None


class ComputationReplacer(Rewriter):
    """Puts a variable in the place of an expression."""

    def __init__(
        self,
        expr: PrimExpr,
        var: Var,
        numbering: Numbering,
        is_worth: Eligible | None = None,
    ) -> None:
        self.wanted = numbering.number(expr)
        self.var = var
        self.numbering = numbering
        self.is_worth = is_worth or is_worth_a_variable

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        body = self.visit(attr.body)
        return attr if body is attr.body else attr.replace(body=body)

    def visit_prim_expr(self, e: PrimExpr) -> PrimExpr:
        if self.is_worth(e) and self.numbering.number(e) == self.wanted:
            return self.var
        return self.rewrite_children(e)


class CommonSubexprEliminator(Rewriter):
    """Goes down with the variables that are known; each statement that binds one is looked at anew."""

    def __init__(self, func: PrimFunc, numbering: Numbering) -> None:
        self.numbering = numbering
        self.known: dict[Var, None] = dict.fromkeys(func.params)
        for buffer in func.buffer_map.values():
            for part in (*buffer.shape, *buffer.strides, buffer.elem_offset):
                self.known.update(variables_of(part))
        self.count = 0

    def eliminate(self, stmt: Stmt) -> Stmt:
        """The statement with what repeats in it bound in front of it."""
        while True:
            counter = ComputationCounter(self.known, self.numbering)
            counter.visit(stmt)
            expr = counter.best()
            if expr is None:
                result: Stmt = self.visit(stmt)
                return result
            self.count += 1
            var = Var(f"cse_var_{self.count}", expr.dtype)
            body = ComputationReplacer(expr, var, self.numbering).visit(stmt)
            # the value is looked at with the rest: smaller expressions may repeat in it
            stmt = LetStmt(var, expr, body)

    def visit_let_stmt(self, let: LetStmt) -> Stmt:
        body = self._within(let.var, let.body)
        return let if body is let.body else let.replace(body=body)

    def visit_for(self, loop: For) -> Stmt:
        body = self._within(loop.loop_var, loop.body)
        return loop if body is loop.body else loop.replace(body=body)

    def visit_allocate(self, alloc: Allocate) -> Stmt:
        body = self.visit(alloc.body)
        return alloc if body is alloc.body else alloc.replace(body=body)

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        if isinstance(attr.node, IterVar):
            body = self._within(attr.node.var, attr.body)
        else:
            body = self.visit(attr.body)
        return attr if body is attr.body else attr.replace(body=body)

    def visit_prim_expr(self, e: PrimExpr) -> PrimExpr:
        return e

    def _within(self, var: Var, body: Stmt) -> Stmt:
        self.known[var] = None
        return self.eliminate(body)


def is_worth_a_variable(e: PrimExpr) -> bool:
    """Whether an expression may be computed elsewhere, and is dearer than a variable."""
    if isinstance(e, NOT_WORTH) or e.dtype.lanes != 1 or e.dtype.is_handle:
        return False
    return is_safe_anywhere(e) and not contains(e, lambda node: isinstance(node, Call))


def size_of(e: Node) -> int:
    """How many nodes an expression has."""
    sizes = [size_of(child) for child in e.children()]
    return 1 + sum(sizes)


def CommonSubexprElimTIR(enable_cse_tir: bool = True, identify_equiv_terms: bool = False) -> Pass:
    """The pass.

    Parameters
    ----------
    enable_cse_tir : bool
        Whether it does anything.
    identify_equiv_terms : bool
        Whether ``x + y`` is the same as ``y + x``, and ``x * (y + z)`` as ``x * y + x * z``.
    """

    @prim_func_pass("tir.CommonSubexprElimTIR")
    def common_subexpr_elim(func: PrimFunc) -> PrimFunc:
        if not enable_cse_tir or contains(func.body, lambda node: isinstance(node, BlockRealize)):
            return func
        normalise = Analyzer().canonical_simplify if identify_equiv_terms else None
        eliminator = CommonSubexprEliminator(func, Numbering(normalise))
        return func.with_body(eliminator.eliminate(func.body))

    return common_subexpr_elim.factory()
