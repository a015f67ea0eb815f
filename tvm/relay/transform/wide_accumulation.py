"""Sum float16 in float32, as processors and the other frameworks do.

sum(%x)            ->    cast(sum(cast(%x, "float32")), "float16")
nn.dense(%x, %w)   ->    cast(nn.dense(cast(%x, "float32"), cast(%w, "float32")), "float16")

A float16 has eleven bits: a sum of 4,096 equal elements kept in one would stop at half of it. The
casts of constants are folded, the others run inside the kernels beside them.
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext
from tvm.ir.type import TensorType
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call
from tvm.relay.function import Function, is_closed, is_primitive
from tvm.relay.op.registry import OpPattern, ops
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.operators import is_operator_call
from tvm.relay.traverse import rewrite_calls

_NARROW = "float16"
_WIDE = "float32"


@relay_pass("WideAccumulation", opt_level=0)
def wide_accumulation(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Widen the operators that add up float16."""
    if is_primitive(func):
        return func
    return rewrite_calls(func, _widen, is_opaque=is_closed)


def _widen(old: Call, new: Call) -> RelayExpr:
    if not is_operator_call(old):
        return new
    if not _is_narrow(old) or not any([_is_narrow(arg) for arg in old.args]):
        return new
    attrs = old.attrs
    if _is_product(old):
        attrs = attrs.replace(out_dtype=_WIDE)
    elif not old.operator.accumulates:
        return new
    elif getattr(attrs, "dtype", ""):
        attrs = attrs.replace(dtype=_WIDE)
    args = [
        ops.cast(arg, dtype=_WIDE) if _is_narrow(before) else arg
        for before, arg in zip(old.args, new.args, strict=True)
    ]
    return ops.cast(new.replace(args=tuple(args), attrs=attrs), dtype=_NARROW)


def _is_product(call: Call) -> bool:
    is_fusable = call.operator.fuse == OpPattern.OUT_ELEMWISE_FUSABLE
    return is_fusable and call.attrs is not None and "out_dtype" in call.attrs


def _is_narrow(expr: RelayExpr) -> bool:
    ty = infer_type_of(expr)
    return isinstance(ty, TensorType) and str(ty.dtype) == _NARROW


WideAccumulation = wide_accumulation.factory
