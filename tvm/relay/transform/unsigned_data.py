"""Keep int8 data of quantised programs as uint8 where the processor's dot products take that.

%0 = qnn.requantize(%x, s, 0, t, -3, out_dtype="int8")     %0 = qnn.requantize(..., 125, "uint8")
qnn.conv2d(%0, %w, -3, 0, t, u)                      ->    qnn.conv2d(%0, %w, 125, 0, t, u)

A zero point 128 higher stands for the same real numbers. What wants the int8 tensor gets it by a
subtraction.
"""

from __future__ import annotations

from collections.abc import Callable

from tvm import topi
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext
from tvm.relay.analysis.infer import infer_type_of, tensor_type_of
from tvm.relay.expr import Call, Constant, Tuple, const
from tvm.relay.function import Function, is_primitive
from tvm.relay.op.registry import ops
from tvm.relay.op.types import shape_of_type
from tvm.relay.op.unary import raised_bytes
from tvm.relay.qnn.op.common import constant_array
from tvm.relay.qnn.op.convolutions import PLAIN_CONVOLUTIONS
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.operators import MAX_POOLS, RESHAPES, calls, is_operator_call
from tvm.relay.traverse import post_order, rewrite_function
from tvm.target import Target

_PRODUCTS = (*PLAIN_CONVOLUTIONS, ops.qnn.dense)
_ARITHMETIC = (ops.qnn.add, ops.qnn.subtract, ops.qnn.mul)
_MOVES = (*RESHAPES, ops.transpose, *MAX_POOLS, ops.strided_slice)
# the values to be raised by 128 among their arguments: data and constants of its type
_WITH_CONSTANTS = (ops.nn.pad, ops.maximum, ops.minimum)


class UnsignedRewriter:
    """Rewrites one function; a tensor's twin holds the same numbers, each 128 higher, as uint8."""

    def __init__(self) -> None:
        self._twins: dict[int, RelayExpr] = {}
        self._kept: list[RelayExpr] = []  # so that ids stay valid

    def rewrite(self, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if not is_operator_call(new):
            return new
        if new.op in (ops.qnn.quantize, ops.qnn.requantize, ops.qnn.dequantize):
            return self._affine(new)
        if new.op in _PRODUCTS:
            return self._product(new)
        make = self._maker(new)
        return new if make is None else self._from_twin(make())

    def _affine(self, call: Call) -> RelayExpr:
        """Quantised data comes as its twin; what becomes int8 becomes a twin first."""
        args = list(call.args)
        twin = self._twins.get(id(args[0]))
        if call.op is not ops.qnn.quantize and twin is not None:
            args[:3] = [twin, args[1], _raised(args[2])]
        if (
            call.op is ops.qnn.dequantize
            or call.attrs.out_dtype != "int8"
            or not _is_scalar(args[-1])
        ):
            return (
                call
                if twin is None or call.op is ops.qnn.quantize
                else call.replace(args=tuple(args))
            )
        args[-1] = _raised(args[-1])
        attrs = call.attrs.replace(out_dtype="uint8")
        return self._from_twin(Call(call.op, tuple(args), attrs))

    def _product(self, call: Call) -> RelayExpr:
        data, weight, zero, *rest = call.args
        if str(tensor_type_of(data).dtype) != "int8" or not _is_scalar(zero):
            return call
        return call.replace(args=(self._twin_of(data), weight, _raised(zero), *rest))

    def _maker(self, call: Call) -> Callable[[], Call] | None:
        """What makes the twin of a call of int8 numbers that have twins."""
        args = call.args
        first = args[0] if args else None
        if call.op in _ARITHMETIC:
            zeros = [args[i] for i in (3, 5, 7)]
            if all(self._has_twin(a) for a in args[:2]) and all(map(_is_scalar, zeros)):
                return lambda: self._arithmetic(call)
        elif call.op is ops.concatenate and isinstance(first, Tuple):
            if all(self._has_twin(field) for field in first.fields):
                fields = first.fields
                return lambda: call.replace(args=(Tuple([self._twin_of(f) for f in fields]),))
        elif first is None or id(first) not in self._twins:
            return None
        elif call.op in _MOVES:
            return lambda: call.replace(args=(self._twin_of(first), *args[1:]))
        elif call.op is ops.clip:
            ends = {"a_min": call.attrs.a_min + 128.0, "a_max": call.attrs.a_max + 128.0}
            attrs = call.attrs.replace(**ends)
            return lambda: call.replace(args=(self._twin_of(first),), attrs=attrs)
        elif call.op in _WITH_CONSTANTS and self._has_twin(args[1]):
            return lambda: call.replace(args=tuple([self._twin_of(a) for a in args]))
        return None

    def _arithmetic(self, call: Call) -> Call:
        args = list(call.args)
        args[:2] = [self._twin_of(a) for a in args[:2]]
        for i in (3, 5, 7):
            args[i] = _raised(args[i])
        return call.replace(args=tuple(args))

    def _has_twin(self, expr: RelayExpr) -> bool:
        is_known = isinstance(expr, Constant) and str(expr.data.dtype) == "int8"
        return is_known or id(expr) in self._twins

    def _twin_of(self, expr: RelayExpr) -> RelayExpr:
        found = self._twins.get(id(expr))
        if found is not None:
            return found
        return raised_bytes(expr)

    def _from_twin(self, twin: Call) -> RelayExpr:
        """The int8 tensor of a twin."""
        signed = ops.cast(
            ops.subtract(ops.cast(twin, dtype="int16"), const(128, "int16")), dtype="int8"
        )
        self._twins[id(signed)] = twin
        self._kept.append(signed)
        return signed


def _raised(zero: RelayExpr) -> RelayExpr:
    array = constant_array(zero)
    if array is not None:
        return const((array + 128).astype("int32"))
    return ops.add(zero, const(128, "int32"))


def _is_scalar(zero: RelayExpr) -> bool:
    return shape_of_type(infer_type_of(zero)) in ((), (1,))


def _has_signed_products(func: Function) -> bool:
    return any(
        calls(node, *_PRODUCTS) and str(tensor_type_of(node.args[0]).dtype) == "int8"
        for node in post_order(func)
    )


@relay_pass("UnsignedData", opt_level=2)
def unsigned_data(func: Function, mod: IRModule, context: PassContext) -> Function:
    """int8 data as uint8, for the dot products of the current target."""
    target = Target.current(allow_none=True)
    if target is None or "cpu" not in target.keys or is_primitive(func):
        return func
    if topi.x86.conv2d.dot_group("uint8", "int8", target) == 1 or not _has_signed_products(func):
        return func
    return rewrite_function(func, UnsignedRewriter().rewrite)


UnsignedData = unsigned_data.factory
