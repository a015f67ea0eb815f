"""Operators of three tensors, element by element."""

from __future__ import annotations

from typing import Any

from tvm import topi

from .infer import common_dtype, dims_of, fail, made, prove_equal, tensors
from .operator import Expr, operator


def _infer(call: Any, bb: Any) -> Any:
    """A tensor of the operands' shape and dtype."""
    infos = tensors(call, 3)
    ndims = {i.ndim for i in infos if i.ndim >= 0}
    if len(ndims) > 1:
        raise fail(call, f"requires tensors of one rank, got {sorted(ndims)}")
    kinds = {i.dtype for i in infos if not i.dtype.is_void}
    if len(kinds) > 1:
        raise fail(call, f"requires tensors of one dtype, got {sorted(kinds)}")
    kind = common_dtype(call, infos)
    ndim = ndims.pop() if ndims else -1
    dims = [dims_of(i) for i in infos]
    if all([d is not None for d in dims]):
        for other in dims[1:]:
            for a, b in zip(dims[0], other, strict=True):  # type: ignore[arg-type]
                if not prove_equal(a, b):
                    if hasattr(a, "value") and hasattr(b, "value"):
                        raise fail(call, f"requires tensors of one shape, got {infos}")
                    return made(None, kind, infos[0].vdevice, ndim)
        return made(infos[0].shape, kind, infos[0].vdevice)
    if infos[0].shape is not None and all([i.shape is infos[0].shape for i in infos]):
        return made(infos[0].shape, kind, infos[0].vdevice)
    return made(None, kind, infos[0].vdevice, ndim)


def _legalize(bb: Any, call: Any) -> Any:
    def compute(a: Any, b: Any, c: Any) -> Any:
        return topi.add(topi.multiply(a, b), c)

    return bb.call_te(compute, *call.args, primfunc_name_hint="ewise_fma")


@operator("relax.ewise_fma", infer=_infer, FLegalize=_legalize)
def ewise_fma(x1: Expr, x2: Expr, x3: Expr) -> Expr:
    """x1 * x2 + x3

    Parameters
    ----------
    x1, x2, x3 : relax.Expr
        The tensors.
    """
