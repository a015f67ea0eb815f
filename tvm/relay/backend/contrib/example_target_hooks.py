"""The target kind `example_target_hook`, which shows where hooks have their effect: its sums subtract.

    def @f(%x, %y, Compiler="example_target_hook") { %x + %y }
->  @T.prim_func f(x, y, out) { for (i..) out[i] = x[i] - y[i] }

The option `example_attribute` is subtracted, too. Functions marked `tir_to_runtime` multiply: the hook
that compiles loops changes them once more.
"""

from __future__ import annotations

from tvm import te, tir
from tvm.driver import build
from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.ir.transform import ModulePass, Pass, PassContext, PassInfo
from tvm.ir.visitor import Rewriter
from tvm.relay.expr import Call, Var
from tvm.relay.function import Function
from tvm.relay.op.registry import ops
from tvm.relay.ty import flat_types
from tvm.runtime.module import Module
from tvm.target import Target, register_target_kind

KIND = "example_target_hook"
_MARK = "tir_to_runtime"


def subtract_instead(func: Function, constant: int) -> tir.PrimFunc:
    """The loops of a function that adds its two parameters, with the wrong sign."""
    body = func.body
    if not isinstance(body, Call) or body.op is not ops.add or len(func.params) != 2:
        raise TVMError(f"{KIND} takes sums of two parameters", at=func)
    inputs = [te.placeholder(*_facts(p), name=p.name_hint) for p in func.params]
    shape, dtype = _facts(func)
    result = te.compute(
        shape,
        lambda *i: inputs[0][i] - inputs[1][i] - tir.const(constant, dtype),
        name="result",
    )
    lowered = te.create_prim_func([*inputs, result])
    attrs = {"global_symbol": str(func.attrs["global_symbol"]), "target": Target(KIND)}
    if func.attrs.get(_MARK):
        attrs[_MARK] = True
    return lowered.with_attrs(attrs)


def _facts(expr: Function | Var) -> tuple[tuple[int, ...], str]:
    ty = getattr(expr.checked_type, "ret_type", expr.checked_type)
    tensor = flat_types(ty)[0]
    return tensor.concrete_shape, str(tensor.dtype)


def relay_to_tir() -> Pass:
    """The pass that lowers the functions for the kind."""

    def run(mod: IRModule, _: PassContext) -> IRModule:
        target = Target.current()
        constant = 0 if target is None else int(target.attrs.get("example_attribute", 0))
        functions = {
            gvar: subtract_instead(func, constant)
            if isinstance(func, Function) and func.attrs.get("Compiler") == KIND
            else func
            for gvar, func in mod.functions.items()
        }
        return mod.with_functions(functions)

    return ModulePass(run, PassInfo(0, "RelayToTIR"))


class Multiplier(Rewriter):
    """Leaves products where there were differences."""

    def visit_sub(self, expr: tir.Sub) -> tir.PrimExpr:
        return tir.Mul(self.visit(expr.a), self.visit(expr.b))


def tir_to_runtime(mod: IRModule, _: Target) -> Module:
    """The module of the lowered functions, compiled for the target of the rest of the model."""
    functions = {
        gvar: func.with_body(Multiplier().visit(func.body))
        if isinstance(func, tir.PrimFunc) and func.attrs.get(_MARK)
        else func
        for gvar, func in mod.functions.items()
    }
    return build(mod.with_functions(functions), target=Target.current())


register_target_kind(
    KIND,
    options={"example_attribute": "int"},
    attrs={
        "RelayToTIR": relay_to_tir(),
        "TIRToRuntime": tir_to_runtime,
        "use_device_api": True,
    },
    override=True,
)
