"""Simplify expressions by what is known where they stand, and statements with them.

for i in range(4):           ->    for i in range(4):
    if i < 8:                          B[i] = A[i]
        B[i + 0] = A[i * 4 // 4]
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from tvm.arith import Analyzer, Extension
from tvm.ir.expr import PrimExpr
from tvm.ir.pass_context import PassContext, register_pass_config
from tvm.ir.structural import structural_equal
from tvm.ir.visitor import Rewriter
from tvm.tir.analysis.dataflow import conjuncts
from tvm.tir.analysis.safety import is_safe_anywhere
from tvm.tir.expr import (
    EQ,
    GE,
    LE,
    LT,
    NE,
    Add,
    BufferLoad,
    Call,
    FloatImm,
    IntImm,
    IterVar,
    Mul,
    Ramp,
    Range,
    StringImm,
    Sub,
    Var,
    const,
)
from tvm.tir.function import PrimFunc
from tvm.tir.linear import SumExpander
from tvm.tir.op import logical_not
from tvm.tir.stmt import (
    NO_OP,
    AssertStmt,
    AttrStmt,
    BufferStore,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Stmt,
)
from tvm.tir.stmt_functor import substitute
from tvm.tir.transform.common import (
    IF_THEN_ELSE,
    constant_extent,
    fresh,
    is_const,
    prim_func_pass,
    without_likely,
)
from tvm.tir.transform.fold_logarithm import LogarithmFolder
from tvm.tir.transform.known_values import KnownValuePropagator
from tvm.tir.transform.remove_no_op import stores_what_is_there

KEEP_LOOPS = "tir.debug_keep_trivial_loop"
register_pass_config(KEEP_LOOPS, bool)  # loops of one iteration stay loops


@dataclass(frozen=True)
class SimplifyConfig:
    """What is tried beyond the rules of arithmetic."""

    transitively_prove_inequalities: bool = False  # accepted: they always are
    propagate_knowns_to_prove_conditional: bool = False  # values in memory decide conditions
    propagate_knowns_to_simplify_expressions: bool = False  # they take the place of loads
    convert_boolean_to_and_of_ors: bool = False  # ``a and b or c`` as ``(a or c) and (b or c)``
    apply_constraints_to_boolean_branches: bool = False  # ``a and b``: b where a holds
    # multiply sums out, tighten comparisons, use extents and lets; the pipeline, which has no use for
    # one form rather than another, goes without
    thorough: bool = True

    def extensions(self) -> Extension:
        """What the analyzer does beyond its rules."""
        chosen = Extension.NoExtensions
        if self.convert_boolean_to_and_of_ors:
            chosen |= Extension.ConvertBooleanToAndOfOrs
        if self.apply_constraints_to_boolean_branches:
            chosen |= Extension.ApplyConstraintsToBooleanBranches
        return chosen


class StmtSimplifier(Rewriter):
    """Keeps the analyzer informed on the way down, and asks it at each expression."""

    def __init__(self, extensions: Extension = Extension.NoExtensions) -> None:
        self.analyzer = Analyzer()
        self.analyzer.enabled_extensions = extensions
        self._alternative_loads = _AlternativeLoads(self.analyzer)
        self.keeps_loops = PassContext.current().get(KEEP_LOOPS, False)

    def visit_prim_expr(self, e: PrimExpr) -> PrimExpr:
        return self.analyzer.simplify(self._alternative_loads.visit(e))

    def visit_var(self, var: Var) -> PrimExpr:
        return self.analyzer.simplify(var)

    def visit_int_imm(self, e: IntImm) -> PrimExpr:
        return e

    def visit_float_imm(self, e: FloatImm) -> PrimExpr:
        return e

    def visit_string_imm(self, e: StringImm) -> PrimExpr:
        return e

    def visit_for(self, loop: For) -> Stmt:
        start, extent = self.visit(loop.min), self.visit(loop.extent)
        if constant_extent(loop) == 0 or is_const(extent, 0):
            return NO_OP
        self.analyzer.bind(loop.loop_var, Range.from_min_extent(start, extent), True)
        opens = loop.kind is not ForKind.THREAD_BINDING and not self.keeps_loops
        if is_const(extent, 1) and opens and not loop.annotations:
            body: Stmt = self.visit(loop.body)
            rewritten: Stmt = substitute(body, {loop.loop_var: start})
            return rewritten
        body = self.visit(loop.body)
        if start is loop.min and extent is loop.extent and body is loop.body:
            return loop
        return loop.replace(min=start, extent=extent, body=body)

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        if attr.attr_key in ("thread_extent", "virtual_thread") and isinstance(attr.node, IterVar):
            self.analyzer.bind(attr.node.var, Range(attr.value), True)
        return self.rewrite_children(attr)

    def visit_let_stmt(self, let: LetStmt) -> Stmt:
        value = self.visit(let.value)
        if isinstance(value, (IntImm, FloatImm)):
            inlined: Stmt = self.visit(substitute(let.body, {let.var: value}))
            return inlined
        if let.var.dtype.is_int:
            bound = self.analyzer.const_int_bound(value)
            self.analyzer.update(let.var, bound, True)
        body = self.visit(let.body)
        if value is let.value and body is let.body:
            return let
        return LetStmt(let.var, value, body)

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        new = self.rewrite_children(store)
        return NO_OP if stores_what_is_there(new) else new

    def visit_if_then_else(self, stmt: IfThenElse) -> Stmt:
        condition = self.visit(stmt.condition)
        known = self.truth(condition)
        if known is not None:
            chosen = stmt.then_case if known else stmt.else_case
            return NO_OP if chosen is None else self.visit(chosen)
        yes = self.branch(without_likely(condition), stmt.then_case)
        no = stmt.else_case
        if no is not None:
            no = self.branch(logical_not(without_likely(condition)), no)
        if condition is stmt.condition and yes is stmt.then_case and no is stmt.else_case:
            return stmt
        return IfThenElse(condition, yes, no)

    def truth(self, condition: PrimExpr) -> bool | None:
        """Whether a simple condition holds, if that is known."""
        return truth_of(condition)

    def branch(self, condition: PrimExpr, body: Stmt) -> Stmt:
        """A statement where a condition holds."""
        with self.analyzer.constraint_scope(condition):
            new: Stmt = self.visit(body)
        return new

    def visit_assert_stmt(self, stmt: AssertStmt) -> Stmt:
        condition = self.visit(stmt.condition)
        if is_const(condition, 1):
            body: Stmt = self.visit(stmt.body)
            return body
        with self.analyzer.constraint_scope(condition):
            body = self.visit(stmt.body)
        if condition is stmt.condition and body is stmt.body:
            return stmt
        return AssertStmt(condition, stmt.message, body)


class ThoroughSimplifier(StmtSimplifier):
    """Brings expressions to the forms that programs compare with.

    Sums are multiplied out; a variable stays where a condition says what it equals; ``a <= b`` is ``a == b``
    where ``a >= b`` is known.
    """

    def __init__(self, extensions: Extension) -> None:
        super().__init__(extensions)
        self._expander = SumExpander()
        self._domains: dict[Var, Range] = {}
        self._equal: dict[
            Var, Var
        ] = {}  # variables that equal a constant here, and what they are otherwise
        self._conditions: dict[Var, PrimExpr] = {}  # the values of lets that are conditions
        self._unequal: tuple[NE, ...] = ()  # conditions that hold here
        self._logarithms = LogarithmFolder(self.analyzer)

    def visit_prim_expr(self, e: PrimExpr) -> PrimExpr:
        e = self._logarithms.visit(self._alternative_loads.visit(e))
        if self._equal and not e.dtype.is_bool:
            simple = self.analyzer.simplify(substitute(e, self._equal))
            simple = substitute(simple, {new: old for old, new in self._equal.items()})
            simple = e if structural_equal(simple, e) else simple
        else:
            simple = self._tightened(self.analyzer.simplify(e))
        expanded: PrimExpr = self._expander.visit(simple)
        return expanded

    def visit_var(self, var: Var) -> PrimExpr:
        return var if var in self._equal else super().visit_var(var)

    def visit_for(self, loop: For) -> Stmt:
        self._domains[loop.loop_var] = Range.from_min_extent(loop.min, loop.extent)
        return super().visit_for(loop)

    def visit_let_stmt(self, let: LetStmt) -> Stmt:
        if let.var.dtype.is_bool and is_safe_anywhere(let.value):
            self._conditions[let.var] = let.value
        return super().visit_let_stmt(let)

    def truth(self, condition: PrimExpr) -> bool | None:
        known = truth_of(condition)
        if known is not None or not self._conditions:
            return known
        return truth_of(self.analyzer.simplify(substitute(condition, self._conditions)))

    def branch(self, condition: PrimExpr, body: Stmt) -> Stmt:
        if isinstance(condition, Var):
            body = substitute(body, {condition: const(True, "bool")})
        outer, unequal = dict(self._equal), self._unequal
        for part in conjuncts(condition):
            if isinstance(part, NE) and part.a.dtype.is_int:
                self._unequal += (part,)
            if isinstance(part, EQ) and isinstance(part.a, Var) and isinstance(part.b, IntImm):
                other = self._equal[part.a] = fresh(part.a)
                if part.a in self._domains:
                    self.analyzer.bind(other, self._domains[part.a], True)
        new = super().branch(condition, body)
        self._equal, self._unequal = outer, unequal
        return new

    def _tightened(self, e: PrimExpr) -> PrimExpr:
        """A comparison by the strongest relation that holds where it does."""
        if isinstance(e, (LE, GE)):
            a, b = (e.a, e.b) if isinstance(e, LE) else (e.b, e.a)
            if self.analyzer.can_prove(b <= a):
                return self.analyzer.simplify(EQ(a, b))
            if self.analyzer.can_prove(NE(a, b)) or self._are_unequal(a, b):
                return LT(a, b)
        elif isinstance(e, NE) and e.a.dtype.is_int:
            if self._are_unequal(e.a, e.b):
                return const(True, "bool")
            if self.analyzer.can_prove(e.a <= e.b):
                return LT(e.a, e.b)
            if self.analyzer.can_prove(e.b <= e.a):
                return LT(e.b, e.a)
        return e

    def _are_unequal(self, a: PrimExpr, b: PrimExpr) -> bool:
        """Whether both equal the sides of something known to be unequal."""
        same = self.analyzer.can_prove_equal
        return any(
            [
                (same(a, known.a) and same(b, known.b)) or (same(a, known.b) and same(b, known.a))
                for known in self._unequal
            ]
        )


class _AlternativeLoads(Rewriter):
    """Makes the indices of loads in alternatives simple by what holds outside of them.

    What is concluded in one alternative holds there alone, and nothing of it serves the next one:
    the many loads of a concatenation would each simplify anew what their indices share.
    """

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.is_inside = False

    def visit_call(self, call: Call) -> PrimExpr:
        before, self.is_inside = self.is_inside, self.is_inside or call.op is IF_THEN_ELSE
        result: PrimExpr = self.rewrite_children(call)
        self.is_inside = before
        return result

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        if not self.is_inside:
            return self.rewrite_children(load)
        indices = tuple([self.analyzer.simplify(index) for index in load.indices])
        is_same = all([new is old for new, old in zip(indices, load.indices, strict=True)])
        # of quotients a condition may tell more
        if is_same or not all(map(_is_linear, indices)):
            return load
        return load.replace(indices=indices)


def _is_linear(index: PrimExpr) -> bool:
    """Whether an index is a sum of variables times constants, or a vector of such."""
    if isinstance(index, (Add, Sub, Mul)):
        return _is_linear(index.a) and _is_linear(index.b)
    if isinstance(index, Ramp):
        return _is_linear(index.base)
    return isinstance(index, (Var, IntImm))


def truth_of(condition: PrimExpr) -> bool | None:
    """Whether a condition is a constant, and which."""
    condition = without_likely(condition)
    return bool(condition.value) if type(condition) is IntImm else None


@prim_func_pass("tir.Simplify", SimplifyConfig)
def simplify(func: PrimFunc, config: SimplifyConfig) -> PrimFunc:
    """Simplify all expressions, and drop what is found not to happen."""
    in_conditions = config.propagate_knowns_to_prove_conditional
    in_expressions = config.propagate_knowns_to_simplify_expressions
    body = func.body
    if in_conditions or in_expressions:
        body = KnownValuePropagator(in_conditions, in_expressions).visit(body)
    if not config.thorough:
        return func.with_body(StmtSimplifier(config.extensions()).visit(body))
    simplifier = ThoroughSimplifier(config.extensions())
    with ExitStack() as known:
        for buffer in func.buffer_map.values():
            for extent in buffer.shape:
                if not isinstance(extent, IntImm):
                    known.enter_context(simplifier.analyzer.constraint_scope(extent >= 0))
        return func.with_body(simplifier.visit(body))


Simplify = simplify.factory
