"""The rules of SimplifyExpr: operators that cancel each other, do nothing, or meet in one.

Each leaves fewer operators, or says a shape that another tensor told.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.ir.rules import calling, fold, measured, pattern_consts, pattern_vars, rule, rules
from tvm.ir.type import TensorType
from tvm.relay.analysis.infer import infer_type_of, tensor_type_of
from tvm.relay.expr import Call
from tvm.relay.op.registry import ops
from tvm.relay.op.types import same_dim, shape_of_type
from tvm.relay.transform.operators import calls
from tvm.relay.transform.rewrite_rules import CallBuilder, Rewrites, applied
from tvm.relay.ty import is_dynamic
from tvm.support import DType

x, y = pattern_vars("x y")
c0, c1 = pattern_consts("c0 c1")
sqrt, rsqrt, cast, cast_like = applied("sqrt rsqrt cast cast_like")
reshape, reshape_like, transpose, dense = applied("reshape reshape_like transpose dense")
broadcast_to, broadcast_to_like = applied("broadcast_to broadcast_to_like")
collapse_sum_to, collapse_sum_like = applied("collapse_sum_to collapse_sum_like")
zeros, zeros_like, ones, ones_like = applied("zeros zeros_like ones ones_like")
full, full_like = applied("full full_like")


class SimplifyBuilder(CallBuilder):
    """What the rules below ask about a call."""

    def has_shape(self, x: RelayExpr) -> bool:
        """Whether an expression is of the shape of the result, as far as its dimensions can be compared."""
        have, want = shape_of_type(infer_type_of(x)), shape_of_type(self.ty)
        return len(have) == len(want) and all(map(same_dim, have, want))

    def has_dtype(self, x: RelayExpr) -> bool:
        """Whether an expression is of the data type of the result."""
        return tensor_type_of(x).dtype == self.ty.dtype

    def is_exact_cast_of(self, x: RelayExpr) -> bool:
        """Whether the argument, a cast of `x`, has all values that `x` can have."""
        return _holds_all(tensor_type_of(self.call.args[0]).dtype, tensor_type_of(x).dtype)

    # ---- transposes

    def order(self) -> list[int] | None:
        """The order of axes that the transpose of a transpose leaves."""
        rank = len(self.ty.shape)
        outer, inner = _axes(self.call, rank), _axes(self.call.args[0], rank)
        return None if outer is None or inner is None else [inner[axis] for axis in outer]

    def keeps_order(self) -> bool:
        """Whether the transpose moves no axis."""
        rank = len(self.ty.shape)
        return _axes(self.call, rank) == list(range(rank))

    def restores_order(self) -> bool:
        """Whether the transpose undoes the one that is its argument."""
        return self.order() == list(range(len(self.ty.shape)))

    def has_order(self) -> bool:
        """Whether the transpose of a transpose is one."""
        return self.order() is not None

    def transpose(self, x: RelayExpr) -> Call:
        order = self.order()
        assert order is not None, "asked before"
        return ops.transpose(x, axes=tuple(order))

    # ---- dense layers of merged rows

    def keeps_rows(self, x: RelayExpr, weight: RelayExpr) -> bool:
        """Whether the leading axes of `x` were merged for a dense layer and parted after it."""
        if len(self.ty.shape) < 2 or is_dynamic(self.ty):
            return False
        *outer, rows, _ = self.ty.concrete_shape
        if rows < 16 and np.prod(outer) > 1:
            return False  # few rows at a time would fill no tile
        units = tensor_type_of(weight).shape[0]
        return TensorType((*tensor_type_of(x).shape[:-1], units), self.ty.dtype) == self.ty

    def dense(self, x: RelayExpr, weight: RelayExpr) -> Call:
        layer = self.call.args[0]
        assert isinstance(layer, Call)
        return ops.nn.dense(x, weight, **dict(layer.attrs.items()))


def _axes(expr: RelayExpr, rank: int) -> list[int] | None:
    """The order of axes that a transpose, or a layout transform without blocks, leaves."""
    if calls(expr, ops.transpose):
        axes: Sequence[int] | None = expr.attrs["axes"]
        return [int(a) % rank for a in axes] if axes else list(reversed(range(rank)))
    if not calls(expr, ops.layout_transform):
        return None
    source, target = str(expr.attrs["src_layout"]), str(expr.attrs["dst_layout"])
    return [source.index(c) for c in target] if sorted(source) == sorted(target) else None


# bits of a float's significand, the leading one counted
_SIGNIFICAND = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


def _holds_all(wide: DType, narrow: DType) -> bool:
    """Whether every value of one dtype is a value of the other."""
    if wide.lanes != narrow.lanes or wide == "bool":
        return wide == narrow
    if narrow == "bool":
        return True
    is_signed = narrow.startswith("int")
    if narrow in _SIGNIFICAND:
        # a bfloat16 has the exponents of float32
        same_range = wide != "float16" and (wide, narrow) != ("bfloat16", "float16")
        return wide in _SIGNIFICAND and _SIGNIFICAND[wide] >= _SIGNIFICAND[narrow] and same_range
    if not is_signed and not narrow.startswith("uint"):
        return False
    digits = narrow.bits - is_signed
    if wide in _SIGNIFICAND:
        return _SIGNIFICAND[wide] >= digits
    if wide.startswith("uint"):
        return not is_signed and wide.bits >= digits
    return wide.startswith("int") and wide.bits - 1 >= digits


def _has_sum(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.isfinite(_sum(a, b)).all())


def _sum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        total: np.ndarray = a + b
    return total


def _has_product(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether the product of numbers that fit their dtype fits it, and is not lost as too small."""
    both = _product(a, b)
    if not np.isfinite(both).all():
        return False
    if not np.issubdtype(both.dtype, np.floating):
        return True
    return not ((np.abs(both) < np.finfo(both.dtype).tiny) & (a != 0) & (b != 0)).any()


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        both: np.ndarray = a * b
    return both


has_type = measured("has_type", x)
is_static = measured("is_static")
has_neighbours = has_type & measured("is_small", c0) & measured("is_small", c1)

SIMPLIFY = rules(
    # arithmetic: neutral elements go, constants meet
    rule(x + 0, x, when=has_type),
    rule(x - 0, x, when=has_type),
    rule(x * 1, x, when=has_type),
    rule(x / 1, x, when=has_type),
    rule((x + c0) + c1, x + fold(calling(_sum, c0, c1)), when=has_neighbours & calling(_has_sum, c0, c1)),
    rule((x * c0) * c1, x * fold(calling(_product, c0, c1)),
         when=has_neighbours & calling(_has_product, c0, c1)),
    rule(1 / sqrt(x), rsqrt(x), when=has_type),
    rule(x / sqrt(y), x * rsqrt(y)),
    # data types: a cast that loses nothing is left out before another
    rule(cast(x), x, when=measured("has_dtype", x)),
    rule(cast(cast(x)), x, when=measured("is_exact_cast_of", x) & measured("has_dtype", x)),
    rule(cast(cast(x)), cast(x), when=measured("is_exact_cast_of", x)),
    # shapes: the last one counts
    rule(reshape(x), x, when=is_static & has_type),
    rule(reshape(dense(reshape(x), y)), dense(x, y), when=measured("keeps_rows", x, y)),
    rule(reshape(reshape(x)), reshape(x), when=is_static),
    rule(transpose(x), x, when=measured("keeps_order")),
    rule(transpose(transpose(x)), x, when=measured("restores_order")),
    rule(transpose(transpose(x)), transpose(x), when=measured("has_order")),
    # what another tensor tells is known
    rule(cast_like(x, y), cast(x)),
    rule(reshape_like(x, y), x, when=is_static & has_type),
    rule(reshape_like(x, y), reshape(x), when=is_static),
    rule(broadcast_to_like(x, y), broadcast_to(x), when=is_static),
    rule(broadcast_to_like(x, y), x, when=measured("has_shape", x)),
    rule(collapse_sum_like(x, y), collapse_sum_to(x), when=is_static),
    rule(zeros_like(x), zeros(), when=is_static),
    rule(ones_like(x), ones(), when=is_static),
    rule(full_like(x, y), full(y), when=is_static),
)  # fmt: skip
REWRITES = Rewrites(SIMPLIFY, SimplifyBuilder)
