"""Write a function around constructors and global functions that are used as values.

@map(Some, %xs)    ->    @map(fn [A](%x0: A) -> Option[A] { Some(%x0) }, %xs)
"""

from __future__ import annotations

from tvm.ir.adt import Constructor
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.ir.type import FuncType
from tvm.relay.analysis.infer import TypeInferencer
from tvm.relay.analysis.unify import fresh_variables
from tvm.relay.expr import Call, Var
from tvm.relay.function import Function
from tvm.relay.transform.common import FunctionPass
from tvm.relay.traverse import rewrite_function


def eta_expand(func: Function, mod: IRModule, kinds: tuple[type, ...]) -> Function:
    """`func` with functions in place of values of these kinds; callees stay."""
    inferencer = TypeInferencer(mod)

    def rewrite(old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if isinstance(old, Call) and isinstance(old.op, kinds) and isinstance(new, Call):
            return new if new.op is old.op else _with_callee(old, new)
        if isinstance(new, kinds):
            ty = inferencer.infer(new)
            return _expanded(new, ty) if isinstance(ty, FuncType) else new
        return new

    return rewrite_function(func, rewrite)


def _with_callee(old: Call, new: Call) -> Call:
    same = all([a is b for a, b in zip(old.args, new.args, strict=True)])
    return old if same else new.replace(op=old.op)


def _expanded(value: RelayExpr, ty: FuncType) -> Function:
    ty, _ = fresh_variables(ty)
    params = [Var(f"x{i}", arg_type) for i, arg_type in enumerate(ty.arg_types)]
    return Function(params, Call(value, params), ty.ret_type, ty.type_params)


def EtaExpand(expand_constructor: bool = False, expand_global_var: bool = False) -> Pass:
    """The pass.

    Parameters
    ----------
    expand_constructor : constructors that are no callees.
    expand_global_var : global functions that are no callees.
    """
    kinds: tuple[type, ...] = (Constructor,) if expand_constructor else ()
    kinds += (GlobalVar,) if expand_global_var else ()

    def run(func: Function, mod: IRModule, _: PassContext) -> Function:
        return eta_expand(func, mod, kinds)

    return FunctionPass(run, PassInfo(1, "EtaExpand"))
