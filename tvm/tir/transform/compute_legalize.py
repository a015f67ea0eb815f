"""Compute on wider floats where the operands are narrow ones.

C[i] = A[i] + B[i]           ->    C[i] = cast(bfloat16, cast(float32, A[i]) + cast(float32, B[i]))

Values in memory, and those passed to functions, stay narrow.
"""

from __future__ import annotations

from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.ir.transform import Pass
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype
from tvm.tir.expr import BufferLoad, Call, Cast, FloatImm, Let, Var
from tvm.tir.function import PrimFunc
from tvm.tir.intrinsics import ELEMENTWISE, INTRINSICS
from tvm.tir.stmt import AttrStmt, BufferStore, LetStmt, Stmt
from tvm.tir.stmt_functor import BufferRewriter
from tvm.tir.transform.common import IF_THEN_ELSE, LIKELY, prim_func_pass

# calls that compute: their operands and result may be wider
COMPUTING = {
    IF_THEN_ELSE: None,
    LIKELY: None,
    **{INTRINSICS[name]: None for names in ELEMENTWISE.values() for name in names.split()},
}
BFLOAT16 = ("bfloat16",)
FLOAT8 = ("e4m3_float8", "e5m2_float8")


class ComputeLegalizer(BufferRewriter):
    """Gives every narrow expression as a wide one."""

    def __init__(self, narrow: tuple[str, ...], wide: DType, keep_casts: bool = False) -> None:
        super().__init__()
        self.narrow = narrow
        self.wide = wide
        self.keep_casts = keep_casts
        self.widened: dict[Var, Var] = {}

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        return self._widened(super().visit_buffer_load(load))

    def visit_var(self, var: Var) -> PrimExpr:
        known = self.widened.get(var)
        return self._widened(var) if known is None else known

    def visit_float_imm(self, e: FloatImm) -> PrimExpr:
        return FloatImm(self.wide, e.value) if self._is_narrow(e.dtype) else e

    def visit_cast(self, e: Cast) -> PrimExpr:
        value: PrimExpr = self.visit(e.value)
        target = self._wide(e.dtype)
        if self.keep_casts and target is not e.dtype and not self._is_narrow(e.value.dtype):
            return Cast(target, Cast(e.dtype, value))  # the program rounds here
        if target is value.dtype:
            return value
        return e if value is e.value and target is e.dtype else Cast(target, value)

    def visit_call(self, call: Call) -> PrimExpr:
        args = tuple([self.visit(arg) for arg in call.args])
        if call.op in COMPUTING:
            if all([new is old for new, old in zip(args, call.args, strict=True)]):
                return call
            return Call(self._wide(call.dtype), call.op, args)
        # what is passed to functions keeps its type
        same = [self._as(arg, old.dtype) for arg, old in zip(args, call.args, strict=True)]
        if all([new is old for new, old in zip(same, call.args, strict=True)]):
            return self._widened(call)
        return self._widened(Call(call.dtype, call.op, same))

    def visit_buffer_store(self, node: BufferStore) -> Stmt:
        value = self._as(self.visit(node.value), node.value.dtype)
        indices = tuple([self.visit(index) for index in node.indices])
        buffer = self.buffer(node.buffer)
        if value is node.value and buffer is node.buffer:
            if all([a is b for a, b in zip(indices, node.indices, strict=True)]):
                return node
        return BufferStore(buffer, value, indices, node.predicate)

    def visit_let_stmt(self, let: LetStmt) -> Stmt:
        var = self._widened_var(let.var)
        value, body = self.visit(let.value), self.visit(let.body)
        if var is let.var and value is let.value and body is let.body:
            return let
        return LetStmt(var, value, body)

    def visit_let(self, let: Let) -> PrimExpr:
        var = self._widened_var(let.var)
        value, body = self.visit(let.value), self.visit(let.body)
        if var is let.var and value is let.value and body is let.body:
            return let
        return Let(var, value, body)

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        body = self.visit(attr.body)
        return attr if body is attr.body else attr.replace(body=body)

    def _widened_var(self, var: Var) -> Var:
        if not self._is_narrow(var.dtype):
            return var
        self.widened[var] = Var(var.name, self._wide(var.dtype))
        return self.widened[var]

    def _is_narrow(self, dtype: DType) -> bool:
        return str(dtype.element) in self.narrow

    def _wide(self, dtype: DType) -> DType:
        return self.wide.with_lanes(dtype.lanes) if self._is_narrow(dtype) else dtype

    def _widened(self, e: PrimExpr) -> PrimExpr:
        return self._as(e, self._wide(e.dtype))

    def _as(self, e: PrimExpr, dtype: DType) -> PrimExpr:
        """The value with a type; what was only widened is taken as it was."""
        if e.dtype is dtype:
            return e
        if isinstance(e, Cast) and e.value.dtype is dtype:
            return e.value
        return Cast(dtype, e)


def legalize(name: str, narrow: tuple[str, ...], wide: str, keep_casts: bool = False) -> Pass:
    """The pass for some types."""
    dtype = as_dtype(wide)
    if not dtype.is_float or str(dtype) in narrow:
        raise ValueError(f"{name} requires a wider float to compute with, got {wide}")

    @prim_func_pass(name)
    def compute_legalize(func: PrimFunc) -> PrimFunc:
        body = ComputeLegalizer(narrow, dtype, keep_casts).visit(func.body)
        # what is legal already is only built anew
        return func if structural_equal(body, func.body) else func.with_body(body)

    return compute_legalize.factory()


def BF16ComputeLegalize(keep_casts: bool = False) -> Pass:
    """Compute on float32 in the place of bfloat16.

    Parameters
    ----------
    keep_casts : bool
        Whether values that the program casts to bfloat16 are rounded, not only those it stores.
    """
    return legalize("tir.BF16ComputeLegalize", BFLOAT16, "float32", keep_casts)


def FP8ComputeLegalize(promote_dtype_str: str = "float32") -> Pass:
    """Compute on the given type in the place of the 8-bit floats."""
    return legalize("tir.FP8ComputeLegalize", FLOAT8, promote_dtype_str)
