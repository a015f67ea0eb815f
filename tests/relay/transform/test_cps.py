"""Programs in continuation-passing style compute the same."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.transform import to_cps, un_cps


def both_ways(func: relay.Function, mod: tvm.IRModule, *args: object) -> None:
    expected = relay.create_executor("debug", mod=mod).evaluate(func)(*args).numpy()
    passing = to_cps(func, mod)
    assert isinstance(passing.params[-1].type_annotation, relay.FuncType)
    back = un_cps(passing)
    mod["back"] = back
    relay.transform.InferType()(mod)
    found = relay.create_executor("debug", mod=mod).evaluate(back)(*args)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


def test_operators_return_at_once() -> None:
    x = relay.var("x", shape=(2,))
    passing = to_cps(relay.Function([x], relay.exp(x) + x))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(passing))
    assert len(mod["main"].params) == 2
    both_ways(relay.Function([x], relay.exp(x) + x), tvm.IRModule(), np.array([1, 2], "float32"))


def test_closures_branches_and_lets() -> None:
    x, c, f, y = (
        relay.var("x", "float32"),
        relay.var("c", "bool"),
        relay.var("f"),
        relay.var("y", "float32"),
    )
    chosen = relay.If(c, relay.Call(f, [x]), x)
    body = relay.Let(f, relay.Function([y], y * x), relay.exp(chosen))
    for flag in (True, False):
        both_ways(relay.Function([x, c], body), tvm.IRModule(), np.float32(2), np.array(flag))


def test_recursion_and_data_types() -> None:
    mod = relay.parse("""
    type List[A] { Cons(A, List[A]), Nil, }
    def @product(%xs: List[float32]) -> float32 {
      match (%xs) { Cons(%x, %rest) => %x * @product(%rest), Nil => 1f, }
    }
    def @main(%x: float32) -> float32 { exp(@product(Cons(%x, Cons(%x, Nil)))) }""")
    both_ways(mod["main"], mod, np.float32(1.5))
    assert "product_cps" in mod


def test_global_functions_need_their_module() -> None:
    x = relay.var("x", "float32")
    t = relay.scalar_type("float32")
    gvar = relay.GlobalVar("g")
    mod = tvm.IRModule({gvar: relay.Function([x], x, t)})
    func = relay.Function([x], relay.Call(gvar, [x]), t)
    relay.analysis.infer_type_of(func, mod)
    with pytest.raises(tvm.error.TVMError, match="requires the module that defines @g"):
        to_cps(relay.Function([x], relay.Call(gvar, [x]), t))
    with pytest.raises(tvm.error.TVMError, match="last parameter"):
        un_cps(func)
