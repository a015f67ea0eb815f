"""Programs of a product and what follows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm.ir.module import IRModule
from tvm.relax import op
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Var
from tvm.relax.struct_info import TensorStructInfo


def get_relax_matmul_module(
    x_shape: Sequence[Any],
    y_shape: Sequence[Any],
    in_dtype: str,
    out_dtype: str | None = None,
    transposed_y: bool = False,
    bias_shape: Sequence[Any] | None = None,
    activation: Callable[[Any], Any] | None = None,
    residual_bin_op: Callable[[Any, Any], Any] | None = None,
    residual_activation: Callable[[Any], Any] | None = None,
) -> IRModule:
    """A module whose ``main`` computes a product.

    Parameters
    ----------
    x_shape, y_shape : sequence of int or PrimExpr
        Of the parameters ``x`` and ``y``.
    in_dtype, out_dtype : str
        Of the parameters and the result.
    transposed_y : bool
        Whether the last two axes of ``y`` are swapped first.
    bias_shape : sequence, optional
        Of the parameter ``bias``, which is added.
    activation : callable, optional
    residual_bin_op : callable, optional
        What joins the result with ``x``.
    residual_activation : callable, optional
        What follows that.
    """
    x = Var("x", TensorStructInfo(x_shape, in_dtype))
    y = Var("y", TensorStructInfo(y_shape, in_dtype))
    params = [x, y]
    if bias_shape is not None:
        params.append(Var("bias", TensorStructInfo(bias_shape, out_dtype or in_dtype)))
    steps: list[Callable[[Any], Any]] = []
    if transposed_y:
        axes = [*range(len(y_shape) - 2), len(y_shape) - 1, len(y_shape) - 2]
        steps.append(lambda _: op.permute_dims(y, axes))
    steps.append(lambda last: op.matmul(x, y if last is None else last, out_dtype=out_dtype or ""))
    if bias_shape is not None:
        steps.append(lambda last: op.add(last, params[2]))
    if activation is not None:
        steps.append(activation)
    if residual_bin_op is not None:
        steps.append(lambda last: residual_bin_op(last, x))
        if residual_activation is not None:
            steps.append(residual_activation)
    builder = BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            last: Any = None
            for step in steps[:-1]:
                last = builder.emit(step(last))
            out = builder.emit_output(steps[-1](last))
        builder.emit_func_output(out)
    return builder.finalize()
