"""Gradients of calls whose results have another layout or another dtype than the data.

nn.dense(%x, %w, out_dtype="float32")        by that of nn.dense(cast(%x), cast(%w))
nn.avg_pool1d(%x, out_layout="NWC")          by that of nn.avg_pool1d(%x), in NCW
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.relay.analysis.infer import infer_type_of, tensor_type_of
from tvm.relay.expr import Call

from .registry import Gradient, ops


def of_plain_result(gradient: Gradient) -> Gradient:
    """The gradient for all calls, made of one for results like the data."""

    def of_any_result(call: Call, grad: RelayExpr) -> list[RelayExpr]:
        attrs, dtype = call.attrs, tensor_type_of(call).dtype
        args = [_as(arg, dtype) for arg in call.args]
        if "out_dtype" in attrs and attrs.out_dtype:
            attrs = attrs.replace(out_dtype="")
        if "out_layout" in attrs and attrs.out_layout:
            own = attrs["layout" if "layout" in attrs else "data_layout"]
            if attrs.out_layout != own:
                grad = ops.layout_transform(grad, src_layout=attrs.out_layout, dst_layout=own)
                infer_type_of(grad)
            attrs = attrs.replace(out_layout="")
        is_plain = all(a is b for a, b in zip(args, call.args, strict=True))
        if attrs is call.attrs and is_plain:
            return gradient(call, grad)
        plain = Call(call.op, args, attrs)
        infer_type_of(plain)
        found = gradient(plain, grad)
        return [
            part
            if tensor_type_of(part).dtype == tensor_type_of(arg).dtype
            else ops.cast_like(part, arg)
            for part, arg in zip(found, call.args, strict=True)
        ]

    return of_any_result


def _as(expr: RelayExpr, dtype: str) -> RelayExpr:
    if tensor_type_of(expr).dtype == dtype:
        return expr
    cast = ops.cast(expr, dtype=dtype)
    infer_type_of(cast)
    return cast
