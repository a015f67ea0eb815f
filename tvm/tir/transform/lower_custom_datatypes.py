"""Replace arithmetic on users' types by calls of their functions.

C[i] = A[i] + B[i]           ->    C[i] = call_pure_extern("uint32", "MyAdd", A[i], B[i])

The functions are registered by :mod:`tvm.target.datatype`; values are kept as unsigned integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm._ffi.registry import get_global_func
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.op import Op
from tvm.support.dtype import CODE_NAMES, FIRST_CUSTOM_CODE, DType
from tvm.support.dtype import dtype as as_dtype
from tvm.tir.arithmetic import div
from tvm.tir.expr import BinaryOpExpr, Call, Cast, CmpExpr, FloatImm, const
from tvm.tir.function import PrimFunc
from tvm.tir.math_op import sqrt
from tvm.tir.transform.common import prim_func_pass
from tvm.tir.transform.storage_change import StorageChanger

Lowering = Callable[[PrimExpr], PrimExpr]


class CustomTypeLowerer(StorageChanger):
    """Asks the registered function for each operation on a custom type."""

    def __init__(self, target: str) -> None:
        super().__init__()
        self.target = target

    def function(self, func: PrimFunc) -> PrimFunc:
        """The function changed; pointers among its parameters stay, as its callers know them."""
        self.variables |= {param: param for param in func.params if param.dtype.is_handle}
        return super().function(func)

    def storage(self, dtype: DType) -> DType:
        return as_dtype(f"uint{dtype.bits}").with_lanes(dtype.lanes) if dtype.is_custom else dtype

    def visit_cast(self, e: Cast) -> PrimExpr:
        new = self.rewrite_children(e)
        source = e.value.dtype
        if not (e.dtype.is_custom or source.is_custom):
            return new
        what = f"Cast.{type_name(e.dtype)}.{type_name(source)}"
        return self._lowered(what, new, e)

    def visit_float_imm(self, e: FloatImm) -> PrimExpr:
        if not e.dtype.is_custom:
            return e
        return self._lowered(f"FloatImm.{type_name(e.dtype)}", e, e)

    def visit_call(self, call: Call) -> PrimExpr:
        if call.dtype.is_custom and (derived := self._derived(call)) is not None:
            lowered: PrimExpr = self.visit(derived)
            return lowered
        new = self.rewrite_children(call)
        if not call.dtype.is_custom:
            return new
        if not isinstance(call.op, Op):
            return new.replace(dtype=self.storage(call.dtype))
        name = call.op.name if call.op.name.startswith("tir.") else f"tir.{call.op.name}"
        return self._lowered(f"Call.intrin.{name}.{type_name(call.dtype)}", new, call)

    def visit_binary_op_expr(self, e: BinaryOpExpr) -> PrimExpr:
        return self._operator(e)

    def visit_cmp_expr(self, e: CmpExpr) -> PrimExpr:
        return self._operator(e)

    def _operator(self, e: BinaryOpExpr | CmpExpr) -> PrimExpr:
        new = self.rewrite_children(e)
        if not e.a.dtype.is_custom:
            return new
        return self._lowered(f"{type(e).__name__}.{type_name(e.a.dtype)}", new, e)

    def _derived(self, call: Call) -> PrimExpr | None:
        """An intrinsic without a function of its own in terms of others: 1 / sqrt(x)."""
        if not isinstance(call.op, Op) or call.op.name not in ("rsqrt", "tir.rsqrt"):
            return None
        name = f"tvm.datatype.lower.{self.target}.Call.intrin.tir.rsqrt.{type_name(call.dtype)}"
        if get_global_func(name, allow_missing=True) is not None:
            return None
        return div(const(1, call.dtype), sqrt(call.args[0]))

    def _lowered(self, what: str, new: PrimExpr, original: PrimExpr) -> PrimExpr:
        name = f"tvm.datatype.lower.{self.target}.{what}"
        lower: Any = get_global_func(name, allow_missing=True)
        if lower is None:
            operation, *types = what.split(".")
            raise LoweringError(
                f"{operation} of {'.'.join(types)} needs a function for target {self.target}",
                at=original,
                hint="tvm.target.datatype.register_op(lower_func, op_name, target, type_name)",
            )
        lowered: PrimExpr = lower(new)
        if lowered.dtype.is_custom:
            raise LoweringError(f"{name} needs to give no custom type, got {lowered.dtype}")
        return lowered


def type_name(dtype: DType) -> str:
    """The name of a kind of types: that of a custom type, or ``float``, ``int``, ..."""
    return dtype.code[len("custom[") : -1] if dtype.is_custom else dtype.code


@prim_func_pass("tir.LowerCustomDatatypes")
def lower_custom_datatypes(func: PrimFunc) -> PrimFunc:
    """Lower custom types for the function's target."""
    if not any([code >= FIRST_CUSTOM_CODE for code in CODE_NAMES]):
        return func
    target = func.get_attr("target")
    if target is None:
        raise LoweringError(
            "LowerCustomDatatypes needs the function's target", hint="run BindTarget(target) before"
        )
    return CustomTypeLowerer(target.kind.name).function(func)


LowerCustomDatatypes = lower_custom_datatypes.factory
