"""Make every local function a global one.

def @main(%x) {                           def @lambda_0(%x) { fn (%y) { add(%x, %y) } }   (Closure=1)
  let %f = fn (%y) { add(%x, %y) };  ->   def @main(%x) {
  %f(1f)                                    let %f = @lambda_0(%x);
}                                           %f(1f)
                                          }

A function that uses nothing of where it stands becomes a global function itself. Type parameters
of functions around it become its own.
"""

from __future__ import annotations

from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import ModulePass, Pass, PassContext, PassInfo
from tvm.ir.type import Type
from tvm.relay.analysis.contents import free_type_vars
from tvm.relay.expr import Call, Let, Var
from tvm.relay.function import Function, is_opaque, is_primitive, relay_functions
from tvm.relay.transform.infer_type import infer_types
from tvm.relay.traverse import PostOrderRewriter, free_vars, post_order, substitute
from tvm.support import UniqueNames

CLOSURE = "Closure"


def lambda_lift(mod: IRModule) -> IRModule:
    """The module with local functions lifted; typed."""
    names = UniqueNames()
    for gvar in mod.functions:
        names.reserve(gvar.name_hint)
    functions = dict(mod.functions)
    for gvar, func in relay_functions(mod).items():
        if not is_opaque(func):
            lifter = _Lifter(gvar.name_hint, names)
            functions[gvar] = lifter.lift_inside(func)
            functions.update(lifter.lifted)
    if len(functions) == len(mod.functions):
        return mod
    return infer_types(mod.with_functions(functions))


def _without_opened_closures(mod: IRModule) -> IRModule:
    """Functions that are closures no more, since other passes changed their bodies, as functions."""
    opened = {
        gvar: func.without_attr(CLOSURE)
        for gvar, func in mod.functions.items()
        if func.attrs.get(CLOSURE) and type(getattr(func, "body", None)) is not Function
    }
    return mod.with_functions({**mod.functions, **opened}) if opened else mod


class _Lifter(PostOrderRewriter):
    """Innermost functions first."""

    def __init__(self, owner: str, names: UniqueNames) -> None:
        self.owner = owner
        self.names = names
        self.lifted: dict[GlobalVar, Function] = {}
        self.own_name: dict[int, Var] = {}  # of functions bound by a let, which may call themselves
        self.kept: list[RelayExpr] = []

    def lift_inside(self, func: Function) -> Function:
        """`func` whose local functions are calls of lifted ones."""
        # the body of a lifted function is its closure, which stays
        self.kept = [func, func.body] if func.attrs.get(CLOSURE) else [func]
        for node in post_order(func):
            if type(node) is Let and type(node.value) is Function:
                self.own_name[id(node.value)] = node.var
        return self.run(func)

    def visit_function(self, new: Function, old: Function) -> RelayExpr:
        if is_primitive(new) or any([old is known for known in self.kept]):
            return new
        return self._lift(new, old.checked_type, self.own_name.get(id(old)))

    def _lift(self, func: Function, ty: Type, own_name: Var | None) -> RelayExpr:
        captured = [v for v in free_vars(func) if v is not own_name]
        gvar = GlobalVar(self.names.fresh(f"{self.owner}_lambda"))
        value: RelayExpr = Call(gvar, captured) if captured else gvar
        if own_name is not None:
            renamed = substitute(func, {own_name: value})
            assert isinstance(renamed, Function)
            func = renamed
        if not captured:
            types = (*func.type_params, *free_type_vars(func))
            self.lifted[gvar] = func.replace(type_params=types)
            return gvar
        params = [Var(v.name_hint, v.checked_type) for v in captured]
        inner = substitute(func, dict(zip(captured, params, strict=True)))
        made = Function(params, inner, ty, (), {CLOSURE: 1})
        self.lifted[gvar] = made.replace(type_params=tuple(free_type_vars(made)))
        return value


def LambdaLift() -> Pass:
    """The pass."""

    def run(mod: IRModule, _: PassContext) -> IRModule:
        return lambda_lift(infer_types(_without_opened_closures(mod)))

    return ModulePass(run, PassInfo(1, "LambdaLift"))
