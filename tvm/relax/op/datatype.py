"""Data types of tensors."""

from __future__ import annotations

from typing import Any

from tvm import topi
from tvm.relax.expr import Call, Constant, const

from .infer import tensors, with_dtype
from .operator import DataType, Expr, operator


def _infer(call: Any, bb: Any) -> Any:
    """A tensor of the operand's shape, and of dtype `dtype`."""
    return with_dtype(tensors(call, 1)[0], call.attrs.dtype)


def _legalize(bb: Any, call: Call) -> Any:
    value = call.args[0]
    if isinstance(value, Constant) and value.struct_info.ndim == 0:
        return const(value.data.numpy().astype(call.attrs.dtype.numpy), call.attrs.dtype)
    return bb.call_te(topi.cast, value, call.attrs.dtype, primfunc_name_hint="cast")


@operator("relax.astype", "AstypeAttrs", infer=_infer, FLegalize=_legalize, FElementwise=True)
def astype(x: Expr, dtype: DataType) -> Expr:
    """The elements converted to a data type.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    dtype : str
        The data type.
    """


@operator("relax.wrap_param", "WrapParamAttrs", infer=_infer, FLegalize=_legalize)
def wrap_param(data: Expr, dtype: DataType = "float32") -> Expr:
    """A parameter of a model, in another data type.

    Parameters
    ----------
    data : relax.Expr
        The parameter.
    dtype : str
        The data type.
    """
