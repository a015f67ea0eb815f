"""Copies between memory of all threads and of a block become work of all threads, in whole vectors.

block attr auto_copy, vector_bytes = 16:           for outer in range(16):
    for ax0, ax1 in grid(128, 128):                    for ty in thread_binding(8, "threadIdx.y"):
        S[ax0, ax1] = A[bx*128 + ax0, ax1]    ->           for tx in thread_binding(32, "threadIdx.x"):
                                                               for vec in vectorized(4):
                                                                   S[f // 128, f % 128] = A[...]

where f counts the elements along the axes of the memory of all threads, whose neighbours neighbouring
threads access. Rows of shared memory become longer where threads would else wait for the same bank. Fragments
of matrix units are copied tile by tile (``fragment_copies``). Copies of other memory stay loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from tvm.arith import Analyzer
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter, Visitor
from tvm.tir import op
from tvm.tir.buffer import Buffer, decl_buffer
from tvm.tir.expr import BufferLoad, IntImm, IterVar, Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Block, BufferStore, For, ForKind, IfThenElse, Stmt, seq
from tvm.tir.stmt_functor import BufferRewriter, substitute
from tvm.tir.transform.common import (
    as_int,
    comes_from_te,
    constant_extent,
    prim_func_pass,
    variables_of,
)
from tvm.tir.transform.fragment_copies import (
    copied_by_warps,
    copied_through_shared,
    is_fragment,
)

AUTO_COPY = "auto_copy"
WARP = 32
BANKS, BANK_BYTES = 32, 4
THREADS = ("threadIdx.z", "threadIdx.y", "threadIdx.x")
SHARED = ("shared", "shared.dyn")
PADDINGS = 16
MATRIX_UNIT_STEP = 8  # elements that rows of tiles begin at multiples of, whatever their type


@dataclass
class Copy:
    """The nest of loops of a copy, and the buffers whose accesses decide about its order."""

    loops: list[For]
    store: BufferStore
    load: BufferLoad

    @property
    def outside(self) -> tuple[Buffer, tuple[PrimExpr, ...]]:
        """The buffer in global memory, and where it is accessed."""
        if self.store.buffer.scope() == "global":
            return self.store.buffer, self.store.indices
        return self.load.buffer, self.load.indices


def _copy_in(block: Block) -> Copy | None:
    """The copy that a block is; None if it has another form."""
    loops: list[For] = []
    body = block.body
    while isinstance(body, For):
        loops.append(body)
        body = body.body
    if not isinstance(body, BufferStore) or not loops:
        return None
    loads = _Loads()
    loads.visit(body.value)
    scopes = {load.buffer.scope(): load for load in reversed(loads.found)}
    if body.buffer.scope() == "global":
        source = next((scopes[s] for s in scopes if s != "global"), None)
    else:
        source = scopes.get("global")
    if source is None:
        source = next(iter(scopes.values()), None)
    return None if source is None else Copy(loops, body, source)


class _Loads(Visitor):
    def __init__(self) -> None:
        self.found: list[BufferLoad] = []

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self.found.append(load)
        self.visit_children(load)


class AutoCopyLowerer(Rewriter):
    """Rewrites blocks that are marked, knowing the threads around them."""

    def __init__(self) -> None:
        self.threads: dict[str, int] = {}
        # the loops over threads around, but those over a warp's lanes
        self.warps: list[For] = []
        self.shared: dict[Buffer, None] = {}  # what the copies access

    def visit_for(self, loop: For) -> Stmt:
        thread, before, warps = loop.thread_binding, self.threads, self.warps
        extent = constant_extent(loop)
        if thread is not None and thread.thread_tag in THREADS and extent is not None:
            self.threads = {**before, thread.thread_tag: extent}
            if thread.thread_tag != "threadIdx.x":
                self.warps = [*warps, loop]
        new = self.rewrite_children(loop)
        self.threads, self.warps = before, warps
        return new

    def visit_block(self, block: Block) -> Stmt:
        before = self.threads
        if "warp_execution" in block.annotations:
            self.threads = {**before, "threadIdx.x": WARP}
        new = self._lowered(block) if AUTO_COPY in block.annotations else None
        if new is None:
            new = self.rewrite_children(block)
        self.threads = before
        return new

    def _lowered(self, block: Block) -> Block | None:
        copy = _copy_in(block)
        if copy is None or not self.threads:
            return None
        scopes = (copy.load.buffer.scope(), copy.store.buffer.scope())
        has_fragments = any([is_fragment(scope) for scope in scopes])
        if any([s not in ("global", "local", *SHARED) and not is_fragment(s) for s in scopes]):
            raise LoweringError(
                "LowerAutoCopy copies between global memory, shared memory and fragments, got from "
                f"{scopes[0]} to {scopes[1]}",
                at=block,
            )
        if not has_fragments and (not any([s in SHARED for s in scopes]) or "global" not in scopes):
            return None
        if any([constant_extent(loop) is None for loop in copy.loops]):
            return None
        for buffer in (copy.load.buffer, copy.store.buffer):
            if buffer.scope() in SHARED:
                self.shared[buffer] = None
        vector_bytes = as_int(block.annotations.get("vector_bytes", 1))
        if has_fragments:
            return self._with_fragments(block, copy, vector_bytes)
        is_staged = bool(block.annotations.get("local_stage")) and scopes[0] == "global"
        return Distribution(copy, self.threads, vector_bytes, is_staged).apply(block)

    def _with_fragments(self, block: Block, copy: Copy, vector_bytes: int) -> Block:
        if self.threads.get("threadIdx.x") != WARP:
            raise LoweringError(
                "LowerAutoCopy needs the 32 threads of a warp along threadIdx.x for fragments, "
                f"got {self.threads}",
                at=block,
                hint="annotate the kernel's block with warp_execution",
            )
        if copy.store.buffer.scope() != "global":
            return block.replace(body=copied_by_warps(copy.loops, copy.store, block))

        def distribute(loops: Sequence[For], store: BufferStore) -> Stmt:
            moved = Copy(list(loops), store, copy.load)
            # tiles are counted as they lie in shared memory
            return Distribution(moved, self.threads, vector_bytes, False, loops).stmt()

        body, stage = copied_through_shared(
            copy.loops, copy.store, copy.load, self.warps, distribute, block
        )
        return block.replace(body=body, alloc_buffers=(*block.alloc_buffers, stage))


class Distribution:
    """How the elements of a copy are shared among threads."""

    def __init__(
        self,
        copy: Copy,
        threads: Mapping[str, int],
        vector_bytes: int,
        is_staged: bool,
        order: Sequence[For] | None = None,
    ) -> None:
        self.copy, self.is_staged = copy, is_staged
        self.threads = {tag: threads[tag] for tag in THREADS if tag in threads}
        self.loops = _along(copy) if order is None else list(order)
        self.total = prod([as_int(loop.extent) for loop in self.loops])
        innermost = as_int(self.loops[-1].extent)
        lanes = max(1, vector_bytes // copy.store.buffer.dtype.itemsize)
        while innermost % lanes:
            lanes //= 2
        self.lanes = lanes
        step = prod(self.threads.values()) * lanes
        self.rounds = -(-self.total // step)
        self.is_even = self.total % step == 0

    def apply(self, block: Block) -> Block:
        """The block with the copy distributed."""
        if not self.is_staged:
            return block.replace(body=self.stmt())
        target = self.copy.store.buffer
        stage = decl_buffer(
            (self.rounds, self.lanes), target.dtype, f"{target.name}_local", scope="local"
        )

        def both(mine: list[Var]) -> Stmt:
            def there(fused: PrimExpr, at: tuple[PrimExpr, ...]) -> Stmt:
                copied = self._copied(fused, at)
                assert isinstance(copied, BufferStore)
                return BufferStore(stage, copied.value, at)

            def back(fused: PrimExpr, at: tuple[PrimExpr, ...]) -> Stmt:
                copied = self._copied(fused, at)
                assert isinstance(copied, BufferStore)
                return copied.replace(value=BufferLoad(stage, at))

            return seq([self._rounds(mine, there), self._rounds(mine, back)])

        body = self._in_threads(both)
        return block.replace(body=body, alloc_buffers=(*block.alloc_buffers, stage))

    def stmt(self) -> Stmt:
        """The copy distributed, each element going straight to its place."""
        return self._in_threads(lambda mine: self._rounds(mine, self._copied))

    def _copied(self, fused: PrimExpr, at: tuple[PrimExpr, ...]) -> Stmt:
        """The copy of the element with a given number."""
        del at
        values: dict[Var, PrimExpr] = {}
        for loop in reversed(self.loops):
            values[loop.loop_var] = op.add(loop.min, op.floormod(fused, loop.extent))
            fused = op.floordiv(fused, loop.extent)
        store: Stmt = substitute(self.copy.store, values)
        return store

    def _rounds(self, mine: list[Var], element: Any) -> Stmt:
        """What a thread does in all its rounds."""
        dtype = self.loops[0].loop_var.dtype
        outer, vec = Var("outer", dtype), Var("vec", dtype)
        fused: PrimExpr = outer
        for var, extent in zip(mine, self.threads.values(), strict=True):
            fused = op.add(op.multiply(fused, extent), var)
        if self.lanes > 1:
            fused = op.add(op.multiply(fused, self.lanes), vec)
        zero = const(0, dtype)
        body: Stmt = element(fused, (outer, vec if self.lanes > 1 else zero))
        if not self.is_even:
            body = IfThenElse(op.less(fused, self.total), body, None)
        if self.lanes > 1:
            body = For(vec, zero, const(self.lanes, dtype), ForKind.VECTORIZED, body)
        return For(outer, zero, const(self.rounds, dtype), ForKind.SERIAL, body)

    def _in_threads(self, body: Any) -> Stmt:
        dtype = self.loops[0].loop_var.dtype
        mine = [Var(f"t{tag[-1]}", dtype) for tag in self.threads]
        made: Stmt = body(mine)
        # rounds come first where there is one copy alone: threads of a round are neighbours
        is_single = isinstance(made, For)
        inner = made.body if isinstance(made, For) else made
        for var, (tag, extent) in reversed(list(zip(mine, self.threads.items(), strict=True))):
            thread = IterVar(None, var.replace(name=var.name), IterVar.ThreadIndex, tag)
            last = const(extent, dtype)
            inner = For(var, const(0, dtype), last, ForKind.THREAD_BINDING, inner, thread)
        return made.replace(body=inner) if is_single else inner


def _along(copy: Copy) -> list[For]:
    """The loops in the order of the axes of global memory that they move along."""
    _, indices = copy.outside
    order: dict[Var, None] = {}
    own = {loop.loop_var: loop for loop in copy.loops}
    for index in indices:
        order |= {var: None for var in variables_of(index) if var in own}
    rest = {var: None for var in own if var not in order}
    return [own[var] for var in (*rest, *order)]


# ---- padding


@dataclass
class Accesses(Visitor):
    """Where shared memory is accessed, with the loops around."""

    loops: list[For] = field(default_factory=list)
    found: list[tuple[Buffer, tuple[PrimExpr, ...], tuple[For, ...]]] = field(default_factory=list)
    by_matrix_units: dict[Buffer, None] = field(default_factory=dict)

    def visit_block(self, block: Block) -> None:
        sources = [match.source.buffer for match in block.match_buffers]
        if any([is_fragment(buffer.scope()) for buffer in sources]):
            self.by_matrix_units |= dict.fromkeys(sources)
        self.visit_children(block)

    def visit_for(self, loop: For) -> None:
        self.loops.append(loop)
        self.visit_children(loop)
        self.loops.pop()

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self.found.append((load.buffer, load.indices, tuple(self.loops)))
        self.visit_children(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        self.found.append((store.buffer, store.indices, tuple(self.loops)))
        self.visit_children(store)


def padded(buffer: Buffer, accesses: Accesses) -> Buffer | None:
    """The buffer with the shortest padding of rows for which threads wait least for banks."""
    if (
        len(buffer.shape) < 2
        or buffer.strides
        or not all([isinstance(extent, IntImm) for extent in buffer.shape])
    ):
        return None
    shape = [as_int(extent) for extent in buffer.shape]
    mine = [(indices, loops) for other, indices, loops in accesses.found if other is buffer]
    warps = [_warp_positions(indices, loops) for indices, loops in mine]
    step = max([_contiguous_lanes(indices, loops) for indices, loops in mine], default=1)
    if buffer in accesses.by_matrix_units:
        warps.append(_rows_of_tile(len(shape), buffer.dtype.itemsize))
        step = max(step, MATRIX_UNIT_STEP)
    least: tuple[int, int] | None = None
    for padding in range(0, PADDINGS + 1, step):
        strides = _strides(shape, padding)
        conflicts = sum([_conflicts(warp, strides, buffer.dtype.itemsize) for warp in warps])
        if least is None or conflicts < least[0]:
            least = (conflicts, padding)
    assert least is not None
    return buffer.replace(strides=tuple([const(s, "int32") for s in _strides(shape, least[1])]))


def _rows_of_tile(ndim: int, itemsize: int) -> list[list[int]]:
    """The words that a matrix unit accesses at a time: 16 bytes of each of eight rows."""
    words = [(row, word * BANK_BYTES // itemsize) for row in range(8) for word in range(4)]
    return [[*[0] * (ndim - 2), row, column] for row, column in words]


def _strides(shape: Sequence[int], padding: int) -> list[int]:
    strides = [1]
    for axis in range(len(shape) - 1, 0, -1):
        row = strides[0] * shape[axis]
        strides.insert(0, row + padding if axis == len(shape) - 1 else row)
    return strides


def _warp_positions(indices: Sequence[PrimExpr], loops: Sequence[For]) -> list[list[int]]:
    """What the threads of the first warp access, all other variables being at their start."""
    innermost = {
        loop.thread_binding.thread_tag: loop for loop in loops if loop.thread_binding is not None
    }
    threads = [innermost[tag] for tag in reversed(THREADS) if tag in innermost]
    values: dict[Var, PrimExpr] = {
        var: const(0, var.dtype) for index in indices for var in variables_of(index)
    }
    values |= {loop.loop_var: loop.min for loop in loops if loop.loop_var in values}
    analyzer = Analyzer()
    found: list[list[int]] = []
    for number in range(WARP):
        left = number
        for loop in threads:
            extent = constant_extent(loop) or 1
            values[loop.loop_var] = const(left % extent, loop.loop_var.dtype)
            left //= extent
        if left:
            break
        point = [analyzer.simplify(substitute(index, values)) for index in indices]
        if not all([isinstance(index, IntImm) for index in point]):
            return []
        found.append([as_int(index) for index in point])
    return found


def _conflicts(warp: Sequence[Sequence[int]], strides: Sequence[int], itemsize: int) -> int:
    """How often the busiest bank is accessed, for different words."""
    words = {
        sum([i * s for i, s in zip(point, strides, strict=True)]) * itemsize // BANK_BYTES: None
        for point in warp
    }
    counts: dict[int, int] = {}
    for word in words:
        counts[word % BANKS] = counts.get(word % BANKS, 0) + 1
    return max(counts.values(), default=0)


def _contiguous_lanes(indices: Sequence[PrimExpr], loops: Sequence[For]) -> int:
    """The lanes of an access that a vector of neighbouring elements is."""
    vectors = [loop for loop in loops if loop.kind is ForKind.VECTORIZED]
    if not vectors or not any([vectors[-1].loop_var in variables_of(index) for index in indices]):
        return 1
    loop = vectors[-1]
    zero = {var: const(0, var.dtype) for index in indices for var in variables_of(index)}
    first, second = [
        [
            Analyzer().simplify(
                substitute(i, {**zero, loop.loop_var: const(n, loop.loop_var.dtype)})
            )
            for i in indices
        ]
        for n in (0, 1)
    ]
    steps = [Analyzer().simplify(op.subtract(b, a)) for a, b in zip(first, second, strict=True)]
    is_next = all([isinstance(s, IntImm) for s in steps]) and [as_int(s) for s in steps] == [
        *[0] * (len(steps) - 1), 1,
    ]  # fmt: skip
    return (constant_extent(loop) or 1) if is_next else 1


class _Padder(BufferRewriter):
    """Puts padded buffers into the place of others."""

    def __init__(self, new: Mapping[Buffer, Buffer]) -> None:
        super().__init__()
        self._buffers.update(new)


@prim_func_pass("tir.LowerAutoCopy")
def lower_auto_copy(func: PrimFunc) -> PrimFunc:
    """Distribute marked copies among threads."""
    if comes_from_te(func):
        return func
    lowerer = AutoCopyLowerer()
    body = lowerer.visit(func.body)
    if body is func.body:
        return func
    accesses = Accesses()
    accesses.visit(body)
    new = {buffer: padded(buffer, accesses) for buffer in lowerer.shared}
    return func.with_body(_Padder({b: p for b, p in new.items() if p is not None}).visit(body))


LowerAutoCopy = lower_auto_copy.factory
