"""Fused functions lowered one by one, and what is done with the calls afterwards."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np

import tvm
from tvm import relay
from tvm.relay.backend.lower_te import LowerTE
from tvm.relay.op.call import CallLoweredAttrs
from tvm.relay.transform import FuseOps, InferType, RemoveStandaloneReshapes


def lowered(mod: tvm.IRModule) -> tvm.IRModule:
    config = tvm.target.make_compilation_config(None, tvm.target.Target("llvm"))
    return InferType()(LowerTE("net", config)(InferType()(mod)))


def fused(*params: relay.Var, body: relay.Expr) -> tvm.IRModule:
    mod = tvm.IRModule.from_expr(relay.Function(list(params), body))
    return FuseOps(2)(InferType()(mod))


def test_calls_of_fused_functions_become_calls_of_loops() -> None:
    x = relay.var("x", shape=(4,))
    mod = lowered(fused(x, body=relay.exp(relay.annotation.stop_fusion(relay.exp(x)))))
    outer = mod["main"].body
    inner = outer.args[1].fields[0]
    assert outer.op.name == inner.op.name == "call_lowered"
    gvar = outer.args[0]
    assert gvar.name_hint == "net_fused_exp"
    assert inner.args[0] is gvar  # equal functions are one
    assert outer.attrs.metadata["relay_attrs"].Primitive == 1
    assert outer.attrs.metadata["all_prim_fn_vars"] == [gvar]
    kernel = tvm.build(tvm.IRModule({gvar: mod[gvar]}), target="llvm")
    data, out = tvm.nd.array(np.arange(4, dtype="float32")), tvm.nd.empty((4,))
    kernel[gvar.name_hint](data, out)
    np.testing.assert_allclose(out.numpy(), np.exp(np.arange(4)), rtol=1e-5)


def test_open_shapes_have_shape_functions() -> None:
    x, y = relay.var("x", shape=(relay.Any(), 3)), relay.var("y", shape=(3,))
    mod = lowered(fused(x, y, body=relay.add(x, y)))
    metadata = mod["main"].body.attrs.metadata
    assert list(metadata["prim_shape_fn_states"]) == [2, 2]
    assert (metadata["prim_shape_fn_num_inputs"], metadata["prim_shape_fn_num_outputs"]) == (2, 1)
    assert isinstance(mod[metadata["prim_shape_fn_var"]], tvm.tir.PrimFunc)


def test_functions_of_other_compilers_are_marked_and_compiled() -> None:
    seen: list[Any] = []
    tvm.register_func("relay.ext.lower_te_test", seen.append, override=True)
    x, p = relay.var("x", shape=(4,)), relay.var("p", shape=(4,))
    attrs = {"Primitive": 1, "Compiler": "lower_te_test", "global_symbol": "theirs"}
    func = relay.Function([p], relay.exp(p), attrs=attrs)
    mod = lowered(tvm.IRModule.from_expr(relay.Function([x], func(x))))
    assert len(seen) == 1
    assert dict(mod["theirs"].attrs.items()) == {"Extern": 1}
    call = mod["main"].body
    assert call.args[0].name_hint == "theirs"
    assert call.attrs.metadata["all_prim_fn_vars"] == []


def test_reshapes_by_themselves_are_removed() -> None:
    ty = relay.FuncType([relay.TensorType((2, 3))], relay.TensorType((2, 3)))
    f, reshape = relay.GlobalVar("f", ty), relay.GlobalVar("reshape", ty)
    x, a, b = (relay.var(name, shape=(2, 3)) for name in "xab")
    metadata = {"relay_attrs": tvm.ir.make_node("DictAttrs", **{"relay.reshape_only": 1})}

    def program(first: relay.Expr) -> tvm.IRModule:
        call = relay.op.get("call_lowered")
        second = relay.Call(call, [reshape, relay.Tuple([first])], CallLoweredAttrs(metadata=metadata))  # fmt: skip
        made = relay.Call(call, [f, relay.Tuple([x])], CallLoweredAttrs())
        body = relay.Let(a, made, relay.Let(b, second, b))
        y = relay.var("y", shape=(2, 3))
        inner = relay.Function([y], y)
        return tvm.IRModule({"main": relay.Function([x], body), f: inner, reshape: inner})

    found = RemoveStandaloneReshapes()(program(a))
    assert sorted(g.name_hint for g in found.get_global_vars()) == ["f", "main"]
    lets = found["main"].body
    assert lets.body.value is lets.value
    kept = RemoveStandaloneReshapes()(program(x))
    assert "reshape" in [g.name_hint for g in kept.get_global_vars()]


def test_global_functions_of_packages_imported_late_are_found() -> None:
    code = "import tvm; print(tvm.get_global_func('relay.tec.LowerTE').__name__)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "LowerTE"
