"""Name the extents of inputs that only the run knows.

def @main(%x: Tensor[(?, 64), float32]) {...}   ->   def @main(%x: Tensor[(n0, 64), float32]) {...}

Two tensors whose extents were derived from one input are then known to be equal, so that adding
them needs no broadcast. It is done where all types follow from the inputs': in a main function
without calls of other functions, data types and references.
"""

from __future__ import annotations

from tvm.error import TypeCheckError
from tvm.ir.expr import PrimExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import ModulePass, Pass, PassContext, PassInfo
from tvm.ir.type import TensorType, TupleType, Type
from tvm.relay.adt import Match
from tvm.relay.expr import Call, RefCreate, Var
from tvm.relay.function import Function
from tvm.relay.transform.infer_type import infer_types
from tvm.relay.traverse import post_order, substitute
from tvm.tir.expr import Any, SizeVar


def name_extents(mod: IRModule) -> IRModule:
    """The module with variables for unknown extents of main's parameters, typed anew."""
    main = mod["main"]
    if not _follows_from_inputs(main):
        return mod
    namer = _Namer()
    new = {p: Var(p.name_hint, namer.named(p.checked_type)) for p in main.params}
    if namer.count == 0:
        return mod
    params = list(new.values())
    func = Function(params, substitute(main.body, new), None, main.type_params, main.attrs)
    try:
        return infer_types(mod.with_functions({**mod.functions, mod.get_global_var("main"): func}))
    except TypeCheckError:
        return (
            mod  # a known extent stands for an unknown one somewhere, which only the run can tell
        )


def _follows_from_inputs(main: Function) -> bool:
    for node in post_order(main.body):
        if isinstance(node, (Match, RefCreate, Function)):
            return False
        if isinstance(node, Call) and not isinstance(node.op, Op):
            return False
    return True


class _Namer:
    def __init__(self) -> None:
        self.count = 0

    def named(self, ty: Type) -> Type:
        if isinstance(ty, TupleType):
            return TupleType([self.named(f) for f in ty.fields])
        if not isinstance(ty, TensorType):
            return ty
        return TensorType(tuple([self._extent(d) for d in ty.shape]), ty.dtype)

    def _extent(self, dim: PrimExpr) -> PrimExpr:
        if not isinstance(dim, Any):
            return dim
        self.count += 1
        extent: PrimExpr = SizeVar(f"any{self.count}", "int32")
        return extent


def SymbolicShapes() -> Pass:
    """The pass."""

    def run(mod: IRModule, _: PassContext) -> IRModule:
        return name_extents(infer_types(mod))

    return ModulePass(run, PassInfo(0, "SymbolicShapes"))
