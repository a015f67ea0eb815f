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
from tvm.relay.traverse import PostOrderRewriter


def eta_expand(func: Function, mod: IRModule, kinds: tuple[type, ...]) -> Function:
    """`func` with functions in place of values of these kinds; callees stay."""
    return _EtaExpander(mod, kinds).run(func)


class _EtaExpander(PostOrderRewriter):
    def __init__(self, mod: IRModule, kinds: tuple[type, ...]) -> None:
        self.inferencer = TypeInferencer(mod)
        self.kinds = kinds

    def visit_call(self, new: Call, old: Call) -> Call:
        is_expanded = new.op is not old.op and isinstance(old.op, self.kinds)
        return _with_callee(old, new) if is_expanded else new

    def visit_constructor(self, new: Constructor, old: Constructor) -> RelayExpr:
        return self._expanded(new)

    def visit_global_var(self, new: GlobalVar, old: GlobalVar) -> RelayExpr:
        return self._expanded(new)

    def _expanded(self, value: RelayExpr) -> RelayExpr:
        ty = self.inferencer.infer(value) if isinstance(value, self.kinds) else None
        return _expanded(value, ty) if type(ty) is FuncType else value


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
