"""Transpose tiles in registers: what vectors gather from several lines is loaded by lines.

    for r in range(4):                            ->    a0 = A[0:4], a1 = A[9:13], a2 = ..., a3 = ...
        B[r * 7 : r * 7 + 4] = A[ramp(r, 9, 4)]         B[0:4] = [a0[0], a1[0], a2[0], a3[0]]
                                                        B[7:11] = [a0[1], a1[1], a2[1], a3[1]], ...

Lines are exchanged by shuffles of two vectors, within parts of four lanes first, then parts as a whole: two
for each vector of four lanes, three of eight, four of sixteen. No element is read that the loop did not read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm.arith import Analyzer
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter, Visitor
from tvm.tir.expr import LT, Broadcast, BufferLoad, IntImm, Ramp, Shuffle, Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import BufferStore, For, ForKind, LetStmt, Stmt, seq
from tvm.tir.stmt_functor import substitute
from tvm.tir.transform.common import constant_extent, is_const, prim_func_pass

LANES = (4, 8, 16)
PART = 4  # lanes that cheap shuffles exchange
ELEMENT_BITS = 32


@dataclass(frozen=True)
class Gather:
    """A load whose lanes lie apart, while turns of the loop lie side by side."""

    load: BufferLoad
    base: PrimExpr
    stride: int
    visible: int  # lanes that no mask hides

    def line(self, lane: int, first: PrimExpr, loop_var: Var) -> BufferLoad:
        """What one lane reads in as many turns as there are lanes."""
        lane = lane if lane < self.visible else 0
        start = substitute(self.base, {loop_var: first}) + lane * self.stride
        lanes = self.load.dtype.lanes
        return self.load.replace(
            indices=(Ramp(start, const(1, start.dtype), lanes),), predicate=None
        )


class TileTransposer(Rewriter):
    """Rewrites loops around a single store."""

    def visit_for(self, loop: For) -> Stmt:
        if (
            loop.kind not in (ForKind.SERIAL, ForKind.UNROLLED)
            or type(loop.body) is not BufferStore
        ):
            return self.rewrite_children(loop)
        store, turns = loop.body, constant_extent(loop)
        lanes = store.indices[-1].dtype.lanes if len(store.indices) == 1 else 1
        if turns is None or lanes not in LANES or turns % lanes:
            return loop
        gathers = find_gathers(store, loop)
        if not gathers:
            return loop
        starts = range(0, turns, lanes)
        return seq([_tile(loop, store, gathers, loop.min + start) for start in starts])


def find_gathers(store: BufferStore, loop: For) -> list[Gather]:
    """The loads of a store's value that transposed lines can replace."""
    finder = _LoadFinder()
    finder.visit(store.value)
    if any([load.buffer.data is store.buffer.data for load in finder.loads]):
        return []
    lanes = store.indices[0].dtype.lanes
    found = [_as_gather(load, loop, lanes) for load in finder.loads]
    return [gather for gather in found if gather is not None]


class _LoadFinder(Visitor):
    def __init__(self) -> None:
        self.loads: list[BufferLoad] = []

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self.loads.append(load)
        self.visit_children(load)


def _as_gather(load: BufferLoad, loop: For, lanes: int) -> Gather | None:
    if len(load.indices) != 1 or load.dtype.bits != ELEMENT_BITS or load.dtype.lanes != lanes:
        return None
    index = load.indices[0]
    if type(index) is not Ramp or type(index.stride) is not IntImm or index.stride.value < 2:
        return None
    visible = _visible_lanes(load.predicate, lanes)
    step = substitute(index.base, {loop.loop_var: loop.loop_var + 1}) - index.base
    step = Analyzer().simplify(step)
    if visible == 0 or type(step) is not IntImm or step.value != 1:
        return None
    return Gather(load, index.base, index.stride.value, visible)


def _visible_lanes(mask: PrimExpr | None, lanes: int) -> int:
    """How many lanes a mask shows, the first ones; 0 if it is not known."""
    if mask is None:
        return lanes
    if type(mask) is not LT or type(mask.a) is not Ramp or type(mask.b) is not Broadcast:
        return 0
    first, end = mask.a.base, mask.b.value
    if type(first) is not IntImm or type(end) is not IntImm or not is_const(mask.a.stride, 1):
        return 0
    return max(min(end.value - first.value, lanes), 0)


def _tile(loop: For, store: BufferStore, gathers: Sequence[Gather], first: PrimExpr) -> Stmt:
    """As many turns as there are lanes, from `first` on."""
    lanes = store.indices[0].dtype.lanes
    bound: list[tuple[Var, PrimExpr]] = []

    def bind(value: PrimExpr) -> Var:
        bound.append((Var("line", value.dtype), value))
        return bound[-1][0]

    columns = [
        transposed([bind(x.line(lane, first, loop.loop_var)) for lane in range(lanes)], bind)
        for x in gathers
    ]
    stores = []
    for turn in range(lanes):
        values = {id(x.load): found[turn] for x, found in zip(gathers, columns, strict=True)}
        replaced = _LoadReplacer(values).visit(store)
        stores.append(substitute(replaced, {loop.loop_var: first + turn}))
    body = seq(stores)
    for var, value in reversed(bound):
        body = LetStmt(var, value, body)
    return body


class _LoadReplacer(Rewriter):
    def __init__(self, values: dict[int, Var]) -> None:
        self.values = values

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        found = self.values.get(id(load))
        return self.rewrite_children(load) if found is None else found


def transposed(lines: Sequence[Var], bind: Callable[[PrimExpr], Var]) -> list[Var]:
    """The columns of as many lines as they have lanes, by shuffles of two."""
    lanes = len(lines)

    def picked(a: Var, b: Var, pattern: Sequence[int], size: int) -> Var:
        """In each stretch of `size` lanes those of the pattern; the second vector's follow the first's."""
        order = [
            start + i if i < size else lanes + start + i - size
            for start in range(0, lanes, size)
            for i in pattern
        ]
        return bind(_shuffle(a, b, order))

    low, high = (0, 4, 1, 5), (2, 6, 3, 7)
    low_pairs, high_pairs = (0, 1, 4, 5), (2, 3, 6, 7)
    # columns of four lines each, in each part those of its own lanes
    quads: list[list[Var]] = []
    for a, b, c, d in [lines[i : i + PART] for i in range(0, lanes, PART)]:
        ab, cd = picked(a, b, low, PART), picked(c, d, low, PART)
        ab_high, cd_high = picked(a, b, high, PART), picked(c, d, high, PART)
        pairs = [(ab, cd, low_pairs), (ab, cd, high_pairs)]
        pairs += [(ab_high, cd_high, low_pairs), (ab_high, cd_high, high_pairs)]
        quads.append([picked(*pair, PART) for pair in pairs])
    columns: dict[int, Var] = {}
    for place in range(PART):
        for part, column in enumerate(_joined([quad[place] for quad in quads], bind)):
            columns[part * PART + place] = column
    return [columns[i] for i in range(lanes)]


def _joined(quads: Sequence[Var], bind: Callable[[PrimExpr], Var]) -> list[Var]:
    """From vectors of parts those of the first parts, of the second parts, and so on."""
    if len(quads) == 1:
        return list(quads)

    def parts(a: Var, b: Var, odd: int) -> Var:
        order = [part * PART + i for part in range(odd, 2 * len(quads), 2) for i in range(PART)]
        return bind(_shuffle(a, b, order))

    half = len(quads) // 2
    pairs = [(quads[2 * i], quads[2 * i + 1]) for i in range(half)]
    even = _joined_halves([parts(a, b, 0) for a, b in pairs], parts)
    odd = _joined_halves([parts(a, b, 1) for a, b in pairs], parts)
    return [column for both in zip(even, odd, strict=True) for column in both]


def _joined_halves(vectors: Sequence[Var], parts: Callable[[Var, Var, int], Var]) -> list[Var]:
    if len(vectors) == 1:
        return list(vectors)
    first, second = vectors
    return [parts(first, second, 0), parts(first, second, 1)]


def _shuffle(a: Var, b: Var, order: Sequence[int]) -> Shuffle:
    return Shuffle((a, b), tuple([const(i, "int32") for i in order]))


@prim_func_pass("tir.TransposeTiles")
def transpose_tiles(func: PrimFunc) -> PrimFunc:
    """Where arguments may overlap, lines cannot be loaded before others are stored; text has no registers."""
    target = func.get_attr("target")
    is_text = target is not None and target.kind.name != "llvm"
    if is_text or not func.get_attr("tir.noalias"):
        return func
    return func.with_body(TileTransposer().visit(func.body))


TransposeTiles = transpose_tiles.factory
