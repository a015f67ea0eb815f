"""Functions of 8-bit numbers as tables, for those who add operators of their own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tvm.error import OpAttributeInvalid
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call, Constant, const
from tvm.relay.op.registry import ops
from tvm.relay.traverse import rewrite_post_order

from .lookup import integer_lookup_table


def run_const_expr(expr: RelayExpr) -> np.ndarray:
    """The value of an expression without variables."""
    found = rewrite_post_order(expr, _folded)
    if not isinstance(found, Constant):
        raise OpAttributeInvalid(f"a constant is required, got {type(found).__name__}", at=found)
    return found.data.numpy()


def _folded(_: RelayExpr, new: RelayExpr) -> RelayExpr:
    if not isinstance(new, Call) or not isinstance(new.op, Op) or new.op.fold is None:
        return new
    if not all([isinstance(arg, Constant) for arg in new.args]):
        return new
    arrays = [arg.data.numpy() for arg in new.args if isinstance(arg, Constant)]
    results = new.op.fold(new.attrs, arrays, infer_type_of(new))
    return new if results is None or len(results) != 1 else const(np.asarray(results[0]))


def create_integer_lookup_table(
    floating_point_func: Callable[[np.ndarray], np.ndarray],
    input_scale: RelayExpr,
    input_zero_point: RelayExpr,
    output_scale: RelayExpr,
    output_zero_point: RelayExpr,
    in_axis: int = -1,
    out_axis: int = -1,
    in_dtype: str = "uint8",
    out_dtype: str = "uint8",
) -> np.ndarray:
    """The results for the 256 inputs, in the order of their bits read as uint8.

    Parameters
    ----------
    floating_point_func : callable
        From an array of float32 to one.
    input_scale, input_zero_point, output_scale, output_zero_point : relay.Expr
        Constant scalars.
    in_axis, out_axis : int
        -1: parameters that change along an axis would need a table for each position.
    in_dtype, out_dtype : str
        "int8" or "uint8".
    """
    for name, dtype in (("in_dtype", in_dtype), ("out_dtype", out_dtype)):
        if np.dtype(dtype).itemsize != 1:
            raise OpAttributeInvalid(f"a lookup table requires {name} of 8 bits, got {dtype!r}")
    parameters = [
        run_const_expr(p) for p in (input_scale, input_zero_point, output_scale, output_zero_point)
    ]
    if in_axis != -1 or out_axis != -1 or any(p.size != 1 for p in parameters):
        raise OpAttributeInvalid("a lookup table requires scalar scales and zero points")
    return integer_lookup_table(floating_point_func, parameters, in_dtype, out_dtype)


def create_integer_lookup_op(
    input_arg: RelayExpr,
    floating_point_func: Callable[[np.ndarray], np.ndarray],
    in_scale: RelayExpr,
    in_zero_point: RelayExpr,
    out_scale: RelayExpr,
    out_zero_point: RelayExpr,
    in_axis: int = -1,
    out_axis: int = -1,
    in_dtype: str = "uint8",
    out_dtype: str = "uint8",
) -> RelayExpr:
    """The function of a quantised tensor by a table; parameters as in the table's function."""
    table = create_integer_lookup_table(
        floating_point_func, in_scale, in_zero_point, out_scale, out_zero_point,
        in_axis, out_axis, in_dtype, out_dtype,
    )  # fmt: skip
    index = input_arg if in_dtype == "uint8" else ops.reinterpret(input_arg, dtype="uint8")
    return ops.take(const(table), index, axis=0, mode="fast")
