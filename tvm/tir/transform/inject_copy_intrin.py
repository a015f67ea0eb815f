"""Replace marked copy loops by what a function makes of them.

attr "pragma_dma_copy":      ->    fintrin(src, dst, pad_before, pad_after, pad_value)
    for i in range(8):
        for j in range(4):
            L[i * 4 + j] = A[i * 64 + j + off]

The buffers that the function gets describe the regions: shape, strides and offset of what is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm.arith import Analyzer, detect_clip_bound, detect_linear_equation
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.transform import Pass
from tvm.ir.visitor import Rewriter
from tvm.tir import op
from tvm.tir.buffer import Buffer, decl_buffer
from tvm.tir.expr import BufferLoad, Call, Cast, Select, Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import AttrStmt, BufferStore, For, Stmt
from tvm.tir.transform.common import IF_THEN_ELSE, is_const, prim_func_pass

CopyFunction = Callable[[Buffer, Buffer, list[PrimExpr], list[PrimExpr], Any], Stmt | None]


class CopyInjector(Rewriter):
    """Calls the function for each marked loop nest."""

    def __init__(self, key: str, make: CopyFunction) -> None:
        self.key = key
        self.make = make
        self.analyzer = Analyzer()

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        if attr.attr_key != self.key:
            return self.rewrite_children(attr)
        made = self._copied(attr.body)
        if made is None:
            raise LoweringError(
                f"{self.key} needs loops around one store of a load, with linear indices", at=attr
            )
        return made

    def _copied(self, stmt: Stmt) -> Stmt | None:
        loops: list[For] = []
        while isinstance(stmt, For):
            loops.append(stmt)
            stmt = stmt.body
        if not isinstance(stmt, BufferStore):
            return None
        condition, value, pad_value = split_guard(stmt.value)
        load = value.value if isinstance(value, Cast) else value
        if not isinstance(load, BufferLoad):
            return None
        if not all([is_const(loop.min, 0) for loop in loops]):
            return None
        variables = [loop.loop_var for loop in loops]
        source = self._linear(load.buffer, load.indices, variables)
        target = self._linear(stmt.buffer, stmt.indices, variables)
        if source is None or target is None:
            return None
        extents = [loop.extent for loop in loops] or [const(1, "int32")]
        padding = self._padding(condition, loops)
        if padding is None:
            return None
        before, after = padding
        inner, offset = list(extents), source[-1]
        strides = list(source[:-1]) or [const(1, "int32")]
        for axis, (low, high) in enumerate(zip(before, after, strict=True)):
            inner[axis] = self.analyzer.simplify(extents[axis] - low - high)
            offset = self.analyzer.simplify(offset + low * strides[axis])
        return self.make(
            self._region(load.buffer, inner, strides, offset),
            self._region(stmt.buffer, extents, list(target[:-1]), target[-1]),
            before,
            after,
            pad_value,
        )

    def _linear(
        self, buffer: Buffer, indices: Sequence[PrimExpr], variables: Sequence[Var]
    ) -> tuple[PrimExpr, ...] | None:
        """The step of each variable in the flat index, then the index where all are 0."""
        (index,) = buffer.offset_of(list(indices))
        found = detect_linear_equation(self.analyzer.simplify(index), list(variables))
        return tuple(found) or None

    def _padding(
        self, condition: PrimExpr | None, loops: Sequence[For]
    ) -> tuple[list[PrimExpr], list[PrimExpr]] | None:
        """How many elements before and after the copied ones are filled, by loop."""
        if condition is None:
            return [], []
        bounds = detect_clip_bound(condition, [loop.loop_var for loop in loops])
        if len(bounds) != 2 * len(loops):
            return None
        before, after = [], []
        for loop, low, high in zip(loops, bounds[::2], bounds[1::2], strict=True):
            zero = const(0, loop.extent.dtype)
            first = zero if low is None else op.maximum(low, zero)
            last = loop.extent - 1
            rest = zero if high is None else op.maximum(last - high, zero)
            before.append(self.analyzer.simplify(first))
            after.append(self.analyzer.simplify(rest))
        return before, after

    def _region(
        self, buffer: Buffer, shape: Sequence[Any], strides: Sequence[Any], offset: PrimExpr
    ) -> Buffer:
        return decl_buffer(
            list(shape), buffer.dtype, buffer.name, buffer.data, list(strides) or [1], offset,
            scope=buffer.scope(),
        )  # fmt: skip


def split_guard(value: PrimExpr) -> tuple[PrimExpr | None, PrimExpr, Any]:
    """The condition under which the source is read, the source, and the value elsewhere."""
    if isinstance(value, Select):
        return value.condition, value.true_value, value.false_value
    if isinstance(value, Call) and value.op is IF_THEN_ELSE:
        condition, inside, outside = value.args
        return condition, inside, outside
    return None, value, None


def InjectCopyIntrin(pragma_key: str, fintrin: CopyFunction) -> Pass:
    """The pass.

    Parameters
    ----------
    pragma_key : str
        The mark, without ``pragma_``.
    fintrin : callable
        From source and target buffers, elements to fill before and after by axis, and the value to
        fill with, to the statement that copies.
    """
    key = pragma_key if pragma_key.startswith("pragma_") else f"pragma_{pragma_key}"

    @prim_func_pass("tir.InjectCopyIntrin")
    def inject_copy_intrin(func: PrimFunc) -> PrimFunc:
        return func.with_body(CopyInjector(key, fintrin).visit(func.body))

    return inject_copy_intrin.factory()
