"""Keep what neighbouring iterations share in a buffer that rolls, rather than compute it again.

    for y in range(8):                        realize B[0 : 3]:
        realize B[y : y + 3]:           ->        for y in range(8):
            attr rolling_buffer_scope:                for i in range(3):
                for i in range(3):                        if likely(y < 1 or i >= 2):
                    B[y + i] = f(y + i)                       B[(y + i) % 3] = f(y + i)
            C[y] = B[y] + B[y + 2]                    C[y] = B[y % 3] + B[(y + 2) % 3]

The buffer rolls along the innermost loop that moves its region, which has to do so forwards, in one
dimension; steps may differ, as those of y*5 // 2 do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm.arith import Analyzer
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter, Visitor
from tvm.tir import op
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, IntImm, Range, Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import (
    AttrStmt,
    BufferRealize,
    BufferStore,
    For,
    ForKind,
    IfThenElse,
    Stmt,
)
from tvm.tir.stmt_functor import substitute
from tvm.tir.transform.common import prim_func_pass

ROLLING_SCOPE = "rolling_buffer_scope"
THREAD_SCOPES = ("virtual_thread", "thread_extent")

_Around = For | IfThenElse | BufferRealize | AttrStmt


@dataclass(frozen=True)
class Roll:
    """How a buffer rolls: along which loop, in which dimension, by how much of which extent."""

    realize: BufferRealize
    loop: For
    axis: int
    step: PrimExpr  # since the iteration before
    extent: int

    @property
    def region(self) -> tuple[Range, ...]:
        """What is kept in memory: of the rolling dimension, as much as one iteration needs."""
        bounds = list(self.realize.bounds)
        low = const(0, bounds[self.axis].min.dtype)
        bounds[self.axis] = Range.from_min_extent(low, bounds[self.axis].extent)
        return tuple(bounds)

    def place(self, indices: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        """Where an element lies."""
        index = indices[self.axis]
        rolled = op.floormod(index, const(self.extent, index.dtype))
        return (*indices[: self.axis], rolled, *indices[self.axis + 1 :])

    def is_new(self, indices: Sequence[PrimExpr]) -> PrimExpr:
        """Whether an element was not computed in the iteration before."""
        analyzer = Analyzer()
        offset = analyzer.simplify(
            op.subtract(indices[self.axis], self.realize.bounds[self.axis].min)
        )
        is_first = op.less(self.loop.loop_var, analyzer.simplify(self.loop.min + 1))
        is_beyond = op.greater_equal(offset, analyzer.simplify(self.extent - self.step))
        return op.likely(op.any(is_first, is_beyond))


class _RollFinder(Visitor):
    """Finds the marked buffers and the loops along which they roll."""

    def __init__(self) -> None:
        self.rolls: dict[Buffer, Roll] = {}
        self.around: list[_Around] = []

    def _inside(self, stmt: _Around) -> None:
        self.around.append(stmt)
        self.visit_children(stmt)
        self.around.pop()

    def visit_for(self, loop: For) -> None:
        self._inside(loop)

    def visit_if_then_else(self, stmt: IfThenElse) -> None:
        self._inside(stmt)

    def visit_buffer_realize(self, realize: BufferRealize) -> None:
        self._inside(realize)

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        if attr.attr_key == ROLLING_SCOPE:
            realize = self._realize_of(attr.node)
            if (roll := self._find(realize)) is not None:
                self.rolls[realize.buffer] = roll
        if attr.attr_key in THREAD_SCOPES:
            self._inside(attr)
            return
        self.visit_children(attr)

    def _realize_of(self, node: Any) -> BufferRealize:
        data = node.data if isinstance(node, Buffer) else node
        for stmt in reversed(self.around):
            if isinstance(stmt, BufferRealize) and stmt.buffer.data is data:
                return stmt
        raise LoweringError(f"rolling_buffer requires memory that is realized around, got {node}")

    def _find(self, realize: BufferRealize) -> Roll | None:
        """The roll of a buffer; None if one iteration shares nothing with the next."""
        position = next(i for i, stmt in enumerate(self.around) if stmt is realize)
        for stmt in reversed(self.around[:position]):
            if isinstance(stmt, IfThenElse):
                raise _rejection(realize, "loops without a condition in between", stmt.condition)
            if isinstance(stmt, AttrStmt):
                # memory outside would be one for all threads
                if any(_uses(domain, stmt.node.var) for domain in realize.bounds):
                    raise _rejection(realize, "one region for all threads", stmt.node.var)
                continue
            if isinstance(stmt, For):
                moved = [i for i, r in enumerate(realize.bounds) if _uses(r, stmt.loop_var)]
                if moved:
                    return _roll_along(realize, stmt, moved)
        raise _rejection(realize, "a loop that moves what is computed", "none")


def _roll_along(realize: BufferRealize, loop: For, moved: Sequence[int]) -> Roll | None:
    if loop.kind not in (ForKind.SERIAL, ForKind.UNROLLED):
        raise _rejection(realize, "a loop that runs in order", f"{loop.loop_var}, {loop.kind.name}")
    axis = moved[0]
    domain = realize.bounds[axis]
    analyzer = Analyzer()
    analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
    before = substitute(domain.min, {loop.loop_var: loop.loop_var - 1})
    step, extent = analyzer.simplify(domain.min - before), domain.extent
    moves_forwards = len(moved) == 1 and analyzer.can_prove(step >= 0)
    if not moves_forwards or not isinstance(extent, IntImm):
        raise _rejection(
            realize, "a region that moves forwards in one dimension", f"from {domain.min}"
        )
    if analyzer.can_prove(step >= extent):
        return None
    return Roll(realize, loop, axis, step, extent.value)


def _rejection(realize: BufferRealize, required: str, found: object) -> LoweringError:
    return LoweringError(
        f"rolling_buffer of {realize.buffer.name} requires {required}, got {found}",
        hint="compute_at the stage inside the loop along which neighbours overlap",
    )


class _Uses(Visitor):
    def __init__(self, var: Var) -> None:
        self.var, self.found = var, False

    def visit_var(self, var: Var) -> None:
        self.found |= var is self.var


def _uses(domain: Range, var: Var) -> bool:
    finder = _Uses(var)
    finder.visit(domain.min)
    finder.visit(domain.extent)
    return finder.found


class RollingBufferInjector(Rewriter):
    """Moves the memory out of the loops, and the accesses into what is kept."""

    def __init__(self, rolls: dict[Buffer, Roll]) -> None:
        self.rolls = rolls
        self.pointers = {buffer.data: buffer for buffer in rolls}
        self.by_loop: dict[For, list[Roll]] = {}
        self.scopes: dict[Buffer, AttrStmt] = {}  # said around what is realized
        for roll in rolls.values():
            self.by_loop.setdefault(roll.loop, []).append(roll)

    def visit_for(self, loop: For) -> Stmt:
        new: Stmt = self.rewrite_children(loop)
        for roll in self.by_loop.get(loop, ()):
            realize = roll.realize
            new = BufferRealize(realize.buffer, roll.region, realize.condition, new)
            if (scope := self.scopes.get(realize.buffer)) is not None:
                new = scope.replace(body=new)
        return new

    def visit_buffer_realize(self, realize: BufferRealize) -> Stmt:
        if realize.buffer in self.rolls:
            rewritten: Stmt = self.visit(realize.body)
            return rewritten
        return self.rewrite_children(realize)

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        if attr.attr_key == ROLLING_SCOPE:
            rewritten: Stmt = self.visit(attr.body)
            return rewritten
        if attr.attr_key == "realize_scope" and attr.node in self.rolls:
            self.scopes[attr.node] = attr
            moved: Stmt = self.visit(attr.body)
            return moved
        # marks of the memory name its pointer without a use of it
        value, body = self.visit(attr.value), self.visit(attr.body)
        if value is attr.value and body is attr.body:
            return attr
        return attr.replace(value=value, body=body)

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        roll = self.rolls.get(load.buffer)
        indices = tuple([self.visit(index) for index in load.indices])
        if roll is not None:
            return BufferLoad(load.buffer, roll.place(indices), load.predicate)
        return load.replace(indices=indices) if _differ(indices, load.indices) else load

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        roll = self.rolls.get(store.buffer)
        if roll is None:
            return self.rewrite_children(store)
        value = self.visit(store.value)
        indices = tuple([self.visit(index) for index in store.indices])
        new = BufferStore(store.buffer, value, roll.place(indices), store.predicate)
        return IfThenElse(roll.is_new(indices), new, None)

    def visit_var(self, var: Var) -> PrimExpr:
        if (buffer := self.pointers.get(var)) is not None:
            raise _rejection(
                self.rolls[buffer].realize, "accesses by indices", "a use of its pointer"
            )
        return var


def _differ(new: Sequence[PrimExpr], old: Sequence[PrimExpr]) -> bool:
    return any(a is not b for a, b in zip(new, old, strict=True))


@prim_func_pass("tir.InjectRollingBuffer")
def inject_rolling_buffer(func: PrimFunc) -> PrimFunc:
    """Let marked buffers roll."""
    finder = _RollFinder()
    finder.visit(func.body)
    return func.with_body(RollingBufferInjector(finder.rolls).visit(func.body))


InjectRollingBuffer = inject_rolling_buffer.factory
