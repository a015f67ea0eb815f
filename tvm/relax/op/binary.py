"""Operators of two tensors or numbers, element by element, that are broadcast as numpy does."""

from __future__ import annotations

from typing import Any

from tvm import tir, topi
from tvm.relax.struct_info import PrimStructInfo, TensorStructInfo

from .infer import broadcast_shape, check_count, common_dtype, common_vdevice, fail
from .legalize import binary_call
from .operator import Expr, documented, operator


def _operands(call: Any) -> list[Any]:
    check_count(call, 2)
    infos = [arg.struct_info for arg in call.args]
    for index, info in enumerate(infos):
        if not isinstance(info, (TensorStructInfo, PrimStructInfo)):
            raise fail(call, f"requires Tensors or numbers, got argument {index} which is {info}")
    return infos


def _arithmetic(call: Any, bb: Any) -> Any:
    """A tensor of the shape that both operands broadcast to, and of their dtype."""
    infos = _operands(call)
    kind = common_dtype(call, infos)
    return broadcast_shape(call, infos, kind, common_vdevice(call, infos))


def _comparison(call: Any, bb: Any) -> Any:
    """A tensor of the shape that both operands broadcast to, and of dtype bool."""
    infos = _operands(call)
    return broadcast_shape(call, infos, "bool", common_vdevice(call, infos))


def _binary(name: str, function: Any, what: str, infer: Any = _arithmetic, hint: str = "") -> Any:
    def build(x1: Expr, x2: Expr) -> Expr: ...

    doc = f"""{what}

    Parameters
    ----------
    x1, x2 : relax.Expr
        The operands, which are broadcast.
    """
    legalize = binary_call(function, hint or name)
    return operator(f"relax.{name}", infer=infer, FLegalize=legalize, FElementwise=True)(
        documented(build, name, __name__, doc)
    )


def _log_add_exp(a: Any, b: Any) -> Any:
    """log(exp(a) + exp(b)) = max(a, b) + log(1 + exp(-|a - b|))"""
    high = topi.maximum(a, b)
    distance = topi.abs(topi.subtract(a, b))
    # infinities of one sign are no distance apart
    distance = topi.where(topi.equal(a, b), topi.full_like(distance, 0.0), distance)
    small = topi.exp(topi.negative(distance))
    return topi.add(high, topi.math.elementwise(small, tir.log1p, "T_log1p"))


add = _binary("add", topi.add, "Sums.")
divide = _binary("divide", topi.divide, "Quotients.")
floor_divide = _binary("floor_divide", topi.floor_divide, "Quotients, rounded down.")
multiply = _binary("multiply", topi.multiply, "Products.")
power = _binary("power", topi.power, "Powers.")
log_add_exp = _binary("log_add_exp", _log_add_exp, "Logarithms of sums of exponentials.")
subtract = _binary("subtract", topi.subtract, "Differences.")
mod = _binary("mod", topi.mod, "Remainders with the dividend's sign.")
floor_mod = _binary("floor_mod", topi.floor_mod, "Remainders with the divisor's sign.")
maximum = _binary("maximum", topi.maximum, "The greater values.")
minimum = _binary("minimum", topi.minimum, "The smaller values.")
equal = _binary("equal", topi.equal, "Whether values are equal.", _comparison)
greater = _binary("greater", topi.greater, "Whether x1 > x2.", _comparison)
greater_equal = _binary("greater_equal", topi.greater_equal, "Whether x1 >= x2.", _comparison)
less = _binary("less", topi.less, "Whether x1 < x2.", _comparison)
less_equal = _binary("less_equal", topi.less_equal, "Whether x1 <= x2.", _comparison)
not_equal = _binary("not_equal", topi.not_equal, "Whether values differ.", _comparison)
logical_and = _binary("logical_and", topi.logical_and, "Whether both hold.")
logical_or = _binary("logical_or", topi.logical_or, "Whether one holds.")
logical_xor = _binary("logical_xor", topi.logical_xor, "Whether just one holds.")
bitwise_and = _binary("bitwise_and", topi.bitwise_and, "Bits that both have.")
bitwise_or = _binary("bitwise_or", topi.bitwise_or, "Bits that one has.")
bitwise_xor = _binary("bitwise_xor", topi.bitwise_xor, "Bits that just one has.")
left_shift = _binary("left_shift", topi.left_shift, "Bits moved up.")
right_shift = _binary("right_shift", topi.right_shift, "Bits moved down.")
