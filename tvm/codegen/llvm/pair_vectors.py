"""Neighbouring vectors of costly functions are computed as one, so that their instructions interleave.

    A[0:8] = exp(B[0:8])         ->    pair: T.float32x16 = exp(T.Shuffle([B[0:8], B[8:16]], [0, ..., 15]))
    A[8:16] = exp(B[8:16])             A[0:8] = T.Shuffle([pair], [0, ..., 7])
                                       A[8:16] = T.Shuffle([pair], [8, ..., 15])

A polynomial is a chain of instructions each of which waits for the one before it, and a processor does not
look far enough ahead to find the next vector's chain. LLVM splits the wide vectors into registers again,
instruction by instruction.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import is_
from typing import Any

from tvm.codegen.vector_math import FLOAT32_FUNCTIONS
from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.ir.visitor import Rewriter
from tvm.tir.analysis.side_effect import is_pure
from tvm.tir.expr import (
    And,
    BinaryOpExpr,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    CmpExpr,
    Not,
    Or,
    Select,
    Shuffle,
    Var,
    const,
)
from tvm.tir.intrinsics import ELEMENTWISE
from tvm.tir.stmt import BufferStore, For, ForKind, LetStmt, SeqStmt, Stmt, seq
from tvm.tir.stmt_functor import substitute
from tvm.tir.transform.common import constant_extent, contains

_ELEMENTWISE = frozenset([f"tir.{n}" for names in ELEMENTWISE.values() for n in names.split()])
# those that are long chains: range reductions and polynomials
_COSTLY = frozenset([f"tir.{name}" for name in FLOAT32_FUNCTIONS])


class VectorPairer(Rewriter):
    """Rewrites sequences and loops of stores to memory that their values do not read."""

    def __init__(self, vector_bits: int) -> None:
        self.vector_bits = vector_bits

    def visit_prim_expr(self, e: PrimExpr) -> PrimExpr:
        return e

    def visit_seq_stmt(self, block: SeqStmt) -> Stmt:
        parts: list[Stmt] = []
        for part in block.seq:
            if parts and (pair := self._paired(parts[-1], part)) is not None:
                parts[-1] = pair
            else:
                parts.append(self.visit(part))
        same = len(parts) == len(block.seq) and all(map(is_, parts, block.seq))
        return block if same else seq(parts)

    def visit_for(self, loop: For) -> Stmt:
        turns = constant_extent(loop)
        is_serial = loop.kind in (ForKind.SERIAL, ForKind.UNROLLED)
        if type(loop.body) is not BufferStore or not is_serial:
            return self.rewrite_children(loop)
        if turns is None or turns < 2 or not self._is_costly(loop.body):
            return loop

        def turn(number: PrimExpr) -> Stmt:
            found: Stmt = substitute(loop.body, {loop.loop_var: number})
            return found

        even = loop.min + (loop.loop_var - loop.min) * 2
        pair = self._paired(turn(even), turn(even + 1))
        if pair is None:
            return loop
        paired = loop.replace(extent=const(turns // 2, loop.extent.dtype), body=pair)
        return seq([paired, turn(loop.min + (turns - 1))]) if turns % 2 else paired

    def _is_costly(self, store: BufferStore) -> bool:
        dtype = store.value.dtype
        return (
            dtype.is_vector
            and not dtype.is_scalable
            and dtype.is_float
            and dtype.bits in (32, 64)
            and 128 <= dtype.bits * dtype.lanes <= self.vector_bits
            and contains(store.value, _is_costly_call)
        )

    def _paired(self, first: Stmt, second: Stmt) -> Stmt | None:
        """Both stores with one value, if nothing that the second reads depends on the first."""
        if type(first) is not BufferStore or type(second) is not BufferStore:
            return None
        a, b = first.value, second.value
        if a.dtype is not b.dtype or first.predicate is not None or second.predicate is not None:
            return None
        if not (self._is_costly(first) and self._is_costly(second)):
            return None
        reads = _reads_of(first.buffer.data)
        if not is_pure(a) or any(
            [not is_pure(e) or contains(e, reads) for e in (b, *second.indices)]
        ):
            return None
        value = _joined(a, b)
        if not contains(value, lambda e: _is_costly_call(e) and e.dtype.lanes == value.dtype.lanes):
            return None
        pair = Var("pair", value.dtype)
        lanes = a.dtype.lanes
        low, high = _picked((pair,), 0, lanes), _picked((pair,), lanes, lanes)
        return LetStmt(pair, value, seq([first.replace(value=low), second.replace(value=high)]))


def _is_costly_call(e: Any) -> bool:
    return type(e) is Call and getattr(e.op, "name", "") in _COSTLY


def _reads_of(memory: Var) -> Callable[[Any], bool]:
    """Whether a node reads the memory, or might by its pointer."""
    return lambda node: (type(node) is BufferLoad and node.buffer.data is memory) or node is memory


def _joined(a: Any, b: Any) -> PrimExpr:
    """The lanes of both, in one computation as far as both are computed alike."""
    kind: Any = type(a)
    lanes = a.dtype.lanes
    if kind is Broadcast and structural_equal(a, b):
        return Broadcast(a.value, 2 * lanes)
    if kind is type(b) and a.dtype is b.dtype:
        if kind is Not:
            return Not(_joined(a.a, b.a))
        if issubclass(kind, (BinaryOpExpr, CmpExpr, And, Or)):
            found: PrimExpr = kind(_joined(a.a, b.a), _joined(a.b, b.b))
            return found
        if kind is Cast and a.value.dtype is b.value.dtype:
            return Cast(a.dtype.with_lanes(2 * lanes), _joined(a.value, b.value))
        if (
            kind is Select
            and a.condition.dtype is b.condition.dtype
            and a.condition.dtype.lanes == lanes
        ):
            return Select(
                _joined(a.condition, b.condition),
                _joined(a.true_value, b.true_value),
                _joined(a.false_value, b.false_value),
            )
        if kind is Call and a.op is b.op and getattr(a.op, "name", "") in _ELEMENTWISE:
            args = [_joined(x, y) for x, y in zip(a.args, b.args, strict=True)]
            return Call(a.dtype.with_lanes(2 * lanes), a.op, args)
    return _picked((a, b), 0, 2 * lanes)


def _picked(vectors: tuple[PrimExpr, ...], first: int, lanes: int) -> Shuffle:
    """So many lanes of the vectors, one behind the other, from the first on."""
    return Shuffle(vectors, tuple([const(first + i, "int32") for i in range(lanes)]))
