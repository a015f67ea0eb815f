"""Permute the columns of shared memory, so that threads that read one column use different banks.

with T.block(""):                                  with T.block(""):
    T.block_attr({"permuted_layout": 1})      ->       S[i, (j // 8 ^ i % 8) * 8 + j % 8] = A[i, j]
    S[i, j] = A[i, j]

Groups of eight elements change places within their row: in rows of a multiple of 64 elements by the row modulo 8, in
rows of 32 by half of that. The same permutation holds for all accesses to the memory, so each must be in a block
that is marked; ``ptx_ldmatrix`` reads a group a thread, from a pointer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.arith import Analyzer
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.node import Node
from tvm.ir.visitor import Rewriter
from tvm.support.dtype import DType
from tvm.tir import op
from tvm.tir.buffer import Buffer
from tvm.tir.expr import Add, BufferLoad, Call, FloorDiv, IntImm, Mul, Range, Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.intrinsics import INTRINSICS
from tvm.tir.math_op import bitwise_xor
from tvm.tir.stmt import Block, BufferStore, For, Stmt
from tvm.tir.transform.common import contains, is_const, prim_func_pass

KEY = "permuted_layout"
GROUP = 8  # elements that stay together: what one thread hands to ldmatrix
LDMATRIX = INTRINSICS["ptx_ldmatrix"]
ACCESS_PTR = INTRINSICS["tvm_access_ptr"]


class LayoutPermuter(Rewriter):
    """Permutes the columns of accesses in marked blocks."""

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        self.analyzer = Analyzer()
        self.buffers: dict[PrimExpr, Buffer] = {buffer.data: buffer for buffer in buffers}
        self.is_marked = False
        self.permuted: dict[Var, None] = {}
        self.plain: dict[Var, Node] = {}  # shared memory that is used as it is, and where

    def visit_for(self, loop: For) -> Stmt:
        bounds = Range.from_min_extent(loop.min, loop.extent)
        self.analyzer.bind(loop.loop_var, bounds, True)
        return self.rewrite_children(loop)

    def visit_block(self, block: Block) -> Stmt:
        self.buffers |= {buffer.data: buffer for buffer in block.alloc_buffers}
        outside = self.is_marked
        self.is_marked = outside or is_marked(block)
        if self.is_marked and any([_is_shared(match.buffer) for match in block.match_buffers]):
            raise LoweringError(
                "InjectPermutedLayout requires accesses by the rows of the allocated memory, "
                f"got matched buffers in block {block.name_hint}",
                hint="run LowerMatchBuffer before",
            )
        block = self.rewrite_children(block)
        self.is_marked = outside
        if KEY not in block.annotations:
            return block
        marks = {key: mark for key, mark in block.annotations.items() if key != KEY}
        return block.replace(annotations=marks)

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        store = self.rewrite_children(store)
        if not self._is_permuted(store.buffer, store):
            return store
        return store.replace(indices=self._permuted_indices(store.buffer, store.indices))

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        load = self.rewrite_children(load)
        if not self._is_permuted(load.buffer, load):
            return load
        return load.replace(indices=self._permuted_indices(load.buffer, load.indices))

    def visit_call(self, call: Call) -> PrimExpr:
        if call.op is LDMATRIX and isinstance(call.args[5], Call):
            return self._permuted_ldmatrix(call, call.args[5])
        call = self.rewrite_children(call)
        if call.op is ACCESS_PTR:
            buffer = self.buffers.get(call.args[1])
            if buffer is not None and _is_shared(buffer):
                self.plain.setdefault(buffer.data, call)
        return call

    def _is_permuted(self, buffer: Buffer, at: Node) -> bool:
        if not _is_shared(buffer):
            return False
        if self.is_marked:
            self.permuted[buffer.data] = None
        else:
            self.plain.setdefault(buffer.data, at)
        return self.is_marked

    def _permuted_indices(
        self, buffer: Buffer, indices: Sequence[PrimExpr]
    ) -> tuple[PrimExpr, ...]:
        row, column = indices[-2:]
        permuted = self._permuted_column(_row_size(buffer), terms_of(row), terms_of(column))
        return (*indices[:-1], _sum(permuted, column.dtype))

    def _permuted_column(
        self, size: int, row: Sequence[PrimExpr], column: Sequence[PrimExpr]
    ) -> list[PrimExpr]:
        """The terms of the column in a row."""
        groups, rest = self._divided(column, GROUP)
        _, turn = self._divided(row, 8)
        turns = _sum(turn, (column or row)[0].dtype)
        if size % 64:
            # two quotients become one; that of a remainder is short as it is
            is_quotient = isinstance(turns, FloorDiv)
            turns = op.floordiv(turns, 2)
            turns = self.analyzer.simplify(turns) if is_quotient else turns
        place = bitwise_xor(_sum(groups, turns.dtype), turns)
        return [op.multiply(place, GROUP), *rest]

    def _divided(
        self, terms: Sequence[PrimExpr], factor: int
    ) -> tuple[list[PrimExpr], list[PrimExpr]]:
        """Terms q and r of ``sum(terms) == sum(q) * factor + sum(r)``, where ``0 <= sum(r) < factor``."""
        quotients = [q for term in terms if (q := quotient(term, factor)) is not None]
        rest = [term for term in terms if quotient(term, factor) is None]
        if not rest:
            return quotients, rest
        total = _sum(rest, rest[0].dtype)
        bound = self.analyzer.const_int_bound(total)
        if bound.min_value >= 0 and bound.max_value < factor:
            return quotients, rest
        above = self.analyzer.simplify(op.floordiv(total, factor))
        below = self.analyzer.simplify(op.floormod(total, factor))
        return [*quotients, *terms_of(above)], terms_of(below)

    def _permuted_ldmatrix(self, call: Call, pointer: Call) -> PrimExpr:
        buffer = self.buffers.get(pointer.args[1])
        if buffer is None or not self._is_permuted(buffer, call):
            return call
        size, own = _row_size(buffer), call.args[6]
        offset = op.add(pointer.args[2], own)
        if not self.analyzer.can_prove_equal(op.floormod(offset, GROUP), 0):
            raise LoweringError(
                f"InjectPermutedLayout requires ldmatrix to read from multiples of {GROUP} elements, "
                f"got the offset {offset}",
                at=call,
            )
        row, column = self._divided(terms_of(offset), size)
        start = [self.analyzer.simplify(op.multiply(term, size)) for term in row]
        args = list(pointer.args)
        args[2] = _sum([*start, *self._permuted_column(size, row, column)], offset.dtype)
        moved = [*call.args[:5], pointer.replace(args=tuple(args)), const(0, own.dtype)]
        return call.replace(args=tuple(moved))


def terms_of(e: PrimExpr) -> list[PrimExpr]:
    """What is added up, zeros left out."""
    if isinstance(e, Add):
        return [*terms_of(e.a), *terms_of(e.b)]
    return [] if is_const(e, 0) else [e]


def quotient(term: PrimExpr, factor: int) -> PrimExpr | None:
    """A product by a multiple of ``factor``, divided by that."""
    if isinstance(term, IntImm) and term.value % factor == 0:
        return const(term.value // factor, term.dtype)
    if not isinstance(term, Mul) or not isinstance(term.b, IntImm) or term.b.value % factor:
        return None
    return op.multiply(term.a, term.b.value // factor)


def _sum(terms: Sequence[PrimExpr], dtype: DType) -> PrimExpr:
    total: PrimExpr = const(0, dtype)
    for term in terms:
        total = op.add(total, term)
    return total


def is_marked(node: Any) -> bool:
    """Whether a node is a block whose shared memory is permuted."""
    mark = node.annotations.get(KEY, 0) if isinstance(node, Block) else 0
    return bool(mark.value if isinstance(mark, IntImm) else mark)


def _is_shared(buffer: Buffer) -> bool:
    return buffer.scope() in ("shared", "shared.dyn")


def _row_size(buffer: Buffer) -> int:
    """The elements of a row, if its groups can be permuted."""
    size = buffer.shape[-1] if len(buffer.shape) >= 2 else None
    if not isinstance(size, IntImm) or (size.value % 64 and size.value != 32):
        raise LoweringError(
            "InjectPermutedLayout requires shared memory with rows of 32 or a multiple of 64 elements, "
            f"got {buffer.name} of shape {list(buffer.shape)}"
        )
    if buffer.strides and [str(stride) for stride in buffer.strides[-2:]] != [str(size), "1"]:
        raise LoweringError(
            "InjectPermutedLayout requires rows of shared memory one behind the other, "
            f"got {buffer.name} with the strides {list(buffer.strides)}"
        )
    return size.value


@prim_func_pass("tir.InjectPermutedLayout")
def inject_permuted_layout(func: PrimFunc) -> PrimFunc:
    """Permute the shared memory of marked blocks."""
    if not contains(func.body, lambda node: isinstance(node, Block) and KEY in node.annotations):
        return func
    permuter = LayoutPermuter(list(func.buffer_map.values()))
    body = permuter.visit(func.body)
    for data, at in permuter.plain.items():
        if data in permuter.permuted:
            raise LoweringError(
                f"InjectPermutedLayout requires all accesses to {data.name} in blocks marked with "
                f"{KEY}, got one outside of them",
                at=at,
            )
    return func.with_body(body)


InjectPermutedLayout = inject_permuted_layout.factory
