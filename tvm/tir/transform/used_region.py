"""The part of each buffer that is used where it is allocated.

for i in range(16):
    T = alloc_buffer([64, 64])            T: [i, i + 1) and [0, 32)
    for j in range(64):
        if j < 32:
            T[i, j] = ...

Loops inside the allocation run over their ranges. Threads outside of it do as well if they share the memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvm.arith import Analyzer, IntervalSet, detect_linear_equation, neg_inf, pos_inf
from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.ir.visitor import Rewriter, Visitor
from tvm.support.dtype import ScalableLanes
from tvm.tir import op
from tvm.tir.buffer import Buffer
from tvm.tir.expr import (
    GE,
    GT,
    LE,
    LT,
    NE,
    And,
    Broadcast,
    BufferLoad,
    Call,
    IntImm,
    IterVar,
    Let,
    Max,
    Min,
    Not,
    Or,
    Ramp,
    Range,
    Var,
    const,
)
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import (
    Allocate,
    AttrStmt,
    Block,
    BlockRealize,
    BufferRegion,
    BufferStore,
    DeclBuffer,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Stmt,
)
from tvm.tir.stmt_functor import post_order_visit, substitute
from tvm.tir.transform.common import IF_THEN_ELSE, LIKELY, contains, variables_of

if TYPE_CHECKING:
    from collections.abc import Iterator

Box = list[IntervalSet]
LARGEST = (1 << 31) - 1


@dataclass(frozen=True)
class Loop:
    """A loop around what is visited, or a launch of threads."""

    var: Var
    domain: Range
    thread: str = ""  # the tag, if it is one over threads


@dataclass
class Allocation:
    """Memory that is allocated in the code visited."""

    buffer: Buffer
    depth: int  # the number of loops around it
    boxes: list[Box]
    is_known: bool = True  # whether all uses are


def used_regions(func: PrimFunc, is_strict: bool) -> dict[Buffer, list[Range]]:
    """The region used of each buffer that the function allocates, for those of which it is known.

    Parameters
    ----------
    is_strict : bool
        Leave out what is beyond a buffer's shape.
    """
    views = _ViewFinder()
    views.visit(func.body)
    finder = UsedRegionFinder(views, is_strict)
    finder.visit(func.body)
    return finder.regions


class _ViewFinder(Visitor):
    """Collects the buffers by the pointers that they have, and those that are written."""

    def __init__(self) -> None:
        self.by_pointer: dict[Var, dict[Buffer, None]] = {}
        self.written: dict[Var, None] = {}

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self.note(load.buffer)
        self.visit_children(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        self.note(store.buffer)
        self.written[store.buffer.data] = None
        self.visit_children(store)

    def visit_decl_buffer(self, decl: DeclBuffer) -> None:
        self.note(decl.buffer)
        self.visit_children(decl)

    def note(self, buffer: Buffer) -> None:
        """Note a buffer that is declared or accessed."""
        self.by_pointer.setdefault(buffer.data, {})[buffer] = None


class UsedRegionFinder(Visitor):
    """Keeps the loops and conditions around, and a box for each access."""

    def __init__(self, views: _ViewFinder, is_strict: bool) -> None:
        self.views = views
        self.is_strict = is_strict
        self.loops: list[Loop] = []
        self.conditions: list[PrimExpr] = []
        self.values: dict[Var, PrimExpr] = {}  # of lets and axes of blocks
        self.allocations: dict[Var, Allocation] = {}
        self.blocks: list[Block] = []
        self.matches: dict[Buffer, BufferRegion] = {}
        self.analyzer = Analyzer()
        self.regions: dict[Buffer, list[Range]] = {}

    # ---- allocations

    def visit_block_realize(self, realize: BlockRealize) -> None:
        block = realize.block
        for axis, value in zip(block.iter_vars, realize.iter_values, strict=True):
            self.values[axis.var] = self.outer(value)
        self.visit(realize.predicate)
        with self._under(realize.predicate):
            self.visit(block)

    def visit_block(self, block: Block) -> None:
        opened = [self._open(buffer) for buffer in block.alloc_buffers]
        self.blocks.append(block)
        for match in block.match_buffers:
            self.matches[match.buffer] = match.source
            self._access(match.source.buffer, match.source.region)
        if block.init is not None:
            self.visit(block.init)
        self.visit(block.body)
        self.blocks.pop()
        for allocation in opened:
            self._close(allocation)

    def visit_allocate(self, alloc: Allocate) -> None:
        views = list(self.views.by_pointer.get(alloc.buffer_var, ()))
        if len(views) != 1 or not _is_view_of_all(views[0], alloc):
            self.visit(alloc.body)
            return
        allocation = self._open(views[0])
        self.visit(alloc.body)
        self._close(allocation)

    def _open(self, buffer: Buffer) -> Allocation:
        opened = Allocation(buffer, len(self.loops), [])
        opened.is_known = len(self.views.by_pointer.get(buffer.data, ())) <= 1
        self.allocations[buffer.data] = opened
        return opened

    def _close(self, allocation: Allocation) -> None:
        del self.allocations[allocation.buffer.data]
        if not allocation.is_known or not allocation.boxes:
            return
        axes = range(len(allocation.buffer.shape))
        region = [self._hull(allocation, axis) for axis in axes]
        if all([side is not None for side in region]):
            self.regions[allocation.buffer] = [side for side in region if side is not None]

    def _hull(self, allocation: Allocation, axis: int) -> Range | None:
        """The range that holds all accesses along an axis, in terms of what is known at the allocation."""
        whole = allocation.buffer.shape[axis]
        sides = [box[axis] for box in allocation.boxes]
        zero = const(0, whole.dtype)
        if any([side.min_value is neg_inf() or side.max_value is pos_inf() for side in sides]):
            return Range.from_min_extent(zero, whole)
        low, high = sides[0].min_value, sides[0].max_value
        for side in sides[1:]:
            low, high = op.minimum(low, side.min_value), op.maximum(high, side.max_value)
        reached = self.analyzer.simplify(high - low + 1)
        if self.is_strict:
            low, high = op.maximum(low, zero), op.minimum(high, whole - 1)
        low = self.analyzer.simplify(low)
        extent = self.analyzer.simplify(high - low + 1)
        if isinstance(reached, IntImm) and not isinstance(extent, IntImm):
            extent = self.analyzer.simplify(op.minimum(reached, whole))
        known = {loop.var for loop in self.loops[: allocation.depth]}
        inside = {loop.var for loop in self.loops} - known
        if self._is_unknown(low, inside) or self._is_unknown(extent, inside):
            return Range.from_min_extent(zero, whole)
        if not isinstance(extent, IntImm):
            bound = greatest_difference(self.analyzer, high, low) + 1
            if bound < LARGEST and self.analyzer.can_prove(bound <= whole):
                extent = const(bound, whole.dtype)
        return Range.from_min_extent(op.cast(low, whole.dtype), op.cast(extent, whole.dtype))

    def _is_unknown(self, e: PrimExpr, inside: set[Var]) -> bool:
        """Whether a bound has variables from inside the allocation, or depends on memory that changes."""

        def is_unknown(node: Any) -> bool:
            if isinstance(node, BufferLoad):
                return node.buffer.data in self.views.written
            return isinstance(node, Var) and node in inside

        return contains(e, is_unknown)

    # ---- scopes

    def visit_for(self, loop: For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        domain = Range.from_min_extent(self.outer(loop.min), self.outer(loop.extent))
        binding = loop.thread_binding if loop.kind is ForKind.THREAD_BINDING else None
        tag = "" if binding is None else binding.thread_tag
        self._inside(Loop(loop.loop_var, domain, tag), loop.body)

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        axis = attr.node
        self.visit(attr.value)
        if attr.attr_key in ("thread_extent", "virtual_thread") and isinstance(axis, IterVar):
            self._inside(Loop(axis.var, Range(attr.value), axis.thread_tag), attr.body)
        else:
            self.visit(attr.body)

    def _inside(self, loop: Loop, body: Stmt) -> None:
        self.analyzer.bind(loop.var, loop.domain, True)
        self.loops.append(loop)
        self.visit(body)
        self.loops.pop()

    def visit_let_stmt(self, let: LetStmt) -> None:
        self._let(let)

    def visit_let(self, let: Let) -> None:
        self._let(let)

    def _let(self, let: Let | LetStmt) -> None:
        self.visit(let.value)
        if let.var.dtype.is_int and let.var.dtype.lanes == 1:
            self.values[let.var] = self.outer(let.value)
        self.visit(let.body)

    def visit_if_then_else(self, stmt: IfThenElse) -> None:
        self.visit(stmt.condition)
        with self._under(stmt.condition):
            self.visit(stmt.then_case)
        if stmt.else_case is not None:
            with self._under(Not(stmt.condition)):
                self.visit(stmt.else_case)

    def visit_call(self, call: Call) -> None:
        if call.op is not IF_THEN_ELSE:
            self.visit_children(call)
            return
        condition, yes, no = call.args
        self.visit(condition)
        with self._under(condition):
            self.visit(yes)
        with self._under(Not(condition)):
            self.visit(no)

    @contextmanager
    def _under(self, condition: PrimExpr) -> Iterator[None]:
        count = len(self.conditions)
        self.conditions += [self.outer(part) for part in conjuncts(condition)]
        yield
        del self.conditions[count:]

    def outer(self, e: PrimExpr) -> PrimExpr:
        """The expression without the variables of lets and blocks."""
        return substitute(e, self.values) if self.values else e

    # ---- accesses

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self._access(load.buffer, load.indices)
        self.visit_children(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        self._access(store.buffer, store.indices)
        self.visit_children(store)

    def visit_var(self, var: Var) -> None:
        if (allocation := self.allocations.get(var)) is not None:
            self._opaque(allocation)

    def _opaque(self, allocation: Allocation) -> None:
        """A pointer may be used for what the block around says that it reads and writes."""
        block = self.blocks[-1] if self.blocks else None
        regions = [] if block is None else [*block.reads, *block.writes]
        found = [r for r in regions if r.buffer is allocation.buffer]
        allocation.is_known &= bool(found)
        for region in found:
            self._access(region.buffer, region.region)

    def _access(self, buffer: Buffer, indices: Sequence[Any]) -> None:
        if buffer in self.matches:
            source = self.matches[buffer]
            buffer, indices = source.buffer, source.region
        allocation = self.allocations.get(buffer.data)
        if allocation is None:
            return
        if buffer is not allocation.buffer:
            allocation.is_known = False
            return
        domains = self._relaxed(allocation)
        allocation.boxes.append([self._interval(index, domains) for index in indices])

    def _relaxed(self, allocation: Allocation) -> dict[Var, IntervalSet]:
        """The variables that run while the memory is there, inner ones last, and what they run over."""
        scope = allocation.buffer.scope()
        found: dict[Var, IntervalSet] = {}
        for depth, loop in enumerate(self.loops):
            if depth >= allocation.depth or runs_over(loop.thread, scope):
                start, extent = loop.domain.min, loop.domain.extent
                found[loop.var] = IntervalSet(start, start + extent - 1)
        return found

    def _interval(self, index: Any, domains: dict[Var, IntervalSet]) -> IntervalSet:
        if isinstance(index, Range):
            low = self._interval(index.min, domains)
            high = self._interval(index.min + index.extent - 1, domains)
            return IntervalSet(low.min_value, high.max_value)
        if index.dtype.lanes != 1:
            return self._interval_of_lanes(index, domains)
        index = self.analyzer.simplify(self.outer(index))
        bounds = BoundFinder(self.analyzer, domains, self.conditions)
        return bounds.interval(index)

    def _interval_of_lanes(self, index: PrimExpr, domains: dict[Var, IntervalSet]) -> IntervalSet:
        lanes = index.dtype.lanes
        if isinstance(index, Broadcast):
            return self._interval(index.value, domains)
        if not isinstance(index, Ramp) or isinstance(lanes, ScalableLanes):
            return IntervalSet(neg_inf(), pos_inf())
        if not isinstance(index.stride, IntImm) or index.stride.value < 1:
            return IntervalSet(neg_inf(), pos_inf())
        extent = const(index.stride.value * (lanes - 1) + 1, index.base.dtype)
        return self._interval(Range.from_min_extent(index.base, extent), domains)


def conjuncts(condition: PrimExpr) -> list[PrimExpr]:
    """The conditions that hold together."""
    if isinstance(condition, Call) and condition.op is LIKELY:
        return conjuncts(condition.args[0])
    if isinstance(condition, And):
        return [*conjuncts(condition.a), *conjuncts(condition.b)]
    if isinstance(condition, Not):
        inner = condition.a
        if isinstance(inner, Call) and inner.op is LIKELY:
            inner = inner.args[0]
        if isinstance(inner, Or):
            return [*conjuncts(Not(inner.a)), *conjuncts(Not(inner.b))]
        opposite = _OPPOSITES.get(type(inner))
        if opposite is not None:
            assert isinstance(inner, (LT, LE, GT, GE))
            return [opposite(inner.a, inner.b)]
    return [condition]


_OPPOSITES: dict[type, Any] = {LT: GE, LE: GT, GT: LE, GE: LT}


def runs_over(thread: str, scope: str) -> bool:
    """Whether threads of a kind share memory of a scope."""
    if not thread:
        return False
    if scope.startswith("shared"):
        return not thread.startswith("blockIdx")
    if scope.startswith("warp"):
        return thread == "threadIdx.x"
    return scope == "global"


class BoundFinder:
    """Bounds of expressions while some variables run over their domains, under conditions."""

    def __init__(
        self,
        analyzer: Analyzer,
        domains: dict[Var, IntervalSet],
        conditions: Sequence[PrimExpr],
    ) -> None:
        self.analyzer = analyzer
        found = [limit for e in conditions if (limit := _limit_of(analyzer, e)) is not None]
        self.limits = sorted(found, key=lambda limit: size_of(limit[0]))  # operands come first
        self.domains = dict(domains)
        for e, is_upper, bound in self.limits:
            if not self._runs(bound):
                self._narrow_operands(e, is_upper, bound)

    def _narrow_operands(self, e: PrimExpr, is_upper: bool, bound: PrimExpr) -> None:
        """x*c + rest <= bound, so that x <= (bound - min(rest)) // c; lower bounds likewise."""
        for var in variables_of(e):
            linear = detect_linear_equation(e, [var]) if var in self.domains else ()
            if not linear or not isinstance(linear[0], IntImm) or linear[0].value <= 0:
                continue
            factor, rest = linear
            side = self._plain(rest)
            if is_upper and side.min_value is not neg_inf():
                limit = op.floordiv(bound - side.min_value, factor)
            elif not is_upper and side.max_value is not pos_inf():
                limit = op.floordiv(bound - side.max_value + factor - 1, factor)
            else:
                continue
            if not self._runs(limit):
                simple = self.analyzer.simplify(limit)
                self.domains[var] = self._cut(self.domains[var], is_upper, simple)

    def interval(self, index: PrimExpr) -> IntervalSet:
        """The values that an index has."""
        if not self._runs(index):
            return IntervalSet(index, index)
        found = self._evaluated(index)
        for e, is_upper, bound in self.limits:
            distance = self.analyzer.simplify(index - e)
            if not self._runs(distance) and not self._runs(bound):
                found = self._cut(found, is_upper, self.analyzer.simplify(bound + distance))
        return found

    def _evaluated(self, index: PrimExpr) -> IntervalSet:
        """The set of values; what a condition limits counts as one variable of limited range."""
        limited: dict[Var, IntervalSet] = {}
        replacers: list[_Replacer] = []
        for e, is_upper, bound in self.limits:
            if isinstance(e, (Var, IntImm)) or self._runs(bound):
                continue
            for replacer in replacers:
                e = replacer.visit(e)
            part = Var("part", e.dtype)
            replaced = _Replacer(e, part).visit(index)
            if replaced is not index:
                index = replaced
                replacers.append(_Replacer(e, part))
                side = self.analyzer.int_set(e, {**self.domains, **limited})
                side = IntervalSet(side.min_value, side.max_value)
                limited[part] = self._cut(side, is_upper, bound)
                if isinstance(limited[part].max_value, IntImm) and isinstance(
                    limited[part].min_value, IntImm
                ):
                    low, high = limited[part].min_value, limited[part].max_value
                    self.analyzer.bind(part, Range.from_min_extent(low, high - low + 1), True)
        domains = {**self.domains, **limited}
        found = self.analyzer.int_set(index, domains)
        return IntervalSet(found.min_value, found.max_value)

    def _plain(self, e: PrimExpr) -> IntervalSet:
        found = self.analyzer.int_set(e, self.domains)
        return IntervalSet(found.min_value, found.max_value)

    def _cut(self, interval: IntervalSet, is_upper: bool, bound: PrimExpr) -> IntervalSet:
        low, high = interval.min_value, interval.max_value
        simplify = self.analyzer.simplify
        if is_upper:
            high = bound if high is pos_inf() else simplify(op.minimum(high, bound))
        else:
            low = bound if low is neg_inf() else simplify(op.maximum(low, bound))
        return IntervalSet(low, high)

    def _runs(self, e: PrimExpr) -> bool:
        return any([var in self.domains for var in variables_of(e)])


def greatest_difference(analyzer: Analyzer, high: PrimExpr, low: PrimExpr) -> int:
    """An upper bound of ``high - low``, each side's cases apart: min(i + 7, n) - i is at most 7."""
    if isinstance(high, (Min, Max)):
        found = [greatest_difference(analyzer, side, low) for side in (high.a, high.b)]
        return min(found) if isinstance(high, Min) else max(found)
    if isinstance(low, (Min, Max)):
        found = [greatest_difference(analyzer, high, side) for side in (low.a, low.b)]
        return max(found) if isinstance(low, Min) else min(found)
    return int(analyzer.const_int_bound(analyzer.simplify(high - low)).max_value)


def size_of(e: PrimExpr) -> int:
    """The number of nodes."""
    count = 0

    def note(_: Any) -> None:
        nonlocal count
        count += 1

    post_order_visit(e, note)
    return count


class _Replacer(Rewriter):
    """Puts a variable in the place of an expression."""

    def __init__(self, old: PrimExpr, new: Var) -> None:
        self.old, self.new = old, new

    def visit(self, node: Any) -> Any:
        if isinstance(node, PrimExpr) and structural_equal(node, self.old):
            return self.new
        return super().visit(node)


Limit = tuple[PrimExpr, bool, PrimExpr]


def _limit_of(analyzer: Analyzer, condition: PrimExpr) -> Limit | None:
    """A comparison as (what, whether the bound is an upper one, the bound that it may reach)."""
    if isinstance(condition, NE):
        condition = _strict(analyzer, condition)
    if not isinstance(condition, (LT, LE, GT, GE)) or not condition.a.dtype.is_int:
        return None
    a, b = condition.a, condition.b
    if isinstance(condition, (GT, GE)):
        a, b = b, a
    if isinstance(condition, (LT, GT)):
        b = b - 1
    a, b = analyzer.simplify(a), analyzer.simplify(b)  # a <= b
    if isinstance(a, IntImm):
        return None if isinstance(b, IntImm) else (b, False, a)
    return a, True, b


def _strict(analyzer: Analyzer, condition: NE) -> PrimExpr:
    """``a < b`` or ``a > b`` where that is what ``a != b`` means."""
    a, b = condition.a, condition.b
    if not a.dtype.is_int:
        return condition
    distance = analyzer.const_int_bound(a - b)
    if distance.min_value == 0:
        return GT(a, b)
    return LT(a, b) if distance.max_value == 0 else condition


def _is_view_of_all(buffer: Buffer, alloc: Allocate) -> bool:
    """Whether a buffer is all of what is allocated."""
    if buffer.dtype is not alloc.dtype or len(buffer.shape) != len(alloc.extents):
        return False
    return all([structural_equal(a, b) for a, b in zip(buffer.shape, alloc.extents, strict=True)])
