"""The target kind `example_target_hook`, which shows where hooks have their effect: its sums subtract.

    def @f(%x, %y, Compiler="example_target_hook") { %x + %y }
->  @T.prim_func f(x, y, out) { for (i..) out[i] = x[i] - y[i] }

With the option `example_attribute`, the results are that number instead.
"""

from __future__ import annotations

from tvm import te, tir
from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.ir.transform import ModulePass, Pass, PassContext, PassInfo
from tvm.relay.expr import Call, Var
from tvm.relay.function import Function
from tvm.relay.op.registry import ops
from tvm.relay.ty import flat_types
from tvm.target import Target, register_target_kind

KIND = "example_target_hook"


def subtract_instead(func: Function, constant: int | None) -> tir.PrimFunc:
    """The loops of a function that adds its two parameters, with the wrong sign."""
    body = func.body
    if not isinstance(body, Call) or body.op is not ops.add or len(func.params) != 2:
        raise TVMError(f"{KIND} takes sums of two parameters", at=func)
    inputs = [te.placeholder(*_facts(p), name=p.name_hint) for p in func.params]
    shape, dtype = _facts(func)
    result = te.compute(
        shape,
        lambda *i: inputs[0][i] - inputs[1][i] if constant is None else tir.const(constant, dtype),
        name="result",
    )
    lowered = te.create_prim_func([*inputs, result])
    symbol = str(func.attrs["global_symbol"])
    return lowered.with_attr("global_symbol", symbol).with_attr("target", Target(KIND))


def _facts(expr: Function | Var) -> tuple[tuple[int, ...], str]:
    ty = getattr(expr.checked_type, "ret_type", expr.checked_type)
    tensor = flat_types(ty)[0]
    return tensor.concrete_shape, str(tensor.dtype)


def relay_to_tir() -> Pass:
    """The pass that lowers the functions for the kind."""

    def run(mod: IRModule, _: PassContext) -> IRModule:
        target = Target.current()
        constant = None if target is None else target.attrs.get("example_attribute")
        functions = {
            gvar: subtract_instead(func, constant)
            if isinstance(func, Function) and func.attrs.get("Compiler") == KIND
            else func
            for gvar, func in mod.functions.items()
        }
        return mod.with_functions(functions)

    return ModulePass(run, PassInfo(0, "RelayToTIR"))


register_target_kind(
    KIND,
    options={"example_attribute": "int"},
    attrs={"RelayToTIR": relay_to_tir(), "use_device_api": True},
    override=True,
)
