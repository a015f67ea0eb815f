"""Compute products of dequantised tensors in integers where the processor has dot products.

nn.conv2d(dequantize(%x, s, z), dequantize(%w, t, 0))
    ->    cast(qnn.conv2d(%x, %w, z, 0, s, t, out_dtype="int32"), "float32") * (s * t)
quantize(nn.max_pool2d(dequantize(%x, s, z)), s, z)    ->    nn.max_pool2d(%x)
take(dequantize(table, s, z), %i)    ->    dequantize(take(table, %i), s, z)

What is behind a product, up to the next quantisation, stays in real numbers: it runs on the sums in
registers, its constants divided by the step of the quantisation. The sums are exact, so results are those of the simulated quantisation but for the
rounding of float32.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tvm import topi
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext
from tvm.relay.analysis.infer import infer_type_of, tensor_type_of
from tvm.relay.expr import Call, Constant, const
from tvm.relay.function import Function, is_primitive
from tvm.relay.op.attributes import padding_pairs
from tvm.relay.op.registry import ops
from tvm.relay.op.types import Dim, is_known, shape_of_type
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.fold_constant import ConstantFolder
from tvm.relay.transform.integer_sums import (
    MATRIX_PRODUCTS,
    PRODUCTS,
    Affine,
    affine_parameters,
    channel_axis,
    signed_weight,
    sums_and_factor,
    sums_fit,
)
from tvm.relay.transform.operators import (
    MAX_POOLS,
    RESHAPES,
    TRANSPOSED_CONVOLUTIONS,
    calls,
    is_operator_call,
)
from tvm.relay.traverse import post_order, rewrite_calls, use_counts
from tvm.target import Target

_MOVES = (*RESHAPES, ops.transpose, *MAX_POOLS, ops.strided_slice, ops.nn.pad)
# how much faster than float32 an instruction for pairs of 16-bit numbers multiplies
_PAIRS_SPEED = 1.8


class IntegerRewriter:
    """Rewrites one function; `stayed` tells of each product that it left in real numbers, why."""

    def __init__(self, target: Target, uses: Mapping[int, int]) -> None:
        self.target = target
        self.uses = uses
        self.stayed: list[tuple[Call, str]] = []
        self.done: list[Call] = []
        self.moves: list[tuple[RelayExpr, RelayExpr]] = []  # before and after, in real numbers
        self._affine: dict[int, Affine] = {}  # by the expression of real numbers
        self._scaled: dict[int, tuple[RelayExpr, np.ndarray]] = {}  # products: sums and factor
        self._constant: dict[int, bool] = {}  # whether an expression is, by identity
        self._kept: list[RelayExpr] = []  # so that ids stay valid

    def rewrite(self, old: Call, new: Call) -> RelayExpr:
        if not is_operator_call(new):
            return new
        self._kept.append(new)
        if new.op is ops.qnn.quantize:
            return self._quantize(old, new)
        if new.op is ops.qnn.dequantize:
            return self._dequantize(new)
        if new.op in PRODUCTS:
            return self._product(old, new)
        if new.op is ops.take:
            return self._take(new)
        if self._move(new):
            self.moves.append((old, new))
        return new

    def _quantize(self, old: Call, call: Call) -> RelayExpr:
        found = affine_parameters(call)
        if found is None:
            return call
        before = self._affine.get(id(call.args[0]))
        if before is not None and _same(before, found):
            dtype = tensor_type_of(before.values).dtype
            wanted = call.attrs.out_dtype
            if dtype == wanted:
                return before.values
        if not found.is_scalar:
            return call
        divided = self._divided(old.args[0], call.args[0], found.scale)
        if divided is None:
            return call
        return call.replace(args=(divided, const(np.float32(1.0)), call.args[2]))

    def _divided(self, old: RelayExpr, new: RelayExpr, by: np.ndarray) -> RelayExpr | None:
        """A scaled product and what follows it over a number: constants are divided in its place."""
        if self.uses.get(id(old), 0) != 1 or not isinstance(new, Call):
            return None
        if id(new) in self._scaled:
            sums, factor = self._scaled[id(new)]
            return ops.multiply(sums, const((factor / by).astype("float32")))
        if not isinstance(old, Call) or new.op not in (ops.nn.relu, ops.add, ops.nn.bias_add):
            return None
        addend = None
        if new.op is not ops.nn.relu:
            addend = self._number(new.args[1])
            if addend is None:
                return None
        below = self._divided(old.args[0], new.args[0], by)
        if below is None:
            return None
        rest = () if addend is None else (const((addend / by).astype("float32")),)
        return new.replace(args=(below, *rest))

    def _number(self, expr: RelayExpr) -> np.ndarray | None:
        """The value of a constant of real numbers, dequantised ones included."""
        if isinstance(expr, Constant):
            return expr.data.numpy()
        found = self._affine.get(id(expr))
        if found is None or not isinstance(found.values, Constant):
            return None
        values = found.values.data.numpy().astype("float64")
        shape = [-1 if i == found.axis else 1 for i in range(values.ndim)]
        scale, zero = (
            a if found.is_scalar else a.reshape(shape) for a in (found.scale, found.zero)
        )
        return np.asarray((values - zero) * scale)

    def _dequantize(self, call: Call) -> RelayExpr:
        found = affine_parameters(call)
        if found is None or call.attrs.out_dtype != "float32":
            return call
        self._affine[id(call)] = found
        return call

    def _take(self, call: Call) -> Call:
        """What is taken from a constant table is dequantised, and not the whole table."""
        table, indices = call.args
        if not calls(table, ops.qnn.dequantize) or not isinstance(table.args[0], Constant):
            return call
        found = self._affine.get(id(table))
        if found is None or not found.is_scalar:
            return call
        taken = table.replace(args=(call.replace(args=(table.args[0], indices)), *table.args[1:]))
        self._kept.append(taken)
        self._dequantize(taken)
        return taken

    def _move(self, call: Call) -> bool:
        """Operators that only move elements, or choose the greatest, do so with integers too."""
        found = self._affine.get(id(call.args[0])) if call.args else None
        if found is None or call.op not in _MOVES:
            return False
        axis = found.axis
        if axis is not None and (axis := _moved_axis(call, axis)) is None:
            return False
        rest = list(call.args[1:])
        if call.op is ops.nn.pad:
            if not isinstance(rest[0], Constant) or rest[0].data.numpy().any():
                return False
            rest = [const(found.zero.astype(found.dtype))]
        moved = call.replace(args=(found.values, *rest))
        self._kept.append(moved)
        self._affine[id(call)] = Affine(moved, found.scale, found.zero, axis)
        return True

    def _product(self, old: Call, call: Call) -> RelayExpr:
        data, weight = [self._affine.get(id(arg)) for arg in call.args]
        if data is None and weight is None:
            return call
        reason = self._why_unsupported(call, old, data, weight)
        if reason:
            self.stayed.append((old, reason))
            return call
        assert data is not None and weight is not None
        self.done.append(old)
        real, factor = sums_and_factor(call, data, weight)
        scaled = ops.multiply(real, const(factor))
        self._scaled[id(scaled)] = (real, factor)
        self._kept.append(scaled)
        return scaled

    def _why_unsupported(
        self, call: Call, old: Call, data: Affine | None, weight: Affine | None
    ) -> str:
        """Why a product stays in real numbers; empty if it does not."""
        if data is None or weight is None:
            return f"{'the data' if data is None else 'the weight'} is not quantised"
        if not data.is_scalar:
            return "the data has a scale for each channel"
        if str(tensor_type_of(old).dtype) != "float32":
            return f"the result is {tensor_type_of(old).dtype}"
        if data.dtype not in ("int8", "uint8", "int16"):
            return f"the data is {data.dtype}"
        if weight.dtype not in ("int8", "uint8"):
            return f"the weight is {weight.dtype}"
        if not weight.is_scalar and weight.axis != channel_axis(call):
            return "the weight's scales are not those of output channels"
        folder = ConstantFolder()
        if not folder.is_constant(weight.values, self._constant):
            return self._unfit_factors(call, data, weight)
        if data.dtype == "int16":
            values = folder.fold(weight.values)
            if not isinstance(values, Constant):
                return "the weight is not a constant"
            if not sums_fit(values.data.numpy(), data, weight, channel_axis(call)):
                return "sums of 16-bit data do not fit in 32 bits"
        return self._unfit(call, data, weight)

    def _unfit_factors(self, call: Call, data: Affine, weight: Affine) -> str:
        """Why a product of two computed tensors stays in real numbers."""
        if call.op not in MATRIX_PRODUCTS:
            return "the weight is not a constant"
        if data.dtype == "int16":
            return "sums of 16-bit data may not fit in 32 bits"
        shapes = [shape_of_type(infer_type_of(a.values)) for a in (data, weight)]
        if call.op is not ops.nn.batch_matmul and len(shapes[0]) != 2:
            return f"its data has {len(shapes[0])} dimensions"
        if not is_known(*shapes[0], *shapes[1]):
            return "an extent is left to the run"
        return self._missing("int16", "int16")

    def _missing(self, data: str, weight: str) -> str:
        if topi.x86.conv2d.narrow_dtypes(data, weight, "int32", self.target) is not None:
            return ""
        bits = 16 if "int16" in (data, weight) else 8
        return f"the processor has no dot products of {bits}-bit numbers"

    def _unfit(self, call: Call, data: Affine, weight: Affine) -> str:
        is_wide = signed_weight(weight)[1].any() or data.dtype == "int16"
        if call.op in (*TRANSPOSED_CONVOLUTIONS, ops.nn.matmul, ops.nn.batch_matmul):
            if data.dtype == "int16" and data.zero.any():
                return "16-bit data has a zero point"
            is_wide = is_wide or bool(data.zero.any())
        factors = ("int16", "int16") if is_wide else ("uint8", "int8")
        if reason := self._missing(*factors):
            return reason
        shape = shape_of_type(infer_type_of(data.values))
        if call.op in MATRIX_PRODUCTS:
            return "" if len(shape) >= 2 else "its data is a vector"
        return self._unfit_convolution(call, shape, weight)

    def _unfit_convolution(self, call: Call, shape: Sequence[Dim], weight: Affine) -> str:
        attrs = call.attrs
        if attrs.data_layout[:2] != "NC" or attrs.kernel_layout[:2] not in ("OI", "IO"):
            return f"the layout is {attrs.data_layout} and {attrs.kernel_layout}"
        if call.op in TRANSPOSED_CONVOLUTIONS and {*attrs.dilation} != {1}:
            return "dilated transposed convolutions have no integer kernel"
        if len(attrs.strides) != 2 and not is_known(*shape):
            return "an extent is left to the run"
        kernel = tensor_type_of(weight.values).concrete_shape  # of a constant
        dtypes = topi.x86.conv2d.narrow_dtypes("uint8", "int8", "int32", self.target)
        in_pairs = (dtypes is not None and "int16" in dtypes) or signed_weight(weight)[1].any()
        if call.op is ops.nn.conv2d and attrs.groups == 1 and in_pairs:
            if self._prefers_winograd(call, kernel):
                return "Winograd's algorithm is faster in float32"
        return ""

    def _prefers_winograd(self, call: Call, shape: tuple[int, ...]) -> bool:
        """Whether products of pairs are slower than fewer products of real numbers."""
        attrs, data = call.attrs, shape_of_type(infer_type_of(call.args[0]))
        if shape[2:] != (3, 3) or {*attrs.strides, *attrs.dilation} != {1} or not is_known(*data):
            return False
        blocks = topi.x86.conv2d.channel_blocks(shape[1], shape[0], "float32", self.target)
        pads = padding_pairs(attrs.padding, 2)
        return topi.x86.conv2d.winograd_tile(
            [int(d) for d in data if isinstance(d, int)], shape[0], pads, blocks, "float32", self.target, _PAIRS_SPEED
        ) is not None  # fmt: skip


def _moved_axis(call: Call, axis: int) -> int | None:
    """Where the operator brings an axis; None if it does not stay one."""
    rank = len(shape_of_type(infer_type_of(call.args[0])))
    if call.op is ops.transpose:
        order = call.attrs.axes or tuple(reversed(range(rank)))
        return [int(a) % rank for a in order].index(axis)
    if call.op is ops.expand_dims:
        at, count = call.attrs.axis, call.attrs.num_newaxis
        return axis + count if axis >= (at if at >= 0 else at + rank + 1) else axis
    return None


def _same(a: Affine, b: Affine) -> bool:
    return a.is_scalar and b.is_scalar and a.scale == b.scale and a.zero == b.zero


def examined_products(func: Function, target: Target) -> tuple[Function, dict[int, str]]:
    """A function with its constants folded; why calls on quantised tensors stay wide, by id.

    The reason is empty for those that are computed in integers.
    """
    if "cpu" not in target.keys or not _has_quantized(func):
        return func, {}
    folded = ConstantFolder().run(func)
    rewriter = IntegerRewriter(target, use_counts(folded))
    result = rewrite_calls(folded, rewriter.rewrite)
    left = {id(node) for node in post_order(result)}
    # what moves elements does so with integers where nobody wants the real numbers
    done = [*rewriter.done, *[old for old, new in rewriter.moves if id(new) not in left]]
    reasons = {id(call): "" for call in done}
    reasons.update({id(call): reason for call, reason in rewriter.stayed})
    return folded, reasons


def _has_quantized(func: Function) -> bool:
    return any(calls(node, ops.qnn.dequantize) for node in post_order(func))


@relay_pass("IntegerProducts", opt_level=2)
def integer_products(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Products of dequantised tensors in integers."""
    target = Target.current(allow_none=True)
    if target is None or "cpu" not in target.keys or is_primitive(func):
        return func
    if not _has_quantized(func):
        return func
    folded = ConstantFolder().run(func)
    return rewrite_calls(folded, IntegerRewriter(target, use_counts(folded)).rewrite)


IntegerProducts = integer_products.factory
