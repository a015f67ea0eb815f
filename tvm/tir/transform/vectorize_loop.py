"""Turn loops marked vectorized into vector statements.

    for i in vectorized(4):      ->    B[ramp(0, 1, 4)] = A[ramp(0, 1, 4)] + broadcast(x, 4)
        B[i] = A[i] + x

What has no vector form is done one lane at a time: a statement in a serial loop of its own, or, where
lanes meet in one memory cell, the whole loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from tvm.error import VectorizeError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter
from tvm.support.dtype import ScalableLanes
from tvm.tir import op
from tvm.tir.analysis.safety import is_safe_anywhere
from tvm.tir.buffer import Buffer
from tvm.tir.expr import (
    Add,
    And,
    BinaryOpExpr,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    CmpExpr,
    Let,
    Mul,
    Not,
    Or,
    Ramp,
    Select,
    Shuffle,
    Sub,
    Var,
    as_expr,
    const,
)
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
    seq,
)
from tvm.tir.stmt_functor import substitute
from tvm.tir.transform.common import (
    IF_THEN_ELSE,
    LIKELY,
    fresh,
    is_const,
    prim_func_pass,
)
from tvm.tir.transform.lanes import (
    LANE_MASKS,
    Mask,
    Masking,
    NoVectorForm,
    active_lanes,
    broadcast_to,
    default_masking,
    has_vectorized_loop,
    is_predicated,
    lanes_of,
    masking_of,
    may_trap,
    names_of,
    problem_of_scalable_vectors,
    reads,
    require_scalable_vectors,
    target_of,
    weakest_lane,
)

LLVM_INTRINSICS = ("tir.call_llvm_intrin", "tir.call_llvm_pure_intrin")
S = TypeVar("S", bound=Stmt)
N = TypeVar("N", PrimExpr, Stmt)


@dataclass(frozen=True)
class VectorizeLoopConfig:
    """What becomes of marked loops."""

    enable_vectorize: bool = True  # otherwise they become serial loops
    masked: bool = False  # conditions that differ between lanes become masks of loads and stores


class LanesMeet(Exception):
    """Lanes write one cell: only the loop as written gives the right result."""


class LoopVectorizer(Rewriter):
    """Finds the marked loops, inner ones first."""

    def __init__(self, masking: Masking, target: Any) -> None:
        self.masking = masking
        self.target = target  # None if it is not known
        self.has_conditions = False  # whether conditions of the program are masks now

    def visit_for(self, loop: For) -> Stmt:
        # lanes of two loops do not meet in one vector: the outer loop stays a loop
        is_outer = loop.kind is ForKind.VECTORIZED and has_vectorized_loop(loop.body)
        loop = self.rewrite_children(loop)
        if is_outer:
            return loop.replace(kind=ForKind.SERIAL)
        if loop.kind is not ForKind.VECTORIZED:
            return loop
        lanes = lanes_of(loop)
        if lanes is None:
            raise VectorizeError(
                f"vectorize needs a constant extent, got {loop.extent}",
                at=loop,
                hint="split the axis first and vectorize the inner part",
                classic=f"Failed to vectorize loop with extent {loop.extent} for target (nullptr)",
            )
        if isinstance(lanes, ScalableLanes):
            require_scalable_vectors(loop, self.target)
        if problem := problem_of_scalable_vectors(loop, lanes):
            raise VectorizeError(problem, at=loop, hint="vectorize one loop, of scalars")
        if lanes <= 1:
            return substitute(loop.body, {loop.loop_var: loop.min}) if lanes else seq([])
        try:
            return self._vectorized(loop, lanes)
        except (NoVectorForm, LanesMeet):
            return loop.replace(kind=ForKind.SERIAL)

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        outer = self.masking
        if attr.attr_key == "target" and outer is Masking.NONE and is_predicated() is None:
            self.masking = default_masking(attr.node)
        new = self.rewrite_children(attr)
        self.masking = outer
        return new

    def _vectorized(self, loop: For, lanes: int) -> Stmt:
        masking = self.masking
        if isinstance(lanes, ScalableLanes) and is_predicated() is None:
            masking = Masking.ACTIVE_LANES
        vectorizer = StmtVectorizer(loop, lanes, masking)
        body: Stmt = vectorizer.visit(loop.body)
        self.has_conditions |= vectorizer.has_masks and masking is Masking.CONDITION
        return body

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        return store

    def visit_evaluate(self, stmt: Evaluate) -> Stmt:
        return stmt


class StmtVectorizer(Rewriter):
    """Rewrites the body of one loop so that it does all iterations at once.

    An expression that does not depend on the loop variable stays a scalar; vectors appear where needed.
    """

    def __init__(self, loop: For, lanes: int, masking: Masking) -> None:
        self.loop = loop
        self.lanes = lanes
        self.masking = masking
        self.mask: Mask | None = None
        self.has_masks = False
        self.iterations = Ramp(loop.min, const(1, loop.loop_var.dtype), lanes)
        self.vectors: dict[Var, PrimExpr] = {loop.loop_var: self.iterations}
        # buffers allocated inside the loop: each lane has its own cells, side by side
        self.widened: dict[Var, Var] = {}
        self.buffers: dict[Buffer, Buffer] = {}

    # ---- expressions

    def visit_var(self, var: Var) -> PrimExpr:
        if var in self.widened:
            raise NoVectorForm
        return self.vectors.get(var, var)

    def visit_add(self, e: Add) -> PrimExpr:
        a, b = self.visit(e.a), self.visit(e.b)
        if a is e.a and b is e.b:
            return e
        if type(a) is Ramp and b.dtype.lanes == 1:
            return Ramp(a.base + b, a.stride, a.lanes)
        if type(b) is Ramp and a.dtype.lanes == 1:
            return Ramp(a + b.base, b.stride, b.lanes)
        if type(a) is Ramp and type(b) is Ramp and a.dtype is b.dtype:
            return Ramp(a.base + b.base, a.stride + b.stride, a.lanes)
        return self._widen_pair(Add, a, b)

    def visit_sub(self, e: Sub) -> PrimExpr:
        a, b = self.visit(e.a), self.visit(e.b)
        if a is e.a and b is e.b:
            return e
        if type(a) is Ramp and b.dtype.lanes == 1:
            return Ramp(a.base - b, a.stride, a.lanes)
        if type(b) is Ramp and a.dtype.lanes == 1:
            return Ramp(a - b.base, 0 - b.stride, b.lanes)
        if type(a) is Ramp and type(b) is Ramp and a.dtype is b.dtype:
            return Ramp(a.base - b.base, a.stride - b.stride, a.lanes)
        return self._widen_pair(Sub, a, b)

    def visit_mul(self, e: Mul) -> PrimExpr:
        a, b = self.visit(e.a), self.visit(e.b)
        if a is e.a and b is e.b:
            return e
        if type(a) is Ramp and b.dtype.lanes == 1:
            return Ramp(a.base * b, a.stride * b, a.lanes)
        if type(b) is Ramp and a.dtype.lanes == 1:
            return Ramp(a * b.base, a * b.stride, b.lanes)
        return self._widen_pair(Mul, a, b)

    def visit_binary_op_expr(self, e: BinaryOpExpr) -> PrimExpr:
        return self._pair(e)

    def visit_cmp_expr(self, e: CmpExpr) -> PrimExpr:
        return self._pair(e)

    def visit_and(self, e: And) -> PrimExpr:
        return self._both(e)

    def visit_or(self, e: Or) -> PrimExpr:
        return self._both(e)

    def _both(self, e: And | Or) -> PrimExpr:
        new = self._pair(e)
        # a vector's second operand is evaluated for all lanes, whatever the first one says
        is_guard = self.masking is Masking.CONDITION
        if new.dtype.lanes > 1 and is_guard and not is_safe_anywhere(e.b):
            raise NoVectorForm
        return new

    def visit_not(self, e: Not) -> PrimExpr:
        a = self.visit(e.a)
        return e if a is e.a else Not(a)

    def visit_cast(self, e: Cast) -> PrimExpr:
        value = self.visit(e.value)
        if value is e.value:
            return e
        _require_vectors_of(value, e)
        return Cast(e.dtype.with_lanes(value.dtype.lanes), value)

    def visit_select(self, e: Select) -> PrimExpr:
        condition = self.visit(e.condition)
        yes, no = self.visit(e.true_value), self.visit(e.false_value)
        if condition is e.condition and yes is e.true_value and no is e.false_value:
            return e
        lanes = max(condition.dtype.lanes, yes.dtype.lanes, no.dtype.lanes)
        condition = broadcast_to(condition, lanes)
        return Select(condition, broadcast_to(yes, lanes), broadcast_to(no, lanes))

    def visit_let(self, e: Let) -> PrimExpr:
        value = self.visit(e.value)
        if value.dtype is e.value.dtype:
            body = self.visit(e.body)
            return e if value is e.value and body is e.body else Let(e.var, value, body)
        var = self._vector_var(e.var, value)
        return Let(var, value, self.visit(e.body))

    def visit_ramp(self, e: Ramp) -> PrimExpr:
        return self._unless_changed(e)

    def visit_broadcast(self, e: Broadcast) -> PrimExpr:
        return self._unless_changed(e)

    def visit_shuffle(self, e: Shuffle) -> PrimExpr:
        return self._unless_changed(e)

    def visit_call(self, e: Call) -> PrimExpr:
        if e.op is IF_THEN_ELSE:
            return self._if_then_else(e)
        args: list[PrimExpr] = [self.visit(arg) for arg in e.args]
        if all([new is old for new, old in zip(args, e.args, strict=True)]):
            return e
        if e.op is LIKELY:
            return args[0]  # a hint about one branch means nothing to a vector of them
        if not getattr(e.op, "vectorizable", False):
            raise NoVectorForm
        _require_vectors_of(e, *args)
        lanes = max([arg.dtype.lanes for arg in args])
        if e.dtype.lanes not in (1, lanes):
            raise NoVectorForm
        # of an intrinsic of LLVM the name and the number of types are one for all lanes
        fixed = 2 if getattr(e.op, "name", "") in LLVM_INTRINSICS else 0
        wide = [broadcast_to(arg, lanes) for arg in args[fixed:]]
        return Call(e.dtype.with_lanes(lanes), e.op, [*args[:fixed], *wide])

    def visit_buffer_load(self, e: BufferLoad) -> PrimExpr:
        indices = self._indices(e.buffer, e.indices)
        buffer = self.buffers.get(e.buffer, e.buffer)
        if indices is None:
            if self.mask is not None and not self.mask.some:
                raise NoVectorForm
            return e
        if e.predicate is not None:
            raise NoVectorForm
        last = indices[-1]
        if type(last) is Broadcast and buffer.dtype.lanes == 1:
            if self.mask is not None and not self.mask.some:
                raise NoVectorForm
            return Broadcast(BufferLoad(buffer, (*indices[:-1], last.value)), last.lanes)
        return BufferLoad(buffer, tuple(indices), self._predicate(last))

    def _if_then_else(self, e: Call) -> PrimExpr:
        condition = self.visit(e.args[0])
        if condition.dtype.lanes > 1:
            return self._choose(condition, e.args[1], e.args[2])
        yes, no = self.visit(e.args[1]), self.visit(e.args[2])
        if condition is e.args[0] and yes is e.args[1] and no is e.args[2]:
            return e
        lanes = max(condition.dtype.lanes, yes.dtype.lanes, no.dtype.lanes)
        branches = [broadcast_to(yes, lanes), broadcast_to(no, lanes)]
        return Call(branches[0].dtype, e.op, [condition, *branches])

    def _choose(self, condition: PrimExpr, yes: PrimExpr, no: PrimExpr) -> PrimExpr:
        """A choice lane by lane; what is read for a lane is read under its condition."""
        if self.masking is not Masking.CONDITION:
            raise NoVectorForm
        lanes = condition.dtype.lanes
        values = [
            self.visit(e) if is_safe_anywhere(e) else self._under(Mask(mask, False), e)
            for e, mask in ((yes, condition), (no, Not(condition)))
        ]
        return Select(condition, *[broadcast_to(value, lanes) for value in values])

    def _under(self, mask: Mask, node: N) -> N:
        """What a node becomes where the mask holds."""
        if self.masking is Masking.NONE:
            raise NoVectorForm
        outer = self.mask
        if outer is not None:
            mask = Mask(And(outer.lanes, mask.lanes), False)
        self.mask = mask
        try:
            found: N = self.visit(node)
            return found
        finally:
            self.mask = outer

    def _predicate(self, index: PrimExpr) -> PrimExpr | None:
        """The mask for an access of neighbouring cells; other accesses cannot have one."""
        if self.mask is None or index.dtype.lanes == 1:
            return None
        if type(index) is not Ramp or not (is_const(index.stride, 1) or is_const(index.stride, -1)):
            raise NoVectorForm
        self.has_masks = True
        return self.mask.lanes

    def _indices(self, buffer: Buffer, indices: tuple[PrimExpr, ...]) -> list[PrimExpr] | None:
        """The indices for all lanes, or None if they are the same for each."""
        new = [self.visit(index) for index in indices]
        if buffer in self.buffers:
            new[-1] = self._own_cell(new[-1])
        elif all([i is j for i, j in zip(new, indices, strict=True)]):
            return None
        if buffer.dtype.lanes > 1 and new[-1].dtype.lanes > 1:
            raise NoVectorForm
        if any([index.dtype.lanes > 1 for index in new[:-1]]):
            raise NoVectorForm
        return new

    def _own_cell(self, index: PrimExpr) -> PrimExpr:
        """Each lane's cell of a buffer that the loop allocates."""
        zero, one = const(0, index.dtype.element), const(1, index.dtype.element)
        lane = Ramp(zero, one, self.lanes)
        if index.dtype.lanes == 1:
            return Ramp(index * self.lanes, one, self.lanes)
        if index.dtype.lanes != self.lanes:
            raise NoVectorForm
        return index * broadcast_to(op.cast(as_expr(self.lanes), zero.dtype), self.lanes) + lane

    def _pair(self, e: BinaryOpExpr | CmpExpr | And | Or) -> PrimExpr:
        if self.mask is not None and may_trap(e):
            raise NoVectorForm
        a, b = self.visit(e.a), self.visit(e.b)
        return e if a is e.a and b is e.b else self._widen_pair(type(e), a, b)

    def _widen_pair(
        self, kind: Callable[[PrimExpr, PrimExpr], PrimExpr], a: PrimExpr, b: PrimExpr
    ) -> PrimExpr:
        _require_vectors_of(a)
        lanes = max(a.dtype.lanes, b.dtype.lanes)
        return kind(broadcast_to(a, lanes), broadcast_to(b, lanes))

    def _unless_changed(self, e: PrimExpr) -> PrimExpr:
        if self.rewrite_children(e) is not e:
            raise NoVectorForm
        return e

    def _vector_var(self, var: Var, value: PrimExpr) -> Var:
        vector = Var(var.name, value.dtype)
        self.vectors[var] = vector
        return vector

    # ---- statements

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        return self._or_lane_by_lane(store, self._store)

    def visit_evaluate(self, stmt: Evaluate) -> Stmt:
        return self._or_lane_by_lane(stmt, self._evaluate)

    def visit_if_then_else(self, stmt: IfThenElse) -> Stmt:
        return self._or_lane_by_lane(stmt, self._if)

    def visit_for(self, loop: For) -> Stmt:
        return self._or_lane_by_lane(loop, self._for)

    def visit_while(self, loop: While) -> Stmt:
        return self._or_lane_by_lane(loop, self._while)

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        return self._or_lane_by_lane(attr, self._attr)

    def visit_assert_stmt(self, stmt: AssertStmt) -> Stmt:
        return self._or_lane_by_lane(stmt, self._assert)

    def visit_let_stmt(self, let: LetStmt) -> Stmt:
        return self._or_lane_by_lane(let, self._let)

    def visit_allocate(self, alloc: Allocate) -> Stmt:
        return self._or_lane_by_lane(alloc, self._allocate)

    def visit_seq_stmt(self, block: SeqStmt) -> Stmt:
        return self.rewrite_children(block)

    def visit_decl_buffer(self, decl: DeclBuffer) -> Stmt:
        data = self.widened.get(decl.buffer.data)
        if data is None:
            return self.rewrite_children(decl)
        if len(decl.buffer.shape) != 1:
            raise NoVectorForm
        buffer = decl.buffer.replace(data=data, shape=(decl.buffer.shape[0] * self.lanes,))
        self.buffers[decl.buffer] = buffer
        return DeclBuffer(buffer, self.visit(decl.body))

    def visit_stmt(self, stmt: Stmt) -> Stmt:
        raise NoVectorForm  # blocks, realisations: lowered before this pass

    def _store(self, store: BufferStore) -> Stmt:
        value = self.visit(store.value)
        indices = self._indices(store.buffer, store.indices)
        buffer = self.buffers.get(store.buffer, store.buffer)
        if store.predicate is not None and (value is not store.value or indices is not None):
            raise NoVectorForm
        if indices is None:
            # one cell for all lanes: doing it once is enough only if the value is the same each time
            if value is not store.value or reads(store.value, store.buffer):
                raise LanesMeet
            return store
        last = indices[-1]
        if last.dtype.lanes == 1 or type(last) is Broadcast:
            raise LanesMeet
        value = broadcast_to(value, last.dtype.lanes)
        return BufferStore(buffer, value, indices, self._predicate(last))

    def _evaluate(self, stmt: Evaluate) -> Stmt:
        value = self.visit(stmt.value)
        if value is stmt.value:
            return stmt
        if self.mask is not None:
            raise NoVectorForm
        return Evaluate(value)

    def _if(self, stmt: IfThenElse) -> Stmt:
        condition = self.visit(stmt.condition)
        if condition.dtype.lanes > 1:
            return self._masked_if(stmt, condition)
        yes = self.visit(stmt.then_case)
        no = None if stmt.else_case is None else self.visit(stmt.else_case)
        if condition is stmt.condition and yes is stmt.then_case and no is stmt.else_case:
            return stmt
        return IfThenElse(condition, yes, no)

    def _masked_if(self, stmt: IfThenElse, condition: PrimExpr) -> Stmt:
        """The first lane (or last one) decides whether there is anything to do, a mask for which lanes."""
        if self.masking is Masking.ACTIVE_LANES:
            return self._predicated_if(stmt, condition)
        lane = weakest_lane(condition, self.lanes)
        if lane is None or stmt.else_case is not None or self.mask is not None:
            raise NoVectorForm
        loop = self.loop
        guard = substitute(stmt.condition, {loop.loop_var: loop.min + lane})
        if names_of(guard, self.vectors):
            raise NoVectorForm
        return IfThenElse(guard, self._under(Mask(condition, True), stmt.then_case))

    def _predicated_if(self, stmt: IfThenElse, condition: PrimExpr) -> Stmt:
        """A bound of the index as the predicate that processors with scalable vectors make of it."""
        mask = active_lanes(condition)
        if mask is None or stmt.else_case is not None or self.mask is not None:
            raise NoVectorForm
        body: Stmt = self._under(Mask(mask, False), stmt.then_case)
        return body

    def _for(self, loop: For) -> Stmt:
        start, extent = self._scalar(loop.min), self._scalar(loop.extent)
        body = self.visit(loop.body)
        if start is loop.min and extent is loop.extent and body is loop.body:
            return loop
        return loop.replace(min=start, extent=extent, body=body)

    def _while(self, loop: While) -> Stmt:
        condition = self._scalar(loop.condition)
        body = self.visit(loop.body)
        same = condition is loop.condition and body is loop.body
        return loop if same else While(condition, body)

    def _attr(self, attr: AttrStmt) -> Stmt:
        value = self._scalar(attr.value)
        body = self.visit(attr.body)
        if value is attr.value and body is attr.body:
            return attr
        return attr.replace(value=value, body=body)

    def _assert(self, stmt: AssertStmt) -> Stmt:
        condition = self._scalar(stmt.condition)
        body = self.visit(stmt.body)
        if condition is stmt.condition and body is stmt.body:
            return stmt
        return stmt.replace(condition=condition, body=body)

    def _let(self, let: LetStmt) -> Stmt:
        value = self.visit(let.value)
        if value.dtype is let.value.dtype:
            body = self.visit(let.body)
            same = value is let.value and body is let.body
            return let if same else LetStmt(let.var, value, body)
        var = self._vector_var(let.var, value)
        return LetStmt(var, value, self.visit(let.body))

    def _allocate(self, alloc: Allocate) -> Stmt:
        condition = self._scalar(alloc.condition)
        extents = [self._scalar(extent) for extent in alloc.extents]
        var = fresh(alloc.buffer_var)
        self.widened[alloc.buffer_var] = var
        extents = [*extents[:-1], extents[-1] * self.lanes]
        body = self.visit(alloc.body)
        return Allocate(var, alloc.dtype, tuple(extents), condition, body, alloc.annotations)

    def _scalar(self, e: PrimExpr) -> PrimExpr:
        new: PrimExpr = self.visit(e)
        if new.dtype.lanes != e.dtype.lanes:
            raise NoVectorForm
        return new

    def _or_lane_by_lane(self, stmt: S, vectorize: Callable[[S], Stmt]) -> Stmt:
        """The vector form, or a serial loop around the statement if it has none."""
        try:
            return vectorize(stmt)
        except NoVectorForm:
            inner = [*self.widened, *[var for var in self.vectors if var is not self.loop.loop_var]]
            if self.mask is not None or names_of(stmt, inner):
                raise  # only a statement further out can be done lane by lane
            loop = self.loop
            var = Var(loop.loop_var.name, loop.loop_var.dtype)
            body = substitute(stmt, {loop.loop_var: var})
            return For(var, loop.min, loop.extent, ForKind.SERIAL, body)


def _require_vectors_of(*values: PrimExpr) -> None:
    """The functions of users' types take one number at a time."""
    if any([value.dtype.is_custom for value in values]):
        raise NoVectorForm


@prim_func_pass("tir.VectorizeLoop", VectorizeLoopConfig)
def vectorize_loop(func: PrimFunc, config: VectorizeLoopConfig) -> PrimFunc:
    """Do what marked loops do in one step for all iterations."""
    if not config.enable_vectorize:
        return func.with_body(LoopSerializer().visit(func.body))
    vectorizer = LoopVectorizer(masking_of(func, config.masked), target_of(func))
    new = func.with_body(vectorizer.visit(func.body))
    return new.with_attr(LANE_MASKS, True) if vectorizer.has_conditions else new


class LoopSerializer(Rewriter):
    """Leaves marked loops as serial ones."""

    def visit_for(self, loop: For) -> Stmt:
        loop = self.rewrite_children(loop)
        return loop.replace(kind=ForKind.SERIAL) if loop.kind is ForKind.VECTORIZED else loop


VectorizeLoop = vectorize_loop.factory
