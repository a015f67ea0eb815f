"""What is known at compile time is done then; the rest computes the same."""

from __future__ import annotations

import numpy as np

import tvm
from tvm import relay
from tvm.relay import transform
from tvm.relay.transform import gradient

from .common import typed


def evaluated(mod: tvm.IRModule | relay.Function) -> relay.Function:
    mod = typed(mod) if isinstance(mod, relay.Function) else mod
    mod = transform.PartialEvaluate()(mod)
    for _ in range(2):
        mod = transform.DeadCodeElimination(inline_once=True, ignore_impurity=True)(mod)
    return mod["main"]


def ops(func: relay.Function) -> dict[str, int]:
    return relay.testing.count_ops(func)


def kinds(func: relay.Function) -> set[type]:
    return {type(n) for n in relay.analysis.post_order(func.body)}


x = relay.var("x", shape=(2, 3))
DATA = np.random.default_rng(0).uniform(0.5, 2, (2, 3)).astype("float32")


def value(func: relay.Function, *args: object) -> object:
    return relay.create_executor("debug").evaluate(func)(*args)


def test_projections_of_tuples_are_known() -> None:
    func = evaluated(relay.Function([x], relay.TupleGetItem(relay.Tuple([relay.exp(x), x]), 1)))
    assert isinstance(func.body, relay.Var)


def test_calls_of_known_functions_are_followed() -> None:
    f, y = relay.var("f"), relay.var("y", shape=(2, 3))
    body = relay.Let(f, relay.Function([y], relay.exp(y) + x), f(f(x)))
    func = evaluated(relay.Function([x], body))
    assert relay.Function not in kinds(func)
    assert ops(func) == {"exp": 2, "add": 2}
    np.testing.assert_allclose(
        value(func, DATA).numpy(), np.exp(np.exp(DATA) + DATA) + DATA, rtol=1e-5
    )


def test_contents_of_cells_are_known() -> None:
    r, u = relay.var("r"), relay.var("u")
    body = relay.Let(
        r,
        relay.RefCreate(x),
        relay.Let(u, relay.RefWrite(r, relay.exp(relay.RefRead(r))), relay.RefRead(r)),
    )
    func = evaluated(relay.Function([x], body))
    assert ops(func) == {"exp": 1}
    assert not kinds(func) & {relay.RefCreate, relay.RefRead, relay.RefWrite}


def test_constant_conditions_choose_their_branch() -> None:
    c = relay.less(relay.const(1), relay.const(2))
    func = evaluated(relay.Function([x], relay.If(c, relay.exp(x), relay.log(x))))
    assert ops(func) == {"exp": 1}


def test_recursion_over_constants_is_unrolled() -> None:
    mod = relay.parse("""
    def @power(%x: float32, %n: int32) -> float32 {
      if (%n == 0) { 1f } else { %x * @power(%x, %n - 1) }
    }
    def @main(%x: float32) -> float32 { @power(%x, 5) }""")
    func = evaluated(mod)
    assert ops(func) == {"multiply": 5}
    assert value(func, np.float32(2)).numpy() == 32


def test_recursion_over_values_of_the_run_stays() -> None:
    mod = relay.parse("""
    def @power(%x: float32, %n: int32) -> float32 {
      if (%n == 0) { 1f } else { %x * @power(%x, %n - 1) }
    }
    def @main(%x: float32, %n: int32) -> float32 { @power(%x, %n) }""")
    after = transform.PartialEvaluate()(mod)
    run = relay.create_executor("debug", mod=after).evaluate()
    assert run(np.float32(2), np.int32(70)).numpy() == 2.0**70


def test_matches_on_known_values_are_decided() -> None:
    p = relay.Prelude()
    _, cons, nil = p.mod.get_type("List")
    body = p.sum(
        p.map(
            relay.Function([n := relay.var("n", "int32")], n * n),
            cons(k := relay.var("k", "int32"), cons(k, nil())),
        )
    )
    p.mod["main"] = relay.Function([k], body)
    func = evaluated(transform.InferType()(p.mod))
    assert relay.adt.Match not in kinds(func)
    assert ops(func)["multiply"] == 2
    assert value(func, np.int32(3)).numpy() == 18


def test_effects_of_unknown_functions_are_kept() -> None:
    f = relay.var("f", relay.FuncType([], relay.TupleType([])))
    r, u, v = relay.var("r"), relay.var("u"), relay.var("v")
    c = relay.var("c", "bool")
    g = relay.var("g")
    write = relay.Function([], relay.RefWrite(r, relay.exp(x)))
    chosen = relay.If(c, write, relay.Function([], relay.Tuple([])))
    body = relay.Let(
        r,
        relay.RefCreate(x),
        relay.Let(g, chosen, relay.Let(u, relay.Call(g, []), relay.RefRead(r))),
    )
    func = transform.PartialEvaluate()(typed(relay.Function([c, x], body)))["main"]
    for flag, expected in ((True, np.exp(DATA)), (False, DATA)):
        np.testing.assert_allclose(value(func, np.array(flag), DATA).numpy(), expected, rtol=1e-5)
    del f, v


def test_gradients_become_plain_graphs() -> None:
    y = relay.var("y", shape=(2, 3))
    func = gradient(relay.Function([x, y], relay.exp(x) * y + relay.log(y)))
    plain = evaluated(func)
    assert not kinds(plain) & {relay.RefCreate, relay.RefRead, relay.RefWrite, relay.Function}
    found, (dx, dy) = relay.create_executor("graph").evaluate(plain)(DATA, DATA)
    np.testing.assert_allclose(found.numpy(), np.exp(DATA) * DATA + np.log(DATA), rtol=1e-5)
    np.testing.assert_allclose(dx.numpy(), np.exp(DATA) * DATA, rtol=1e-5)
    np.testing.assert_allclose(dy.numpy(), np.exp(DATA) + 1 / DATA, rtol=1e-5)


def test_gradient_of_a_deep_chain_becomes_a_plain_graph() -> None:
    body = x
    for _ in range(100):
        body = relay.tanh(body)
    plain = evaluated(gradient(relay.Function([x], body)))
    assert ops(plain)["tanh"] <= 200
    assert relay.Function not in kinds(plain)


def test_polymorphic_functions_are_followed_at_their_types() -> None:
    mod = relay.parse("""
    def @twice[A](%f: fn (A) -> A, %x: A) -> fn () -> A { fn () -> A { %f(%f(%x)) } }
    def @main(%x: float32) -> float32 {
      let %g = @twice(fn (%y: float32) -> float32 { exp(%y) }, %x);
      %g()
    }""")
    func = evaluated(mod)
    assert ops(func) == {"exp": 2}
    after = transform.PartialEvaluate()(mod)
    found = relay.create_executor("debug", mod=after).evaluate()(np.float32(0.5)).numpy()
    np.testing.assert_allclose(found, np.exp(np.exp(0.5)), rtol=1e-5)
