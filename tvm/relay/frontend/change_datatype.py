"""Compute a program in another data type, such as one of the user's own.

fn (%x: Tensor[(2), float32]) { add(%x, meta[Constant][0]) }
    ->  fn (%x: Tensor[(2), custom[myfloat]32]) { add(%x, cast(meta[Constant][0], dtype="custom[myfloat]32")) }
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.ir.type import TensorType, Type
from tvm.relay.expr import Call, Constant, Var
from tvm.relay.function import Function
from tvm.relay.op.registry import ops
from tvm.relay.transform.common import FunctionPass
from tvm.relay.traverse import rewrite_post_order
from tvm.relay.type_functor import TypeMutator
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype


class _TypeChanger(TypeMutator):
    """Types of tensors with other elements."""

    def __init__(self, src: DType, dst: DType) -> None:
        self.src = src
        self.dst = dst

    def visit_tensor_type(self, tt: TensorType) -> Type:
        return TensorType(tt.shape, self.dst) if tt.dtype is self.src else tt


class _DatatypeChanger:
    """Rebuilds functions: their variables, constants and the types that calls ask for."""

    def __init__(self, src: DType, dst: DType) -> None:
        self.types = _TypeChanger(src, dst)

    def function(self, func: Function) -> Function:
        new = rewrite_post_order(func, self._rewrite)
        assert isinstance(new, Function)
        return new

    def _rewrite(self, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if isinstance(new, Var) and new.type_annotation is not None:
            ty = self.types.visit(new.type_annotation)
            return new if ty is new.type_annotation else Var(new.name_hint, ty, new.span)
        if isinstance(new, Constant) and as_dtype(new.data.dtype) is self.types.src:
            return ops.cast(new, dtype=str(self.types.dst))
        if isinstance(new, Function) and new.ret_type is not None:
            return new.replace(ret_type=self.types.visit(new.ret_type))
        if isinstance(new, Call) and new.attrs is not None:
            return self._with_attributes(new)
        return new

    def _with_attributes(self, call: Call) -> Call:
        changed = {
            name: str(self.types.dst)
            for name in ("dtype", "out_dtype")
            if name in call.attrs and call.attrs[name] and call.attrs[name] == self.types.src
        }
        return call.replace(attrs=call.attrs.replace(**changed)) if changed else call


def ChangeDatatype(src: str, dst: str) -> Pass:
    """A pass that computes functions on values of one data type on those of another.

    Parameters
    ----------
    src : str
        The type that parameters, constants and results of casts have.
    dst : str
        The type that they get, such as ``"custom[myfloat]32"``. Constants are cast to it when the
        program runs.

    Returns
    -------
    change : Pass
        It changes each function of a module.
    """
    changer = _DatatypeChanger(as_dtype(src), as_dtype(dst))

    def run(func: Function, _: IRModule, __: PassContext) -> Function:
        return changer.function(func)

    return FunctionPass(run, PassInfo(0, "ChangeDatatype"))
