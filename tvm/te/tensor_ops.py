"""Operators on tensors, with NumPy's broadcasting.

A + B        ->    compute(broadcast shape, lambda i, j: A[i, j] + B[j], tag="broadcast")
A * 2        ->    compute(A.shape, lambda i, j: A[i, j] * 2, tag="elemwise")
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tvm.error import TVMError
from tvm.ir import structural_equal
from tvm.ir.expr import PrimExpr
from tvm.tir import op as tir_op
from tvm.tir.constants import is_one
from tvm.tir.expr import IntImm, const

ELEMWISE = "elemwise"
BROADCAST = "broadcast"

ScalarOp = Callable[[Any, Any], PrimExpr]


class TensorOperators:
    """Arithmetic and comparison for :class:`tvm.te.Tensor`."""

    __slots__ = ()
    __tensor_operators__ = True

    if TYPE_CHECKING:
        shape: tuple[PrimExpr, ...]

    @classmethod
    def _elementwise(
        cls, shape: Sequence[PrimExpr], function: Callable[..., PrimExpr], name: str, tag: str
    ) -> Any:
        raise NotImplementedError

    def __add__(self, other: Any) -> Any:
        return apply(tir_op.add, "T_add", self, other)

    def __radd__(self, other: Any) -> Any:
        return apply(tir_op.add, "T_add", other, self)

    def __sub__(self, other: Any) -> Any:
        return apply(tir_op.subtract, "T_subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return apply(tir_op.subtract, "T_subtract", other, self)

    def __mul__(self, other: Any) -> Any:
        return apply(tir_op.multiply, "T_multiply", self, other)

    def __rmul__(self, other: Any) -> Any:
        return apply(tir_op.multiply, "T_multiply", other, self)

    def __truediv__(self, other: Any) -> Any:
        return apply(tir_op.div, "T_divide", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return apply(tir_op.div, "T_divide", other, self)

    __div__ = __truediv__
    __rdiv__ = __rtruediv__

    def __floordiv__(self, other: Any) -> Any:
        return apply(tir_op.floordiv, "T_floor_divide", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return apply(tir_op.floordiv, "T_floor_divide", other, self)

    def __mod__(self, other: Any) -> Any:
        return apply(tir_op.floormod, "T_mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return apply(tir_op.floormod, "T_mod", other, self)

    def __lshift__(self, other: Any) -> Any:
        return apply(tir_op.shift_left, "T_left_shift", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return apply(tir_op.shift_left, "T_left_shift", other, self)

    def __rshift__(self, other: Any) -> Any:
        return apply(tir_op.shift_right, "T_right_shift", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return apply(tir_op.shift_right, "T_right_shift", other, self)

    def __and__(self, other: Any) -> Any:
        return apply(tir_op.bitwise_and, "T_bitwise_and", self, other)

    def __rand__(self, other: Any) -> Any:
        return apply(tir_op.bitwise_and, "T_bitwise_and", other, self)

    def __or__(self, other: Any) -> Any:
        return apply(tir_op.bitwise_or, "T_bitwise_or", self, other)

    def __ror__(self, other: Any) -> Any:
        return apply(tir_op.bitwise_or, "T_bitwise_or", other, self)

    def __xor__(self, other: Any) -> Any:
        return apply(tir_op.bitwise_xor, "T_bitwise_xor", self, other)

    def __rxor__(self, other: Any) -> Any:
        return apply(tir_op.bitwise_xor, "T_bitwise_xor", other, self)

    def __neg__(self) -> Any:
        return self._elementwise(
            self.shape, lambda *i: tir_op.negative(load(self, i)), "T_negative", ELEMWISE
        )

    def __invert__(self) -> Any:
        return self._elementwise(
            self.shape, lambda *i: tir_op.bitwise_not(load(self, i)), "T_bitwise_not", ELEMWISE
        )

    def __lt__(self, other: Any) -> Any:
        return apply(lambda a, b: a < b, "T_less", self, other)

    def __le__(self, other: Any) -> Any:
        return apply(lambda a, b: a <= b, "T_less_equal", self, other)

    def __gt__(self, other: Any) -> Any:
        return apply(lambda a, b: a > b, "T_greater", self, other)

    def __ge__(self, other: Any) -> Any:
        return apply(lambda a, b: a >= b, "T_greater_equal", self, other)

    def astype(self, dtype: str, span: Any = None) -> Any:
        """The tensor with every element cast to ``dtype``."""
        del span
        return self._elementwise(
            self.shape, lambda *i: tir_op.cast(load(self, i), dtype), "T_cast", ELEMWISE
        )


def apply(scalar_op: ScalarOp, name: str, lhs: Any, rhs: Any) -> Any:
    """``scalar_op`` on every pair of elements, of two tensors or of a tensor and a scalar."""
    if not isinstance(lhs, TensorOperators):
        return rhs._elementwise(rhs.shape, lambda *i: scalar_op(lhs, load(rhs, i)), name, ELEMWISE)
    if not isinstance(rhs, TensorOperators):
        return lhs._elementwise(lhs.shape, lambda *i: scalar_op(load(lhs, i), rhs), name, ELEMWISE)
    shape = broadcast_shape(lhs.shape, rhs.shape, name)

    def body(*indices: PrimExpr) -> PrimExpr:
        left = load(lhs, broadcast_indices(indices, lhs.shape, shape))
        return scalar_op(left, load(rhs, broadcast_indices(indices, rhs.shape, shape)))

    return lhs._elementwise(shape, body, name, BROADCAST)


def load(tensor: Any, indices: Sequence[Any]) -> PrimExpr:
    """The element at ``indices``."""
    element: PrimExpr = tensor(*indices)
    return element


def broadcast_shape(
    lhs: Sequence[PrimExpr], rhs: Sequence[PrimExpr], name: str = "broadcast"
) -> tuple[PrimExpr, ...]:
    """The shape that two shapes broadcast to.

    A symbolic dimension beside a constant other than 1 is taken to be that constant.
    """
    rank = max(len(lhs), len(rhs))
    padded = [(None,) * (rank - len(shape)) + tuple(shape) for shape in (lhs, rhs)]
    return tuple([_common_dim(a, b, lhs, rhs, name) for a, b in zip(*padded, strict=True)])


def _common_dim(
    a: PrimExpr | None,
    b: PrimExpr | None,
    lhs: Sequence[PrimExpr],
    rhs: Sequence[PrimExpr],
    name: str,
) -> PrimExpr:
    if a is None or b is None:
        return b if a is None else a  # type: ignore[return-value]
    if is_one(a):
        return b
    if is_one(b):
        return a
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        if a.value != b.value:
            shapes = f"({', '.join(map(str, lhs))}) and ({', '.join(map(str, rhs))})"
            raise TVMError(
                f"{name} requires shapes that broadcast, got {shapes}",
                hint="dimensions must be equal or 1, counted from the right",
            )
        return a
    if isinstance(a, IntImm) or structural_equal(a, b):
        return a
    return b if isinstance(b, IntImm) else tir_op.maximum(a, b)


def broadcast_indices(
    indices: Sequence[PrimExpr], shape: Sequence[PrimExpr], out_shape: Sequence[PrimExpr]
) -> list[PrimExpr]:
    """The indices into a tensor of ``shape`` for an output element of ``out_shape``."""
    offset = len(out_shape) - len(shape)
    result: list[PrimExpr] = []
    for index, dim, out_dim in zip(indices[offset:], shape, out_shape[offset:], strict=True):
        if is_one(dim) and not is_one(out_dim):
            result.append(const(0, index.dtype))
        elif isinstance(dim, IntImm) or structural_equal(dim, out_dim):
            result.append(index)
        else:
            # which of the two dimensions is 1 is known only at run time
            result.append(tir_op.if_then_else(tir_op.equal(dim, 1), 0, index))
    return result
